"""How it stands with the issues of a repository that Nightkeep works on, or may: decided from facts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from delivery.claims import ClaimStanding, Expired
from delivery.github import PullRequest, QueuedIssue
from delivery.issue_state import State
from delivery.note import Noted
from delivery.pickup import Survey, holder_of
from delivery.ready_facts import Fact, Name
from delivery.spec.graph import Graph
from worktree.inventory import Listed, Standing

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


_BEGINNINGS = ("waits ", "is blocked ", "blocked ", "is a sub-issue ", "has been started, ")


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
class Traces:
    """What shows of the Runs on an issue: who works on it, who did and has `vanished`, "" for nobody, or is `killed`.

    `pull` is its newest open pull request, and `noted` what the note on that tells.
    """

    holder: str = ""
    vanished: str = ""
    killed: bool = False
    pull: PullRequest | None = None
    noted: Noted | None = None


def traces_of(
    claim: ClaimStanding | None, here: Listed | None, pull: PullRequest | None, noted: Noted | None
) -> Traces:
    """Return what shows of the Runs on an issue by its claim, and by the worktree of its run that this machine has."""
    at_work = here is not None and here.standing is Standing.AT_WORK
    return Traces(
        holder=f"run {here.run_id} on {here.host}, process {here.pid}" if here and at_work else holder_of(claim),
        vanished=f"run {claim.record.run} on {claim.record.host}" if isinstance(claim, Expired) else "",
        killed=here is not None and here.standing is Standing.ORPHANED,
        pull=pull,
        noted=noted,
    )


def state_by(traces: Traces) -> tuple[State, str] | None:
    """Return how it stands with an issue by what shows of its Runs, and a word on it; None when nothing shows."""
    pull = traces.pull
    if traces.killed:
        return State.FAILED, "killed, its runner is gone; finish it: nightkeep recover"
    if traces.holder:
        return State.RUNNING, traces.holder
    if pull is not None and pull.is_draft:
        if traces.noted is Noted.FAILED:
            return State.FAILED, "the note on its pull request says why"
        return State.STARTED, "its pull request is a draft"
    if pull is not None:
        if traces.noted is Noted.NOT_MERGED:
            return State.NOT_MERGED, "the note on its pull request says what forbids it"
        return State.DELIVERED, "its pull request is open"
    if traces.vanished:
        return State.STARTED, f"{traces.vanished} has given no sign of life, and it has no open pull request"
    return None


def line_of_ready(issue: QueuedIssue, against: Fact | None, parts: tuple[Line, ...] = ()) -> Line:
    """Return how it stands with an issue that is labelled as ready; `against` is what stands in the way."""
    state = State.READY if against is None else _STATES.get(against.name, State.FOR_PEOPLE)
    text = "pickup may take it" if against is None else against.text
    return _line(state, f"#{issue.number}", issue.title, text, parts=parts)


def line_of_working(number: int, title: str, traces: Traces, parts: tuple[Line, ...] = ()) -> Line:
    """Return how it stands with an issue that is labelled as being worked on."""
    nobody = (State.STARTED, "nobody is known to work on it, and it has no open pull request")
    state, text = state_by(traces) or nobody
    return _line(state, f"#{number}", title, text, traces.pull, parts)


def lines_of_tickets(graph: Graph, traces: Mapping[int, Traces]) -> tuple[Line, ...]:
    """Return how it stands with the sub-issues of an issue; `traces` are those of issues of the repository."""
    lines = []
    for ticket in graph.tickets:
        seen = graph.standing(ticket, {})
        here = traces.get(ticket.number) if ticket.is_open and ticket.is_in(graph.repository) else None
        state, text = (state_by(here) if here else None) or (seen.state, seen.words)
        lines.append(_line(state, seen.name, ticket.title, text, here.pull if here else None))
    return tuple(lines)


def lines_of(survey: Survey, graphs: Mapping[int, Graph], traces: Mapping[int, Traces]) -> list[Line]:
    """Return how it stands with all that is labelled; `graphs` are those of the issues that may have sub-issues.

    `traces` are those of what is worked on, and of sub-issues.
    """
    parts = {number: lines_of_tickets(graph, traces) for number, graph in graphs.items()}
    ready = [line_of_ready(issue, against, parts.get(issue.number, ())) for issue, against in survey.verdicts]
    working = survey.queue.working.items()
    return ready + [line_of_working(one, title, traces[one], parts.get(one, ())) for one, title in working]


def _line(
    state: State, name: str, title: str, text: str, pull: PullRequest | None = None, parts: tuple[Line, ...] = ()
) -> Line:
    """Return a line whose text does not say again what its state does."""
    said = next((text.removeprefix(begin) for begin in _BEGINNINGS if text.startswith(begin)), text)
    said = "" if said == state else said
    return Line(state=state, name=name, title=title, text=said, pull_request=pull.url if pull else None, parts=parts)


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
