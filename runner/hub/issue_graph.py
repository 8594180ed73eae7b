"""Issues as GraphQL shows them: many at once, each with its labels, links and what happened to it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphql import GraphQLError

from runner.hub.site import Site
from runner.hub.store import Event, EventKind, Issue, Repository

Shape = dict[str, Any]

_LARGEST = 100  # https://docs.github.com/graphql/overview/rate-limits-and-node-limits-for-the-graphql-api
_TYPES = {
    EventKind.LABELED: ("LABELED_EVENT", "LabeledEvent"),
    EventKind.UNLABELED: ("UNLABELED_EVENT", "UnlabeledEvent"),
    EventKind.RENAMED: ("RENAMED_TITLE_EVENT", "RenamedTitleEvent"),
    EventKind.SUB_ISSUE_ADDED: ("SUB_ISSUE_ADDED_EVENT", "SubIssueAddedEvent"),
    EventKind.SUB_ISSUE_REMOVED: ("SUB_ISSUE_REMOVED_EVENT", "SubIssueRemovedEvent"),
    EventKind.BLOCKED_BY_ADDED: ("BLOCKED_BY_ADDED_EVENT", "BlockedByAddedEvent"),
    EventKind.BLOCKED_BY_REMOVED: ("BLOCKED_BY_REMOVED_EVENT", "BlockedByRemovedEvent"),
}


class IssueGraph:
    """Makes the resolvers of issues; each is asked only for what the query wants of it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._store = site.store

    def repository(self, repository: Repository) -> Shape:
        """Return a repository with its issues."""
        return {
            "__typename": "Repository",
            "id": f"R_{repository.id}",
            "nameWithOwner": repository.full_name,
            "issue": lambda _info, number: self._numbered(repository, number),
            "issues": lambda _info, **arguments: self._issues(repository, **arguments),
        }

    def _numbered(self, repository: Repository, number: int) -> Shape:
        issue = self._store.issues.find(repository.id, number)
        if issue is None or issue.pull is not None:
            message = f"Could not resolve to an Issue with the number of {number}."
            raise GraphQLError(message, extensions={"type": "NOT_FOUND"})
        return self._issue(repository, issue)

    def _issues(
        self,
        repository: Repository,
        *,
        labels: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        orderBy: Mapping[str, str] | None = None,  # noqa: N803 - GitHub's name
        **cut: Any,
    ) -> Shape:
        """Return the issues that have one of the labels; pull requests are not among them, as on GitHub."""
        names = {label.casefold() for label in labels or ()}
        found = [
            issue
            for issue in self._store.issues.all(repository.id)
            if issue.pull is None
            and (not states or issue.state.upper() in states)
            and (labels is None or names & {label.name.casefold() for label in issue.labels})
        ]
        if orderBy and orderBy["direction"] == "DESC":
            found.reverse()
        return _connection(found, lambda issue: self._issue(repository, issue), **cut)

    def _issue(self, repository: Repository, issue: Issue) -> Shape:
        links = self._store.links
        edit = self._store.events.edit(issue.id)
        return {
            "__typename": "Issue",
            "id": issue.node_id,
            "databaseId": issue.id,
            "number": issue.number,
            "title": issue.title,
            "body": issue.body or "",
            "state": issue.state.upper(),
            "url": f"{self._site.url}/{repository.full_name}/issues/{issue.number}",
            "author": _actor(issue.author),
            "createdAt": issue.created_at,
            "editor": edit and _actor(edit.editor),
            "lastEditedAt": edit and edit.edited_at,
            "repository": lambda _info: self.repository(repository),
            "labels": lambda _info, **cut: _connection(issue.labels, lambda one: _label(one.name), **cut),
            "parent": lambda _info: self._linked(links.parent(issue.id)),
            "subIssues": lambda _info, **cut: _connection(links.children(issue.id), self._linked, **cut),
            "subIssuesSummary": lambda _info: self._summary(links.children(issue.id)),
            "blockedBy": lambda _info, **cut: _connection(links.blockers(issue.id), self._linked, **cut),
            "timelineItems": lambda _info, **arguments: self._timeline(issue, **arguments),
        }

    def _linked(self, issue: int | None) -> Shape | GraphQLError | None:
        """Return an issue at the other end of a link; None when there is none, or none that may be seen."""
        found = None if issue is None else self._store.issues.get(issue)
        repository = None if found is None else self._store.repositories.get(found.repository)
        if found is None or repository is None or self._store.repositories.has(repository, "hidden"):
            return None
        if self._store.repositories.has(repository, "forbidden"):
            return GraphQLError("Resource not accessible", extensions={"type": "FORBIDDEN"})
        return self._issue(repository, found)

    def _summary(self, children: Sequence[int]) -> Shape:
        closed = sum(not self._store.issues.get(child).open for child in children)
        percent = 100 * closed // len(children) if children else 0
        return {"total": len(children), "completed": closed, "percentCompleted": percent}

    def _timeline(self, issue: Issue, *, itemTypes: Sequence[str] | None = None, **cut: Any) -> Shape:  # noqa: N803
        events = [
            one for one in self._store.events.of(issue.id) if itemTypes is None or _TYPES[one.kind][0] in itemTypes
        ]
        return _connection(events, self._event, **cut)

    def _event(self, event: Event) -> Shape:
        _, name = _TYPES[event.kind]
        return {
            "__typename": name,
            "id": f"{name}_{event.id}",
            "actor": _actor(event.actor),
            "createdAt": event.created_at,
            "label": _label(event.what),
            "previousTitle": event.what,
            "subIssue": lambda _info: self._linked(event.other),
            "blockingIssue": lambda _info: self._linked(event.other),
        }


def _connection(
    items: Sequence[Any],
    shape: Callable[[Any], Any],
    *,
    first: int | None = None,
    last: int | None = None,
    after: str | None = None,
) -> Shape:
    """Return one page of a list, which must be asked for with `first` or `last`; a cursor is a place in the list."""
    size = first if last is None else last
    if size is None or not 0 <= size <= _LARGEST:
        message = f"You must provide a `first` or `last` value between 0 and {_LARGEST} to properly paginate."
        raise GraphQLError(message, extensions={"type": "MISSING_PAGINATION_BOUNDARIES"})
    start = int(after) if after else 0
    begin = start if last is None else max(start, len(items) - last)
    end = min(len(items), start + size) if last is None else len(items)
    return {
        "totalCount": len(items),
        "nodes": lambda _info: [shape(item) for item in items[begin:end]],
        "pageInfo": {
            "endCursor": str(end) if end > begin else None,
            "startCursor": str(begin) if end > begin else None,
            "hasNextPage": end < len(items),
            "hasPreviousPage": begin > 0,
        },
    }


def _label(name: str) -> Shape:
    return {"__typename": "Label", "id": f"LA_{name}", "name": name}


def _actor(login: str) -> Shape | None:
    """Return a user or a bot, None for one who left (`ghost`). GraphQL names bots without what REST puts behind."""
    if login == "ghost":
        return None
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"__typename": kind, "id": f"U_{login}", "login": login.removesuffix("[bot]")}
