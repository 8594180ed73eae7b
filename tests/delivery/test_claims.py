"""What a claim means for a run that wants the issue."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delivery.claims import (
    ClaimRecord,
    Expired,
    Free,
    Held,
    Ours,
    Seen,
    Standing,
    Unreadable,
    _read,
    judge_claim,
    why_not,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REF = "refs/nightkeep/claims/7"


def record(minutes: float = 1, **changed: Any) -> ClaimRecord:
    moment = NOW - timedelta(minutes=minutes)
    given: dict[str, Any] = {
        "nonce": "n" * 32,
        "run": "run-1",
        "host": "mill",
        "issue": "https://github.com/acme/widget/issues/7",
        "branch": "issue-7",
        "since": moment - timedelta(hours=1),
        "moment": moment,
        "clock": "server",
        "lease": 900,
    }
    return ClaimRecord.model_validate(given | changed)


def seen(found: ClaimRecord | None) -> Seen:
    return Seen(REF, "0" * 40, found)


@pytest.mark.parametrize(
    ("found", "nonce", "standing"),
    [
        (None, None, Free),
        (seen(record(0)), None, Held),
        (seen(record(14.9)), None, Held),
        (seen(record(15)), None, Expired),
        (seen(record(60 * 24 * 400)), None, Expired),
        (seen(record(1, lease=30)), None, Expired),
        (seen(record(16, lease=1000)), None, Held),
        (seen(record(-0.9)), None, Held),
        (seen(record(-1.1)), None, Unreadable),
        (seen(record(-60, clock="machine")), None, Unreadable),
        (seen(None), None, Unreadable),
        (seen(None), "n" * 32, Unreadable),
        (seen(record(1)), "n" * 32, Ours),
        (seen(record(60)), "n" * 32, Ours),
        (seen(record(-60)), "n" * 32, Ours),
        (seen(record(1)), "m" * 32, Held),
        (seen(record(60)), "m" * 32, Expired),
    ],
)
def test_a_claim_is_judged_by_its_age_and_its_nonce(
    found: Seen | None, nonce: str | None, standing: type[Standing]
) -> None:
    assert type(judge_claim(found, NOW, nonce)) is standing


def test_why_an_issue_cannot_be_taken_names_who_since_when_until_when_and_the_command() -> None:
    held = judge_claim(seen(record(5)), NOW)
    assert isinstance(held, Held)
    assert why_not(held, 7) == (
        "issue #7 is claimed: run run-1 on mill works on it since 2026-01-02T01:59:05Z, on the branch issue-7; wait "
        "for its end. If that machine is gone, run this again after 2026-01-02T03:14:05Z, or end the claim by hand: "
        f"git push origin --delete {REF}"
    )
    for found, words in (
        (None, "not what this version"),
        (record(-60, clock="machine"), "clock of its machine is wrong"),
    ):
        standing = judge_claim(seen(found), NOW)
        assert isinstance(standing, Unreadable)
        assert words in why_not(standing, 7)
        assert why_not(standing, 7).endswith(f"end the claim: git push origin --delete {REF}")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "[]",
        "{",
        '{"version": 1}',
        record().model_dump_json().replace('"version":1', '"version":2'),
        json.dumps(record().model_dump(mode="json") | {"more": 1}),
        json.dumps(record().model_dump(mode="json") | {"lease": 0}),
        json.dumps(record().model_dump(mode="json") | {"lease": 10**9}),
        json.dumps(record().model_dump(mode="json") | {"lease": float("nan")}),
        json.dumps(record().model_dump(mode="json") | {"moment": "2026-01-02T03:04:05"}),
        json.dumps(record().model_dump(mode="json") | {"nonce": ""}),
    ],
)
def test_what_is_no_record_of_ours_is_not_read_as_one(message: str) -> None:
    assert _read(message) is None


def test_a_record_is_read_as_it_was_written() -> None:
    assert _read(record().model_dump_json()) == record()
    assert _read(record().model_dump_json() + "\n") == record()
