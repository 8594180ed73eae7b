"""Issues with what they are linked to and what happened to them, and what their authors may do."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from delivery.errors import GitHubError, GitHubNotFoundError
from delivery.github.answers import identified
from delivery.github.issue_answers import (
    Comment,
    Linked,
    Queue,
    QueuedIssue,
    Role,
    Ticket,
    read_comment,
    read_deed,
    read_labels,
    read_linked,
    read_login,
    read_time,
    read_wording,
)
from delivery.github.issue_queries import BLOCKERS, ONE, QUEUE, TICKETS
from delivery.github.pygithub import GithubException
from delivery.github.transport import Transport

_MOST_PAGES = 100  # of 100 issues


class Issues:
    """The issues of one repository; errors and patience are those of `delivery.github.door.GitHub`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def queue(self, ready: str, working: str) -> Queue:
        """Return the issues with the label `ready`, and those with the label `working`, by one query for each 100."""
        variables = {"ready": [ready], "working": [working]}
        pages = list(self._transport.bounded(self._pages(variables)))
        first = pages[0]
        found = [node for page in pages for node in page["repository"]["ready"]["nodes"] if node]
        done = first["repository"]["done"]["nodes"]
        working_ones = first["repository"]["working"]
        return Queue(
            viewer=first["viewer"]["login"],
            ready=tuple(sorted(map(self._whole, found), key=lambda issue: issue.number)),
            working={node["number"]: node["title"] for node in working_ones["nodes"] if node},
            working_count=working_ones["totalCount"],
            done={node["number"]: read_labels(node) for node in done if node},
        )

    def one(self, number: int) -> QueuedIssue:
        """Return one issue in the same way; raises GitHubNotFoundError when it is none."""
        found = self._repository(ONE, number=number)["issue"]
        if found is None:
            raise GitHubNotFoundError(f"there is no issue #{number}", 404)
        return self._whole(found)

    def tickets(self, number: int) -> tuple[list[Ticket], int]:
        """Return an issue's sub-issues, in their order, and how many there are that the token may not see."""
        nodes, unseen = self._connection(TICKETS, number, {})
        return [self._ticket(node) for node in nodes], unseen

    def comments(self, number: int) -> list[Comment]:
        """Return the comments on an issue or pull request, the oldest first."""
        return self._transport.pages(f"issues/{number}/comments?per_page=100", lambda page: map(read_comment, page))

    def role(self, login: str) -> Role:
        """Return what a user may do in the repository; NONE for whom GitHub does not know."""
        try:
            answer = self._transport.get(f"collaborators/{quote(login, safe='')}/permission", dict)
        except GitHubNotFoundError:
            return Role.NONE
        said = str(answer.get("permission", ""))
        return Role(said) if said in set(Role) else Role.NONE

    def create(self, *, title: str, body: str, labels: tuple[str, ...] = (), marker: str) -> int:
        """Open an issue, or find the open one whose text bears `marker`, which `body` must; return its number.

        It is looked for among the issues with the first label, before a lost answer is repeated.
        """
        if marker not in body:
            raise ValueError("an issue is found again by its marker only")
        wanted = {"title": title, "body": body, "labels": list(labels)}

        def write() -> int:
            return int(identified(self._transport.send("POST", "issues", wanted), "number", "issue")["number"])

        def look() -> int | None:
            path = f"issues?state=open&labels={quote(','.join(labels[:1]), safe='')}&per_page=100"
            bearing = self._transport.pages(
                path, lambda page: [one["number"] for one in page if marker in (one["body"] or "")]
            )
            return next(iter(sorted(bearing)), None)

        return self._transport.write(write, look)

    def titles(self, label: str) -> dict[int, str]:
        """Return the titles of the open issues with a label, by their numbers."""
        path = f"issues?state=open&labels={quote(label, safe='')}&per_page=100"
        found = self._transport.pages(path, lambda page: [one for one in page if "pull_request" not in one])
        return {one["number"]: one["title"] for one in found}

    def is_open(self, number: int) -> bool:
        """Whether an issue is open now; an answer that is still the same does not count against the limit."""
        return self._transport.get(f"issues/{number}", lambda seen: bool(seen["state"] == "open"))

    def _pages(self, variables: Mapping[str, object]) -> Iterator[Any]:
        after: str | None = None
        for _ in range(_MOST_PAGES):
            page = self._ask(QUEUE, after=after, **variables)
            yield page
            info = page["repository"]["ready"]["pageInfo"]
            if not info["hasNextPage"]:
                return
            after = info["endCursor"]
        raise GitHubError(f"there are more than {100 * _MOST_PAGES} issues that are ready", 0)

    def _ask(self, query: str, **variables: object) -> Any:
        owner, name = self._transport.repository.full_name.split("/")
        wanted = {"owner": owner, "name": name, **variables}

        def ask() -> Any:
            try:
                data = self._transport.query(query, wanted)
            except GithubException as error:
                data = _all_but_links(error)
            if data.get("repository") is None:
                raise GitHubNotFoundError(f"{owner}/{name} does not exist, or the token may not read it", 404)
            return data

        return self._transport.patiently(ask)

    def _repository(self, query: str, **variables: object) -> Any:
        return self._ask(query, **variables)["repository"]

    def _connection(self, query: str, number: int, first: Mapping[str, Any]) -> tuple[list[Any], int]:
        """Return all nodes of a list of links, of which `first` may be known, and how many are not to be seen."""
        nodes: list[Any] = list(first.get("nodes", []))
        page = first
        while not page or page["pageInfo"]["hasNextPage"]:
            after = page["pageInfo"]["endCursor"] if page else None
            issue = self._repository(query, number=number, after=after)["issue"]
            if issue is None:
                raise GitHubNotFoundError(f"there is no issue #{number}", 404)
            page = issue["found"]
            nodes += page["nodes"]
        seen = [node for node in nodes if node]
        return seen, max(page["totalCount"], len(nodes)) - len(seen)

    def _ticket(self, node: Mapping[str, Any]) -> Ticket:
        blockers, unseen = self._blockers(node)
        linked = read_linked(node)
        return Ticket(
            repository=linked.repository,
            number=linked.number,
            title=linked.title,
            url=linked.url,
            is_open=linked.is_open,
            labels=linked.labels,
            parent=linked.parent,
            tickets=node["subIssuesSummary"]["total"],
            blockers=blockers,
            unseen_blockers=unseen,
            wording=read_wording(node),
        )

    def _blockers(self, node: Mapping[str, Any]) -> tuple[tuple[Linked, ...], int]:
        found, unseen = self._connection(BLOCKERS, node["number"], node["blockedBy"])
        return tuple(map(read_linked, found)), unseen

    def _whole(self, node: Mapping[str, Any]) -> QueuedIssue:
        blockers, unseen = self._blockers(node)
        links = [read_time(one["createdAt"]) for one in node["links"]["nodes"] if one]
        edited = node["lastEditedAt"]
        return QueuedIssue(
            number=node["number"],
            title=node["title"],
            body=node["body"] or "",
            url=node["url"],
            author=read_login(node["author"]),
            is_open=node["state"] == "OPEN",
            labels=read_labels(node),
            created_at=read_time(node["createdAt"]),
            edited_by=read_login(node["editor"]) if edited else None,
            edited_at=read_time(edited) if edited else None,
            parent=read_linked(node["parent"]) if node["parent"] else None,
            tickets=node["subIssuesSummary"]["total"],
            tickets_closed=node["subIssuesSummary"]["completed"],
            blockers=blockers,
            unseen_blockers=unseen,
            deeds=tuple(read_deed(one) for one in node["words"]["nodes"] if one),
            linked_at=max(links, default=None),
        )


def _all_but_links(error: GithubException) -> Any:
    """Return the answer of a query that was refused something at the other end of a link only; raise `error` else."""
    said = error.data if isinstance(error.data, dict) else {}
    troubles = said.get("errors") or []
    in_lists = [any(isinstance(step, int) for step in trouble.get("path") or ()) for trouble in troubles]
    if not said.get("data") or not in_lists or not all(in_lists):
        raise error
    return said["data"]
