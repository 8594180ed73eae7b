"""A clone in the middle of a person's work, and one run in it from its worktree to its end."""

import random
import shutil
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.worktree.conservation import MARK, PERSONS_MARK, Aftermath, held, search
from tests.worktree.runs import IMPATIENT, admin_of
from tests.world import World, commit, git, make_world
from worktree import Interruption, Launch, Limits, Worktree

BRANCH = "issue-7"


def make_ground(root: Path) -> None:
    """Make a world whose person has a branch, a stash, a dirty index and files of each kind that nobody else has."""
    root.mkdir()
    world = make_world(root)
    for path in ("src/s.txt", "docs/d.txt"):
        (world.launch / path).parent.mkdir()
        (world.launch / path).write_text("base\n")
    commit(world.launch, "directories")
    git(world.launch, "push", "-q", "origin", "main")
    _make_library(root)
    _leave_a_person_at_work(world)
    (root / "outside").mkdir()
    (root / "outside" / "precious.txt").write_text("precious\n")
    for repository in (world.origin, world.launch / ".git"):
        for sample in (repository / "hooks").iterdir():
            sample.unlink()


def _make_library(root: Path) -> None:
    library = root / "library"
    git(root, "init", "-q", "-b", "main", str(library))
    (library / "lib.txt").write_text("library\n")
    commit(library, "library")


def _leave_a_person_at_work(world: World) -> None:
    launch = world.launch
    git(launch, "checkout", "-q", "-b", "draft")
    (launch / "draft.txt").write_text(f"{PERSONS_MARK}draft\n")
    commit(launch, "a draft")
    git(launch, "checkout", "-q", "main")
    (launch / "a.txt").write_text(f"{PERSONS_MARK}stash\n")
    git(launch, "stash", "-q")
    (launch / "b.txt").write_text(f"{PERSONS_MARK}index\n")
    git(launch, "add", "b.txt")
    for path in ("a.txt", "b.txt", "notes.txt", "secret.env"):
        (launch / path).write_text(f"{PERSONS_MARK}{path}\n")


def copy_ground(ground: Path, root: Path) -> World:
    """Copy what `make_ground` made to `root`, where it is as if it had been made there."""
    shutil.copytree(ground, root, symlinks=True)
    world = World(root / "origin.git", root / "widget")
    config = world.launch / ".git" / "config"
    config.write_text(config.read_text().replace(str(ground), str(root)))
    return world


class Marks:
    """Byte strings that are nowhere else. `owed` says of each what it was planted as."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.owed: dict[bytes, str] = {}

    def new(self, what: str) -> str:
        """Return a mark that must be found after the run."""
        mark = MARK + self._random.randbytes(12).hex()
        self.owed[mark.encode()] = what
        return mark

    def keep(self, marks: Collection[bytes]) -> None:
        """Owe only these: whoever planted the others took them back."""
        self.owed = {mark: what for mark, what in self.owed.items() if mark in marks}


@dataclass(slots=True, kw_only=True)
class Scene:
    """A run in its with-block. `admin` is its git directory; `protected` are refs of others that appear on origin.

    What `undo` has to do is done once the block is left, before anybody looks.
    """

    world: World
    wt: Worktree
    latch: Interruption
    marks: Marks
    undo: ExitStack
    admin: Path = field(init=False)
    protected: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.admin = admin_of(self.wt)

    @property
    def top(self) -> Path:
        return self.wt.path

    @property
    def common(self) -> Path:
        return self.world.launch / ".git"

    @property
    def outside(self) -> Path:
        return self.world.launch.with_name("outside")

    @property
    def library(self) -> Path:
        return self.world.launch.with_name("library")

    def git(self, *arguments: str) -> str:
        """Run git in the worktree as its agent."""
        return git(self.top, *arguments)

    def attempt(self, *arguments: str) -> None:
        """Run git in the worktree where a failure is what is wanted, or as good as success."""
        git(self.top, *arguments, check=False)

    def write(self, path: str, what: str) -> str:
        """Write a new mark to a file and return it.

        Where an earlier deed made a link of the file's directory, that goes first: who writes through a link harms
        others by themselves.
        """
        mark = self.marks.new(what)
        file = self.top / path
        if file.parent.is_symlink():
            file.parent.unlink()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{mark}\n")
        return mark

    def commit(self, path: str, what: str) -> str:
        """Commit everything with a new mark in a file and another in the message; return the commit."""
        self.write(path, f"{what}: its file")
        return commit(self.top, self.marks.new(f"{what}: its message"))


class Act(Protocol):
    """Something that happens in a scene."""

    def __call__(self, scene: Scene) -> None: ...


class Abandoned(Exception):  # noqa: N818 - it is no error, it is how the block is left
    """Raised in a with-block that nobody finishes."""


def play(
    world: World, plant: Act, finish: Act, seed: str, *, resumes: bool = False, limits: Limits = IMPATIENT
) -> Aftermath:
    """Let a run hold something and end; return what is to be found afterwards, and where it said that it is."""
    if resumes:
        begun = git(world.origin, "commit-tree", "main^{tree}", "-p", "main", "-m", "begun before")
        git(world.origin, "update-ref", f"refs/heads/{BRANCH}", begun)
    latch = Interruption()
    launch = Launch.open(world.launch, interruption=latch, limits=limits)
    acquire = Worktree.resume if resumes else Worktree.create
    marks = Marks(seed)
    taken = acquire(launch, branch=BRANCH, base="main", interruption=latch)
    with ExitStack() as undo, suppress(Abandoned), taken as wt:
        scene = Scene(world=world, wt=wt, latch=latch, marks=marks, undo=undo)
        plant(scene)
        unseen = search(marks.owed, held(world, wt.path, scene.admin))
        assert not unseen, f"never planted: {[marks.owed[mark] for mark in unseen]}"
        finish(scene)
    return Aftermath(ending=wt.ending, admin=scene.admin, run_id=wt.run_id, owed=marks.owed, protected=scene.protected)
