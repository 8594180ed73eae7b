"""Checkpoints of a large repository, against the git commands that look or make one."""

import os
import random
import subprocess
from pathlib import Path

from tests.benchmarks.large import FILES, Large, age, change, create
from tests.benchmarks.measure import Row, Times, interleaved, ratio, seconds, timed
from tests.benchmarks.snapshots import take_bare
from tests.world import git
from worktree import CheckpointRule, Worktree

_NEVER = CheckpointRule(every=0, to_origin=False)
_AT_SIGNAL = {500: 20_000_000, 2_000: 100_000_000}  # changed files, and how many bytes they have together
_CHANGED = 100


def checkpoint_rows(large: Large, rounds: int) -> list[Row]:
    """The rows for a look that finds nothing new, for one that finds changed files, and for the first signal."""
    rows = [_unchanged(large, rounds), _changed(large, rounds)]
    return rows + [_at_signal(large, rounds, *amount) for amount in _AT_SIGNAL.items()]


def _unchanged(large: Large, rounds: int) -> Row:
    with create(large.opened(), large.next_branch()) as wt:
        age(wt.path)
        change(wt.path, "a", _CHANGED)
        watch = wt.watch(_NEVER, print)
        watch.tick()
        ours, bare = interleaved(rounds, timed(watch.tick), timed(lambda: git(wt.path, "status", "--porcelain")))
    return ratio(f"checkpoint of {FILES:,} files, nothing new; `git status`", ours, bare, at_most=1.5)


def _changed(large: Large, rounds: int) -> Row:
    with create(large.opened(), large.next_branch()) as wt:
        age(wt.path)
        watch = wt.watch(_NEVER, print)

        def take() -> float:
            change(wt.path, os.urandom(8).hex(), _CHANGED)
            return timed(watch.tick)()

        def bare() -> float:
            change(wt.path, os.urandom(8).hex(), _CHANGED)
            return timed(lambda: _bare(wt))()

        ours, without = interleaved(rounds, take, bare)
    return ratio(f"checkpoint of {FILES:,} files, {_CHANGED} changed; the bare recipe", ours, without, at_most=1.3)


def _bare(wt: Worktree) -> None:
    """Look, as somebody does who would not make one in vain, and make one."""
    git(wt.path, "status", "--porcelain")
    made = take_bare(wt.path, Path(git(wt.path, "rev-parse", "--absolute-git-dir")))
    git(wt.path, "update-ref", "refs/bare/checkpoint", made)


def _at_signal(large: Large, rounds: int, changed: int, size: int) -> Row:
    drawn = random.Random(7)
    times = []
    for _ in range(rounds):
        with create(large.opened(), large.next_branch()) as wt:
            age(wt.path)
            for number in range(changed):
                (wt.path / f"new-{number}.bin").write_bytes(drawn.randbytes(size // changed))
            times.append(timed(wt.watch(_NEVER, print).interrupted)())
            subprocess.run(["git", "clean", "-qdfx"], cwd=wt.path, check=True)
    what = f"the first signal: {changed:,} changed files, {size // 10**6} MB of what cannot be compressed"
    return seconds(what, Times(tuple(times)), at_most=1 if changed == min(_AT_SIGNAL) else None)
