"""Files and directories that are there, and whole, after a loss of power."""

import errno
import os
from pathlib import Path

PARTIAL = ".partial"  # what the name of a file ends in that is being written


def write_whole(file: Path, text: str) -> None:
    """Write an ASCII file in place of an earlier one: whoever looks, at any time, finds the one or the other whole.

    Raises OSError, with the earlier one in place.
    """
    partial = file.with_name(f"{file.name}{PARTIAL}")
    try:
        with partial.open("w", encoding="ascii") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        partial.replace(file)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    sync_directory(file.parent)


def make_directory(directory: Path) -> None:
    """Make a directory for this user alone, and those above it, where they are not there. Raises OSError."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Make sure that the names in a directory are on the disk. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems know no such thing
            raise
    finally:
        os.close(descriptor)
