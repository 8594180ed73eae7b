"""Working off the Tickets of a Spec: each in its turn, until nothing runs and nothing can start."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import assert_never

from delivery.causes import Code, Stage
from delivery.child_runs import ChildEnding, ChildRuns
from delivery.github import Ticket
from delivery.spec.account import Account
from delivery.spec.checklist import checklist
from delivery.spec.graph import Graph, Over, Start, TicketStanding, Wait
from worktree import FenceLostError, Interruption, Journal, Preserved, Redactor

_GLANCE = 0.2  # seconds between looks, while Tickets run, whether a signal has come
_LONGEST_POLL = 60.0  # seconds between two looks at a Ticket that another run has
_GROWTH = 0.1  # of the time waited so far: how long the next wait is


@dataclass(slots=True)
class _Elsewhere:
    """Since when a Ticket is waited for that another run has, and when that is to be looked at again."""

    since: float = field(default_factory=time.monotonic)
    look_at: float = 0


@dataclass(slots=True, kw_only=True)
class WorkingOff:
    """The Tickets of one Spec run. `graph` is how they are now, `read` reads that anew. `look` gets the commits by
    which Tickets have landed, and raises what is against working on the Spec any further. `start` starts one of `runs`
    on a Ticket, at most `parallel` at once; `keep_fence` is called while Tickets run, see `Claim.keep`.

    A Ticket that another run has is waited for, for `patience` seconds: `is_taken` looks whether it still has it, at
    first every `poll` seconds.

    Trouble that is no Ticket's own (GitHub does not answer, no process can be started) starts nothing more; what runs
    is waited for, and then it is raised.
    """

    graph: Graph
    read: Callable[[], Graph]
    look: Callable[[Collection[str]], object]
    start: Callable[[int], None]
    runs: ChildRuns
    account: Account
    parallel: int
    is_taken: Callable[[int], bool]
    patience: float
    poll: float
    keep_fence: Callable[[], object]
    interruption: Interruption
    journal: Journal
    report: Callable[[str], None]
    redact: Redactor
    attempts: dict[str, ChildEnding | None] = field(default_factory=dict, init=False)
    _elsewhere: dict[int, _Elsewhere] = field(default_factory=dict, init=False)
    _error: Exception | None = field(default=None, init=False)

    def to_the_end(self) -> tuple[str, ...]:
        """Run what can be run; return the names of the Tickets that are open then. Raises what stopped it."""
        while True:
            step = self.graph.decide(self.attempts, parallel=self.parallel, stopping=self._is_stopping)
            match step:
                case Start():
                    self._start(step.tickets)
                case Wait():
                    self._wait()
                case Over():
                    self._show()
                    if self._error is not None:
                        raise self._error
                    return step.left
                case _:
                    assert_never(step)

    @property
    def standings(self) -> tuple[TicketStanding, ...]:
        """Where each Ticket stands; causes are redacted."""
        return tuple(
            replace(standing, cause=self.redact(standing.cause)) if standing.cause else standing
            for standing in self.graph.standings(self.attempts)
        )

    @property
    def has_landed(self) -> bool:
        """Whether a Ticket was merged into the Spec branch."""
        return any(ending is not None and ending.merged for ending in self.attempts.values())

    @property
    def landed(self) -> frozenset[str]:
        """The commits by which Tickets were merged into the Spec branch, as far as they are known."""
        endings = [ending for ending in self.attempts.values() if ending is not None and ending.merged]
        return frozenset(ending.merge_commit for ending in endings if ending.merge_commit)

    @property
    def has_made(self) -> bool:
        """Whether a Ticket's Run has made anything, landed or not."""
        endings = [ending for ending in self.attempts.values() if ending is not None]
        return any(ending.merged or ending.preserved is not Preserved.NOTHING_MADE for ending in endings)

    @property
    def kept_here(self) -> tuple[tuple[str, str], ...]:
        """What failed Runs have kept only on this machine, as (what, where)."""
        return tuple(
            (f"{name}, {what}", where)
            for name, ending in self.attempts.items()
            if ending is not None and ending.is_kept_here
            for what, where in ending.places
        )

    @property
    def is_kept_here(self) -> bool:
        """Whether a failed Run has kept something only on this machine."""
        endings = [ending for ending in self.attempts.values() if ending is not None]
        return any(ending.is_kept_here for ending in endings)

    @property
    def _is_stopping(self) -> bool:
        return self._error is not None or self.interruption.recorded is not None

    def _start(self, tickets: tuple[Ticket, ...]) -> None:
        for ticket in tickets:
            name = f"#{ticket.number}"
            self.journal.enter("ticket", stage=Stage.TICKETS, number=ticket.number)
            self.report(f"starting on {name}")
            try:
                self.start(ticket.number)
            except OSError as error:
                self._stop_for(error)
                return
            self.attempts[name] = None
        self._show()

    def _wait(self) -> None:
        if self.interruption.recorded is not None:
            self.runs.tell()
        try:
            self.keep_fence()
        except FenceLostError as lost:
            self.runs.tell()
            self._stop_for(lost)
        ended = self.runs.wait(_GLANCE)
        for number, ending in ended.items():
            self.attempts[f"#{number}"] = ending
            self.report(self._said(number, ending))
        if not ended and not self._is_one_free():
            return
        try:
            self.graph = self.read()
            self.look(self.landed)
        except Exception as error:
            self._stop_for(error)
        if self.graph.decide(self.attempts, parallel=self.parallel, stopping=self._is_stopping) == Wait():
            self._show()

    def _said(self, number: int, ending: ChildEnding) -> str:
        if ending.merged:
            return f"#{number} is merged: {ending.url}"
        if not ending.taken:
            return f"#{number} is not merged: {ending.cause}"
        self._elsewhere.setdefault(number, _Elsewhere())
        return f"waiting for the run that has #{number}, {_hours(self.patience)} at most: {ending.cause}"

    def _is_one_free(self) -> bool:
        """Look whether other runs have ended, or vanished, that had Tickets: those may be started then."""
        now, before = time.monotonic(), dict(self.attempts)
        for number, one in self._elsewhere.items():
            name, ending = f"#{number}", before.get(f"#{number}")
            if ending is None or not ending.taken or now < one.look_at:
                continue
            waited = now - one.since
            one.look_at = now + min(_LONGEST_POLL, max(self.poll, waited * _GROWTH))
            if waited > self.patience:
                cause = f"another run had it for {_hours(self.patience)}"
                self.attempts[name] = replace(ending, taken=False, cause=cause, code=Code.TICKETS)
            elif not self.is_taken(number):
                del self.attempts[name]
        return self.attempts != before

    def _stop_for(self, error: Exception) -> None:
        """Start nothing more; the first trouble is what is told in the end."""
        if self._error is None:
            self._error = error
            self.report(f"no other Ticket is started: {error}")

    def _show(self) -> None:
        self.account.show(checklist(self.standings), has_landed=self.has_landed)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.3g} h"
