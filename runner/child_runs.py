"""Runs as processes: each `nightkeep run`, told to end, relayed, and read back."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from delivery.causes import Code
from delivery.child_runs import ChildEnding, ConfiguredBy
from delivery.issue_url import IssueUrl
from runner.processes import Strays
from runner.progress import Progress
from runner.token import handed_over
from worktree import Preserved

_GLANCE = 0.05  # seconds
_DRAIN = 1200.0  # seconds that a Run which was told to stop has to bring its work to origin
_LAST_LINES = 5.0  # seconds for what a Run that has ended still had to say
_LONGEST_LINE, _LONGEST_DOCUMENT = 1 << 16, 1 << 22  # bytes
_OURS, _AGENTS = "nightkeep: ", "| "


@dataclass(slots=True)
class _Child:
    """One Run. Its standard input is a pipe that it does not read from: the end of it says that we are gone."""

    process: "subprocess.Popen[bytes]"
    allowed: str
    deadline: float
    readers: tuple[threading.Thread, ...]
    document: bytearray
    spared: ExitStack = field(default_factory=ExitStack)
    is_told: bool = False
    is_late: bool = False

    def tell(self) -> None:
        """Tell it to stop; it has a while then."""
        if not self.is_told:
            self.is_told = True
            self.deadline = time.monotonic() + _DRAIN
            self.process.send_signal(signal.SIGTERM)


class ChildProcesses:
    """See `delivery.child_runs.ChildRuns`.

    `url` is that of an issue of the repository, `arguments` what each `nightkeep run` gets besides what `start` says,
    with every path absolute. `held` are tokens, handed over in a pipe. `recover` finishes a Run that was killed, by its
    issue's URL, and returns its document, None when that could not be done now. `strays` spares what they run, so that
    git may be used meanwhile.
    """

    def __init__(
        self,
        url: IssueUrl,
        arguments: Sequence[str],
        *,
        directory: Path,
        held: Mapping[str, str],
        recover: Callable[[IssueUrl], Mapping[str, object] | None],
        progress: Progress,
        strays: Strays,
    ) -> None:
        self._any_url = url
        self._arguments = list(arguments)
        self._directory = directory
        self._held = held
        self._recover = recover
        self._progress = progress
        self._strays = strays
        self._running: dict[int, _Child] = {}

    @contextmanager
    def ended(self) -> Iterator[None]:
        """See `ChildRuns.ended`."""
        try:
            yield
        finally:
            self.tell()
            while self._running:
                self.wait(1)

    def start(
        self,
        number: int,
        base: str,
        *,
        limit: float,
        spec: int | None = None,
        configured_by: ConfiguredBy | None = None,
    ) -> None:
        """See `ChildRuns.start`."""
        given = (("--base", base), ("--ticket-of", spec), ("--configured-by", configured_by))
        told = [word for name, value in given if value is not None for word in (name, str(value))]
        arguments = ["run", str(self._url(number)), "--json", "--merge", *self._arguments, *told]
        with handed_over(self._held) as (environment, descriptors):
            process = subprocess.Popen(
                # -P, -E: a folder runner/ in the user's repository or on PYTHONPATH must not be taken for ours.
                [sys.executable, "-E", "-P", "-m", "runner", *arguments, "--child"],
                cwd=self._directory,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=descriptors,
                # Ctrl-C in a terminal reaches us only, and we tell them.
                start_new_session=True,
            )
        document = bytearray()
        assert process.stdout is not None  # noqa: S101 (for mypy: we asked for pipes)
        assert process.stderr is not None  # noqa: S101
        readers = (
            threading.Thread(target=_collect, args=(process.stdout, document), daemon=True),
            threading.Thread(target=self._relay, args=(process.stderr, number), daemon=True),
        )
        for reader in readers:
            reader.start()
        allowed = f"{limit / 3600:.3g} h (limits.{'ticket' if spec else 'base-fix'})"
        one = _Child(process, allowed, time.monotonic() + limit, readers, document)
        one.spared.enter_context(self._strays.sparing(process))
        self._running[number] = one

    def tell(self) -> None:
        """Tell all that run to stop, all of them before any is waited for."""
        for one in self._running.values():
            one.tell()

    def wait(self, seconds: float) -> Mapping[int, ChildEnding]:
        """See `ChildRuns.wait`."""
        until = time.monotonic() + seconds
        while not (ended := self._poll()) and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _GLANCE))
        return {number: self._ending(number, one) for number, one in ended.items()}

    def _poll(self) -> dict[int, _Child]:
        for number, one in self._running.items():
            if one.process.poll() is None and time.monotonic() > one.deadline:
                self._late(number, one)
        return {number: one for number, one in self._running.items() if one.process.returncode is not None}

    def _late(self, number: int, one: _Child) -> None:
        if one.is_told:
            self._progress.say(f"#{number} did not end in time, and is killed; its work is recovered")
            one.process.kill()
            one.deadline = time.monotonic() + _DRAIN
        else:
            self._progress.say(f"#{number} has run longer than {one.allowed}; stopping it")
            one.is_late = True
            one.tell()

    def _ending(self, number: int, one: _Child) -> ChildEnding:
        del self._running[number]
        one.spared.close()
        until = time.monotonic() + _LAST_LINES
        for reader in one.readers:
            reader.join(max(0, until - time.monotonic()))
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        document: Mapping[str, object] | None = _read(bytes(one.document))
        if document is None:
            self._progress.say(f"#{number} ended without a word (exit status {one.process.returncode})")
            document = self._recover(self._url(number))
        ending = _ending_of(document)
        if one.is_late and not ending.merged:
            why = f"it ran longer than {one.allowed} and was stopped"
            return replace(ending, cause=why, code=Code.TICKETS)
        return ending

    def _url(self, number: int) -> IssueUrl:
        return replace(self._any_url, number=number)

    def _relay(self, stream: IO[bytes], number: int) -> None:
        """Say what a Run says, each line marked as its own; what is no line of ours is its agent's."""
        is_ours = goes_on = False
        while line := stream.readline(_LONGEST_LINE):
            text = line.decode(errors="replace").rstrip("\r\n")
            # A line that is too long comes in pieces, and its agent chooses how the next one begins.
            is_ours = is_ours if goes_on else text.startswith(_OURS)
            goes_on = not line.endswith(b"\n")
            if is_ours:
                self._progress.say(f"#{number}: {text.removeprefix(_OURS)}")
            else:
                self._progress.agent(f"#{number}: {text.removeprefix(_AGENTS)}")


