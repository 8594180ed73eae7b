"""Reading small files that somebody else may have put something in the place of."""

import os
import stat
from pathlib import Path

_LIMIT = 1 << 20
_PIECE = 1 << 16


def read_regular(path: Path | str, limit: int = _LIMIT) -> bytes:
    """Return what is in the file, its last `limit` bytes when there is more.

    Follows no link and waits for nobody: raises OSError for a fifo, a device, a directory or a link.
    """
    descriptor = open_regular(path)
    try:
        status = os.fstat(descriptor)
        if status.st_size > limit:
            os.lseek(descriptor, status.st_size - limit, os.SEEK_SET)
        return _read(descriptor, min(status.st_size + 1, limit), limit)
    finally:
        os.close(descriptor)


def open_regular(path: Path | str) -> int:
    """Open the file for reading, and return its descriptor; as `read_regular` does, and raises."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(f"{path} is no regular file")


def _read(descriptor: int, expected: int, limit: int) -> bytes:
    # A file object would be felt with many small files.
    pieces, left = [], limit
    while left > 0 and (piece := os.read(descriptor, min(left, max(expected, _PIECE)))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def read_words(path: Path) -> list[str]:
    """Return the words of such a file, none when it is not there."""
    try:
        return read_regular(path).decode(errors="surrogateescape").split()
    except FileNotFoundError:
        return []
