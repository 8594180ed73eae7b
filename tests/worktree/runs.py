"""Short ways to start a run's worktree and to look at what became of it."""

import os
import subprocess
from pathlib import Path

from tests.world import World, git
from worktree import Interruption, Launch, Limits, Worktree
from worktree.store import Manifest, read_manifest

IMPATIENT = Limits(lock=0.3, command=30, push=30, stop=1)

Contents = dict[str, tuple[int, bytes]]


def opened(world: World) -> Launch:
    """Open the Launch repository."""
    return Launch.open(world.launch, interruption=Interruption(), limits=IMPATIENT)


def create(
    world: World,
    interruption: Interruption | None = None,
    *,
    limits: Limits = IMPATIENT,
    branch: str = "issue-7",
) -> Worktree:
    latch = interruption or Interruption()
    launch = Launch.open(world.launch, interruption=latch, limits=limits)
    return Worktree.create(launch, branch=branch, base="main", interruption=latch)


def resume(world: World, branch: str = "issue-7") -> Worktree:
    latch = Interruption()
    launch = Launch.open(world.launch, interruption=latch, limits=IMPATIENT)
    return Worktree.resume(launch, branch=branch, base="main", interruption=latch)


def admin_of(wt: Worktree) -> Path:
    return Path(git(wt.path, "rev-parse", "--absolute-git-dir"))


def records(world: World) -> list[Path]:
    runs = world.launch / ".git" / "nightkeep" / "runs"
    return sorted(runs.iterdir()) if runs.exists() else []


def aside(wt: Worktree) -> Path:
    """Where a worktree is while it is taken apart."""
    return wt.path.with_name(f"{wt.path.name}.removing")


def gone(wt: Worktree, world: World) -> bool:
    """Whether checkout, registration, admin directory, local branch, lock and record are all away."""
    listed = git(world.launch, "worktree", "list", "--porcelain")
    branch = git(world.launch, "branch", "--list", wt.branch)
    admin = list((world.launch / ".git" / "worktrees").glob("*"))
    there = wt.path.exists() or aside(wt).exists()
    return not wt.ending.kept and not (there or str(wt.path) in listed or branch or admin or records(world))


def kept(wt: Worktree, world: World) -> bool:
    """Whether checkout, registration, local branch and record are all in place, and the ending says so."""
    listed = git(world.launch, "worktree", "list", "--porcelain")
    branch = git(world.launch, "branch", "--list", wt.branch)
    named = ("worktree", str(wt.path)) in wt.ending.places
    there = wt.path.is_dir() and not aside(wt).exists()
    return wt.ending.kept and there and str(wt.path) in listed and bool(branch and records(world)) and named


def store_of(world: World, wt: Worktree) -> Path:
    """The run's place in the rescue store, which need not be there."""
    return world.launch / ".git" / "nightkeep" / "rescue" / wt.run_id


def stored(world: World, wt: Worktree) -> Path:
    """Return the tree in the rescue store, having seen that the ending names it and the manifest each entry in it."""
    store = store_of(world, wt)
    tree = store / "tree"
    ((_, where),) = [place for place in wt.ending.places if place[0] == "kept on this machine"]
    assert where.endswith(f" in {store}")
    assert set(os.listdir(tree)) <= reasons(world, wt).keys()  # noqa: PTH208 - names are all we need
    assert not (tree / ".git").exists()
    return tree


def reasons(world: World, wt: Worktree) -> dict[str, str]:
    """Return why each entry is in the rescue store, as the manifest says."""
    return {row.entry: row.why for row in manifest(world, wt).rows}


def manifest(world: World, wt: Worktree) -> Manifest:
    return read_manifest(store_of(world, wt))


def contents(top: Path, *entries: str) -> Contents:
    """Return type and mode, and bytes or target, of everything in a directory: all but its `.git`, or those entries."""
    found: Contents = {}
    for path in top.rglob("*"):
        name = str(path.relative_to(top))
        first = name.partition("/")[0]
        if first in entries or (not entries and first != ".git"):
            found[name] = (path.lstat().st_mode, _content(path))
    return found


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else b""


def kept_locally(world: World, content: str | bytes) -> bool:
    """Whether a file of exactly that content can be read from a rescue ref of the clone."""
    return _reaches(world.launch, content, "--glob=refs/nightkeep/rescue")


def origin_has(world: World, content: str | bytes) -> bool:
    """Whether a file of exactly that content can be read from some ref on origin."""
    return _reaches(world.origin, content, "--all")


def _reaches(repository: Path, content: str | bytes, refs: str) -> bool:
    raw = content.encode() if isinstance(content, str) else content
    hashed = subprocess.run(
        ["git", "hash-object", "--stdin"], cwd=repository, input=raw, stdout=subprocess.PIPE, check=True
    )
    return hashed.stdout.decode().strip() in git(repository, "rev-list", "--objects", refs)


def origin_refs(world: World) -> str:
    return git(world.origin, "for-each-ref", "--format=%(objectname) %(refname)")


def rescue_ref(wt: Worktree, name: str) -> str:
    return f"refs/nightkeep/rescue/{wt.run_id}/{name}"


def local_rescue_refs(world: World) -> list[str]:
    return git(world.launch, "for-each-ref", "--format=%(refname)", "refs/nightkeep").split()


def names_on_origin(world: World, ref: str) -> set[str]:
    """Return the names in a tree on origin, as Python's `os` functions take them."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", ref], cwd=world.origin, stdout=subprocess.PIPE, check=True
    )
    return set(os.fsdecode(listed.stdout).split("\0")) - {""}
