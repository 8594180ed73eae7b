"""How it stands with the issues of a repository that Nightkeep works on, or may: decided from facts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from delivery.branches import branch_number
from delivery.github import PullRequest, QueuedIssue
from delivery.issue_state import State
from delivery.ready_facts import Fact, Name
from delivery.spec.graph import Graph

# What an issue is that is passed over for that.
_STATES = {
    Name.BLOCKERS: State.BLOCKED,
    Name.SETTLED: State.WAITING,
    Name.WAIT: State.WAITING,
    Name.LIMIT: State.WAITING,
    Name.SPEC: State.SUB_ISSUE,
    Name.BASE_FIX: State.SUB_ISSUE,
    Name.STARTED: State.STARTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One issue: its state, what else is to be said of it, and its sub-issues."""

    state: State
    name: str
    title: str
    text: str
    pull_request: str | None = None
    parts: tuple["Line", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """An open issue that is labelled as being worked on, and who has it.

    `holder` names the run, None where nobody is known to; `alive` says whether it gives signs of life.
    """

    number: int
    title: str
    holder: str | None = None
    alive: bool = False


def line_of_ready(issue: QueuedIssue, against: Fact | None, parts: tuple[Line, ...] = ()) -> Line:
    """Return how it stands with an issue that is labelled as ready; `against` is what stands in the way."""
    state = State.READY if against is None else _STATES.get(against.name, State.FOR_PEOPLE)
    text = "pickup may take it" if against is None else against.text
    return Line(state=state, name=f"#{issue.number}", title=issue.title, text=text, parts=parts)


def line_of_working(working: Working, pulls: Iterable[PullRequest], parts: tuple[Line, ...] = ()) -> Line:
    """Return how it stands with an issue that is labelled as being worked on, by its claim and its pull request."""
    own = [pull for pull in pulls if branch_number(working.number, pull.branch) is not None]
    pull = max(own, key=lambda one: one.number, default=None)
    url = pull.url if pull else None
    if working.alive:
        state, text = State.RUNNING, working.holder or ""
    elif pull is not None and not pull.is_draft:
        state, text = State.DELIVERED, "its pull request is open"
    elif pull is not None:
        state, text = State.FAILED, "its pull request is a draft: the Failure note on it says why"
    else:
        gone = f"{working.holder} has given no sign of life; " if working.holder else ""
        state, text = State.STARTED, f"{gone}nobody is known to work on it, and it has no open pull request"
    return Line(state=state, name=f"#{working.number}", title=working.title, text=text, pull_request=url, parts=parts)


def lines_of_tickets(graph: Graph, running: Mapping[int, str]) -> tuple[Line, ...]:
    """Return how it stands with the sub-issues of an issue; `running` says who works on which of the repository's."""
    holders = {f"#{number}": holder for number, holder in running.items()}
    attempts = dict.fromkeys(holders)
    lines = []
    for ticket in graph.tickets:
        seen = graph.standing(ticket, attempts)
        text = holders.get(seen.name, "") if seen.state is State.RUNNING else seen.words
        lines.append(Line(state=seen.state, name=seen.name, title=ticket.title, text=text))
    return tuple(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A repository at `moment`: its issues, and what this machine has of runs."""

    repository: str
    moment: datetime
    issues: tuple[Line, ...]
    here: tuple[str, ...] = ()
    is_pass_going_on: bool = False

    @classmethod
    def of(
        cls, repository: str, moment: datetime, lines: Iterable[Line], here: Iterable[str], *, is_pass_going_on: bool
    ) -> "Overview":
        """Return it with the issues in their order."""
        order = list(State)
        ordered = sorted(lines, key=lambda line: (order.index(line.state), int(line.name.removeprefix("#"))))
        return cls(
            repository=repository,
            moment=moment,
            issues=tuple(ordered),
            here=tuple(here),
            is_pass_going_on=is_pass_going_on,
        )
