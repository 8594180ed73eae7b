"""The supervisor of a session, seen from the runner: its process, and what it has left behind once it is gone."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from delivery.session import SessionEnd
from runner.supervisor import Report
from worktree.processes import RUN_MARKER

if TYPE_CHECKING:
    from psutil import Process

POLL = 0.1  # seconds
# How long the supervisor may take for what should take no time at all, in seconds: to start, to answer, to end.
SLACK = 20.0


class SupervisorProcess:
    """One supervisor process, seen from the runner.

    Leaving the block ends it: it sees its stdin closed, stops what the agent has running, and is waited for.
    """

    def __init__(self, environment: Mapping[str, str], spool: Path) -> None:
        # -P, -E: a folder runner/ in the user's repository or on PYTHONPATH must not be taken for ours. Its own
        # trouble goes to the spool, and from there redacted to the Session log. Its own session: Ctrl-C in a terminal
        # reaches the runner only.
        with spool.open("ab") as trouble:
            self.process = subprocess.Popen(
                [sys.executable, "-E", "-P", "-m", "runner.supervisor"],
                cwd="/",
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=trouble,
                bufsize=0,
                start_new_session=True,
            )
        assert self.process.stdin is not None  # noqa: S101 (for mypy: we asked for pipes)
        assert self.process.stdout is not None  # noqa: S101
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        self._answer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stdin.close()
        try:
            self.process.wait(SLACK)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stdout.close()

    def send(self, line: str) -> None:
        """Send one line, for at most as long as it may take; a supervisor that has gone is noticed by `answered`."""
        rest = memoryview(line.encode() + b"\n")
        deadline = time.monotonic() + SLACK
        with suppress(BrokenPipeError):
            while rest and time.monotonic() < deadline:
                if select.select([], [self._stdin], [], POLL)[1]:
                    rest = rest[self._stdin.write(rest) or 0 :]

    def answered(self, wait: float) -> bool:
        """Say whether the supervisor has answered or is gone, after at most `wait` seconds."""
        if not select.select([self._stdout], [], [], wait)[0]:
            return False
        chunk = os.read(self._stdout.fileno(), 1 << 16)
        self._answer += chunk
        return not chunk or self._answer.endswith(b"\n")

    def report(self) -> Report | None:
        """Return its answer, or None when it gave none: an agent of the same user can write there as well."""
        from pydantic import TypeAdapter

        with suppress(ValueError):
            report = TypeAdapter(Report).validate_json(self._answer)
            return replace(report, end=SessionEnd(report.end))
        return None

    def kill(self) -> tuple[float, str]:
        """Kill it; return when it was started, as psutil tells it, and what became of it."""
        import psutil

        # Not waited for yet, so the pid is still its own.
        born: float = psutil.Process(self.process.pid).create_time()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(POLL)  # it may be about to end by itself, with a status that says more
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(SLACK)
        status = self.process.returncode
        if status is None or status < 0:
            return born, "the session's supervisor was killed"
        return born, f"the session's supervisor failed with status {status}, see the Session log"


def left_behind(mark: str | None, spool: Path, born: float) -> list["Process"]:
    """Return the processes of a session whose supervisor is gone.

    Those that carry the run's mark in their environment or have the spool open, were started after the supervisor
    was, and their descendants.
    """
    import psutil

    found: set[Process] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.create_time() >= born and _is_ours(process, mark, spool):
                found |= {process, *process.children(recursive=True)}
    return list(found)


def _is_ours(process: "Process", mark: str | None, spool: Path) -> bool:
    import psutil

    with suppress(psutil.AccessDenied):
        if mark is not None and process.environ().get(RUN_MARKER) == mark:
            return True
    return any(Path(file.path) == spool for file in process.open_files())
