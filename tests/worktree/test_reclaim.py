"""Going on with a run whose runner is gone touches nothing that is somebody else's by now."""

from contextlib import suppress

import pytest

from tests.worktree.left import leave_unfinished, refused, released
from tests.worktree.runs import create, gone, origin_has, origin_refs, records, store_of
from tests.world import World, commit, git
from worktree import Interruption, Launch, Worktree
from worktree.store import read_manifest


def test_a_branch_that_is_a_persons_by_now_is_neither_pushed_nor_deleted(world: World) -> None:
    wt = create(world)
    wt._checkout.directory.release()  # as the kernel does for a runner that was killed
    git(world.launch, "worktree", "remove", "--force", "--force", str(wt.path))
    git(world.launch, "checkout", "-q", "issue-7")
    (world.launch / "mine.txt").write_text("private\n")
    mine = commit(world.launch, "a person's")
    git(world.launch, "checkout", "-q", "main")
    before = origin_refs(world)
    launch = Launch.open(world.launch, interruption=Interruption())
    with Worktree.reclaim(launch, wt.run_id) as again:
        again.preserve_failed_run("main", "killed")
    assert (git(world.launch, "rev-parse", "issue-7"), origin_refs(world)) == (mine, before)
    assert records(world) == []


def test_an_index_that_a_snapshot_on_origin_has_keeps_no_worktree_of_a_delivered_run(world: World) -> None:
    wt = create(world)
    (wt.path / "made.txt").write_text("made\n")
    commit(wt.path, "made")
    (wt.path / "staged.txt").write_text("staged\n")
    git(wt.path, "add", "staged.txt")
    (wt.path / "staged.txt").write_text("edited\n")
    wt.settle("subject")
    wt.push()
    wt._checkout.directory.release()
    with Worktree.reclaim(Launch.open(world.launch, interruption=Interruption()), wt.run_id) as again:
        pass
    assert gone(again, world), again.ending
    assert origin_has(world, "staged\n")
    assert origin_has(world, "edited\n")


def test_what_was_copied_in_before_a_kill_is_not_taken_for_the_runs(world: World) -> None:
    (world.launch / ".worktreeinclude").write_text("secret.env\n")
    (world.launch / "secret.env").write_text("a person's\n")
    wt = create(world)
    (wt.private / "checkout.json").unlink()  # put down once all is copied
    wt._checkout.directory.release()
    with Worktree.reclaim(Launch.open(world.launch, interruption=Interruption()), wt.run_id) as again:
        again.preserve_failed_run("main", "killed")
    assert gone(again, world), again.ending
    assert not origin_has(world, "a person's\n")
    assert (world.launch / "secret.env").read_text() == "a person's\n"


def test_a_marker_that_a_killed_recovery_has_pushed_is_not_made_again(world: World) -> None:
    wt = create(world)
    (wt.path / "made.txt").write_text("made\n")
    wt._checkout.directory.release()
    launch = Launch.open(world.launch, interruption=Interruption())
    once = Worktree.reclaim(launch, wt.run_id)
    once.preserve_failed_run("main", "killed")
    once._checkout.directory.release()
    with Worktree.reclaim(launch.reopened(), wt.run_id) as again:
        again.preserve_failed_run("main", "killed")
    assert gone(again, world), again.ending
    assert git(world.origin, "log", "--format=%s", "main..issue-7") == "nightkeep: failed run (killed)"


@pytest.mark.parametrize("delivered", [True, False])
def test_a_reclaimed_run_counts_as_failed_unless_it_is_known_to_have_been_delivered(
    world: World,
    delivered: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    wt = create(world)
    (wt.path / "secret.env").write_text("the agent's\n")
    wt._checkout.directory.release()
    launch = Launch.open(world.launch, interruption=Interruption())
    with Worktree.reclaim(launch, wt.run_id, delivered=delivered):
        pass
    assert read_manifest(store_of(world, wt)).failed is not delivered


def test_a_retained_run_that_is_released_counts_as_failed(world: World) -> None:
    wt = refused(world, leave_unfinished)
    assert not released(world, wt).kept
    assert read_manifest(store_of(world, wt)).failed


def test_a_run_that_an_error_ends_counts_as_failed(world: World) -> None:
    with suppress(RuntimeError), create(world) as wt:
        (wt.path / "secret.env").write_text("the agent's\n")
        raise RuntimeError
    assert read_manifest(store_of(world, wt)).failed
