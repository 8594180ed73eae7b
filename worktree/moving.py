"""Moving a directory as it is, to where nothing may be yet."""

import ctypes
import errno
import os
from contextlib import suppress
from pathlib import Path

from worktree.copying import TreeCopy, delete_content, opened_directory
from worktree.mounts import mounts_below

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_NAMED = 5  # entries in a message


class LeftBehindError(OSError):
    """The target is whole, and the source still holds what could not be copied in time or not be deleted."""


def move(source: Path, target: Path) -> None:
    """Move the directory `source` to `target`, which must not exist; follows no link and replaces nothing.

    Within a file system this is one rename. Across, the tree is copied to `<target>.partial` (what an attempt that was
    killed left there is deleted), looked over, made durable and renamed; then exactly what was copied is deleted from
    `source`, each entry only if it is unchanged. Kept are bytes and holes, links of both kinds, fifos, sockets, modes
    and times, the extended attributes of files and directories where the target can hold them, and owners for root.

    Raises LeftBehindError when both exist in the end: `target` as it was copied, and `source` with what was written
    there meanwhile or could not be deleted. Raises any other OSError with `source` as it was and `target` too. When
    the process is killed, `target` is whole or not there, and what it does not hold is in `source`.
    """
    if source.is_symlink() or not source.is_dir():
        raise NotADirectoryError(f"{source} is no directory")
    try:
        _rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_across(source, target)


def _rename(source: Path, target: Path) -> None:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    paths = (_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target))
    code = errno.ENOSYS
    if renameat2 is not None:
        code = ctypes.get_errno() if renameat2(*paths, _RENAME_NOREPLACE) else 0
    if code in (errno.ENOSYS, errno.EINVAL):
        # Not every file system knows how to replace nothing. All that this can replace is an empty directory.
        source.rename(target)
    elif code:
        raise OSError(code, os.strerror(code), str(source), None, str(target))


def _move_across(source: Path, target: Path) -> None:
    mounts = mounts_below(source.resolve())
    if mounts:
        raise OSError(f"{source} cannot be moved to another file system: {mounts[0]} is mounted there")
    with opened_directory(source) as top:
        copy = _copy(top, target)
        copy.delete_originals()
    try:
        source.rmdir()
    except OSError as error:
        left = f"{target} is whole, but {source} still holds {_content(source)}: {error}"
        raise LeftBehindError(left) from error


def _content(directory: Path) -> str:
    try:
        return ", ".join(sorted(entry.name for entry in directory.iterdir())[:_NAMED]) or "itself"
    except OSError:
        return "what cannot be listed"


def _copy(source: int, target: Path) -> TreeCopy:
    """Copy an open directory to `target`, durably, or leave nothing there."""
    made = target.with_name(f"{target.name}.partial")
    if os.path.lexists(made):
        _discard(made)
    made.mkdir(mode=0o700)
    try:
        with opened_directory(made) as top:
            copy = TreeCopy(source, top)
            copy.make()
            _sync_file_system(top)
        _rename(made, target)
        made = target
        with opened_directory(target.parent.resolve()) as parent:
            os.fsync(parent)
    except BaseException:
        # The first cause is what the caller must hear of.
        with suppress(OSError):
            _discard(made)
        raise
    return copy


def _discard(copy: Path) -> None:
    with opened_directory(copy) as top:
        delete_content(top)
    copy.rmdir()


def _sync_file_system(descriptor: int) -> None:
    """Make all of a file system durable at once: for many small files that is far quicker than one by one."""
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        os.sync()
    elif syncfs(descriptor) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
