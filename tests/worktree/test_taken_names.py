"""Branches and places that are taken already: nothing of anybody's is reused, and what is in the way is named."""

from pathlib import Path

import pytest

from tests.worktree.runs import create, kept, records, rescue_ref, resume
from tests.world import World, commit, git
from worktree import Interruption, LaunchError, PreservationError, Worktree


def checked_out_elsewhere(world: World) -> Path:
    """Let a person have the Issue branch checked out in a worktree of their own, with an edit."""
    theirs = world.launch.with_name("mine")
    git(world.launch, "worktree", "add", "-q", "-b", "issue-7", str(theirs))
    (theirs / "a.txt").write_text("dirty\n")
    return theirs


def test_a_branch_that_is_checked_out_elsewhere_is_named_and_its_edits_stay(world: World) -> None:
    theirs = checked_out_elsewhere(world)
    with pytest.raises(LaunchError, match="the local branch issue-7 in "):
        create(world)
    assert (theirs / "a.txt").read_text() == "dirty\n"
    assert git(theirs, "symbolic-ref", "HEAD") == "refs/heads/issue-7"
    assert records(world) == []


def test_a_branch_to_go_on_from_that_is_checked_out_elsewhere_is_named_with_the_place(world: World) -> None:
    git(world.launch, "push", "-q", "origin", "main:refs/heads/issue-7")
    theirs = checked_out_elsewhere(world)
    with pytest.raises(LaunchError, match=f"'issue-7' is already checked out at '{theirs}'"):
        resume(world)
    assert (theirs / "a.txt").read_text() == "dirty\n"
    assert records(world) == []


def test_a_branch_whose_name_begins_the_new_one_is_named(world: World) -> None:
    git(world.launch, "branch", "feature")
    before = git(world.launch, "for-each-ref")
    with pytest.raises(LaunchError, match="the local branch feature keeps git from making feature/issue-7"):
        Worktree.create(world.launch, branch="feature/issue-7", base="main", interruption=Interruption())
    assert git(world.launch, "for-each-ref") == before
    assert records(world) == []
    assert not world.launch.with_name("widget-feature-issue-7").exists()


@pytest.mark.parametrize("options", [(), ("--lock",)], ids=["unlocked", "locked"])
def test_a_place_whose_worktree_is_missing_is_left_alone_and_another_taken(
    world: World, options: tuple[str, ...]
) -> None:
    path = world.launch.with_name("widget-issue-7")
    git(world.launch, "worktree", "add", "-q", "--detach", *options, str(path))
    path.rename(path.with_name("unplugged"))
    with create(world) as wt:
        assert wt.path == world.launch.with_name("widget-issue-7-2")
    assert not wt.path.exists()
    assert str(path) in git(world.launch, "worktree", "list", "--porcelain")


def test_a_branch_with_commits_that_are_nowhere_else_stays_where_it_is(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "issue-7")
    (world.launch / "a.txt").write_text("unpushed\n")
    made = commit(world.launch, "unpushed")
    git(world.launch, "checkout", "-q", "main")
    with pytest.raises(LaunchError, match="git branch -m issue-7"):
        create(world)
    assert git(world.launch, "rev-parse", "issue-7") == made


@pytest.mark.parametrize("person", [False, True], ids=["nobody-between", "a-person-between"])
def test_a_second_run_from_the_base_branch_and_the_first_are_both_on_origin(world: World, *, person: bool) -> None:
    world.hook("update", 'echo "$1 $2 $3" >> "$GIT_DIR/updates"')
    with create(world) as first:
        (first.path / "a.txt").write_text("one\n")
        first.preserve_failed_run("main", "x")
    tip = world.on_origin("issue-7")
    if person:
        tip = git(world.origin, "commit-tree", "issue-7^{tree}", "-p", "issue-7", "-m", "a person's")
        git(world.origin, "update-ref", "refs/heads/issue-7", tip)
    with create(world) as second:
        (second.path / "a.txt").write_text("two\n")
        with pytest.raises(PreservationError) as caught:
            second.preserve_failed_run("main", "y")
    ref = rescue_ref(second, "head")
    assert kept(second, world)
    assert world.on_origin("issue-7") == tip
    assert [world.origin_file(name, "a.txt") for name in ("issue-7", ref)] == ["one", "two"]
    assert f" on {ref} on origin" in str(caught.value)
    assert ("head", f"{ref} at {world.on_origin(ref)} on origin") in second.ending.places
    updates = [line.split() for line in (world.origin / "updates").read_text().splitlines()]
    created = [name for name, old, new in updates if not old.strip("0") and new.strip("0")]
    assert created == [name for name, _, _ in updates] == ["refs/heads/issue-7", ref], "nothing is forced or deleted"
