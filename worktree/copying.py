"""Copying what is in one directory into another, and deleting the originals.

Everything is reached by directory descriptors, step by step: a directory that was replaced by a link leads nowhere.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

# What tells the present state of an entry from a later one.
_Signature = tuple[int, ...]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_CHUNK = 1 << 20  # bytes
_BLOCK = 512  # bytes; the unit of st_blocks
_NOT_IN_KERNEL = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


class TreeCopy:
    """A copy of the open directory `source` in the open, empty directory `target`."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        # What was copied of each directory. Parents come before their children.
        self._copied: dict[str, dict[str, _Signature]] = {}
        self._linked: dict[tuple[int, int], tuple[str, _Signature]] = {}
        self._in_kernel = True

    def make(self) -> None:
        """Copy everything and look over it. Raises OSError; then there is a part of a copy."""
        pending = ["."]
        while pending:
            path = pending.pop()
            with _below(self._source, path) as source, _below(self._target, path) as target:
                names = os.listdir(source)  # noqa: PTH208 - a descriptor
                self._copied[path] = {name: self._copy_entry(path, name, source, target) for name in names}
            pending += [f"{path}/{name}" for name, copied in self._copied[path].items() if _is_directory(copied)]
        self._finish()

    def delete_originals(self) -> None:
        """Delete from `source` what was copied and is unchanged since, and the directories that become empty."""
        for path, entries in reversed(self._copied.items()):
            with suppress(OSError), _below(self._source, path) as directory:
                with suppress(PermissionError):
                    os.fchmod(directory, 0o700)
                for name, copied in entries.items():
                    _delete(name, directory, copied)

    def _finish(self) -> None:
        """Count what is in each directory, until now nobody else's to enter, and give it its mode and times."""
        for path, entries in reversed(self._copied.items()):
            with _below(self._source, path) as source, _below(self._target, path) as target:
                if set(os.listdir(target)) != entries.keys():  # noqa: PTH208 - a descriptor
                    raise OSError(f"{path} does not hold what was copied into it")
                _keep(source, target, os.fstat(source))

    def _copy_entry(self, path: str, name: str, source: int, target: int) -> _Signature:
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        inode = (status.st_dev, status.st_ino)
        if inode in self._linked:
            first, signature = self._linked[inode]
            os.link(first, name, src_dir_fd=self._target, dst_dir_fd=target, follow_symlinks=False)
            return signature
        self._copy_first(name, source, target, status)
        signature = _signature(status)
        if status.st_nlink > 1 and not _is_directory(signature):
            self._linked[inode] = (f"{path}/{name}", signature)
        return signature

    def _copy_first(self, name: str, source: int, target: int, status: os.stat_result) -> None:
        match stat.S_IFMT(status.st_mode):
            case stat.S_IFREG:
                self._copy_file(name, source, target, status)
            case stat.S_IFDIR:
                os.mkdir(name, 0o700, dir_fd=target)
            case stat.S_IFLNK:
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
                _keep_special(name, target, status)
            case kind:
                os.mknod(name, kind | 0o600, status.st_rdev, dir_fd=target)
                os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=target)
                _keep_special(name, target, status)

    def _copy_file(self, name: str, source: int, target: int, status: os.stat_result) -> None:
        with _Opened(name, _READ, source) as original, _Opened(name, _CREATE, target) as copy:
            sparse = status.st_blocks * _BLOCK < status.st_size
            for start, end in _data(original, status.st_size) if sparse else [(0, status.st_size)]:
                self._copy_bytes(original, copy, start, end)
            if sparse:
                os.ftruncate(copy, status.st_size)
            _keep(original, copy, status)

    def _copy_bytes(self, source: int, target: int, start: int, end: int) -> None:
        while start < end:
            count = self._copy_some(source, target, start, end - start)
            if count == 0:
                raise OSError("a file became shorter while it was copied")
            start += count

    def _copy_some(self, source: int, target: int, start: int, count: int) -> int:
        if self._in_kernel:
            try:
                return os.copy_file_range(source, target, count, start, start)
            except OSError as error:
                if error.errno not in _NOT_IN_KERNEL:
                    raise
                self._in_kernel = False
        return os.pwrite(target, os.pread(source, min(count, _CHUNK), start), start)


def _data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each part of a file that is no hole."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole follows
                return
            raise
        end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        yield start, end


def _keep(source: int, target: int, status: os.stat_result) -> None:
    """Give a file or directory what the original has, in an order in which nothing undoes what came before."""
    made = os.fstat(target)
    if stat.S_ISREG(made.st_mode) and made.st_size != status.st_size:
        raise OSError(f"{made.st_size} of {status.st_size} bytes of a file were copied")
    if os.geteuid() == 0 and (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(target, status.st_uid, status.st_gid)
    _keep_attributes(source, target)
    os.fchmod(target, stat.S_IMODE(status.st_mode))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _keep_special(name: str, directory: int, status: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.chown(name, status.st_uid, status.st_gid, dir_fd=directory, follow_symlinks=False)
    times = (status.st_atime_ns, status.st_mtime_ns)
    os.utime(name, ns=times, dir_fd=directory, follow_symlinks=False)


def _keep_attributes(source: int, target: int) -> None:
    try:
        names = os.listxattr(source)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise


def _delete(name: str, directory: int, copied: _Signature) -> None:
    with suppress(OSError):
        if _is_directory(copied):
            os.rmdir(name, dir_fd=directory)
        elif _signature(os.stat(name, dir_fd=directory, follow_symlinks=False), linked=copied[-1] == 0) == copied:
            os.unlink(name, dir_fd=directory)


def _signature(status: os.stat_result, *, linked: bool = False) -> _Signature:
    # When one name of a file is deleted, its other names show another ctime.
    ctime = 0 if linked or status.st_nlink > 1 else status.st_ctime_ns
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, ctime)


def _is_directory(signature: _Signature) -> bool:
    return stat.S_ISDIR(signature[2])


def opened_directory(path: Path) -> AbstractContextManager[int]:
    """Open a directory that is no link."""
    return _Opened(path, _DIRECTORY)


def delete_content(top: int) -> None:
    """Delete everything in an open directory, whatever modes its directories have."""
    paths = ["."]
    for path in paths:
        with _below(top, path) as directory, os.scandir(directory) as entries:
            os.fchmod(directory, 0o700)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    paths.append(f"{path}/{entry.name}")
                else:
                    os.unlink(entry.name, dir_fd=directory)
    for path in reversed(paths[1:]):
        above, _, name = path.rpartition("/")
        with _below(top, above) as directory:
            os.rmdir(name, dir_fd=directory)


class _Opened(AbstractContextManager[int]):
    """A descriptor as long as a with-block lasts; a class, because a generator would be felt with many small files."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: Path | str, flags: int, directory: int | None = None) -> None:
        self._descriptor = os.open(path, flags, 0o600, dir_fd=directory)

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


@contextmanager
def _below(top: int, path: str) -> Iterator[int]:
    descriptor = os.dup(top)
    try:
        for name in path.split("/"):
            above, descriptor = descriptor, os.open(name, _DIRECTORY, dir_fd=descriptor)
            os.close(above)
        yield descriptor
    finally:
        os.close(descriptor)
