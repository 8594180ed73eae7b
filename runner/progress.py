"""What a person reads on standard error while a command works."""

import contextlib
import secrets
import select
import threading
from collections.abc import Mapping
from typing import TextIO

from runner.logs import CommandLog

_CHUNK = 1000  # characters, at most 4,000 bytes: what a pipe that can be written to takes at once


class Progress:
    """Writes lines of progress, each at once.

    On Actions the agent's lines are fenced, so that none of them can be a workflow command. Lines may come from
    several threads. Our own lines go to `log`, too. A reader may pause for `patience` seconds before lines are dropped.
    """

    def __init__(
        self,
        stream: TextIO,
        environment: Mapping[str, str],
        log: CommandLog | None = None,
        *,
        patience: float = 10.0,
    ) -> None:
        self._outlet = _Outlet(stream, patience)
        self._log = log
        self._on_actions = environment.get("GITHUB_ACTIONS") == "true"
        self._dim = stream.isatty() and "NO_COLOR" not in environment
        self._fence: str | None = None
        self._lock = threading.Lock()

    def say(self, line: str) -> None:
        """Write a line of our own, or several; each is marked as ours, so that none can be a workflow command."""
        with self._lock:
            self._close_fence()
            for part in line.splitlines() or [""]:
                self._write(f"nightkeep: {self._harmless(part)}")
                if self._log is not None and (trouble := self._log.add(part)):
                    self._write(f"nightkeep: {trouble}")

    def agent(self, line: str) -> None:
        """Write a line that the agent printed."""
        with self._lock:
            if self._open_fence():
                self._write(f"\x1b[2m| {line}\x1b[0m" if self._dim else f"| {line}")

    def command(self, line: str) -> None:
        """Write a workflow command; outside of Actions nothing."""
        with self._lock:
            self._close_fence()
            if self._on_actions:
                self._write(line)

    def close(self) -> None:
        """End what is open."""
        with self._lock:
            self._close_fence()

    def _harmless(self, part: str) -> str:
        # Commands of the older form, ##[error], are obeyed wherever in a line they stand.
        return part.replace("##[", "## [") if self._on_actions else part

    def _open_fence(self) -> bool:
        """Return whether an agent's line may be written now: on Actions only behind a fence that was written."""
        if self._on_actions and self._fence is None:
            fence = secrets.token_hex(16)
            self._fence = fence if self._write(f"::stop-commands::{fence}") else None
        return not self._on_actions or self._fence is not None

    def _close_fence(self) -> None:
        if self._fence is not None and self._write(f"::{self._fence}::"):
            self._fence = None

    def _write(self, line: str) -> bool:
        return self._outlet.write(f"{line}\n")


class _Outlet:
    """Writes to a stream whose reader may have gone away, or may have stopped reading: neither stops the work."""

    def __init__(self, stream: TextIO, patience: float) -> None:
        self._stream = stream
        self._patience = patience
        self._left = patience
        self._dropped = 0

    def write(self, line: str) -> bool:
        """Write a line, or drop it when nobody takes it; how many were dropped is said once somebody reads again."""
        with contextlib.suppress(OSError, ValueError):
            if not self._ready():
                self._dropped += 1
                return False
            if self._dropped:
                line = f"nightkeep: {self._dropped} lines were left out, because nobody read them\n{line}"
                self._dropped = 0
            for start in range(0, len(line), _CHUNK):
                if not self._ready():
                    return False
                self._stream.write(line[start : start + _CHUNK])
                self._stream.flush()
        return True

    def _ready(self) -> bool:
        """Whether a chunk can be written without waiting; waits for that once, and after that not again in vain."""
        try:
            ready = bool(select.select([], [self._stream], [], self._left)[1])
        except (OSError, ValueError):  # no descriptor behind it, or a closed one
            return True
        self._left = self._patience if ready else 0
        return ready
