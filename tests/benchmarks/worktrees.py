"""One worktree of a large repository, step by step, against the git commands that a person would type."""

import time
from itertools import count
from pathlib import Path

from tests.benchmarks.measure import Row, Times, ratio
from tests.world import commit, git, make_world
from worktree import Interruption, Launch, Origin, Worktree

_FILES = 5_000
_FOLDERS = 100
_STEPS = ("create", "preserve", "clean-up")


def worktree_rows(root: Path, rounds: int) -> list[Row]:
    """The rows of a worktree in a repository of 5,000 files, with few and with many changed."""
    world = make_world(root)
    for number in range(_FILES):
        path = world.launch / f"folder-{number % _FOLDERS}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 100)
    commit(world.launch, "many files")
    git(world.launch, "push", "-q", "origin", "main")
    names = (f"issue-{number}" for number in count(1))
    rows = []
    for changed in (1, 1_000):
        turns = [
            (_ours(world.launch, next(names), changed), _bare(world.launch, next(names), changed))
            for _ in range(rounds + 1)
        ][1:]
        for place, step in enumerate(_STEPS):
            ours, bare = (Times(tuple(turn[side][place] for turn in turns)) for side in (0, 1))
            rows.append(ratio(f"worktree of {_FILES:,} files, {changed:,} changed: {step}", ours, bare))
    return rows


def _ours(launch: Path, branch: str, changed: int) -> list[float]:
    interruption = Interruption()
    laps = _Laps()
    opened = Launch.open(launch, interruption=interruption)
    url = opened.origin_url or ""
    with Worktree.create(opened, branch=branch, base="main", interruption=interruption, origin=Origin(url)) as wt:
        laps.lap()
        _change(wt.path, branch, changed)
        laps.skip()
        wt.preserve_failed_run("main", "agent exited 3")
        laps.lap()
    laps.lap()
    assert not wt.ending.kept, wt.ending
    return laps.taken


def _bare(launch: Path, branch: str, changed: int) -> list[float]:
    path = launch.with_name(f"{launch.name}-{branch}")
    laps = _Laps()
    git(launch, "worktree", "add", "-q", "--no-track", "-b", branch, str(path), "origin/main")
    laps.lap()
    _change(path, branch, changed)
    laps.skip()
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "failed run")
    git(path, "push", "-q", "origin", branch)
    laps.lap()
    git(launch, "worktree", "remove", "--force", str(path))
    git(launch, "branch", "-D", branch)
    laps.lap()
    return laps.taken


def _change(path: Path, text: str, changed: int) -> None:
    for number in range(changed):
        (path / f"folder-{number % _FOLDERS}" / f"{number}.txt").write_text(f"{text} {number}\n")


class _Laps:
    """A stop watch: what each step took, in seconds."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self._began = time.perf_counter()

    def lap(self) -> None:
        """Note what it took since the last lap."""
        self.taken.append(time.perf_counter() - self._began)
        self.skip()

    def skip(self) -> None:
        """Leave out what it took since the last lap."""
        self._began = time.perf_counter()
