"""The Tickets of a Spec and what blocks them: what may start, what stands in the way, and when it is over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delivery.causes import Code
from delivery.child_runs import ChildEnding

UNREADY = frozenset({"ready-for-human", "needs-info", "needs-triage", "wontfix"})
"""The labels, in lower case, of a Ticket that waits for a person."""
_LONGEST_CYCLE = 8  # Tickets that are named of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """An issue that blocks a Ticket: `#7`, or `OWNER/NAME#7` in another repository than the Spec's."""

    name: str
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A sub-issue of a Spec, as GitHub has it. `name` is as a Blocker's; `sub_issues` says how many it has itself.

    `unseen_blockers` says how many blockers there are that the token may not see.
    """

    name: str
    number: int
    is_here: bool
    is_open: bool
    labels: frozenset[str] = frozenset()
    sub_issues: int = 0
    blockers: tuple[Blocker, ...] = ()
    unseen_blockers: int = 0


Attempts = Mapping[str, ChildEnding | None]
"""The Runs that this Spec run has started, by the Tickets' names; None for one that has not ended."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start the Runs of those Tickets."""

    tickets: tuple[Ticket, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until one of those that run has ended."""


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing runs, and nothing can start; `left` are the names of the Tickets that are still open."""

    left: tuple[str, ...]


Step = Start | Wait | Over


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a Ticket stands, in words. `cause` is why its Run failed: words of others, perhaps."""

    name: str
    is_done: bool
    words: str
    cause: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The Tickets of one Spec as they are now, and how many sub-issues there are that the token may not see (`unseen`).

    `unready` are the labels, in lower case, that keep a Ticket waiting.
    """

    tickets: tuple[Ticket, ...]
    unready: frozenset[str] = UNREADY
    unseen: int = 0

    def decide(self, attempts: Attempts, *, parallel: int, stopping: bool) -> Step:
        """Return the next step: at most `parallel` run at once, the lowest numbers first; `stopping` starts nothing.

        A Ticket is tried once in a Spec run. One that failed stops only what it blocks.
        """
        running = sum(ending is None for ending in attempts.values())
        room = 0 if stopping else parallel - running
        ready = [ticket for ticket in self._sorted() if room > 0 and self.may_start(ticket, attempts)]
        if ready:
            return Start(tuple(ready[:room]))
        return Wait() if running else Over(self._left())

    def _left(self) -> tuple[str, ...]:
        left = tuple(ticket.name for ticket in self._sorted() if ticket.is_open)
        return (*left, f"{self.unseen} that the token may not see") if self.unseen else left

    def may_start(self, ticket: Ticket, attempts: Attempts) -> bool:
        """Whether nothing keeps a Ticket from being worked on."""
        untried = ticket.is_open and ticket.name not in attempts
        return untried and self._unready(ticket) is None and not self._in_the_way(ticket, attempts)

    def standings(self, attempts: Attempts) -> tuple[Standing, ...]:
        """Say of each Ticket where it stands, the lowest number first."""
        return tuple(self._standing(ticket, attempts) for ticket in self._sorted())

    def _sorted(self) -> Sequence[Ticket]:
        return sorted(self.tickets, key=lambda ticket: (not ticket.is_here, ticket.number, ticket.name))

    def _standing(self, ticket: Ticket, attempts: Attempts) -> Standing:
        ending = attempts.get(ticket.name)
        if ticket.name in attempts and ending is None:
            return Standing(name=ticket.name, is_done=False, words="running")
        if not ticket.is_open:
            words = f"landed with {ending.url}" if ending and ending.merged else "done"
            return Standing(name=ticket.name, is_done=True, words=words)
        if ending is None:
            return Standing(name=ticket.name, is_done=False, words=self._why_not(ticket, attempts) or "not started")
        if ending.merged:
            words = f"landed with {ending.url}, but is still open"
            return Standing(name=ticket.name, is_done=False, words=words)
        if ending.code is Code.INTERRUPTED:
            return Standing(name=ticket.name, is_done=False, words="interrupted")
        where = f", see {ending.url}" if ending.url else ""
        return Standing(name=ticket.name, is_done=False, words=f"failed{where}", cause=ending.cause or "unknown")

    def _why_not(self, ticket: Ticket, attempts: Attempts) -> str | None:
        """Say what keeps an open Ticket that was not tried from being worked on; None for nothing."""
        unready = self._unready(ticket)
        if unready is not None:
            return unready
        cycle = self._cycle(ticket)
        if cycle:
            return f"in a cycle: {_named(cycle)}"
        in_the_way = self._in_the_way(ticket, attempts)
        return f"blocked by {', '.join(in_the_way)}" if in_the_way else None

    def _unready(self, ticket: Ticket) -> str | None:
        """Say what about a Ticket itself, whatever blocks it, makes it none to be worked on; None for nothing."""
        if not ticket.is_here:
            return "not ready: it is in another repository than the Spec"
        labels = sorted(label for label in ticket.labels if label.lower() in self.unready)
        if labels:
            return f"not ready: labelled {', '.join(labels)}"
        return "not ready: it has sub-issues of its own" if ticket.sub_issues else None

    def _in_the_way(self, ticket: Ticket, attempts: Attempts) -> tuple[str, ...]:
        """Name the blockers that are open, or whose Run has yet to end."""
        names = tuple(
            blocker.name
            for blocker in ticket.blockers
            if blocker.is_open or (blocker.name in attempts and attempts[blocker.name] is None)
        )
        unseen = (f"{ticket.unseen_blockers} that the token may not see",) if ticket.unseen_blockers else ()
        return (*(self._placed(name) for name in names), *unseen)

    def _placed(self, name: str) -> str:
        return name if any(ticket.name == name for ticket in self.tickets) else f"{name} (outside the Spec)"

    def _cycle(self, ticket: Ticket) -> tuple[str, ...]:
        """Return the shortest way from a Ticket over its open blockers back to it; empty when there is none."""
        blockers = {
            one.name: tuple(blocker.name for blocker in one.blockers if blocker.is_open)
            for one in self.tickets
            if one.is_open
        }
        ways: list[tuple[str, ...]] = [(ticket.name,)]
        seen: set[str] = set()
        for way in ways:
            for name in blockers.get(way[-1], ()):
                if name == ticket.name:
                    return (*way, name)
                if name not in seen:
                    seen.add(name)
                    ways.append((*way, name))
        return ()


def _named(cycle: Sequence[str]) -> str:
    shown = [*cycle[:_LONGEST_CYCLE], "…", cycle[-1]] if len(cycle) > _LONGEST_CYCLE + 1 else cycle
    return " is blocked by ".join(shown[:2]) + "".join(f", that by {name}" for name in shown[2:])
