"""A snapshot of changed files, against the git commands that make one without a look."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.benchmarks.large import FILES, Large, age, change
from tests.benchmarks.measure import Row, interleaved, ratio, timed
from tests.world import PERSON
from worktree import Origin, Worktree
from worktree.acquisition import acquire_new
from worktree.checkout import Checkout
from worktree.snapshot import take_snapshot
from worktree.state import State, read_state


def snapshot_rows(large: Large, rounds: int) -> list[Row]:
    """The rows for few and for many changed files, of which git has no object yet."""
    return [_row(large, rounds, changed) for changed in (100, 2_000)]


def _row(large: Large, rounds: int, changed: int) -> Row:
    launch = large.opened()
    checkout = acquire_new(launch, large.next_branch(), "main", Origin(launch.origin_url or ""), None, None, None)

    def take() -> float:
        change(checkout.path, os.urandom(8).hex(), changed)
        state = read_state(checkout.git, checkout.admin)
        return timed(lambda: _take(checkout, state))()

    def bare() -> float:
        change(checkout.path, os.urandom(8).hex(), changed)
        return timed(lambda: take_bare(checkout.path, checkout.admin))()

    with Worktree(checkout, launch.directory):
        age(checkout.path)
        ours, without = interleaved(rounds, take, bare)
    return ratio(f"snapshot of {FILES:,} files, {changed:,} changed", ours, without, at_most=1.3)


def _take(checkout: Checkout, state: State) -> None:
    screen, scratch = checkout.kept_from_salvage, checkout.directory.path
    git, admin, path = checkout.git, checkout.admin, checkout.path
    take_snapshot(git, admin, path, state, scratch=scratch, screen=screen, subject="snapshot")


def take_bare(path: Path, admin: Path) -> str:
    """Make a commit of the worktree at `path` through a copy of the index; return it."""
    index = admin / "private"
    shutil.copy2(admin / "index", index)
    _git(path, index, "add", "-A")
    tree = _git(path, index, "write-tree")
    made = _git(path, index, "commit-tree", tree, "-p", "HEAD", "-m", "snapshot")
    index.unlink()
    return made


def _git(path: Path, index: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_INDEX_FILE": str(index)}
    command = ["git", *PERSON, *arguments]
    done = subprocess.run(command, cwd=path, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.removesuffix("\n")
