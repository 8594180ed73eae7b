"""Runs in processes of their own, which are started from here."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from delivery.child_runs import ChildEnd
from runner.processes import Strays
from runner.token import handed_over
from worktree import Interruption, temporary_directory

_GLANCE = 0.1  # seconds between two looks
_LAST = 600.0  # seconds that a Run which was told to end has to keep its work
_OURS = "nightkeep: "
# What tells a step of a workflow how the Run of the step ended; a child's ending is told to its parent only.
_STEP = re.compile(r"GITHUB_(ACTIONS|ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRuns:
    """See `delivery.child_runs.ChildRuns`.

    `flags` are the command line's, with every path absolute; `held` the tokens that the environment had. What a Run
    says about itself is told by `report`; what its agent prints is in its own Session log only.
    """

    flags: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    held: Mapping[str, str]
    interruption: Interruption
    strays: Strays
    report: Callable[[str], None]

    def merge_run(self, issue_url: str, base: str, *, limit: float, tick: Callable[[], None]) -> ChildEnd:
        """See `ChildRuns.merge_run`."""
        arguments = ["run", issue_url, "--base", base, "--merge", "--json", *self.flags]
        name = f"#{issue_url.rpartition('/')[2]}"
        with temporary_directory() as (directory, _):
            document, progress = directory / "document.json", directory / "progress"
            process = self._start(arguments, document, progress)
            with self.strays.sparing(process), progress.open(encoding="utf-8", errors="replace") as lines:
                _Following(process, name, lines, self, tick).to_the_end(limit)
            return _read(document, process.returncode)

    def _start(self, arguments: Sequence[str], document: Path, progress: Path) -> "subprocess.Popen[bytes]":
        kept = {name: value for name, value in self.environment.items() if not _STEP.fullmatch(name)}
        with (
            handed_over(self.held) as (tokens, descriptors),
            document.open("wb") as output,
            progress.open("wb") as errors,
        ):
            return subprocess.Popen(
                # -P, -E: see `runner.token`. Files, not pipes: nobody can hold them open past the end. Its own session:
                # Ctrl-C in a terminal reaches this process only, which tells it.
                [sys.executable, "-E", "-P", "-m", "runner.tethered", str(os.getpid()), *arguments],
                cwd=self.directory,
                env={**kept, **tokens},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                pass_fds=descriptors,
                start_new_session=True,
            )


@dataclass(slots=True)
class _Following:
    """Waits for a child, and tells what it says."""

    process: "subprocess.Popen[bytes]"
    name: str
    lines: TextIO
    runs: ProcessRuns
    tick: Callable[[], None]
    _half: str = ""
    _told: bool = False

    def to_the_end(self, limit: float) -> None:
        try:
            self._until(time.monotonic() + limit, self._look)
        finally:
            self._stop()
            self._relay()

    def _until(self, deadline: float, look: Callable[[], None]) -> None:
        while self.process.poll() is None and time.monotonic() < deadline:
            look()
            self._relay()
            time.sleep(_GLANCE)

    def _look(self) -> None:
        if self.runs.interruption.recorded:
            self._tell()
        self.tick()

    def _tell(self) -> None:
        if not self._told and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self._told = True

    def _stop(self) -> None:
        if self.process.poll() is None:
            self._tell()
            self._until(time.monotonic() + _LAST, lambda: None)
        if self.process.poll() is None:
            self.process.kill()  # its own recovery keeps what it had
            self.process.wait()

    def _relay(self) -> None:
        *whole, self._half = (self._half + self.lines.read()).split("\n")
        for line in whole:
            if line.startswith(_OURS):
                self.runs.report(f"{self.name}: {line.removeprefix(_OURS)}")


def _read(document: Path, status: int) -> ChildEnd:
    """Return what the `--json` document of a Run says; one that was killed has none."""
    try:
        said: dict[str, Any] = json.loads(document.read_text(encoding="utf-8"))
        merged, url, cause = bool(said.get("merged")), said.get("pull_request"), said.get("cause")
    except (OSError, ValueError, AttributeError):
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return ChildEnd(merged=False, cause=f"it ended by {how}, without a word")
    return ChildEnd(
        merged=merged,
        pull_request=str(url) if url else None,
        cause=None if merged else str(cause or "it did not merge its pull request"),
    )
