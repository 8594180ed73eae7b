"""Reading small files that somebody else may have put something in the place of."""

import os
import stat
from pathlib import Path

_LIMIT = 1 << 20


def read_regular(path: Path, limit: int = _LIMIT) -> bytes:
    """Return what is in the file, its last `limit` bytes when there is more.

    Follows no link and waits for nobody: raises OSError for a fifo, a device, a directory or a link.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no regular file")
        file.seek(max(0, status.st_size - limit))
        return file.read(limit)


def read_words(path: Path) -> list[str]:
    """Return the words of such a file, none when it is not there."""
    try:
        return read_regular(path).decode(errors="surrogateescape").split()
    except FileNotFoundError:
        return []
