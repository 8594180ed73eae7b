"""Agent sessions as processes: one supervisor each, a spool for the output, and an end in every case."""

import json
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from delivery.causes import Code
from delivery.session import SessionEnd, SessionRequest, SessionResult
from delivery.text import one_line, visible
from runner.agents import Agent, Conversation, Trouble, agent_for, any_command
from runner.exchange import Exchange, exchange
from runner.logs import LogPlace
from runner.processes import KILL_WAIT, Strays, stop
from runner.spool import Follower, without_controls
from runner.supervised import POLL, SLACK, SupervisorProcess, left_behind
from runner.supervisor import Orders, Report
from worktree import Interruption, Redactor, Watch
from worktree.processes import RUN_MARKER

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# How long the rest of the output may take to be redacted after the agent's end, in seconds.
_LAST_OUTPUT = 60.0
_CODES: Mapping[Trouble | None, Code] = {
    Trouble.USAGE_LIMIT: Code.AGENT_LIMIT,
    Trouble.LOGIN: Code.AGENT_LOGIN,
    Trouble.MODEL: Code.MODEL,
}
# An id that can be an argument, and no option.
_SESSION_ID = re.compile(r"[A-Za-z0-9][\w-]{0,99}", re.ASCII)
_LONGEST_CAUSE, _LONGEST_NAME = 500, 100  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Limits of one session: seconds, and bytes for `output`.

    `wall` is for the whole session, `step` for setup or verify, `idle` for a time without output. `grace` is how
    long each signal of the stop sequence (INT, TERM, KILL) has, `interrupted_grace` the same after a recorded
    interruption.
    """

    wall: float = 7200
    step: float = 600
    idle: float = 900
    output: int = 200_000_000
    grace: float = 10
    interrupted_grace: float = 2


class AgentSessions:
    """Runs agent sessions; fulfils `delivery.session.Sessions`.

    `argv` is the agent's argument list, started without a shell. An agent whose stream we can read is asked for it, and
    what that says decides how the session ended. `environment` is its whole environment but for
    the contract's variables, which are added and win; the caller takes tokens out. The Session log is
    `logs.file(kind)`, with a number added rather than an older log overwritten. `progress` is called with each
    redacted line of output, without control characters, from the thread that called `run`. `strays` spares what a
    session runs, so that git may be used meanwhile.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        logs: LogPlace,
        limits: SessionLimits,
        interruption: Interruption,
        redact: Redactor,
        progress: Callable[[str], None],
        strays: Strays,
    ) -> None:
        self._argv = list(argv)
        self._environment = dict(environment)
        self._logs = logs
        self._limits = limits
        self._interruption = interruption
        self._redact = redact
        self._progress = progress
        self._strays = strays

    def run(self, request: SessionRequest) -> SessionResult:
        """Run one session to its end. When this returns, no process of the agent is left but the named survivors.

        Raises only what `progress` raises; the agent is stopped then, too. The raw output is deleted from
        `request.private` once all of it is in the log.
        """
        log = self._logs.file(request.kind)
        agent = agent_for(self._argv) if request.argv is None else any_command
        if self._interruption.recorded is not None:
            return self._not_run(request, Report(end=SessionEnd.INTERRUPTED), log)
        with ExitStack() as stack:
            try:
                files = stack.enter_context(exchange(request.prompt))
                spool = stack.enter_context(_spool(request, agent))
                follower = stack.enter_context(self._follower(spool.path, log, agent))
                supervisor = stack.enter_context(SupervisorProcess(self._environment, spool.path))
            except (OSError, ValueError) as error:
                return self._not_run(request, Report(end=SessionEnd.NOT_STARTED, trouble=str(error)), log)
            stack.enter_context(self._strays.sparing(supervisor.process))
            argv = agent.command(self._argv, request.resume) if request.argv is None else request.argv
            orders = self._orders(request, argv, files, spool.path)
            report = self._attend(supervisor, follower, orders, request.watch)
            report = report or self._clean_up_after(supervisor, request, spool.path)
            follower.finish(lambda: self._patience(_LAST_OUTPUT))
            spool.keep = not follower.complete
            ended = self._result(request, report, follower, files)
            return ended if agent is any_command else self._as_told(ended, agent, follower.conversation)

    def _follower(self, spool: Path, log: Path, agent: Agent) -> Follower:
        return Follower(spool, log, redact=self._redact, progress=self._progress, cap=self._limits.output, agent=agent)

    def _orders(self, request: SessionRequest, argv: Sequence[str], files: Exchange, spool: Path) -> Orders:
        contract = {
            "NIGHTKEEP_PROMPT_FILE": str(files.prompt),
            "NIGHTKEEP_PR_FILE": str(files.pull_request),
            "NIGHTKEEP_SESSION": request.kind,
        }
        return Orders(
            argv=list(argv),
            directory=str(request.directory),
            environment=self._environment | dict(request.environment) | contract,
            prompt=str(files.prompt),
            spool=str(spool),
            wall=self._wall(request),
            idle=self._limits.idle,
            output=self._limits.output,
            grace=self._limits.grace,
            last_grace=self._limits.interrupted_grace,
        )

    def _attend(self, supervisor: SupervisorProcess, follower: Follower, orders: Orders, watch: Watch) -> Report | None:
        """Follow the session until the supervisor answers; None when it does not."""
        limits = self._limits
        deadline = time.monotonic() + orders.wall + _stop_time(limits.grace)
        supervisor.send(json.dumps(asdict(orders)))
        silence = _Silence(min(limits.idle, orders.wall), self._progress)
        stopping = False
        interrupted = False
        more = False
        while not supervisor.answered(0 if more else POLL) and time.monotonic() < deadline:
            more = follower.follow()
            silence.note(ended=more)
            if self._interruption.recorded is None:
                watch.tick()
            elif not interrupted:
                interrupted = True
                watch.interrupted()
            if not stopping and (interrupted or watch.why_stop):
                stopping = True
                supervisor.send(f"stop {limits.interrupted_grace}")
                deadline = min(deadline, time.monotonic() + _stop_time(limits.interrupted_grace))
        return supervisor.report()

    def _clean_up_after(self, supervisor: SupervisorProcess, request: SessionRequest, spool: Path) -> Report:
        """Stop what a supervisor that was killed, or hangs, has left behind."""
        born, trouble = supervisor.kill()
        recorded = self._interruption.recorded
        mark, raw = request.environment.get(RUN_MARKER), spool.resolve()
        survivors = stop(
            lambda: left_behind(mark, raw, born),
            _STOP_SIGNALS,
            lambda: self._patience(self._limits.grace),
        )
        end = SessionEnd.EXITED if recorded is None else SessionEnd.INTERRUPTED
        return Report(end=end, survivors=survivors, trouble=trouble)

    def _patience(self, seconds: float) -> float:
        return seconds if self._interruption.recorded is None else self._limits.interrupted_grace

    def _wall(self, request: SessionRequest) -> float:
        return self._limits.wall if request.argv is None else self._limits.step

    def _result(self, request: SessionRequest, report: Report, follower: Follower, files: Exchange) -> SessionResult:
        return SessionResult(
            end=SessionEnd(report.end),
            cause=self._cause(request, report),
            status=report.status,
            final_text=self._redact(follower.final_text()),
            pull_request_text=self._redact(without_controls(files.pull_request_text())),
            log=follower.log,
            survivors=tuple(report.survivors),
        )

    def _as_told(self, ended: SessionResult, agent: Agent, told: Conversation) -> SessionResult:
        """Return how a session ended by what its stream says, which knows better than the exit status."""
        ended = replace(ended, denied=self._names(told.denied))
        if ended.end is not SessionEnd.EXITED:
            return ended
        if told.trouble is not None or (ended.cause is None and told.cause is not None):
            cause = one_line(visible(self._redact(told.cause or "")), _LONGEST_CAUSE)
            return replace(ended, cause=cause, code=_CODES.get(told.trouble, Code.AGENT))
        if ended.cause is not None:
            return ended
        resumable = agent.can_resume(self._argv) and _SESSION_ID.fullmatch(told.session)
        return replace(ended, unfinished=self._names(told.unfinished), resumable=told.session if resumable else "")

    def _names(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(one_line(visible(self._redact(name)), _LONGEST_NAME) for name in names)

    def _not_run(self, request: SessionRequest, report: Report, log: Path) -> SessionResult:
        return SessionResult(
            end=SessionEnd(report.end),
            cause=self._cause(request, report),
            status=None,
            final_text="",
            pull_request_text="",
            log=log,
            survivors=(),
        )

    def _cause(self, request: SessionRequest, report: Report) -> str | None:
        who = "the agent" if request.argv is None else request.kind
        cause = _cause(report, who, self._wall(request), self._limits, self._interruption.recorded)
        return None if cause is None else self._redact(cause)


def _cause(report: Report, who: str, wall: float, limits: SessionLimits, recorded: signal.Signals | None) -> str | None:
    match SessionEnd(report.end):
        case SessionEnd.EXITED:
            return report.trouble or _exit_cause(who, report.status)
        case SessionEnd.TIME_LIMIT:
            return f"{who} ran longer than {_duration(wall)} and was stopped"
        case SessionEnd.IDLE_LIMIT:
            return f"{who} printed nothing for {_duration(limits.idle)} and was stopped"
        case SessionEnd.OUTPUT_LIMIT:
            return f"{who} printed more than {limits.output / 1e6:g} MB and was stopped"
        case SessionEnd.INTERRUPTED:
            return f"interrupted by {recorded.name}" if recorded else "the session's supervisor was told to stop"
        case SessionEnd.NOT_STARTED:
            return f"{who} could not be started: {report.trouble}"


def _exit_cause(who: str, status: int | None) -> str | None:
    if status is None:
        return f"{who} could not be stopped"
    if status >= 0:
        return f"{who} exited {status}" if status else None
    try:
        return f"{who} was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"{who} was killed by signal {-status}"


def _duration(seconds: float) -> str:
    amount, unit = (seconds / 60, "minute") if seconds >= 60 else (seconds, "second")
    return f"{amount:g} {unit}" if amount == 1 else f"{amount:g} {unit}s"


def _stop_time(grace: float) -> float:
    """Return how long the supervisor may take for its whole stop sequence."""
    return 2 * grace + KILL_WAIT + SLACK


class _Silence:
    """Says of each silence, once, that half of the time is over after which the agent is stopped."""

    def __init__(self, most: float, say: Callable[[str], None]) -> None:
        self._most = most
        self._say = say
        self._since = time.monotonic()
        self._said = False

    def note(self, *, ended: bool) -> None:
        if ended:
            self._since, self._said = time.monotonic(), False
        elif not self._said and time.monotonic() - self._since > self._most / 2:
            self._said = True
            self._say(
                f"[nothing was printed for {_duration(self._most / 2)}; after {_duration(self._most)} it is stopped]"
            )


class _Spool:
    """The agent's raw output, not redacted: a file of its own that nobody else can read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keep = True


@contextmanager
def _spool(request: SessionRequest, agent: Agent) -> Iterator[_Spool]:
    """Make the spool, named after what it will hold.

    It goes when the block ends well, or before anything was in it, unless it is to be kept.
    """
    descriptor, name = tempfile.mkstemp(
        prefix=f"session-{request.kind}.{agent.NAME}.", suffix=".raw", dir=request.private
    )
    os.close(descriptor)
    spool = _Spool(Path(name))
    try:
        yield spool
    finally:
        with suppress(FileNotFoundError):
            if not spool.keep or spool.path.stat().st_size == 0:
                spool.path.unlink()
