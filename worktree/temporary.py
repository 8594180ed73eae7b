"""Private temporary directories, which go with whoever made them, or with the next recovery."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "nightkeep-"
_MARK = ".made-by-nightkeep"  # what is swept has it: others may call theirs alike
_MADE = re.compile(re.escape(_PREFIX) + "[a-z0-9_]{8}")  # as `tempfile` calls them
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def temporary_directory() -> Iterator[tuple[Path, int]]:
    """Make a directory that only this user can read, and yield it with an open descriptor.

    It is removed with whatever is in it; links are removed, not followed. While this process lives it is locked.
    """
    directory, descriptor = _marked()
    try:
        yield directory, descriptor
    finally:
        os.close(descriptor)
        if directory.is_symlink():
            directory.unlink()
        else:
            shutil.rmtree(directory, ignore_errors=True)


def _marked() -> tuple[Path, int]:
    """Make the directory, locked and with the mark by which it is swept; return it with its descriptor."""
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):  # somebody swept it while it was empty
            return directory, _locked(directory)


def _locked(directory: Path) -> int:
    descriptor = os.open(directory, _OPEN)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        (directory / _MARK).touch(mode=0o600)
    except BaseException:
        os.close(descriptor)
        with suppress(OSError):
            directory.rmdir()
        raise
    return descriptor


def sweep_temporary() -> None:
    """Remove the directories of this user whose maker was killed; an empty one also before it had its mark."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(directory, _OPEN)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid != os.getuid():
                    continue
                if (directory / _MARK).is_file():
                    shutil.rmtree(directory, ignore_errors=True)
                elif _MADE.fullmatch(directory.name):
                    directory.rmdir()  # unless anything is in it
            finally:
                os.close(descriptor)
