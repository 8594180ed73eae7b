"""The files of a worktree as git sees them, and a tree of all of them through a private index."""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from worktree.git import Git


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths of a worktree, relative to its top, as Python's `os` functions take them.

    `tracked` is everything in the index, `changed` what differs from it, `untracked` what is not in it (a nested
    repository ends with a slash), `hidden` what git was told not to look at although the file is there.
    """

    tracked: frozenset[str]
    changed: frozenset[str]
    untracked: frozenset[str]
    hidden: frozenset[str]


def list_files(git: Git, top: Path) -> Listing:
    """List the files of the worktree at `top`; ignored ones are not among them."""
    rows = git.run("ls-files", "-z", "-v", "--cached", "--modified", "--others", "--exclude-standard").fields
    groups: dict[str, set[str]] = {"tracked": set(), "changed": set(), "untracked": set(), "hidden": set()}
    for tag, path in ((row[0], row[2:]) for row in rows):
        groups[_group(tag)].add(path)
    hidden = {path for path in groups["hidden"] if os.path.lexists(top / path)}
    tracked = groups["tracked"] | groups["hidden"]
    return Listing(frozenset(tracked), frozenset(groups["changed"]), frozenset(groups["untracked"]), frozenset(hidden))


def _group(tag: str) -> str:
    if tag == "?":
        return "untracked"
    if tag in "CR":
        return "changed"
    # A small letter is assume-unchanged, an S skip-worktree.
    return "hidden" if tag.islower() or tag == "S" else "tracked"


def oversize(top: Path, paths: Collection[str], limit: int) -> list[str]:
    """Return those of `paths` that are files larger than `limit` bytes."""
    return sorted(path for path in paths if _size(top / path) > limit)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def stage_all(git: Git, listing: Listing, top: Path, limit: int) -> list[str]:
    """Stage what can be staged, and return the paths that cannot.

    Left out are files over `limit` bytes, repositories without a commit and files that cannot be read. Raises
    GitError when git failed for any other cause.
    """
    large = oversize(top, listing.changed | listing.untracked, limit)
    excluded = [f":(top,exclude,literal){path}" for path in large]
    arguments = ("add", "--all", "--sparse", "--ignore-errors", "--", ":/", *excluded)
    done = git.run(*arguments, accept=(0, 1, 128))
    if done.status == 0 and not large:
        return []
    rest = list_files(git, top)
    left = sorted(rest.changed | rest.untracked)
    if done.status != 0 and (not left or not all(_unstageable(top / path) or path in large for path in left)):
        raise git.failure(arguments, done)
    return left


def _unstageable(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        return (path / ".git").exists()
    return not os.access(path, os.R_OK, follow_symlinks=False)


@contextmanager
def private_index(git: Git, admin: Path, directory: Path) -> Iterator[Git]:
    """Yield a git that stages into a copy of the worktree's index, kept in `directory`.

    The real index is not touched, and a lock on it does not matter. The copy keeps its time: git trusts a file's
    size and time only against the index's own, and an edit of equal size could be missed otherwise.
    """
    copy = directory / "index"
    # Without an index git takes nothing for tracked, and all files for new ones.
    if os.path.lexists(admin / "index"):
        shutil.copy2(admin / "index", copy)
    try:
        yield git.within(GIT_INDEX_FILE=str(copy))
    finally:
        copy.unlink(missing_ok=True)
        copy.with_name("index.lock").unlink(missing_ok=True)


def write_complete_tree(git: Git, top: Path, limit: int) -> tuple[str, list[str]]:
    """Stage everything into a private index, edits behind hidden flags too; return the tree and what is not in it."""
    listing = list_files(git, top)
    if listing.hidden:
        names = "\0".join(sorted(listing.hidden)).encode(errors="surrogateescape")
        for flag in ("--no-assume-unchanged", "--no-skip-worktree"):
            git.run("update-index", flag, "-z", "--stdin", stdin=names)
        listing = list_files(git, top)
    left = stage_all(git, listing, top, limit)
    return git.run("write-tree").text, left
