"""Reading the graph of a Spec from GitHub."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from delivery.branches import issue_of
from delivery.github import GitHub, Ticket
from delivery.issue_url import IssueUrl
from delivery.ready_facts import UNREADY, who, why_not
from delivery.spec.graph import Graph
from delivery.starters import Starters


def read_merged(github: GitHub, branch: str) -> dict[str, str]:
    """Return the pull requests by which Tickets have come into the Spec branch, by the Tickets' names.

    Raises GitHubError.
    """
    found = {issue_of(pull.branch): pull.url for pull in reversed(github.merged_pull_requests(branch))}
    return {f"#{number}": url for number, url in found.items() if number is not None}


@dataclass(frozen=True, slots=True)
class Let:
    """At `moment` somebody let the Tickets be worked on as they were; only `starters` may change them after that."""

    moment: datetime
    starters: Starters

    def against(self, ticket: Ticket, spec: int) -> str | None:
        """Say why a Ticket is another one than it was then; None when it is not. Raises GitHubError."""
        for deed in ticket.wording:
            if deed.at >= self.moment and not self.starters.may(deed.actor):
                by = f"{who(deed.actor)}, {why_not(deed.actor)}"
                return f"its {deed.what.part} is newer than the label of #{spec}, and by {by}"
        return None


def read_graph(github: GitHub, spec: IssueUrl, unready: Sequence[str] = UNREADY, let: Let | None = None) -> Graph:
    """Return the Tickets of a Spec with what blocks them, all pages of it; see `Graph`. Raises GitHubError.

    Where `let` is given it is asked about each Ticket that is open.
    """
    found, unseen = github.issues.tickets(spec.number)
    asked = [one for one in found if let is not None and one.is_open and one.is_in(spec.repository)]
    against = {f"#{one.number}": let.against(one, spec.number) for one in asked if let is not None}
    return Graph(
        repository=spec.repository,
        tickets=tuple(found),
        unseen=unseen,
        unready=unready,
        unread={name: why for name, why in against.items() if why},
    )
