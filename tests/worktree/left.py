"""Worktrees that were retained, and a short way to release them."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.worktree.runs import IMPATIENT, create, kept_locally, records, store_of
from tests.world import World, commit, git
from worktree import Ending, Interruption, Launch, PreservationError, Worktree
from worktree.holding import Holding, read_holding
from worktree.reclaim import read_held


def refused(world: World, leave: Callable[[Path], object]) -> Worktree:
    """Retain the worktree of a Failed run whose push origin refused."""
    world.hook("pre-receive", "echo no; exit 1")
    with create(world) as wt:
        leave(wt.path)
        with suppress(PreservationError):
            wt.preserve_failed_run("main", "the agent exited 3")
    assert wt.ending.kept, wt.ending
    return wt


def unfinished(world: World) -> Worktree:
    """Retain a worktree with an unfinished merge, and with a file of each kind."""
    with create(world) as wt:
        leave_unfinished(wt.path)
    assert wt.ending.why == "a merge is unfinished in it", wt.ending
    return wt


def leave_unfinished(path: Path) -> None:
    """Leave an unpushed commit, a conflict, a staged file that was edited since, an ignored and an untracked one."""
    (path / "a.txt").write_text("theirs\n")
    git(path, "branch", "-q", "side", commit(path, "the other side"))
    git(path, "reset", "-q", "--hard", "HEAD~1")
    (path / "a.txt").write_text("ours\n")
    commit(path, "unpushed")
    git(path, "merge", "-q", "side", check=False)
    (path / "staged.txt").write_text("staged only\n")
    git(path, "add", "staged.txt")
    for name in ("staged.txt", "secret.env", "new.txt"):
        (path / name).write_text(f"{name}\n")


def has_all(world: World, wt: Worktree) -> bool:
    """Whether everything that `leave_unfinished` left is in the store, or in a rescue ref."""
    tree = store_of(world, wt) / "tree"
    files = all((tree / name).read_text() == f"{name}\n" for name in ("staged.txt", "secret.env", "new.txt"))
    conflict = "<<<<<<<" in (tree / "a.txt").read_text()
    return files and conflict and kept_locally(world, "staged only\n") and kept_locally(world, "ours\n")


def gone(world: World, wt: Worktree) -> bool:
    """Whether nothing of the worktree is left: directory, registration, branch and record."""
    listed = git(world.launch, "worktree", "list", "--porcelain")
    there = os.path.lexists(wt.path) or wt.path.with_name(f"{wt.path.name}.removing").exists()
    return not (there or str(wt.path) in listed or git(world.launch, "branch", "--list", "issue-7") or records(world))


def released(world: World, wt: Worktree, there: dict[str, str] | None = None) -> Ending:
    """Release a worktree; `there` is what origin is seen to hold, None asks it."""
    launch = Launch.open(world.launch, interruption=Interruption(), limits=IMPATIENT)
    with Worktree.reopen(launch, wt.run_id, there=there) as again:
        pass
    return again.ending


def holding(world: World, wt: Worktree) -> Holding:
    """Look at what a retained worktree holds."""
    launch = Launch.open(world.launch, interruption=Interruption(), limits=IMPATIENT)
    return read_holding(launch, wt.run_id, None, read_held(launch.remote(), wt.run_id))


def everything(world: World, wt: Worktree) -> dict[str, tuple[int, float]]:
    """Return what tells whether any file of the worktree or the clone's git directory was touched."""
    files = [*wt.path.rglob("*"), *(world.launch / ".git").rglob("*")]
    return {str(file): (file.lstat().st_ino, file.lstat().st_mtime) for file in files}


def local_rescues(world: World) -> str:
    """Return every commit that a rescue ref of the clone reaches."""
    return git(world.launch, "rev-list", "--glob=refs/nightkeep/rescue")


def forget_rescues(world: World) -> None:
    """Delete the rescue refs of the clone, so that what is there later was made later."""
    for ref in git(world.launch, "for-each-ref", "--format=%(refname)", "refs/nightkeep").split():
        git(world.launch, "update-ref", "-d", ref)
