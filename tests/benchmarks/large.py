"""A large repository, and worktrees of it, for what grows with the number of files."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import count
from pathlib import Path

from tests.world import commit, git, make_world
from worktree import Interruption, Launch, Origin, Worktree

FILES = 20_000
_FOLDERS = 100


class Large:
    """A clone of a repository of 20,000 files, whose origin is a bare one on the same disk.

    `place` is where its worktrees are.
    """

    def __init__(self, root: Path) -> None:
        world = make_world(root)
        self.launch = world.launch
        self.place = root
        self._names = (f"issue-{number}" for number in count(1))
        for number in range(FILES):
            path = _file(self.launch, number)
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{number}\n" * 100)
        commit(self.launch, "many files")
        git(self.launch, "push", "-q", "origin", "main")

    def with_worktrees_in(self, place: Path) -> "Large":
        """Return the same clone, whose worktrees are made elsewhere."""
        other = copy(self)
        other.place = place
        return other

    def next_branch(self) -> str:
        """Return a branch's name that nobody has used yet."""
        return next(self._names)

    def opened(self) -> Launch:
        """Open the clone as a run does."""
        return replace(Launch.open(self.launch, interruption=Interruption()), worktrees=self.place)

    @contextmanager
    def bare_worktree(self) -> Iterator[Path]:
        """A worktree that git makes, and takes away without a look."""
        path, branch = self.place / "bare", self.next_branch()
        git(self.launch, "worktree", "add", "-q", "--no-track", "-b", branch, str(path), "origin/main")
        yield path
        git(self.launch, "worktree", "remove", "--force", str(path))
        git(self.launch, "branch", "-D", branch)


def create(launch: Launch, branch: str) -> Worktree:
    """Make a worktree of an opened clone."""
    origin, latch = Origin(launch.origin_url or ""), launch.git.interruption
    return Worktree.create(launch, branch=branch, base="main", interruption=latch, origin=origin)


def age(path: Path) -> None:
    """Let the second pass in which the files of a worktree were written, and git look once, as before any agent's end.

    Of files as old as its index, to the second, git reads the bytes at each look.
    """
    time.sleep(1.1)
    git(path, "status")


def change(path: Path, text: str, changed: int) -> None:
    """Write something else to that many files of a worktree."""
    for number in range(changed):
        _file(path, number).write_text(f"{text} {number}\n")


def _file(top: Path, number: int) -> Path:
    return top / f"folder-{number % _FOLDERS}" / f"{number}.txt"
