"""Eight processes at once make, lose and recover worktrees in one clone, or in two clones of one origin."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import proof
from tests.worktree.contender import recover
from tests.worktree.runs import records
from tests.world import World, git

pytestmark = pytest.mark.drawn

_PROCESSES = 8
_SEEDS = range(proof.seed(), proof.seed() + (25 if proof.full() else 1))
_TIMES = 8 if proof.full() else 2  # deeds of each


@pytest.mark.timeout(600)
@pytest.mark.parametrize("clones", [1, 2], ids=["one-clone", "two-clones"])
@pytest.mark.parametrize("seed", _SEEDS)
def test_nothing_is_lost_nor_left_and_nobody_is_disturbed(world: World, seed: int, clones: int) -> None:
    worlds = [world]
    for number in range(1, clones):
        clone = world.launch.with_name(f"clone-{number}")
        git(world.launch.parent, "clone", "-q", str(world.origin), str(clone))
        worlds.append(World(world.origin, clone))
    contenders = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.worktree.contender", worlds[at % clones].launch, f"{seed}-{at}", str(_TIMES)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for at in range(_PROCESSES)
    ]
    said = [contender.communicate(timeout=500)[1] for contender in contenders]
    assert [contender.returncode for contender in contenders] == [0] * _PROCESSES, "\n".join(said)
    for one in worlds:
        assert recover(one.launch) == 0
        assert _left(one) == []
        assert _lost(one) == set()
    working = [child for child in psutil.Process().children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    assert working == []


def _lost(world: World) -> set[str]:
    """Return the marks that are neither on origin nor in the clone's rescue refs and store."""
    owed = set(world.launch.with_name(f"{world.launch.name}-owed").read_text().split())
    for repository, refs in ((world.origin, "--all"), (world.launch, "--glob=refs/nightkeep")):
        listed = git(repository, "rev-list", "--objects", refs)
        blobs = "\n".join(line.split(" ")[0] for line in listed.splitlines())
        command = ["git", "cat-file", "--batch"]
        done = subprocess.run(command, cwd=repository, input=blobs.encode(), capture_output=True, check=True)
        owed -= set(done.stdout.decode(errors="replace").split())
    store = world.launch / ".git" / "nightkeep" / "rescue"
    return owed - {file.read_text().strip() for file in store.rglob("*") if file.is_file() and file.suffix != ".json"}


def _left(world: World) -> list[str]:
    common = world.launch.resolve() / ".git"
    beside = world.launch.parent.glob(f"{world.launch.name}-issue*")
    return [
        *map(str, beside),
        *map(str, records(world)),
        *map(str, (common / "worktrees").glob("*")),
        *git(world.launch, "branch", "--list", "issue-*").split(),
        *map(str, common.rglob("*.lock")),
    ]
