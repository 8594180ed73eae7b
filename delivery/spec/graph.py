"""The Tickets of a Spec and what blocks them: what may start, what stands in the way, and when it is over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from delivery.causes import Code
from delivery.child_runs import ChildEnding
from delivery.cycles import cycle_of, ring_of
from delivery.github import Linked, Ticket
from delivery.issue_state import State
from delivery.ready_facts import UNREADY, worn

Attempts = Mapping[str, ChildEnding | None]
"""The Runs that this Spec run has started, by the Tickets' names; None for one that has not ended.

One that ended because another run has the issue is no try: that one is waited for, and once it is over the attempt is
none any more.
"""


@dataclass(frozen=True, slots=True)
class Start:
    """Start the Runs of those Tickets."""

    tickets: tuple[Ticket, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until one of those that run has ended, or another run with one of the Tickets."""


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing runs, and nothing can start; `left` are the names of the Tickets that are still open."""

    left: tuple[str, ...]


Step = Start | Wait | Over


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketStanding:
    """Where a Ticket stands, also in words. `title`, and `cause`, why its Run failed, may be words of others."""

    name: str
    state: State
    words: str
    cause: str | None = None
    title: str = ""

    @property
    def is_done(self) -> bool:
        """Whether nothing of it is left to do."""
        return self.state is State.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The Tickets of a Spec of `repository` as they are now, and how many that the token may not see (`unseen`).

    Those with a label of `unready`, in any case, are for people. `unread` says of others, by their names, why nobody
    whose word counts has let them be worked on as they are, and `merged` which pull request brought those that were
    done before.
    """

    repository: str
    tickets: Sequence[Ticket]
    unseen: int = 0
    unready: Sequence[str] = field(default=UNREADY)
    unread: Mapping[str, str] = field(default_factory=dict)
    merged: Mapping[str, str] = field(default_factory=dict)

    def decide(self, attempts: Attempts, *, parallel: int, stopping: bool) -> Step:
        """Return the next step: at most `parallel` run at once, the lowest numbers first; `stopping` starts nothing.

        A Ticket is tried once in a Spec run. One that failed stops only what it blocks.
        """
        running = sum(ending is None for ending in attempts.values())
        elsewhere = not stopping and any(ending is not None and ending.taken for ending in attempts.values())
        room = 0 if stopping else parallel - running
        ready = [ticket for ticket in self._sorted() if room > 0 and self.may_start(ticket, attempts)]
        if ready:
            return Start(tuple(ready[:room]))
        return Wait() if running or elsewhere else Over(self._left())

    def _left(self) -> tuple[str, ...]:
        left = tuple(self._name(ticket) for ticket in self._sorted() if ticket.is_open)
        return (*left, f"{self.unseen} that the token may not see") if self.unseen else left

    def may_start(self, ticket: Ticket, attempts: Attempts) -> bool:
        """Whether nothing keeps a Ticket from being worked on."""
        untried = ticket.is_open and self._name(ticket) not in attempts
        return untried and self._unready(ticket) is None and not self._in_the_way(ticket, attempts)

    def standings(self, attempts: Attempts) -> tuple[TicketStanding, ...]:
        """Say of each Ticket where it stands, the lowest number first."""
        return tuple(self.standing(ticket, attempts) for ticket in self._sorted())

    def standing(self, ticket: Ticket, attempts: Attempts) -> TicketStanding:
        """Say where one of the Tickets stands."""
        return replace(self._standing(ticket, attempts), title=ticket.title)

    def _standing(self, ticket: Ticket, attempts: Attempts) -> TicketStanding:
        name, ending = self._name(ticket), attempts.get(self._name(ticket))
        if name in attempts and ending is None:
            return TicketStanding(name=name, state=State.RUNNING, words="running")
        if not ticket.is_open:
            url = ending.url if ending and ending.merged else self.merged.get(name)
            words = f"merged, {url}" if url else "closed"
            return TicketStanding(name=name, state=State.DONE, words=words)
        if ending is None:
            state, words = self._why_not(ticket, attempts) or (State.WAITING, "not started")
            return TicketStanding(name=name, state=state, words=words)
        if ending.taken:
            return TicketStanding(name=name, state=State.RUNNING, words="another run works on it")
        if ending.merged:
            return TicketStanding(name=name, state=State.STARTED, words=f"merged, {ending.url}, but still open")
        if ending.code is Code.INTERRUPTED:
            return TicketStanding(name=name, state=State.STARTED, words="interrupted")
        where = f", see {ending.url}" if ending.url else ""
        return TicketStanding(name=name, state=State.FAILED, words=f"failed{where}", cause=ending.cause or "unknown")

    def _sorted(self) -> Sequence[Ticket]:
        return sorted(self.tickets, key=lambda one: (not one.is_in(self.repository), one.number, one.repository))

    def _name(self, issue: Linked) -> str:
        return issue.name_in(self.repository)

    def _why_not(self, ticket: Ticket, attempts: Attempts) -> tuple[State, str] | None:
        """Say what keeps an open Ticket that was not tried from being worked on; None for nothing."""
        unready = self._unready(ticket)
        if unready is not None:
            return State.FOR_PEOPLE, f"not ready: {unready}"
        cycle = self._cycle(ticket)
        if cycle:
            return State.BLOCKED, f"in a cycle: {_named(cycle)}"
        in_the_way = self._in_the_way(ticket, attempts)
        return (State.BLOCKED, f"blocked by {', '.join(in_the_way)}") if in_the_way else None

    def _unready(self, ticket: Ticket) -> str | None:
        """Say what about a Ticket itself, whatever blocks it, makes it none to be worked on; None for nothing."""
        if not ticket.is_in(self.repository):
            return "it is in another repository than the Spec"
        if labels := worn(ticket.labels, *self.unready):
            return f"labelled {', '.join(labels)}"
        if ticket.tickets:
            return "it has sub-issues of its own"
        return self.unread.get(self._name(ticket))

    def _in_the_way(self, ticket: Ticket, attempts: Attempts) -> tuple[str, ...]:
        """Name the blockers that are open, or whose Run has yet to end."""
        named = {self._name(one): one.is_open for one in ticket.blockers}
        names = [name for name, is_open in named.items() if is_open or (name in attempts and attempts[name] is None)]
        unseen = (f"{ticket.unseen_blockers} that the token may not see",) if ticket.unseen_blockers else ()
        return (*(self._placed(name) for name in names), *unseen)

    def _placed(self, name: str) -> str:
        return name if any(self._name(ticket) == name for ticket in self.tickets) else f"{name} (outside the Spec)"

    def _cycle(self, ticket: Ticket) -> tuple[str, ...]:
        """Return the shortest way from a Ticket over its open blockers to the last one before it; empty for none."""
        waits = {
            self._name(one): [self._name(blocker) for blocker in one.blockers if blocker.is_open]
            for one in self.tickets
            if one.is_open
        }
        return cycle_of(self._name(ticket), waits)


def _named(cycle: Sequence[str]) -> str:
    shown = ring_of(cycle)
    return " is blocked by ".join(shown[:2]) + "".join(f", that by {name}" for name in shown[2:])
