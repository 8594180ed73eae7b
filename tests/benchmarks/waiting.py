"""What waiting for checks costs, and a Run that is repaired once."""

from contextlib import closing
from pathlib import Path

from delivery.checks import Absence, Expected, Listing, Patience, Verdict, judge_checks
from delivery.github import Check, CheckState, GitHub
from runner.hub import Check as HubCheck
from runner.hub import Exchange, Hub, Wait
from tests.benchmarks.ground import REPAIRED, Ground
from tests.benchmarks.measure import Row, count
from tests.benchmarks.recording import record
from tests.scenarios.stage import NAME, WRITER
from tests.world import make_world

_HOUR = 3600.0


def waiting_rows(root: Path) -> list[Row]:
    """An hour of waiting for a pending check: what the hub is asked in as many looks as an hour has.

    GitHub counts no answer that is still the same (304) against the token's limit.
    """
    looks = _looks_of_an_hour()
    asked = [exchange for exchange in _looked(root, looks) if "/commits/" in exchange.path]
    counted = sum(exchange.status != 304 for exchange in asked)
    return [
        count("an hour of waiting for a pending check: API calls that count", counted, at_most=8),
        Row(
            "an hour of waiting for a pending check: looks; requests, those included that do not count",
            f"{looks}; {len(asked)}",
        ),
    ]


def repaired_rows(ground: Ground) -> list[Row]:
    """A Run whose check fails until its first Repair."""
    steps = record(ground, REPAIRED).steps
    return [
        Row(f"{REPAIRED} Run: git commands that we start", str(sum("argv" in step for step in steps))),
        Row(f"{REPAIRED} Run: API calls", str(sum("url" in step for step in steps))),
    ]


def _looks_of_an_hour() -> int:
    pending = Check(name="slow", state=CheckState.PENDING, url="")
    waited, looks = 0.0, 0
    while True:
        looks += 1
        step = judge_checks(
            Listing(checks=[pending], waited=waited, quiet=waited),
            expected=Expected(),
            absence=Absence.NOT_STARTED,
            patience=Patience(limit=_HOUR),
            merges=False,
        )
        if isinstance(step, Verdict):
            return looks
        waited += step.seconds


def _looked(root: Path, looks: int) -> list[Exchange]:
    """Look so often over HTTP, as `CheckWatch` does, at a commit whose check is over at the last look."""
    world, exchanges = make_world(root), list[Exchange]()
    repositories = {NAME: world.origin}
    with Hub(root / "hub", repositories=repositories, observe=exchanges.append) as hub:
        hub.ci.add(NAME, HubCheck("slow", concludes=Wait(polls=looks - 1)))
        with closing(GitHub(api_url=f"{hub.url}/api/v3", token=WRITER, repository=NAME)) as github:
            states = [check.state for _ in range(looks) for check in github.checks.of(world.on_origin("main"))]
    assert states == [CheckState.PENDING] * (looks - 1) + [CheckState.PASSED], states
    return exchanges
