"""A lock on the worktree's index costs no work, and is never taken from whoever may hold it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tests.worktree.runs import admin_of, create, gone, kept, origin_has
from tests.worktree.test_operations import dirty, stop_half_way
from tests.world import PERSON, World
from worktree import Interruption, Limits, PreservationError, Worktree
from worktree.git import Git
from worktree.state import read_state


def lock_of(wt: Worktree) -> Path:
    return admin_of(wt) / "index.lock"


@contextmanager
def committing(wt: Worktree) -> Iterator["subprocess.Popen[bytes]"]:
    """Let a person commit in the worktree, and think about the message in an editor."""
    command = ["git", *PERSON, "commit", "--quiet", "--all"]
    environment = {**os.environ, "GIT_EDITOR": "exec sleep 600 #"}
    with subprocess.Popen(command, cwd=wt.path, env=environment, start_new_session=True) as process:
        try:
            wait_for(lock_of(wt).exists)
            yield process
        finally:
            os.killpg(process.pid, 15)


def test_an_old_lock_that_nobody_holds_stays_and_the_work_is_on_origin(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / "n.txt").write_text("new\n")
        lock_of(wt).touch()
        os.utime(lock_of(wt), (1, 1))
        with pytest.raises(PreservationError, match=r"index\.lock"):
            wt.preserve_failed_run("main", "x")
    assert lock_of(wt).stat().st_mtime == 1
    assert origin_has(world, "edited\n")
    assert origin_has(world, "new\n")
    assert kept(wt, world)


def test_a_lock_that_vanishes_is_waited_for(world: World) -> None:
    with create(world, limits=Limits(lock=20)) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        lock_of(wt).touch()
        with subprocess.Popen(["sh", "-c", 'sleep 1; rm "$1"', "sh", str(lock_of(wt))]):
            wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert gone(wt, world)


def test_a_commit_that_waits_in_an_editor_is_not_disturbed_and_the_work_is_on_origin(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / "n.txt").write_text("new\n")
        with committing(wt) as person:
            with pytest.raises(PreservationError, match=r"index\.lock"):
                wt.preserve_failed_run("main", "x")
            assert (lock_of(wt).exists(), person.poll()) == (True, None)
    assert origin_has(world, "edited\n")
    assert origin_has(world, "new\n")
    assert kept(wt, world)


def test_whoever_holds_the_lock_is_named(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        with committing(wt) as person, pytest.raises(PreservationError, match=f"process {person.pid} "):
            wt.preserve_failed_run("main", "x")


def test_with_a_lock_every_byte_of_an_unfinished_merge_can_be_read_from_origin(world: World) -> None:
    with create(world) as wt:
        stop_half_way(wt, "merge")
        contents = dirty(wt, resolved=True, edited_again=True)
        lock_of(wt).touch()
        with pytest.raises(PreservationError):
            wt.preserve_failed_run("main", "x")
    assert [content for content in contents if not origin_has(world, content)] == []
    assert kept(wt, world)


def test_to_look_at_a_worktree_takes_no_lock(world: World) -> None:
    with create(world) as wt:
        os.utime(wt.path / "a.txt", (1, 1))
        index = admin_of(wt) / "index"
        before = index.read_bytes(), index.stat().st_ino
        git = Git(directory=wt.path, interruption=Interruption())
        assert read_state(git, admin_of(wt)).branch == "issue-7"
        assert (index.read_bytes(), index.stat().st_ino) == before
