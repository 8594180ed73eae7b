"""One worktree of a large repository, step by step, against the git commands that a person would type."""

from tests.benchmarks.large import FILES, Large, age, change, create
from tests.benchmarks.measure import Laps, Row, Times, ratio
from tests.world import git

_STEPS = ("create", "preserve", "clean-up")
# By how many files were changed: of how many times the bare commands each step may take.
_AIMS = {1: (1.15, None, 1.3), 10_000: (None, 1.3, None)}


def worktree_rows(large: Large, rounds: int) -> list[Row]:
    """The rows of a worktree with few and with many changed files."""
    rows = []
    for changed, aims in _AIMS.items():
        turns = [(_ours(large, changed), _bare(large, changed)) for _ in range(rounds + 1)][1:]
        for place, (step, aim) in enumerate(zip(_STEPS, aims, strict=True)):
            ours, bare = (Times(tuple(turn[side][place] for turn in turns)) for side in (0, 1))
            rows.append(ratio(f"worktree of {FILES:,} files, {changed:,} changed: {step}", ours, bare, at_most=aim))
    return rows


def _ours(large: Large, changed: int) -> list[float]:
    branch = large.next_branch()
    launch = large.opened()
    laps = Laps()
    with create(launch, branch) as wt:
        laps.lap()
        age(wt.path)
        change(wt.path, branch, changed)
        laps.skip()
        wt.preserve_failed_run("main", "agent exited 3")
        laps.lap()
    laps.lap()
    assert not wt.ending.kept, wt.ending
    return laps.taken


def _bare(large: Large, changed: int) -> list[float]:
    branch = large.next_branch()
    path = large.place / "bare"
    laps = Laps()
    git(large.launch, "worktree", "add", "-q", "--no-track", "-b", branch, str(path), "origin/main")
    laps.lap()
    age(path)
    change(path, branch, changed)
    laps.skip()
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "failed run")
    git(path, "push", "-q", "origin", branch)
    laps.lap()
    git(large.launch, "worktree", "remove", "--force", str(path))
    git(large.launch, "branch", "-D", branch)
    laps.lap()
    return laps.taken
