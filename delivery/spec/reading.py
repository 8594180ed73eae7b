"""Reading the graph of a Spec from GitHub."""

from collections.abc import Iterable

from delivery.github import GitHub
from delivery.github.issue_answers import Linked
from delivery.github.issue_answers import Ticket as _Ticket
from delivery.issue_url import IssueUrl
from delivery.spec.graph import UNREADY, Blocker, Graph, Ticket


def read_graph(github: GitHub, spec: IssueUrl, unready: Iterable[str] = UNREADY) -> Graph:
    """Return the Tickets of a Spec with what blocks them, all pages of it. Raises GitHubError.

    Those with a label of `unready`, in any case, are for people.
    """
    found, unseen = github.issues.tickets(spec.number)
    return Graph(
        tickets=tuple(_ticket(ticket, spec) for ticket in found),
        unseen=unseen,
        unready=frozenset(label.lower() for label in unready),
    )


def _ticket(ticket: _Ticket, spec: IssueUrl) -> Ticket:
    return Ticket(
        name=_name(ticket, spec),
        number=ticket.number,
        is_here=_is_here(ticket, spec),
        is_open=ticket.is_open,
        labels=ticket.labels,
        sub_issues=ticket.tickets,
        blockers=tuple(Blocker(name=_name(one, spec), is_open=one.is_open) for one in ticket.blockers),
        unseen_blockers=ticket.unseen_blockers,
    )


def _is_here(issue: Linked, spec: IssueUrl) -> bool:
    return issue.repository.lower() == spec.repository.lower()


def _name(issue: Linked, spec: IssueUrl) -> str:
    return f"#{issue.number}" if _is_here(issue, spec) else f"{issue.repository}#{issue.number}"
