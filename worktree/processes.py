"""Who is at work in a directory."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import psutil

RUN_MARKER = "NIGHTKEEP_RUN"  # in the environment of all that a run starts, with its id

_GRACE = 3.0  # seconds that each signal has to work
_PAUSE = 0.05

_Seen = TypeVar("_Seen")


def at_work_in(directory: Path, since: datetime) -> list[str]:
    """Name the processes, but this one, that have their working directory, their program or a file in `directory`.

    The file may be open or mapped. A process with mounts of its own, in a container for example, has other names for
    the same files, and is found by their inodes. One that cannot be looked into counts only if it can be one of ours:
    this user's, and started after `since`. Each is named as "process N (command)".
    """
    tree = _Tree(os.fsencode(directory))
    return [_named(pid) for pid in psutil.pids() if pid != os.getpid() and _is_in(pid, tree, since)]


def stop_carrying(marker: str) -> list[str]:
    """Stop the processes whose environment has `marker` (NAME=value), but this one; name those that stay."""
    for number, grace in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, _GRACE)):
        deadline = time.monotonic() + grace
        while left := _carrying(marker):
            for process in left:
                with suppress(psutil.Error):
                    process.send_signal(number)
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)
    return [_named(process.pid) for process in _carrying(marker)]


def _carrying(marker: str) -> list[psutil.Process]:
    wanted, found = os.fsencode(marker), []
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if pid != os.getpid() and wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(psutil.Process(pid))
    return [process for process in found if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class _Tree:
    """A directory and all that is in it: by name for processes that see our mounts, by inode for others."""

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._device = os.lstat(path).st_dev

    def has_name(self, name: bytes) -> bool:
        return name == self._path or name.startswith(self._path + b"/")

    def has_inode(self, status: os.stat_result) -> bool:
        return status.st_dev == self._device and status.st_ino in self._inodes

    def has_mapped_name(self, maps: bytes) -> bool:
        """Whether a table of mappings, see proc_pid_maps(5), names one of its files."""
        return b" " + self._path.replace(b"\n", rb"\012") + b"/" in maps

    def has_mapped_inode(self, maps: bytes) -> bool:
        device = b"%02x:%02x" % (os.major(self._device), os.minor(self._device))
        return any(int(inode) in self._inodes for inode in set(re.findall(rb" %s (\d+) " % device, maps)))

    @cached_property
    def _inodes(self) -> frozenset[int]:
        # Asked for, and so the tree walked, only when somebody with other mounts has something on its device.
        return frozenset({os.lstat(self._path).st_ino, *_inodes_below(self._path)})


def _inodes_below(directory: bytes) -> Iterator[int]:
    left = [directory]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:  # whoever is at work in it may remove directories
            for entry in entries:
                yield entry.inode()
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)


def _is_in(pid: int, tree: _Tree, since: datetime) -> bool:
    try:
        if _mounts_of(str(pid)) == _mounts_of("self"):
            return any(map(tree.has_name, _look(pid, os.readlink))) or tree.has_mapped_name(_maps(pid))
        return any(map(tree.has_inode, _look(pid, os.stat))) or tree.has_mapped_inode(_maps(pid))
    except (FileNotFoundError, ProcessLookupError):
        return False  # it ended meanwhile
    except OSError:
        return _can_be_ours(pid, since)


def _mounts_of(pid: str) -> str | None:
    """Return the name of the mount namespace, None where the kernel tells nothing of them."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")  # noqa: PTH115 - a name, and no path
    except FileNotFoundError:
        return None


def _look(pid: int, look: Callable[[bytes], _Seen]) -> Iterator[_Seen]:
    """Look at the working directory of a process, at its root, its program and its open files."""
    links = [b"/proc/%d/%s" % (pid, name) for name in (b"cwd", b"root", b"exe")]
    opened = b"/proc/%d/fd" % pid
    for link in (*links, *(b"%s/%s" % (opened, name) for name in os.listdir(opened))):  # noqa: PTH208 - bytes
        try:
            yield look(link)
        except FileNotFoundError:
            continue  # closed meanwhile, or a thread of the kernel, which has no program


def _maps(pid: int) -> bytes:
    return Path(f"/proc/{pid}/maps").read_bytes()


def _can_be_ours(pid: int, since: datetime) -> bool:
    try:
        process = psutil.Process(pid)
        return process.uids().real == os.getuid() and process.create_time() > since.timestamp()
    except psutil.Error:
        return False


def _named(pid: int) -> str:
    try:
        return f"process {pid} ({psutil.Process(pid).name()})"
    except psutil.Error:
        return f"process {pid}"
