"""Short ways to start a run's worktree and to look at what became of it."""

import os
import subprocess
from pathlib import Path

from tests.world import World, git
from worktree import Interruption, Launch, Limits, Worktree

IMPATIENT = Limits(lock=0.3, command=30, push=30, stop=1)


def create(world: World, interruption: Interruption | None = None, *, limits: Limits = IMPATIENT) -> Worktree:
    latch = interruption or Interruption()
    launch = Launch.open(world.launch, interruption=latch, limits=limits)
    return Worktree.create(launch, branch="issue-7", base="main", interruption=latch)


def resume(world: World, branch: str = "issue-7") -> Worktree:
    latch = Interruption()
    launch = Launch.open(world.launch, interruption=latch, limits=IMPATIENT)
    return Worktree.resume(launch, branch=branch, base="main", interruption=latch)


def admin_of(wt: Worktree) -> Path:
    return Path(git(wt.path, "rev-parse", "--absolute-git-dir"))


def records(world: World) -> list[Path]:
    runs = world.launch / ".git" / "nightkeep" / "runs"
    return sorted(runs.iterdir()) if runs.exists() else []


def gone(wt: Worktree, world: World) -> bool:
    """Whether checkout, registration, admin directory, local branch, lock and record are all away."""
    listed = git(world.launch, "worktree", "list", "--porcelain")
    branch = git(world.launch, "branch", "--list", wt.branch)
    admin = list((world.launch / ".git" / "worktrees").glob("*"))
    return not wt.ending.kept and not (wt.path.exists() or str(wt.path) in listed or branch or admin or records(world))


def kept(wt: Worktree, world: World) -> bool:
    """Whether checkout, registration, local branch and record are all in place, and the ending says so."""
    listed = git(world.launch, "worktree", "list", "--porcelain")
    branch = git(world.launch, "branch", "--list", wt.branch)
    named = ("worktree", str(wt.path)) in wt.ending.places
    return wt.ending.kept and wt.path.is_dir() and str(wt.path) in listed and bool(branch and records(world)) and named


def origin_has(world: World, content: str | bytes) -> bool:
    """Whether a file of exactly that content can be read from some ref on origin."""
    raw = content.encode() if isinstance(content, str) else content
    hashed = subprocess.run(
        ["git", "hash-object", "--stdin"], cwd=world.origin, input=raw, stdout=subprocess.PIPE, check=True
    )
    return hashed.stdout.decode().strip() in git(world.origin, "rev-list", "--objects", "--all")


def origin_refs(world: World) -> str:
    return git(world.origin, "for-each-ref", "--format=%(objectname) %(refname)")


def names_on_origin(world: World, ref: str) -> set[str]:
    """Return the names in a tree on origin, as Python's `os` functions take them."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", ref], cwd=world.origin, stdout=subprocess.PIPE, check=True
    )
    return set(os.fsdecode(listed.stdout).split("\0")) - {""}
