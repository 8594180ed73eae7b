"""Checkpoints: commits of all there is, made without touching anything, and only when something has changed."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.worktree.runs import create, records
from tests.world import World, commit, git
from worktree import CheckpointRule, Interruption, Launch, PreservationError, Watch, Worktree

AT_ONCE = CheckpointRule(every=0)


def checkpoint(world: World, wt: Worktree, watch: Watch) -> str:
    """Take notice that time has passed; return the last checkpoint, "" for none."""
    watch.tick()
    return git(world.launch, "rev-parse", "--quiet", "--verify", f"refs/nightkeep/checkpoints/{wt.run_id}", check=False)


def on_origin(world: World, wt: Worktree) -> str:
    return world.on_origin(f"refs/nightkeep/checkpoints/{wt.run_id}")


def test_nothing_is_made_of_nothing_and_nothing_again_of_the_same(world: World) -> None:
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, pytest.fail)
        assert checkpoint(world, wt, watch) == ""
        (wt.path / "new.txt").write_text("new\n")
        first = checkpoint(world, wt, watch)
        assert git(world.launch, "show", f"{first}:new.txt") == "new"
        objects = set((world.launch / ".git" / "objects").rglob("*"))
        assert checkpoint(world, wt, watch) == first
        assert set((world.launch / ".git" / "objects").rglob("*")) == objects


CHANGES: dict[str, Callable[[Worktree], object]] = {
    "a file of the same size, within the same second": lambda wt: (wt.path / "a.txt").write_text("b\n"),
    "a file deep in a directory that git shows as one": lambda wt: (wt.path / "deep" / "er" / "x").write_text("y\n"),
    "a file behind a hidden flag": lambda wt: (wt.path / "b.txt").write_text("hidden\n"),
    "a commit": lambda wt: commit(wt.path, "made"),
    "a mode": lambda wt: (wt.path / "a.txt").chmod(0o755),
    "a name that is no UTF-8": lambda wt: open(os.fsencode(wt.path) + b"/\xff", "w").close(),  # noqa: PTH123
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_makes_another(world: World, change: Callable[[Worktree], object]) -> None:
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, pytest.fail)
        (wt.path / "deep" / "er").mkdir(parents=True)
        (wt.path / "deep" / "er" / "x").write_text("x\n")
        (wt.path / "a.txt").write_text("a!\n"[:2])
        git(wt.path, "update-index", "--assume-unchanged", "b.txt")
        first = checkpoint(world, wt, watch)
        change(wt)
        second = checkpoint(world, wt, watch)
        assert second not in ("", first)
        assert git(world.launch, "rev-parse", f"{second}^@").split()[-1] == first


def test_what_is_staged_alone_is_in_it_and_nothing_of_the_worktree_changes(world: World) -> None:
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, pytest.fail)
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("in the file\n")
        before = git(wt.path, "status", "--porcelain"), git(wt.path, "ls-files", "--stage"), git(wt.path, "reflog")
        (wt.path / ".git").read_text()
        made = checkpoint(world, wt, watch)
        after = git(wt.path, "status", "--porcelain"), git(wt.path, "ls-files", "--stage"), git(wt.path, "reflog")
        assert after == before
        assert git(world.launch, "show", f"{made}^2:a.txt") == "staged"
        assert git(world.launch, "show", f"{made}:a.txt") == "in the file"


def test_it_works_while_somebody_holds_the_index(world: World) -> None:
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, pytest.fail)
        git_directory = wt.path / git(wt.path, "rev-parse", "--git-dir")
        (git_directory / "index.lock").touch()
        (wt.path / "new.txt").write_text("new\n")
        assert git(world.launch, "show", f"{checkpoint(world, wt, watch)}:new.txt") == "new"
        (git_directory / "index.lock").unlink()


def test_with_origin_each_goes_there_and_all_are_gone_in_the_end(world: World) -> None:
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, str)
        for number in range(3):
            (wt.path / "new.txt").write_text(f"{number}\n")
            assert checkpoint(world, wt, watch) == on_origin(world, wt) != ""
        wt.settle("made")
        wt.push()
    assert on_origin(world, wt) == ""
    assert records(world) == []
    assert "checkpoints" not in git(world.launch, "for-each-ref")


def test_they_stay_with_a_worktree_that_is_retained(world: World) -> None:
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, str)
        (wt.path / "new.txt").write_text("new\n")
        made = checkpoint(world, wt, watch)
        (wt.path / ".git").unlink()
    assert wt.ending.kept
    assert on_origin(world, wt) == made


def test_a_persons_own_commit_is_in_none_on_origin(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "mine")
    (world.launch / "mine.txt").write_text("private\n")
    mine = commit(world.launch, "a person's")
    told: list[str] = []
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, told.append)
        git(wt.path, "merge", "-q", "mine")
        assert git(world.launch, "rev-parse", f"{checkpoint(world, wt, watch)}^1") == mine
        assert on_origin(world, wt) == ""
        git(wt.path, "reset", "-q", "--hard", "main")
    assert told == [f"the checkpoint stays on this machine: commit {mine} in it was only on the person's own branches"]


def test_a_flood_of_files_is_no_checkpoint(world: World) -> None:
    told: list[str] = []
    with create(world) as wt:
        watch = wt.watch(replace(AT_ONCE, most_kept=2_000_000, most_sent=1_000_000), told.append)
        (wt.path / "large.bin").write_bytes(os.urandom(1_500_000))
        assert checkpoint(world, wt, watch) != ""
        assert on_origin(world, wt) == ""
        (wt.path / "larger.bin").write_bytes(os.urandom(1_500_000))
        before = checkpoint(world, wt, watch)
        assert "larger.bin" not in git(world.launch, "ls-tree", "--name-only", before)
        (wt.path / "larger.bin").unlink()
        (wt.path / "large.bin").unlink()
    assert told == [
        "the checkpoint stays on this machine: 1 MB of it are not on origin, more than 1",
        "no checkpoint could be made: 3 MB of files have changed, more than 2",
    ]


def test_what_head_left_behind_is_in_it_too(world: World) -> None:
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, pytest.fail)
        (wt.path / "made.txt").write_text("made\n")
        made = commit(wt.path, "made")
        (wt.path / "a.txt").write_text("stashed\n")
        git(wt.path, "stash", "-q")
        stashed = git(wt.path, "rev-parse", "stash")
        git(wt.path, "checkout", "-q", "--detach", "main")
        (wt.path / "a.txt").write_text("changed\n")
        held = git(world.launch, "rev-list", checkpoint(world, wt, watch)).splitlines()
        assert {made, stashed} <= set(held)


def test_an_agent_that_deletes_the_ref_does_not_end_them(world: World) -> None:
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, pytest.fail)
        (wt.path / "new.txt").write_text("new\n")
        git(wt.path, "update-ref", "-d", f"refs/nightkeep/checkpoints/{wt.run_id}", checkpoint(world, wt, watch))
        (wt.path / "new.txt").write_text("newer\n")
        assert git(world.launch, "show", f"{checkpoint(world, wt, watch)}:new.txt") == "newer"
        wt.settle("made")
        wt.push()
        assert on_origin(world, wt) == ""


def test_a_quiet_session_makes_another_so_that_it_is_not_taken_for_dead(world: World) -> None:
    with create(world) as wt:
        watch = wt.watch(replace(AT_ONCE, quiet=0), pytest.fail)
        (wt.path / "new.txt").write_text("new\n")
        first = checkpoint(world, wt, watch)
        assert checkpoint(world, wt, watch) == on_origin(world, wt) != first


def test_a_worktree_that_was_replaced_gets_none(world: World) -> None:
    told: list[str] = []
    with create(world) as wt:
        watch = wt.watch(AT_ONCE, told.append)
        wt.path.rename(wt.path.with_name("moved"))
        wt.path.symlink_to(world.launch)
        assert checkpoint(world, wt, watch) == checkpoint(world, wt, watch) == ""
        wt.path.unlink()
        wt.path.with_name("moved").rename(wt.path)
    assert told == [
        f"no checkpoint could be made: {wt.path} was replaced by something else, so nothing in it is touched"
    ]


def test_after_a_signal_preservation_begins_with_one(world: World) -> None:
    """Whatever the rest takes, and whoever ends it: what was made is in a commit by then."""
    interruption = Interruption()
    wt = Worktree.create(world.launch, branch="issue-7", base="main", interruption=interruption)
    (wt.path / "new.txt").write_text("new\n")
    interruption.record(15)
    seen = world.launch / ".git" / "seen"
    world.hook("pre-receive", f"env -i PATH=$PATH git --git-dir {world.launch / '.git'} show-ref > {seen}; exit 1")
    with wt, pytest.raises(PreservationError, match="issue-7"):
        wt.preserve_failed_run("main", "interrupted by SIGTERM")
    assert f"refs/nightkeep/checkpoints/{wt.run_id}" in seen.read_text()


def test_what_a_vanished_worktree_held_is_preserved_from_its_last_one(world: World) -> None:
    wt = create(world)
    watch = wt.watch(CheckpointRule(every=0, to_origin=False), pytest.fail)
    (wt.path / "new.txt").write_text("new\n")
    checkpoint(world, wt, watch)
    wt._checkout.directory.release()  # as the kernel does for a runner that was killed
    shutil.rmtree(wt.path)
    launch = Launch.open(world.launch, interruption=Interruption())
    with Worktree.reclaim(launch, wt.run_id) as again:
        again.preserve_failed_run("main", "killed")
    assert world.origin_file(f"refs/nightkeep/rescue/{wt.run_id}/snapshot", "new.txt") == "new"
    assert "checkpoints" not in git(world.launch, "for-each-ref")
