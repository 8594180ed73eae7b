"""`kill -9` at any step: what was made is kept, and `nightkeep recover`, or the next Run, finishes the one killed."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from tests.proof import full, seed
from tests.scenarios.killing import (
    ENDINGS,
    Exchanges,
    Point,
    a_person_at_work,
    an_agent,
    begun,
    killed,
    left_over,
    lost,
    points,
    recover,
    told_truly,
    worktrees_without_a_record,
)
from tests.scenarios.repairing import QUICKLY
from tests.scenarios.stage import Stage, staged
from tests.world import World

pytestmark = pytest.mark.drawn

_T = TypeVar("_T")


def _sample(of: Sequence[_T], number: int, which: str) -> Sequence[_T]:
    return of if full() else random.Random(f"{seed()} {which}").sample(of, number)


# Those beyond the end of a command are skipped, so what passed is the number of points.
_EACH = {what: [(ending, point) for ending in ENDINGS for point in each] for what, each in points().items()}
_OF_A_RECOVERY = [point for each in points().values() for point in each]


def _kills(number: int, which: str, *endings: str) -> list[tuple[str, Point]]:
    each = {what: [kill for kill in kills if kill[0] in endings] for what, kills in _EACH.items()}
    return [kill for what, kills in each.items() for kill in _sample(kills, number, f"{which} {what}")]


@pytest.fixture
def exchanges() -> Exchanges:
    return Exchanges()


@pytest.fixture
def stage(tmp_path: Path, world: World, exchanges: Exchanges) -> Iterator[Stage]:
    """The usual stage, with a person at work in the clone."""
    with staged(tmp_path, world, lambda exchange: exchanges.append(exchange)) as made:
        a_person_at_work(made)
        yield made


def _run_killed(stage: Stage, ending: str, point: Point, exchanges: Exchanges) -> int:
    """Kill a Run at a point; return its issue's number."""
    number = stage.issue()
    merge = ["--merge"] if ending == "merged" else []
    if not killed(stage, ["run", stage.url(number), "--agent", an_agent(stage, ending), *merge], point, exchanges):
        pytest.skip("a Run has fewer steps")
    assert worktrees_without_a_record(stage) == []
    return number


def _finished(stage: Stage, persons: dict[str, str]) -> None:
    """Assert that nothing is lost and nothing left over, and that the person's is as it was."""
    assert (lost(stage) if begun(stage) else []) == [], str(stage.last)
    assert left_over(stage) == [], str(stage.last)
    assert stage._clone_as_it_is() == persons, str(stage.last)


@pytest.mark.parametrize(("ending", "point"), _kills(2, "recovery", *ENDINGS), ids=str)
def test_a_killed_run_is_finished_by_recovery(stage: Stage, exchanges: Exchanges, ending: str, point: Point) -> None:
    persons = stage._clone_as_it_is()
    number = _run_killed(stage, ending, point, exchanges)
    stage.last = done = recover(stage)
    kept_here = any((stage.clone / ".git" / "nightkeep" / "rescue").glob("*"))
    kept_here = kept_here and "there is nothing to recover" not in done.stderr  # killed when all but its end was said
    assert done.status == (3 if kept_here else 0), str(done)
    _finished(stage, persons)
    told_truly(stage, number)
    again = recover(stage)
    assert "there is nothing to recover" in again.stderr, str(again)


@pytest.mark.parametrize(("ending", "point"), _kills(1, "run", "delivered", "failed"), ids=str)
def test_a_killed_run_is_finished_by_the_next_one(
    stage: Stage, exchanges: Exchanges, ending: str, point: Point
) -> None:
    persons = stage._clone_as_it_is()
    number = _run_killed(stage, ending, point, exchanges)
    stage.last = result = stage.command(
        *("run", stage.url(number), "--agent", stage.agent("echo on > lamp.txt")),
        *("--token-file", str(stage.token_file)),
        **QUICKLY,
    )
    assert result.status == 0, str(result)
    _finished(stage, persons)
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"
    assert not stage.pull()["draft"]
    assert "in-progress" in stage.labels(number)


@pytest.mark.parametrize("point", _sample(_OF_A_RECOVERY, 3, "recovery"), ids=str)
def test_a_killed_recovery_is_finished_by_the_next_one(stage: Stage, exchanges: Exchanges, point: Point) -> None:
    persons = stage._clone_as_it_is()
    number = _run_killed(stage, "failed", Point("git", 14, "after"), exchanges)
    assert begun(stage)
    if not killed(stage, ["recover"], point, exchanges):
        pytest.skip("a recovery has fewer steps")
    assert worktrees_without_a_record(stage) == []
    stage.last = recover(stage)
    _finished(stage, persons)
    told_truly(stage, number)
