"""Ignored files that a task needs, copied from the Launch directory's checkout; and which are still the same there."""

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from worktree.errors import Interrupted
from worktree.git import Git

_PATTERNS = ".worktreeinclude"
_PIECE = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT)  # what goes wrong with every other file as well

_NESTED = "it belongs to a repository of its own"
_NOT_IGNORED = "git does not ignore it in the worktree, so it would be committed there"
_EXISTS = "something is there already"


@dataclass(frozen=True, slots=True)
class Included:
    """What was copied: the `paths` of files and links, relative; and what was `left`, as (path, why)."""

    paths: tuple[str, ...]
    left: tuple[tuple[str, str], ...]


def include(git: Git, top: Path, checkout: Path) -> Included:
    """Copy what the person's `.worktreeinclude` selects from the checkout at `top` into the new worktree at `checkout`.

    The file has the syntax of `.gitignore` and is taken as it lies in `top`, committed or not; without one no git is
    started. Only what git does not track and ignores in the worktree is copied: else the next commit there would
    publish it. Links are copied as links, files with their modes and times; nothing is overwritten, and nothing is
    reached through a link on either side. What git never lists (fifos, sockets, empty directories) is no part of it.

    `git` may be any view of the repository. Nobody else may work in the worktree yet. Raises GitError, Interrupted
    between two pieces of a file once a signal is recorded, and OSError when the disk is full; what was copied by then
    stays.
    """
    patterns = top / _PATTERNS
    if not os.path.lexists(patterns):
        return Included((), ())
    if patterns.is_symlink() or not patterns.is_file():
        return Included((), ((_PATTERNS, "it is no regular file, so it is not read"),))
    wanted = _wanted(git, top, checkout)
    results = _why_not(git, checkout, wanted)
    free = [path for path in wanted if path not in results]
    results |= dict(_copied(git, top, checkout, free))
    return Included(
        paths=tuple(path for path in wanted if results[path] is None),
        left=tuple((path, why) for path in wanted if (why := results[path]) is not None),
    )


def unchanged(top: Path, checkout: Path, paths: Iterable[str]) -> set[str]:
    """Return those of `paths` that are, in the worktree at `checkout`, what the same path is in `top` now.

    The same is a file of the same bytes and mode, or a link to the same target, at a path without links. One file
    under both names (by a mount, or a hard link) is not: there is no second one to keep. Whatever cannot be told is
    not the same. Nothing keeps somebody from changing either side a moment later.
    """
    same: set[str] = set()
    for parent, group in groupby(sorted(paths), key=_parent):
        with contextlib.suppress(OSError), ExitStack() as stack:
            ours, theirs = (_enter(stack, parent, _open_top(stack, tree)) for tree in (checkout, top))
            same.update(path for path in group if _is_same(_name(path), ours, theirs))
    return same


def _wanted(git: Git, top: Path, checkout: Path) -> list[str]:
    # The files of one and the index of the other: what is tracked, or a submodule, in the worktree is not selected.
    across = replace(git, directory=top, selectors=(f"--git-dir={checkout / '.git'}", f"--work-tree={top}"))
    return across.run("ls-files", "-z", "--others", "--ignored", f"--exclude-from={top / _PATTERNS}").fields


def _why_not(git: Git, checkout: Path, wanted: Sequence[str]) -> dict[str, str | None]:
    """Return why paths are not to be copied at all; each path that may be is missing."""
    blockers = {parent: _blocker(checkout, parent) for parent in {_parent(path) for path in wanted}}
    found: dict[str, str | None] = {}
    for path in wanted:
        if blocker := blockers[_parent(path)]:
            found[path] = f"{blocker} is no directory in the worktree"
    askable = [path for path in wanted if path not in found]
    ignored = _ignored(git, checkout, askable) if askable else set()
    found.update((path, _NOT_IGNORED) for path in askable if path not in ignored)
    return found


def _blocker(checkout: Path, directory: str) -> str | None:
    """Return the first part of a path that is something else than a directory, None when none is."""
    place = ""
    for name in _parts(directory):
        place = f"{place}/{name}" if place else name
        try:
            status = os.lstat(f"{checkout}/{place}")
        except FileNotFoundError:
            return None
        if not stat.S_ISDIR(status.st_mode):
            return place
    return None


def _ignored(git: Git, checkout: Path, paths: Collection[str]) -> set[str]:
    """Return those of `paths`, none of them tracked or beyond a link, that git ignores in the worktree."""
    here = replace(git, directory=checkout, selectors=())
    # The prefix keeps a colon from having a meaning. With the index git goes through all of it for each path.
    asked = b"".join(b"./%b\0" % os.fsencode(path) for path in paths)
    answer = here.run("check-ignore", "--no-index", "-z", "--stdin", stdin=asked, accept=(0, 1))
    return {path.removeprefix("./") for path in answer.fields}


