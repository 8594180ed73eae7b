"""What a claim means for a run that wants the issue."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delivery.claims import (
    ClaimRecord,
    ClaimStanding,
    Expired,
    Free,
    Held,
    SeenClaim,
    Unreadable,
    claimed_issue,
    judge_claim,
    why_not,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REF = "refs/nightkeep/claims/7"


@pytest.mark.parametrize(("name", "number"), [("7", 7), ("07", None), ("7/x", None), ("x", None), ("\u0667", None)])
def test_which_refs_are_claims(name: str, number: int | None) -> None:
    assert claimed_issue(f"refs/nightkeep/claims/{name}") == number


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


def seen(found: ClaimRecord | None) -> SeenClaim:
    return SeenClaim(REF, "0" * 40, found)


@pytest.mark.parametrize(
    ("found", "standing"),
    [
        (None, Free),
        (seen(record(0)), Held),
        (seen(record(15)), Expired),
        (seen(record(-60, clock="machine")), Unreadable),
        (seen(None), Unreadable),
    ],
)
def test_a_claim_is_judged_by_the_age_of_its_record(found: SeenClaim | None, standing: type[ClaimStanding]) -> None:
    assert type(judge_claim(found, NOW)) is standing


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
