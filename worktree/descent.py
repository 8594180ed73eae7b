"""Going down a directory tree step by step, by descriptors: what was replaced by a link leads nowhere."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 512  # bytes; the unit of st_blocks


@contextmanager
def below(top: int, path: str) -> Iterator[int]:
    """Open the directory at `path` below the open directory `top`, "" for that itself. Raises OSError for a link."""
    descriptor = os.dup(top)
    try:
        for name in path.split("/") if path else ():
            above, descriptor = descriptor, os.open(name, _DIRECTORY, dir_fd=descriptor)
            os.close(above)
        yield descriptor
    finally:
        os.close(descriptor)


def listed(directory: int) -> dict[str, os.stat_result]:
    """Return the entries of an open directory, sorted, each with its own status."""
    found = {}
    for name in sorted(os.listdir(directory)):
        with suppress(FileNotFoundError):  # it went away meanwhile
            found[name] = os.stat(name, dir_fd=directory, follow_symlinks=False)
    return found


def each_below(directory: Path) -> Iterator[dict[str, bool]]:
    """Yield of a directory, and of each below it, what is in it: the names, and whether that is a directory.

    However deep it goes, but for paths that are too long for the system. Raises OSError.
    """
    pending = [str(directory)]
    while pending:
        path = pending.pop()
        with os.scandir(path) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        yield found
        pending += [f"{path}/{name}" for name, is_directory in found.items() if is_directory]


def joined(path: str, name: str) -> str:
    """Return the path of an entry of the directory at `path`, as `below` takes it."""
    return f"{path}/{name}" if path else name


@dataclass(frozen=True, slots=True)
class Extent:
    """How many files there are, links and the like among them, and how many bytes they take on the disk."""

    files: int = 0
    size: int = 0

    def __add__(self, other: "Extent") -> "Extent":
        """Return both together."""
        return Extent(self.files + other.files, self.size + other.size)


def measure(parent: int, name: str) -> Extent:
    """Return the extent of an entry of an open directory and of all below it, as far as it can be read."""
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        return _measure_below(parent, name) if stat.S_ISDIR(status.st_mode) else _extent(status)
    return Extent()


def _measure_below(parent: int, name: str) -> Extent:
    total, pending = Extent(), [name]
    while pending:
        path = pending.pop()
        with suppress(OSError), below(parent, path) as directory:
            for entry, status in listed(directory).items():
                if stat.S_ISDIR(status.st_mode):
                    pending.append(joined(path, entry))
                else:
                    total += _extent(status)
    return total


def _extent(status: os.stat_result) -> Extent:
    # A file with holes takes less than its size, and one of a few bytes not the block that it is kept in.
    return Extent(1, min(status.st_size, status.st_blocks * _BLOCK) if stat.S_ISREG(status.st_mode) else 0)


def delete(parent: int, name: str) -> None:
    """Delete an entry of an open directory with all below it, directories without permissions too.

    Somebody else may be deleting the same. Raises OSError when something cannot be deleted; the rest may be gone then.
    """
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        _delete_directory(parent, name)
    else:
        _unlink(parent, name)


def _delete_directory(parent: int, name: str) -> None:
    directories = [name]
    for path in directories:  # grows meanwhile
        with suppress(FileNotFoundError), _unlocked(parent, path) as directory:
            for entry, status in listed(directory).items():
                if stat.S_ISDIR(status.st_mode):
                    directories.append(joined(path, entry))
                else:
                    _unlink(directory, entry)
    for path in reversed(directories):
        above, _, last = path.rpartition("/")
        with suppress(FileNotFoundError), below(parent, above) as directory:
            os.rmdir(last, dir_fd=directory)


def _unlink(directory: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)


@contextmanager
def _unlocked(top: int, path: str) -> Iterator[int]:
    """Open a directory below `top`, as `below` does, and give its owner every permission."""
    above, _, name = path.rpartition("/")
    with below(top, above) as parent:
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            # By the handle, which may be had of a directory that may not be read: a name could be a link by now.
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101
            with below(handle, ".") as directory:
                yield directory
        finally:
            os.close(handle)