def _collect(stream: IO[bytes], into: bytearray) -> None:
    while chunk := stream.read1(_LONGEST_LINE):  # type: ignore[attr-defined]  # a pipe of Popen is a BufferedReader
        if len(into) < _LONGEST_DOCUMENT:
            into += chunk


def _read(text: bytes) -> Mapping[str, object] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _ending_of(document: Mapping[str, object] | None) -> ChildEnding:
    """Return how a Run ended, as its `--json` says; without that it was killed and not recovered."""
    if document is None:
        cause = "its process was killed; finish it: nightkeep recover"
        return ChildEnding(cause=cause, code=Code.KILLED, preserved=Preserved.MACHINE)
    merged = document.get("merged") is True
    keys = ("pull_request", "merge_commit", "code", "preserved")
    url, commit, code, preserved = (document.get(key) for key in keys)
    places = document.get("places")
    return ChildEnding(
        merged=merged,
        taken=document.get("taken") is True,
        merge_commit=str(commit) if merged and commit else None,
        url=str(url) if url else None,
        cause=None if merged else str(document.get("cause") or "it was not merged"),
        code=Code(str(code)) if code in tuple(Code) else None,
        preserved=Preserved(str(preserved)) if preserved in tuple(Preserved) else Preserved.NOTHING_MADE,
        places=tuple((str(place["what"]), str(place["where"])) for place in places) if isinstance(places, list) else (),
    )
