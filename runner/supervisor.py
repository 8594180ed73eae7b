"""The small process between the runner and one agent: starts it, watches its limits, stops all of it.

Run as `python -P -m runner.supervisor`. The first line on stdin is the `Orders` as JSON; later a line
`stop <grace in seconds>` asks for the stop sequence, and so does end-of-file: the runner has died. One line on
stdout, the `Report` as JSON, is the answer, given when no process of the agent is left but the named survivors.

Orphans of the agent become children of this process (it is their subreaper), so a process that leaves its session,
forks twice or clears its environment is found all the same.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from runner.processes import become_subreaper, descendants, reap, stop

# Seconds between two looks at the agent: the first, and the longest; each wait is twice the one before.
_FIRST_POLL, _POLL = 0.001, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What to run, and its limits: seconds, and bytes for `output`.

    `environment` is the agent's whole environment. `grace` is the time that each signal of the stop sequence has,
    `last_grace` the same when the runner has died or this process is told to terminate.
    """

    argv: Sequence[str]
    directory: str
    environment: dict[str, str]
    prompt: str
    spool: str
    wall: float
    idle: float
    output: int
    grace: float
    last_grace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the agent ended: `end` is the value of a `SessionEnd`, `trouble` says why it did not start."""

    end: str
    status: int | None = None
    survivors: Sequence[str] = ()
    trouble: str = ""


def main() -> None:
    """Supervise one agent and report."""
    control = _Control(sys.stdin.fileno())
    # Handlers, not SIG_IGN: an ignored signal would stay ignored in the agent, and the stop sequence needs it.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: control.ask())
    orders = control.orders()
    become_subreaper()
    report = _supervise(orders, control)
    with suppress(BrokenPipeError):  # the runner has died
        os.write(sys.stdout.fileno(), json.dumps(asdict(report)).encode() + b"\n")


class _Control:
    """The line from the runner."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._asked = False
        self._grace: float | None = None

    def orders(self) -> Orders:
        """Wait for the orders. A runner that dies before they are complete ends this process."""
        while b"\n" not in self._buffer:
            chunk = os.read(self._descriptor, 1 << 16)
            if not chunk:
                sys.exit("the runner has gone without giving orders")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return Orders(**json.loads(line))

    def ask(self) -> None:
        """Ask for the stop sequence."""
        self._asked = True

    def asked(self, wait: float) -> bool:
        """Say whether the stop sequence was asked for, after at most `wait` seconds."""
        if self._asked or (b"\n" not in self._buffer and not select.select([self._descriptor], [], [], wait)[0]):
            return self._asked
        chunk = os.read(self._descriptor, 1 << 16) if b"\n" not in self._buffer else b""
        self._buffer += chunk
        line, newline, rest = self._buffer.partition(b"\n")
        if newline:
            self._buffer = rest
            self._grace = float(line.removeprefix(b"stop "))
        self._asked = bool(newline) or not chunk
        return self._asked

    def grace(self, otherwise: float) -> float:
        """The grace that the runner named, or `otherwise`."""
        return otherwise if self._grace is None else self._grace


def _supervise(orders: Orders, control: _Control) -> Report:
    try:
        # Kept open until this process ends: what the agent does to the name of the file does not matter then.
        spool = os.open(orders.spool, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        agent = _start(orders, spool)
    except (OSError, ValueError) as error:
        return Report(end="not-started", trouble=_reason(error))
    end = _watch(agent, spool, orders, control)

    def grace() -> float:
        if os.fstat(spool).st_size > 2 * orders.output:
            return 0  # it floods the disk: no time to be polite
        return control.grace(orders.last_grace) if control.asked(0) else orders.grace

    # The agent itself has ended: what it left in the background has nothing to say any more.
    signals = [signal.SIGTERM, signal.SIGKILL]
    if end != "exited":
        signals.insert(0, signal.SIGINT)
    survivors = stop(lambda: descendants(agent), signals, grace)
    return Report(end=end, status=agent.poll(), survivors=survivors)


def _start(orders: Orders, spool: int) -> subprocess.Popen[bytes]:
    with Path(orders.prompt).open("rb") as prompt:
        return subprocess.Popen(
            orders.argv,
            cwd=orders.directory,
            env=orders.environment,
            stdin=prompt,
            stdout=spool,
            stderr=spool,
            start_new_session=True,
        )


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


def _watch(agent: subprocess.Popen[bytes], spool: int, orders: Orders, control: _Control) -> str:
    """Wait until the agent ends or has to be stopped, and return which, as the value of a `SessionEnd`."""
    began = grew = time.monotonic()
    size = 0
    wait = _FIRST_POLL
    while agent.poll() is None:
        reap(agent)
        if control.asked(wait):
            return "interrupted" if agent.poll() is None else "exited"
        wait = min(2 * wait, _POLL)
        now, before, size = time.monotonic(), size, os.fstat(spool).st_size
        if size != before:
            grew = now
        if size > orders.output:
            return "output-limit"
        if now - began > orders.wall:
            return "time-limit"
        if now - grew > orders.idle:
            return "idle-limit"
    return "exited"


if __name__ == "__main__":
    main()
