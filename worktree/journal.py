"""The journal of a Run: a line before each step that changes something, for whoever finishes it after a kill."""

import ctypes
import fcntl
import json
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from worktree.durable import make_directory, sync_directory
from worktree.moments import written_now
from worktree.reading import read_regular

_LONGEST = 1 << 24  # bytes
_RESERVED = 1 << 16  # bytes; more than a Run writes
_KEEP_SIZE = 1  # of fallocate(2): the room is the file's, its length stays as it is

Entry = dict[str, str | float | None]


class Journal:
    """Writes to `file`, which is private, and made by the first entry; without a file it writes nothing.

    Where another command has a file of that name, it takes a numbered one. From the first entry to `close` the file is
    locked, so that nobody takes a Run for dead that is at work. `redact` is applied to each fact. Trouble with the
    file is handed to `report` once, as a sentence, and ends nothing: what could not be written comes with the next
    entry.
    """

    def __init__(
        self, file: Path | None = None, *, redact: Callable[[str], str] = str, report: Callable[[str], object] = str
    ) -> None:
        self.file = file
        self._descriptor: int | None = None
        self._waiting = b""
        self._in_trouble = False
        self._redact = redact
        self._report = report

    @classmethod
    def reopen(
        cls, file: Path, *, redact: Callable[[str], str] = str, report: Callable[[str], object] = str
    ) -> "Journal | None":
        """Go on with the journal of a Run whose runner is gone; None when it lives. Raises OSError."""
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _drop_cut_line(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        journal = cls(file, redact=redact, report=report)
        journal._descriptor = descriptor
        return journal

    def enter(self, step: str, **facts: str | float | None) -> None:
        """Append what is about to be done; it is on the disk when this returns."""
        if self.file is None:
            return
        known = {key: self._redact(fact) if isinstance(fact, str) else fact for key, fact in facts.items()}
        entry = {"at": written_now(), "step": step, **known}
        self._waiting += (json.dumps(entry) + "\n").encode()
        try:
            if self._descriptor is None:
                self.file, self._descriptor = _create(self.file)
            _append(self._descriptor, self._waiting)
            self._waiting = b""
        except OSError as error:
            if not self._in_trouble:
                self._report(
                    f"the journal {self.file} cannot be written ({error.strerror}); the work goes on without it"
                )
            self._in_trouble = True

    def discard(self) -> None:
        """Remove the file: nothing was begun after all."""
        if self.file is not None and self._descriptor is not None:
            with suppress(OSError):
                self.file.unlink()
            self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size)  # gives back what was reserved
            os.close(self._descriptor)
            self._descriptor = None


def _create(file: Path) -> tuple[Path, int]:
    make_directory(file.parent)
    for number in count(1):
        path = file if number == 1 else file.with_name(f"{file.stem}-{number}{file.suffix}")
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _reserve(descriptor)
                sync_directory(path.parent)
            except OSError:
                os.close(descriptor)
                path.unlink(missing_ok=True)
                raise
            return path, descriptor
    raise AssertionError("unreachable: the names never end")


def _reserve(descriptor: int) -> None:
    """Have room for all entries from the start, where the file system can: a full disk must not hide how it ended."""
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is not None:
        offset, length = ctypes.c_longlong(0), ctypes.c_longlong(_RESERVED)
        fallocate(descriptor, _KEEP_SIZE, offset, length)


def _append(descriptor: int, lines: bytes) -> None:
    """Append lines durably, all of them or, with OSError, none."""
    before = os.fstat(descriptor).st_size
    try:
        while lines:
            lines = lines[os.write(descriptor, lines) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)
        raise


def _drop_cut_line(descriptor: int) -> None:
    """Take away the last line if a kill, or a loss of power, cut it short: the next one would become a part of it."""
    content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    os.ftruncate(descriptor, content.rfind(b"\n") + 1)


def read_journal(file: Path) -> list[Entry]:
    """Return the entries; a last line that was cut short by a kill is none. Raises OSError or ValueError."""
    lines = read_regular(file, _LONGEST).decode().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
