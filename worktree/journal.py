"""The journal of a Run: a line before each step that changes something, for whoever finishes it after a kill."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from worktree.reading import read_regular

_LONGEST = 1 << 24  # bytes


class Journal:
    """Writes to `file`, which is private, and made by the first entry; without a file it writes nothing.

    Where another command has a file of that name, it takes a numbered one. `redact` is applied to each fact. Trouble
    with the file is handed to `report` once, as a sentence, and ends nothing but the journal.
    """

    def __init__(
        self, file: Path | None = None, *, redact: Callable[[str], str] = str, report: Callable[[str], object] = str
    ) -> None:
        self.file = file
        self._is_made = False
        self._redact = redact
        self._report = report

    def enter(self, step: str, **facts: str | int | None) -> None:
        """Append what is about to be done; it is on the disk when this returns."""
        if self.file is None:
            return
        known = {key: self._redact(fact) if isinstance(fact, str) else fact for key, fact in facts.items()}
        entry = {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "step": step, **known}
        try:
            self.file = self.file if self._is_made else _create(self.file)
            self._is_made = True
            _append(self.file, (json.dumps(entry) + "\n").encode())
        except OSError as error:
            self._report(f"the journal {self.file} cannot be written ({error.strerror}); the work goes on without it")
            self.file = None

    def discard(self) -> None:
        """Remove the file: nothing was begun after all."""
        if self.file is not None and self._is_made:
            with suppress(OSError):
                self.file.unlink()


def _create(file: Path) -> Path:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in count(1):
        path = file if number == 1 else file.with_name(f"{file.stem}-{number}{file.suffix}")
        with suppress(FileExistsError):
            path.touch(mode=0o600, exist_ok=False)
            return path
    raise AssertionError("unreachable: the names never end")


def _append(file: Path, line: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while line:
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_journal(file: Path) -> list[dict[str, str | int | None]]:
    """Return the entries; a last line that was cut short by a kill is none. Raises OSError or ValueError."""
    lines = read_regular(file, _LONGEST).decode().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
