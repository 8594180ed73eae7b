"""Private temporary directories, which go with whoever made them, or with the next recovery."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "nightkeep-"
_MARK = ".made-by-nightkeep"  # what is swept has it: others may call theirs alike
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def temporary_directory() -> Iterator[tuple[Path, int]]:
    """Make a directory that only this user can read, and yield it with an open descriptor.

    It is removed with whatever is in it; links are removed, not followed. While this process lives it is locked.
    """
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        descriptor = os.open(directory, _OPEN)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            (directory / _MARK).touch(mode=0o600)
            yield directory, descriptor
        finally:
            os.close(descriptor)
    finally:
        if directory.is_symlink():
            directory.unlink()
        else:
            shutil.rmtree(directory, ignore_errors=True)


def sweep_temporary() -> None:
    """Remove the directories of this user whose maker was killed."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(directory, _OPEN)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid == os.getuid() and (directory / _MARK).is_file():
                    shutil.rmtree(directory, ignore_errors=True)
            finally:
                os.close(descriptor)