def _copied(git: Git, top: Path, checkout: Path, paths: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Copy one path after the other, and yield each with None, or with why it could not be copied."""
    for parent, group in groupby(paths, key=_parent):
        with ExitStack() as stack:
            source, target = _open_top(stack, top), _open_top(stack, checkout)
            obstacle = None
            try:
                source, target = _enter_both(stack, parent, source, target)
            except OSError as error:
                obstacle = _why(error)
            for path in group:
                yield path, obstacle or _copy(git, _name(path), source, target)


def _copy(git: Git, name: str, source: int, target: int) -> str | None:
    _go_on(git)
    try:
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=target, follow_symlinks=False)
        else:
            _copy_file(git, name, source, target)
    except OSError as error:
        return _why(error)
    return None


def _copy_file(git: Git, name: str, source: int, target: int) -> None:
    with _open_regular(name, source) as original, _new_file(name, target) as copy:
        status = os.fstat(original.fileno())
        while _transfer(original.fileno(), copy):
            _go_on(git)
        os.fchmod(copy, status.st_mode & 0o777)
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))


def _transfer(source: int, target: int) -> int:
    """Append the next piece; return how many bytes that were, 0 at the end."""
    # Shares the blocks where the file system can, and refuses between two file systems. An end is asked for twice,
    # because some file systems say so of files that have more.
    with contextlib.suppress(OSError):
        if count := os.copy_file_range(source, target, _PIECE):
            return count
    return os.sendfile(target, source, None, _PIECE)


@contextmanager
def _new_file(name: str, directory: int) -> Iterator[int]:
    """Make a file that only its owner can read, and take it away again unless all goes well."""
    descriptor = os.open(
        name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory
    )
    try:
        yield descriptor
    except BaseException:
        os.unlink(name, dir_fd=directory)
        raise
    finally:
        os.close(descriptor)


def _open_regular(name: str, directory: int) -> BinaryIO:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is neither a file nor a link")
    return os.fdopen(descriptor, "rb")


def _is_same(name: str, ours: int, theirs: int) -> bool:
    try:
        here, there = (os.stat(name, dir_fd=directory, follow_symlinks=False) for directory in (ours, theirs))
        if os.path.samestat(here, there) or here.st_mode != there.st_mode or here.st_size != there.st_size:
            return False
        if stat.S_ISLNK(here.st_mode):
            return os.readlink(name, dir_fd=ours) == os.readlink(name, dir_fd=theirs)
        with _open_regular(name, ours) as one, _open_regular(name, theirs) as other:
            return _have_same_bytes(one, other)
    except OSError:
        return False


def _have_same_bytes(one: BinaryIO, other: BinaryIO) -> bool:
    while piece := one.read(_PIECE):
        if piece != other.read(_PIECE):
            return False
    return not other.read(1)


def _open_top(stack: ExitStack, tree: Path) -> int:
    descriptor = os.open(tree, _DIRECTORY)
    stack.callback(os.close, descriptor)
    return descriptor


def _enter(stack: ExitStack, path: str, directory: int) -> int:
    """Return a descriptor of the directory at `path` below another one, reached through no link."""
    for name in _parts(path):
        directory = os.open(name, _DIRECTORY, dir_fd=directory)
        stack.callback(os.close, directory)
    return directory


def _enter_both(stack: ExitStack, path: str, source: int, target: int) -> tuple[int, int]:
    """Enter a directory in both trees, and make it in the second one where it is missing."""
    for name in _parts(path):
        source = _enter(stack, name, source)
        # Git lists another repository as one directory; of a broken one, which it does not recognise, the files.
        if os.access(".git", os.F_OK, dir_fd=source, follow_symlinks=False):
            raise OSError(errno.EXDEV, _NESTED)
        made = _make_directory(name, target)
        target = _enter(stack, name, target)
        if made:
            os.fchmod(target, os.fstat(source).st_mode & 0o777 | 0o700)
    return source, target


def _make_directory(name: str, parent: int) -> bool:
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        return False
    return True


def _go_on(git: Git) -> None:
    if git.interruption.recorded and not git.finishing:
        raise Interrupted(["git"], git.directory, status=None)


def _why(error: OSError) -> str:
    """Return what went wrong with one path, or raise the error when it is not about that path."""
    if error.errno in _FULL:
        raise error
    return _EXISTS if isinstance(error, FileExistsError) else str(error.strerror or error)


def _parts(path: str) -> list[str]:
    return path.split("/") if path else []


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
