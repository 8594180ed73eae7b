"""What a record says, and whether the run lives that wrote it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delivery.lease import Dead, Doubtful, Lease, Live, lease_now
from worktree import Pace, ServerTime

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def lease(minutes: float = 1, **changed: Any) -> Lease:
    moment = NOW - timedelta(minutes=minutes)
    given: dict[str, Any] = {"nonce": "n" * 32, "run": "run-1", "host": "mill", "moment": moment, "clock": "server"}
    return Lease.model_validate(given | {"lease": 900} | changed)


@pytest.mark.parametrize(
    ("record", "verdict"),
    [
        (lease(0), Live),
        (lease(14.9), Live),
        (lease(15), Dead),
        (lease(60 * 24 * 400), Dead),
        (lease(1, lease=30), Dead),
        (lease(16, lease=1000), Live),
        (lease(-0.9), Live),
        (lease(-1.1), Doubtful),
        (lease(-60 * 24 * 365, clock="machine"), Doubtful),
    ],
)
def test_a_run_is_judged_by_the_age_of_its_record(record: Lease, verdict: type[Live | Dead | Doubtful]) -> None:
    assert type(record.judge(NOW)) is verdict


def test_a_run_that_lives_does_so_until_its_lease_ends() -> None:
    assert lease(5).judge(NOW) == Live(NOW + timedelta(minutes=10))


@pytest.mark.parametrize(("clock", "wrong"), [("machine", "the clock of its machine"), ("server", "one of the two")])
def test_a_doubt_says_the_two_times(clock: str, wrong: str) -> None:
    verdict = lease(-60, clock=clock).judge(NOW)
    assert isinstance(verdict, Doubtful)
    assert verdict.why.startswith(f"it says that it was made at 2026-01-02T04:04:05Z, and it is {NOW:%FT%TZ}: {wrong}")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "[]",
        "{",
        '{"version": 1}',
        "a commit of a person's",
        lease().model_dump_json().replace('"version":1', '"version":2'),
        *(
            json.dumps(lease().model_dump(mode="json") | change)
            for change in (
                {"more": 1},
                {"lease": 0},
                {"lease": 1e300},
                {"lease": float("nan")},
                {"moment": "2026-01-02T03:04:05"},
                {"moment": "9999-12-31T23:59:59-10:00"},
                {"moment": "0001-01-01T00:00:00+10:00"},
                {"nonce": ""},
            )
        ),
    ],
)
def test_what_nothing_can_be_judged_by_is_no_record(message: str) -> None:
    """Anybody who may push could have made it."""
    assert Lease.read(message) is None


def test_a_record_is_read_as_it_was_written_by_the_clock_that_was_heard() -> None:
    clock = ServerTime()
    first = lease_now("run-1", "n" * 32, clock, Pace())
    clock.hear("Fri, 02 Jan 2026 03:04:05 GMT")
    second = lease_now("run-1", "n" * 32, clock, Pace())
    assert (first.clock, second.clock, second.moment) == ("machine", "server", NOW)
    assert Lease.read(second.model_dump_json() + "\n") == second
