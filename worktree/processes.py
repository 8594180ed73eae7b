"""Who is at work in a directory."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil

_GRACE = 3.0  # seconds that each signal has to work
_PAUSE = 0.05


def at_work_in(directory: Path, since: datetime) -> list[str]:
    """Name the processes, but this one, that have their working directory or an open file in `directory`.

    A process that cannot be looked into counts only if it can be one of ours: this user's, and started after
    `since`. Each is named as "process N (command)".
    """
    inside = os.fsencode(directory)
    return [_named(pid) for pid in psutil.pids() if pid != os.getpid() and _is_in(pid, inside, since)]


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
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


def _is_in(pid: int, inside: bytes, since: datetime) -> bool:
    try:
        return any(place == inside or place.startswith(inside + b"/") for place in _places(pid))
    except (FileNotFoundError, ProcessLookupError):
        return False  # it ended meanwhile
    except OSError:
        return _can_be_ours(pid, since)


def _places(pid: int) -> Iterator[bytes]:
    yield os.readlink(b"/proc/%d/cwd" % pid)  # noqa: PTH115 - bytes
    for entry in os.listdir(b"/proc/%d/fd" % pid):  # noqa: PTH208 - bytes
        try:
            yield os.readlink(b"/proc/%d/fd/%s" % (pid, entry))  # noqa: PTH115 - bytes
        except FileNotFoundError:
            continue  # closed meanwhile


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
