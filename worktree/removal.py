"""Unlinking exactly what was proven, and nothing else."""

import contextlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from worktree.caches import is_cache
from worktree.fidelity import blob_id
from worktree.inclusion import unchanged
from worktree.index import Entry
from worktree.proof import is_still

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def take_away(tree: Path, safe: Mapping[str, Entry], launch: Path, copied: Collection[str]) -> list[str]:
    """Unlink from the directory `tree` what need not be kept; return the names of the top entries that are left.

    That is each file of `safe` that is still what it was, directories that became empty by that, caches that prove
    themselves, and those of the `copied` files that are still the same at `launch`, the person's own checkout. Works by
    directory descriptors, so that a directory replaced by a link leads nowhere; what cannot be unlinked stays.
    """
    descriptor = os.open(tree, _DIRECTORY)
    try:
        _Removal(tree, safe).clear(descriptor, "")
        _drop_copies(tree, launch, copied)
        return sorted(set(os.listdir(descriptor)) - {".git"})  # noqa: PTH208 - names are all that is needed
    finally:
        os.close(descriptor)


class _Removal:
    def __init__(self, tree: Path, safe: Mapping[str, Entry]) -> None:
        self._tree = tree
        self._safe = safe
        self._directories = _parents(safe)

    def clear(self, descriptor: int, prefix: str) -> None:
        """Go through one directory, whose path in the tree is `prefix`, with a slash behind it."""
        with os.scandir(descriptor) as listed:
            entries = sorted(listed, key=lambda entry: not entry.is_dir(follow_symlinks=False))
        for entry in entries:
            path = prefix + entry.name
            expected = self._safe.get(path)
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    self._clear_directory(descriptor, entry.name, path)
                elif expected is not None and self._is_safe(expected, path, entry.stat(follow_symlinks=False)):
                    os.unlink(entry.name, dir_fd=descriptor)

    def _is_safe(self, expected: Entry, path: str, seen: os.stat_result) -> bool:
        if is_still(expected, seen):
            return True
        # Git compares whole seconds, so a file that was written anew with the same bytes may have other times here.
        oid = expected.oid.hex()
        same = blob_id(self._tree / path, oid) == oid
        return same and _signature(os.lstat(self._tree / path)) == _signature(seen)

    def _clear_directory(self, parent: int, name: str, path: str) -> None:
        if path in self._safe:
            os.rmdir(name, dir_fd=parent)  # where a submodule would be, if anybody had wanted it
        elif path in self._directories:
            self._enter(parent, name, path)
            os.rmdir(name, dir_fd=parent)
        elif is_cache(self._tree / path):
            _drop_cache(parent, name)

    def _enter(self, parent: int, name: str, path: str) -> None:
        descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            self.clear(descriptor, f"{path}/")
        finally:
            os.close(descriptor)


def _drop_copies(tree: Path, launch: Path, copied: Collection[str]) -> None:
    for path in unchanged(launch, tree, copied):
        with contextlib.suppress(OSError):
            (tree / path).unlink()
            for parent in Path(path).parents[:-1]:
                (tree / parent).rmdir()


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _parents(paths: Collection[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found


def _drop_cache(parent: int, name: str) -> None:
    """Take a cache away."""
    for _, names, files, descriptor in os.fwalk(name, topdown=False, dir_fd=parent):
        for file in files:
            os.unlink(file, dir_fd=descriptor)
        for directory in names:
            _drop_directory(directory, descriptor)
    os.rmdir(name, dir_fd=parent)


def _drop_directory(name: str, parent: int) -> None:
    """Remove a directory, or the link to one."""
    try:
        os.rmdir(name, dir_fd=parent)
    except NotADirectoryError:
        os.unlink(name, dir_fd=parent)
