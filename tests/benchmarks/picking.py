"""A pass of pickup with nothing to do: what it asks GitHub's API, and how long it takes."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from runner.hub import Hub, Permission
from runner.hub.deeds import Deeds
from tests.benchmarks.measure import Row, Timed, count, difference, interleaved, timed
from tests.scenarios.stage import NAME, NIGHTKEEP, WRITER
from tests.world import git, make_world

_ISSUES = 500


def _open(people: Deeds) -> None:
    """Nothing is labelled."""


def _blocked(people: Deeds) -> None:
    """All are labelled, and each but the last is blocked by the next, the last by one that is not ready."""
    for number in range(1, _ISSUES + 1):
        people.label(number, "olga", "ready-for-agent")
        people.block(number, number + 1, "olga")


_QUEUES: dict[str, tuple[Callable[[Deeds], None], int]] = {
    "none of them ready": (_open, 6),
    "all blocked": (_blocked, 6),
}


def picking_rows(root: Path, rounds: int) -> list[Row]:
    """The rows of passes over a repository with 500 open issues."""
    return [row for place, name in enumerate(_QUEUES) for row in _rows(root / str(place), name, rounds)]


def _rows(root: Path, name: str, rounds: int) -> list[Row]:
    root.mkdir()
    world = make_world(root)
    prepare, most = _QUEUES[name]
    with Hub(root / "hub", repositories={NAME: world.origin}, tokens={WRITER: Permission.WRITE}) as hub:
        git(world.launch, "remote", "set-url", "origin", f"{hub.url}/{NAME}.git")
        people = hub.people(NAME)
        for _ in range(_ISSUES + 1):
            people.open("eve")
        prepare(people)
        hub.requests.clear()
        one_pass = _pass(root, world.launch)
        one_pass()
        asked = len(hub.requests)
        took, nothing = interleaved(rounds, one_pass, timed(lambda: None))
    return [
        count(f"pickup with nothing to do, {_ISSUES} open issues, {name}: API calls", asked, at_most=most),
        difference(f"pickup with nothing to do, {_ISSUES} open issues, {name}; nothing", took, nothing),
    ]


def _pass(root: Path, clone: Path) -> Timed:
    token = root / "token"
    token.write_text(WRITER)
    environment = {**os.environ, "XDG_STATE_HOME": str(root / "state")}
    command = [*NIGHTKEEP, "pickup", "--agent", "true", "--token-file", str(token)]
    return timed(lambda: subprocess.run(command, cwd=clone, env=environment, capture_output=True, check=True))
