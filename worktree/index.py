"""Git's index, read from its file: what git compared each file with when it found it unchanged."""

import struct
from pathlib import Path
from typing import NamedTuple

from worktree.reading import read_regular

_LONGEST = 1 << 30  # bytes
_HEADER = struct.Struct(">4sII")
# Change and modification times (s, ns), device, inode, mode, user, group, size; object id, flags. gitformat-index(5).
# Device, user and group are passed over.
_ENTRY = {20: struct.Struct(">4I4x2I8xI20sH"), 32: struct.Struct(">4I4x2I8xI32sH")}
_NAME_LENGTH, _EXTENDED, _ASSUME_VALID = 0x0FFF, 0x4000, 0x8000
_SKIP_WORKTREE = 0x4000  # in the second flags
_READ = (2, 3)  # format versions; the fourth shortens names


class UnreadIndexError(ValueError):
    """The index is in a form that is not read here, though git may read it."""


class Entry(NamedTuple):
    """A path's state when git looked last. `times` are s and ns of the change, then of the modification; `hidden` says
    that git was told not to look.
    """

    times: tuple[int, int, int, int]
    inode: int
    mode: int
    size: int
    oid: bytes
    hidden: bool


def read_index(file: Path, hash_size: int) -> dict[str, Entry]:
    """Return the entries of an index file by path, as Python's `os` functions take paths.

    `hash_size` is an object id's length in bytes. Inode and size are as git keeps them, the lower 32 bits. Raises
    UnreadIndexError for a form that is not read here: version 4, split, sparse or unknown; OSError.
    """
    data = read_regular(file, _LONGEST)
    try:
        signature, version, count = _HEADER.unpack_from(data)
        if signature != b"DIRC" or version not in _READ:
            raise UnreadIndexError(f"an index of version {version}")
        entries, end = _entries(data, count, hash_size)
        _refuse_required_extensions(data, end, hash_size)
    except struct.error as error:
        raise UnreadIndexError("an index that ends too early") from error
    return entries


def _entries(data: bytes, count: int, hash_size: int) -> tuple[dict[str, Entry], int]:
    layout = _ENTRY[hash_size]
    found: dict[str, Entry] = {}
    start = _HEADER.size
    for _ in range(count):
        c_s, c_ns, m_s, m_ns, inode, mode, size, oid, flags = layout.unpack_from(data, start)
        name = start + layout.size + (2 if flags & _EXTENDED else 0)
        length = flags & _NAME_LENGTH
        if length == _NAME_LENGTH:
            length = data.find(b"\0", name) - name
            if length < 0:
                raise UnreadIndexError("an index that ends too early")
        hidden = bool(flags & _ASSUME_VALID) or bool(flags & _EXTENDED and data[name - 2] << 8 & _SKIP_WORKTREE)
        path = data[name : name + length].decode("utf-8", "surrogateescape")
        found[path] = Entry((c_s, c_ns, m_s, m_ns), inode, mode, size, oid, hidden)
        # Padded with one to eight zeros to a multiple of eight.
        start += (name - start + length + 8) & ~7
    return found, start


def _refuse_required_extensions(data: bytes, start: int, hash_size: int) -> None:
    """An extension whose name begins with a small letter changes what the entries mean."""
    while start < len(data) - hash_size:
        name, size = struct.unpack_from(">4sI", data, start)
        if not 65 <= name[0] <= 90:
            raise UnreadIndexError(f"an index with the extension {name!r}")
        start += 8 + size
    if start != len(data) - hash_size:
        raise UnreadIndexError("an index that ends too early")
