"""Reading the graph of a Spec from GitHub."""

from collections.abc import Sequence

from delivery.github import GitHub
from delivery.issue_url import IssueUrl
from delivery.ready_facts import UNREADY
from delivery.spec.graph import Graph


def read_graph(github: GitHub, spec: IssueUrl, unready: Sequence[str] = UNREADY) -> Graph:
    """Return the Tickets of a Spec with what blocks them, all pages of it; see `Graph`. Raises GitHubError."""
    found, unseen = github.issues.tickets(spec.number)
    return Graph(repository=spec.repository, tickets=tuple(found), unseen=unseen, unready=unready)
