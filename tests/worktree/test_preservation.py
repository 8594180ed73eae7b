"""A Failed run's work reaches origin, or stays here and is named."""

import re

from tests.world import World, commit, git
from worktree import Interruption, Preserved, Worktree


def create(world: World, interruption: Interruption | None = None) -> Worktree:
    return Worktree.create(world.launch, branch="issue-7", base="main", interruption=interruption or Interruption())


def gone(wt: Worktree, world: World) -> bool:
    listed = git(world.launch, "worktree", "list", "--porcelain")
    branch = git(world.launch, "branch", "--list", wt.branch)
    return not wt.path.exists() and str(wt.path) not in listed and not branch


def test_committed_and_uncommitted_work_is_pushed_under_a_marker_and_cleaned_up(world: World) -> None:
    with create(world) as wt:
        (wt.path / "committed.txt").write_text("one\n")
        first = commit(wt.path, "one")
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / "new.txt").write_text("new\n")
        wt.preserve_failed_run("main", "agent exited 3")
    message = git(world.origin, "log", "-1", "--format=%B", "issue-7")
    assert re.fullmatch(
        r"nightkeep: failed run \(agent exited 3\)\n\n\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, host \S+\. "
        r"Uncommitted work at the time of failure is included in this commit\.\n?",
        message,
    )
    assert git(world.origin, "rev-parse", "issue-7^") == first
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert world.origin_file("issue-7", "new.txt") == "new"
    assert gone(wt, world)
    assert (wt.ending.kept, wt.ending.preserved) == (False, Preserved.ORIGIN)
    assert git(world.origin, "log", "-1", "--format=%an %cn", "issue-7") == "Nightkeep Nightkeep"
    assert not list((world.launch / ".git" / "nightkeep" / "runs").iterdir())
