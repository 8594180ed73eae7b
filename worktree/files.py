"""The files of a worktree as git sees them, and a tree of all of them through a private index."""

import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from worktree.git import Completed, Git
from worktree.screening import TOO_LARGE

_AS_IT_WAS = b"H"  # in the index; whether it changed is in a row of its own
_STAGE = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
_ADD = ("add", "--all", "--sparse", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
_MOST_PIECES = 64  # git commands; each piece is staged by one
_LONGEST_REASON = 200  # characters
_UNSTAGED = "it could not be staged"


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths of a worktree, relative to its top, as Python's `os` functions take them.

    `changed` is what differs from the index, `untracked` what is not in it (a nested repository ends with a slash),
    `hidden` what git was told not to look at although the file is there.
    """

    changed: frozenset[str]
    untracked: frozenset[str]
    hidden: frozenset[str]


def list_files(git: Git, top: Path) -> Listing:
    """List the files of the worktree at `top`; ignored ones are not among them."""
    rows = git.run("ls-files", "-z", "-v", "--cached", "--modified", "--others", "--exclude-standard").stdout
    groups: dict[str, set[str]] = {"changed": set(), "untracked": set(), "hidden": set()}
    for row in rows.split(b"\0"):
        if row and row[:1] != _AS_IT_WAS:
            groups[_group(chr(row[0]))].add(os.fsdecode(row[2:]))
    hidden = {path for path in groups["hidden"] if os.path.lexists(f"{top}/{path}")}
    return Listing(frozenset(groups["changed"]), frozenset(groups["untracked"]), frozenset(hidden))


def _group(tag: str) -> str:
    if tag == "?":
        return "untracked"
    # A small letter is assume-unchanged, an S skip-worktree. An M has the sides of a conflict; its file may be one.
    return "hidden" if tag.islower() or tag == "S" else "changed"


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
    Left out are also repositories without a commit, files that cannot be read and whatever else git refuses. Raises
    GitError when the index itself cannot be written.
    """
    # What is where a link leads is not in this tree: of such a path git stages that it is gone.
    found = listing.changed | listing.untracked
    here = _not_through_a_link(top, found | staged)
    held_back = screen(here)
    _unstage(git, held_back.keys() & staged)
    if found <= here and _stage(git, found - held_back.keys()):
        return dict(sorted(held_back.items()))
    done = _add(git, [":/"], held_back)
    if done.status == 0 and not held_back:
        return {}
    rest = list_files(git, top)
    refused: dict[str, str] = {}
    if done.status != 0:
        left = rest.changed | rest.untracked
        unexplained = {path for path in left - held_back.keys() if not _unstageable(top / path)}
        if unexplained or not left:
            _require_writable_index(git, _ADD, done)
            refused = _stage_in_pieces(git, _not_through_a_link(top, unexplained), held_back)
            rest = list_files(git, top)
    reasons = {**refused, **held_back}
    return {path: reasons.get(path, _UNSTAGED) for path in sorted(rest.changed | rest.untracked | held_back.keys())}


def _stage(git: Git, paths: Collection[str]) -> bool:
    """Stage exactly those paths, without a look at others; False where git refuses one, or has anything to say."""
    if not paths:
        return True
    names = "".join(f"{path.removesuffix('/')}\0" for path in sorted(paths)).encode(errors="surrogateescape")
    done = git.run(*_STAGE, stdin=names, accept=range(256))
    if done.status != 0:
        _require_writable_index(git, _STAGE, done)
    return done.status == 0 and not done.stderr


def _not_through_a_link(top: Path, paths: Collection[str]) -> set[str]:
    """Return those of the paths none of whose directories is a symbolic link."""
    directories = {directory for path in paths for directory in _directories(path)}
    links = {directory for directory in directories if _is_link(top / directory)}
    return {path for path in paths if links.isdisjoint(_directories(path))} if links else set(paths)


def _directories(path: str) -> Iterator[str]:
    return (path[:at] for at, char in enumerate(path) if char == "/")


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:  # a name that is too long, say
        return False


def _add(git: Git, pathspecs: Iterable[str], held_back: Iterable[str]) -> Completed:
    """Stage what the pathspecs name but for what is held back, as far as git does."""
    names = "\0".join([*pathspecs, *(f":(top,exclude,literal){path}" for path in held_back)])
    return git.run(*_ADD, stdin=names.encode(errors="surrogateescape"), accept=(0, 1, 128))


def _require_writable_index(git: Git, arguments: Sequence[str], done: Completed) -> None:
    """Raise GitError, for what failed already, unless git can write the index; a lock has been waited for."""
    at_once = replace(git, limits=replace(git.limits, lock=0))
    if at_once.run("update-index", "--force-write-index", accept=range(256)).status != 0:
        raise git.failure(arguments, done)


def _stage_in_pieces(git: Git, paths: Collection[str], held_back: Iterable[str]) -> dict[str, str]:
    """Stage paths in ever smaller pieces, the larger ones first; return those that git refuses, each with why.

    After so many commands, or the time for one, what is left is not tried any more.
    """
    refused: dict[str, str] = {}
    deadline = time.monotonic() + git.limits.command
    pieces = deque([sorted(paths)] if paths else [])
    for _ in range(_MOST_PIECES):
        if not pieces or time.monotonic() > deadline:
            break
        piece = pieces.popleft()
        done = _add(git, [f":(top,literal){path}" for path in piece], held_back)
        if done.status != 0 and len(piece) == 1:
            refused[piece[0]] = _word_of(git, done, piece[0])
        elif done.status != 0:
            middle = len(piece) // 2
            pieces += [piece[:middle], piece[middle:]]
    return refused


def _word_of(git: Git, done: Completed, path: str) -> str:
    """Return in short why git refused a path, without the path, for that may be nobody's to see."""
    said = git.redact(os.fsdecode(done.stderr)).replace(f"'{path}'", "").splitlines()
    # What made git give up is its last word; else the first of its complaints is the cause of the others.
    fatal = [line.removeprefix("fatal: ") for line in said if line.startswith("fatal: ")]
    errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    word = next(iter([*fatal[-1:], *errors]), "").removeprefix(f"{path}: ").strip()
    return word[:_LONGEST_REASON] if word and path not in word else _UNSTAGED


def _unstage(git: Git, paths: Collection[str]) -> None:
    if paths:
        names = "\0".join(sorted(paths)).encode(errors="surrogateescape")
        literally = git.within(GIT_LITERAL_PATHSPECS="1")
        literally.run("reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=names)


def _unstageable(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        return (path / ".git").exists()
    return os.path.lexists(path) and not os.access(path, os.R_OK, follow_symlinks=False)


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
