"""Unlinking exactly what was proven, and nothing else."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from worktree.caches import is_cache
from worktree.descent import below, delete, joined
from worktree.fidelity import blob_id
from worktree.inclusion import unchanged
from worktree.index import GITLINK, Entry

_LOW = 0xFFFFFFFF  # what git keeps of an inode's number and of a size


class Removal:
    """What `carry_out` takes from the directory `tree`, because it need not be kept: each file of `safe` that is still
    what it was, directories that became empty by that, and caches that prove themselves.

    A directory that holds some of the `tracked` paths is no cache. Works by directory descriptors, so that a directory
    replaced by a link leads nowhere; what cannot be unlinked stays. Afterwards `left` are the paths that stayed, of
    directories that nothing is known of the topmost, and `missing` those of `safe` that were not there. Files with one
    of the names in `later` are `waiting` instead of gone.
    """

    def __init__(
        self, tree: Path, safe: Mapping[str, Entry], tracked: Iterable[str], later: Collection[str] = ()
    ) -> None:
        self.left: list[str] = []
        self.missing: list[str] = []
        self.waiting: list[str] = []
        self._tree = tree
        self._safe = _by_directory(safe, tracked)
        self._later = later
        self._occupied: set[str] = set()  # directories that hold something of these

    def carry_out(self) -> None:
        """Do it, once. Raises OSError when the directory cannot be opened."""
        top = os.open(self._tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = [""]
            unseen = dict(self._safe)
            for path in found:  # grows meanwhile
                with contextlib.suppress(OSError), below(top, path) as directory:
                    found += self._clear(directory, path)
                    del unseen[path]
            self.missing += [joined(path, name) for path, here in unseen.items() for name in here]
            for path in reversed(found[1:]):
                self._remove_empty(top, path)
        finally:
            os.close(top)

    def _clear(self, directory: int, path: str) -> list[str]:
        """Go through one directory, at `path` in the tree; return those in it where there is more to unlink."""
        here, names = self._safe[path], os.listdir(directory)
        others = [joined(path, name) for name in names if name not in here]
        # What makes a directory a cache may be a file beside it.
        for other in others:
            if other not in self._safe and other != ".git" and not self._is_taken(directory, other):
                self._leave(self.left, other)
        self._unlink(directory, path, [name for name in names if name in here])
        self.missing += [joined(path, name) for name in here.keys() - set(names)]
        return [other for other in others if other in self._safe]

    def _unlink(self, directory: int, path: str, names: list[str]) -> None:
        here, look, unlink, later = self._safe[path], os.lstat, os.unlink, self._later
        for name in names:
            expected = here[name]
            try:
                status = look(name, dir_fd=directory)
                if expected.mode == GITLINK:
                    os.rmdir(name, dir_fd=directory)  # where a submodule would be, if anybody had wanted it
                elif not _is_still(expected, status) and not _has_same_bytes(expected, name, directory, status):
                    self._leave(self.left, joined(path, name))
                elif name in later:
                    self._leave(self.waiting, joined(path, name))
                else:
                    unlink(name, dir_fd=directory)
            except OSError:
                self._leave(self.left, joined(path, name))

    def _is_taken(self, directory: int, path: str) -> bool:
        """Whether a path that is not known is a cache, and is gone now."""
        name = path.rpartition("/")[2]
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode) or not is_cache(self._tree / path):
                return False
            delete(directory, name)
        except OSError:
            return False
        return True

    def _remove_empty(self, top: int, path: str) -> None:
        above, _, name = path.rpartition("/")
        if path in self._occupied:
            self._occupied.add(above)
            return
        try:
            with below(top, above) as parent:
                os.rmdir(name, dir_fd=parent)
        except OSError:
            self._leave(self.left, path)

    def _leave(self, where: list[str], path: str) -> None:
        where.append(path)
        self._occupied.add(path.rpartition("/")[0])


def _is_still(entry: Entry, status: os.stat_result) -> bool:
    """Whether a file is what git looked at: the same inode, of the same type and size, unchanged since."""
    return (
        status.st_ctime_ns == entry.changed
        and status.st_mtime_ns == entry.modified
        and status.st_ino & _LOW == entry.inode
        and status.st_size & _LOW == entry.size
        and status.st_mode >> 12 == entry.mode >> 12
    )


def _has_same_bytes(entry: Entry, name: str, directory: int, seen: os.stat_result) -> bool:
    """Whether a file with other times has the very bytes: git compares whole seconds, or looked before it was made."""
    if entry.mode != (0o100755 if seen.st_mode & stat.S_IXUSR else 0o100644) or not stat.S_ISREG(seen.st_mode):
        return False
    oid = entry.oid.hex()
    same = blob_id(name, oid, directory) == oid
    return same and _signature(os.stat(name, dir_fd=directory, follow_symlinks=False)) == _signature(seen)


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _by_directory(safe: Mapping[str, Entry], tracked: Iterable[str]) -> dict[str, dict[str, Entry]]:
    """Return the entries by directory and name; also directories that hold nothing but others of the paths."""
    found: dict[str, dict[str, Entry]] = {"": {}}
    for path, entry in safe.items():
        above, _, name = path.rpartition("/")
        if above not in found:
            _add_directory(found, above)
        found[above][name] = entry
    for path in tracked:
        _add_directory(found, path.rpartition("/")[0])
    return found


def _add_directory(found: dict[str, dict[str, Entry]], path: str) -> None:
    while path not in found:
        found[path] = {}
        path = path.rpartition("/")[0]


def drop_copies(tree: Path, launch: Path, copied: Collection[str]) -> None:
    """Unlink those of the files copied into `tree` that are still the same at `launch`, the person's own checkout."""
    for path in unchanged(launch, tree, copied):
        with contextlib.suppress(OSError):
            (tree / path).unlink()
            for parent in Path(path).parents[:-1]:
                (tree / parent).rmdir()
