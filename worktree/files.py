"""The files of a worktree as git sees them, and a tree of all of them through a private index."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from worktree.git import Git
from worktree.screening import TOO_LARGE


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


# Called with paths: returns those of them that are not to be staged, each with why.
Screen = Callable[[Collection[str]], Mapping[str, str]]


def everything_up_to(top: Path, limit: int) -> Screen:
    """Return what holds back only files over `limit` bytes."""
    return lambda paths: {path: TOO_LARGE for path in paths if _size(top / path) > limit}


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def stage_all(
    git: Git, listing: Listing, top: Path, screen: Screen, staged: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Stage what can be staged and is not held back; return the paths that are left out, each with why.

    `staged` is what the index has already and HEAD has not: what is held back of that is taken out of the index again.
    Left out are also repositories without a commit and files that cannot be read. Raises GitError when git failed for
    any other cause.
    """
    held_back = screen(listing.changed | listing.untracked | staged)
    _unstage(git, held_back.keys() & staged)
    excluded = [f":(top,exclude,literal){path}" for path in held_back]
    arguments = ("add", "--all", "--sparse", "--ignore-errors", "--", ":/", *excluded)
    done = git.run(*arguments, accept=(0, 1, 128))
    if done.status == 0 and not held_back:
        return {}
    rest = list_files(git, top)
    left = rest.changed | rest.untracked
    if done.status != 0 and (not left or not all(_unstageable(top / path) or path in held_back for path in left)):
        raise git.failure(arguments, done)
    return {path: held_back.get(path, "it could not be staged") for path in sorted(left | held_back.keys())}


def _unstage(git: Git, paths: Collection[str]) -> None:
    if paths:
        names = "\0".join(sorted(paths)).encode(errors="surrogateescape")
        literally = git.within(GIT_LITERAL_PATHSPECS="1")
        literally.run("reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=names)


def _unstageable(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        return (path / ".git").exists()
    return not os.access(path, os.R_OK, follow_symlinks=False)


@contextmanager
def private_index(git: Git, admin: Path, directory: Path, name: str = "index") -> Iterator[Git]:
    """Yield a git that stages into a copy of the worktree's index, kept in `directory` under that name.

    The real index is not touched, and a lock on it does not matter. The copy keeps its time: git trusts a file's
    size and time only against the index's own, and an edit of equal size could be missed otherwise.
    """
    copy = directory / name
    # Without an index git takes nothing for tracked, and all files for new ones.
    if os.path.lexists(admin / "index"):
        shutil.copy2(admin / "index", copy)
    try:
        yield git.within(GIT_INDEX_FILE=str(copy))
    finally:
        copy.unlink(missing_ok=True)
        copy.with_name(f"{name}.lock").unlink(missing_ok=True)


def write_complete_tree(
    git: Git, top: Path, screen: Screen, staged: frozenset[str] = frozenset()
) -> tuple[str, dict[str, str]]:
    """Stage everything, as `stage_all` does, into a private index, edits behind hidden flags too.

    Returns the tree, and what is not in it.
    """
    listing = list_files(git, top)
    if listing.hidden:
        show_hidden(git, listing.hidden)
        listing = list_files(git, top)
    left = stage_all(git, listing, top, screen, staged)
    return git.run("write-tree").text, left


def show_hidden(git: Git, paths: Collection[str]) -> None:
    """Take from paths in a private index the flags that tell git not to look at the file."""
    names = "\0".join(sorted(paths)).encode(errors="surrogateescape")
    for flag in ("--no-assume-unchanged", "--no-skip-worktree"):
        git.run("update-index", flag, "-z", "--stdin", stdin=names)
