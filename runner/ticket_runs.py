"""The Runs of a Spec's Tickets, as processes: each `nightkeep run`, told to end, relayed, and read back."""

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
from typing import IO

from delivery.causes import Code
from delivery.issue_url import IssueUrl
from delivery.spec.graph import TicketEnding
from runner.processes import Strays
from runner.progress import Progress
from runner.token import handed_over
from worktree import Preserved

_GLANCE = 0.05  # seconds
_DRAIN = 1200.0  # seconds that a Run which was told to stop has to bring its work to origin
_LAST_LINES = 5.0  # seconds for what a Run that has ended still had to say
_LONGEST_LINE, _LONGEST_DOCUMENT = 1 << 16, 1 << 22  # bytes
_OURS, _AGENTS = "nightkeep: ", "| "


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketOf:
    """What the Run of a Ticket is told: the Spec, and the Base branch and commit whose configuration holds for all."""

    spec: int
    base: str
    commit: str

    def __str__(self) -> str:
        """Return it as an argument."""
        return f"{self.spec}:{self.base}:{self.commit}"

    @classmethod
    def parse(cls, text: str) -> "TicketOf":
        """Return what `str` made an argument of; no branch has a colon in its name."""
        spec, base, commit = text.split(":")
        return cls(spec=int(spec), base=base, commit=commit)


@dataclass(slots=True)
class _TicketProcess:
    """One Run. Its standard input is a pipe that it does not read from: the end of it says that we are gone."""

    process: "subprocess.Popen[bytes]"
    deadline: float
    readers: tuple[threading.Thread, ...]
    document: bytearray
    spared: ExitStack = field(default_factory=ExitStack)
    is_told: bool = False
    is_late: bool = False

    def tell(self, limit: float) -> None:
        """Tell it to stop; it has `limit` seconds then."""
        if not self.is_told:
            self.is_told = True
            self.deadline = time.monotonic() + limit
            self.process.send_signal(signal.SIGTERM)


class TicketProcesses:
    """Runs Tickets in processes of their own; fulfils `delivery.spec.runs.TicketRuns`.

    `spec` is the URL of the Spec, `arguments` what each `nightkeep run` gets behind the Ticket's. `held` are tokens,
    handed over in a pipe. A Run may take `limit` seconds. `recover` finishes a Run that was killed, by its Ticket's
    URL, and returns its document, None when that could not be done now. `strays` spares what they run, so that git may
    be used meanwhile.
    Leaving the block tells those that still run, waits for them, and kills what does not end.
    """

    def __init__(
        self,
        spec: IssueUrl,
        arguments: Sequence[str],
        *,
        held: Mapping[str, str],
        limit: float,
        recover: Callable[[IssueUrl], Mapping[str, object] | None],
        progress: Progress,
        strays: Strays,
    ) -> None:
        self._spec = spec
        self._arguments = list(arguments)
        self._held = held
        self._limit = limit
        self._recover = recover
        self._progress = progress
        self._strays = strays
        self._running: dict[int, _TicketProcess] = {}

    @contextmanager
    def ended(self) -> Iterator[None]:
        """See that none is left at the end of the block."""
        try:
            yield
        finally:
            self.tell()
            while self._running:
                self.wait(1)

    def start(self, number: int) -> None:
        """Start the Run of a Ticket. Raises OSError."""
        url = self._url(number)
        # -P, -E: a folder runner/ in the user's repository or on PYTHONPATH must not be taken for ours. A session of
        # its own: Ctrl-C in a terminal reaches us only, and we tell them.
        command = [sys.executable, "-E", "-P", "-m", "runner", "run", str(url), "--json", *self._arguments]
        with handed_over(self._held) as (environment, descriptors):
            process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=descriptors,
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
        one = _TicketProcess(process, time.monotonic() + self._limit, readers, document)
        one.spared.enter_context(self._strays.sparing(process))
        self._running[number] = one

    def tell(self) -> None:
        """Tell all that run to stop, all of them before any is waited for."""
        for one in self._running.values():
            one.tell(_DRAIN)

    def wait(self, seconds: float) -> Mapping[int, TicketEnding]:
        """Return how those ended that have ended since, by their numbers; waits for one for so long."""
        until = time.monotonic() + seconds
        while not (ended := self._poll()) and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _GLANCE))
        return {number: self._ending(number, one) for number, one in ended.items()}

    def _poll(self) -> dict[int, _TicketProcess]:
        for number, one in self._running.items():
            if one.process.poll() is None and time.monotonic() > one.deadline:
                self._late(number, one)
        return {number: one for number, one in self._running.items() if one.process.returncode is not None}

    def _late(self, number: int, one: _TicketProcess) -> None:
        if one.is_told:
            self._progress.say(f"#{number} did not end in time, and is killed; its work is recovered")
            one.process.kill()
            one.deadline = time.monotonic() + _DRAIN
        else:
            self._progress.say(f"#{number} has run longer than {self._limit / 3600:g} h (limits.ticket); stopping it")
            one.is_late = True
            one.tell(_DRAIN)

    def _ending(self, number: int, one: _TicketProcess) -> TicketEnding:
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
        ending = read_ending(document)
        if one.is_late and not ending.landed:
            why = f"it ran longer than {self._limit / 3600:g} h (limits.ticket) and was stopped"
            return replace(ending, cause=why, code=Code.TICKETS)
        return ending

    def _url(self, number: int) -> IssueUrl:
        return replace(self._spec, number=number)

    def _relay(self, stream: IO[bytes], number: int) -> None:
        """Say what a Run says, each line marked as its own; what is no line of ours is its agent's."""
        while line := stream.readline(_LONGEST_LINE):
            text = line.decode(errors="replace").rstrip("\r\n")
            if text.startswith(_OURS):
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


def read_ending(document: Mapping[str, object] | None) -> TicketEnding:
    """Return how the Run of a Ticket ended, as its `--json` says; without that it was killed and not recovered."""
    if document is None:
        cause = "its process was killed; finish it: nightkeep recover"
        return TicketEnding(cause=cause, code=Code.KILLED, preserved=Preserved.MACHINE)
    landed = document.get("merged") is True
    why = None if landed else str(document.get("cause") or "it was not merged")
    url, code, preserved = (document.get(key) for key in ("pull_request", "code", "preserved"))
    places = document.get("places")
    return TicketEnding(
        landed=landed,
        url=str(url) if url else None,
        cause=why,
        code=Code(str(code)) if code in tuple(Code) else None,
        preserved=Preserved(str(preserved)) if preserved in tuple(Preserved) else Preserved.NOTHING_MADE,
        places=tuple((str(place["what"]), str(place["where"])) for place in places) if isinstance(places, list) else (),
    )
