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
_MORE_FLAGS = struct.Struct(">H")
_SKIP_WORKTREE = 0x4000  # in more flags
_NANO = 1_000_000_000
GITLINK, LINK = 0o160000, 0o120000  # the modes of a submodule and of a symbolic link
_READ = (2, 3)  # format versions; the fourth shortens names


class UnreadIndexError(ValueError):
    """The index is in a form that is not read here, though git may read it."""


class Entry(NamedTuple):
    """A path's state when git looked last: the times of its change and modification in ns, inode and size as git keeps
    them, the lower 32 bits. `hidden` says that git was told not to look.
    """

    changed: int
    modified: int
    inode: int
    mode: int
    size: int
    oid: bytes
    hidden: bool


def read_index(file: Path, hash_size: int) -> dict[str, Entry]:
    """Return the entries of an index file by path, as Python's `os` functions take paths.

    `hash_size` is an object id's length in bytes. Raises UnreadIndexError for a form that is not read here: version 4,
    split, sparse or unknown; OSError.
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
    unpack, size_of_fixed = _ENTRY[hash_size].unpack_from, _ENTRY[hash_size].size
    found: dict[str, Entry] = {}
    start = _HEADER.size
    for _ in range(count):
        c_s, c_ns, m_s, m_ns, inode, mode, size, oid, flags = unpack(data, start)
        name, more = start + size_of_fixed, 0
        if flags & _EXTENDED:
            (more,) = _MORE_FLAGS.unpack_from(data, name)
            name += _MORE_FLAGS.size
        end = name + (flags & _NAME_LENGTH)
        if end - name == _NAME_LENGTH:
            end = data.find(b"\0", name)
            if end < 0:
                raise UnreadIndexError("an index that ends too early")
        path = data[name:end].decode("utf-8", "surrogateescape")
        found[path] = Entry(
            c_s * _NANO + c_ns,
            m_s * _NANO + m_ns,
            inode,
            mode,
            size,
            oid,
            flags & _ASSUME_VALID != 0 or more & _SKIP_WORKTREE != 0,
        )
        # Padded with one to eight zeros to a multiple of eight.
        start += (end - start + 8) & ~7
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
