"""The GraphQL API: drafts and merge queues, which REST cannot do; and issues, many at once, with their links.

https://docs.github.com/graphql. A query that fails is answered 200 with `errors`, as on GitHub.
"""

from dataclasses import replace
from functools import cache, partial
from typing import Any

from graphql import GraphQLError, GraphQLSchema, build_schema, graphql_sync
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from runner.hub import merge_queue
from runner.hub.access import Permission, TokenKind, Visitor
from runner.hub.graphql_schema import SCHEMA
from runner.hub.issue_graph import IssueGraph
from runner.hub.merging import answered
from runner.hub.pull_requests import follow
from runner.hub.refusal import ARCHIVED, FORBIDDEN, NO_DRAFTS, Refusal
from runner.hub.site import Site
from runner.hub.store import Issue, QueueEntry, Repository


def graphql_routes(site: Site) -> list[BaseRoute]:
    """Return the one route of the GraphQL API."""
    schema = build_schema(SCHEMA)

    async def endpoint(request: Request) -> Response:
        visitor = site.door.visitor(request.headers.get("authorization", ""))
        if visitor is None:
            return JSONResponse(Refusal(401, "Bad credentials").body(), 401)
        try:
            query = await request.json()
        except ValueError:
            return JSONResponse(Refusal(400, "Problems parsing JSON").body(), 400)
        return JSONResponse(await run_in_threadpool(_execute, schema, _Resolvers(site, visitor), query))

    return [Route("/api/graphql", endpoint, methods=["POST"])]


class _Resolvers:
    """Answers one visitor's query."""

    def __init__(self, site: Site, visitor: Visitor) -> None:
        self._site = site
        self._visitor = visitor

    def root(self) -> dict[str, Any]:
        """Return the resolvers under their names in the schema."""
        return {
            "viewer": {"id": f"U_{self._visitor.login}", "login": self._visitor.login},
            "enqueuePullRequest": lambda _info, **arguments: self._enqueue(arguments["input"]),
            "dequeuePullRequest": lambda _info, **arguments: self._dequeue(arguments["input"]),
            "node": lambda _info, **arguments: self._node(arguments["id"]),
            "repository": lambda _info, **arguments: self._repository(arguments["owner"], arguments["name"]),
            "convertPullRequestToDraft": lambda _info, **arguments: self._set(arguments["input"], draft=True),
            "markPullRequestReadyForReview": lambda _info, **arguments: self._set(arguments["input"], draft=False),
        }

    def _node(self, node_id: str) -> dict[str, Any]:
        comment = self._site.store.comments.by_node_id(node_id)
        if comment is not None:
            own = comment.author == self._visitor.login
            return {"__typename": "IssueComment", "id": node_id, "body": comment.body, "viewerDidAuthor": own}
        return self._seen(node_id)

    def _repository(self, owner: str, name: str) -> dict[str, Any]:
        found = self._site.store.repositories.find(owner, name)
        if found is None:
            raise _error("NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'.")
        return IssueGraph(self._site).repository(found) | {
            "pullRequest": lambda _info, **arguments: self._numbered(found, arguments["number"]),
        }

    def _numbered(self, repository: Repository, number: int) -> dict[str, Any]:
        issue = self._site.store.issues.find(repository.id, number)
        if issue is None or issue.pull is None:
            raise _error("NOT_FOUND", f"Could not resolve to a PullRequest with the number of {number}.")
        return self._seen(issue.node_id)

    def _seen(self, node_id: str) -> dict[str, Any]:
        """Return a pull request that is looked at: the merge queue goes on before."""
        repository, _ = self._pull_request(node_id)
        merge_queue.go_on(self._site, repository)
        return self._shape(*self._pull_request(node_id))

    def _enqueue(self, given: dict[str, Any]) -> dict[str, Any]:
        repository, issue = self._pull_request(given["pullRequestId"])
        self._check_writing(repository)
        try:
            entry = merge_queue.enqueue(self._site, repository, issue, self._visitor, given.get("expectedHeadOid"))
        except Refusal as refusal:
            raise _error("UNPROCESSABLE", refusal.message) from None
        return self._queued(given, repository, entry)

    def _dequeue(self, given: dict[str, Any]) -> dict[str, Any]:
        repository, issue = self._pull_request(given["id"])
        self._check_writing(repository)
        try:
            entry = merge_queue.dequeue(self._site, issue)
        except Refusal as refusal:
            raise _error("UNPROCESSABLE", refusal.message) from None
        return self._queued(given, repository, entry)

    def _queued(self, given: dict[str, Any], repository: Repository, entry: QueueEntry) -> dict[str, Any]:
        shape = self._entry(repository, entry)
        return {"clientMutationId": given.get("clientMutationId"), "mergeQueueEntry": shape}

    def _check_writing(self, repository: Repository) -> None:
        if not self._visitor.may(Permission.WRITE):
            raise _error("FORBIDDEN", FORBIDDEN[self._visitor.kind])
        if repository.archived:
            raise _error("FORBIDDEN", ARCHIVED)

    def _set(self, given: dict[str, Any], *, draft: bool) -> dict[str, Any]:
        repository, issue = self._pull_request(given["pullRequestId"])
        # A workflow's token may not, whatever its permissions are.
        if self._visitor.kind is TokenKind.ACTIONS:
            raise _error("FORBIDDEN", FORBIDDEN[self._visitor.kind])
        self._check_writing(repository)
        if draft and not repository.drafts:
            raise _error("UNPROCESSABLE", NO_DRAFTS)
        if not issue.open:
            raise _error("UNPROCESSABLE", "Pull request is closed")
        after = self._site.store.issues.change(issue.id, lambda before: _with_draft(before, draft=draft))
        return {
            "clientMutationId": given.get("clientMutationId"),
            "pullRequest": self._shape(repository, after),
        }

    def _pull_request(self, node_id: str) -> tuple[Repository, Issue]:
        issue = self._site.store.issues.by_node_id(node_id)
        if issue is None or issue.pull is None:
            raise _error("NOT_FOUND", f"Could not resolve to a node with the global id of '{node_id}'.")
        repository = self._site.store.repositories.get(issue.repository)
        if repository is None:
            raise LookupError(f"pull request {node_id} has no repository")
        return repository, follow(self._site.store, repository, issue)

    def _shape(self, repository: Repository, issue: Issue) -> dict[str, Any]:
        if issue.pull is None:
            raise ValueError(f"#{issue.number} is an issue")
        merged = issue.pull.merged_at is not None
        entry = merge_queue.entry_of(self._site, issue)
        return self._merge_state(repository, issue) | {
            "isMergeQueueEnabled": merge_queue.method_of(self._site, repository, issue.pull.base) is not None,
            "isInMergeQueue": entry is not None,
            "mergeQueueEntry": None if entry is None else self._entry(repository, entry),
            "timelineItems": lambda _info, **arguments: self._timeline(issue, **arguments),
            "__typename": "PullRequest",
            "id": issue.node_id,
            "number": issue.number,
            "title": issue.title,
            "body": issue.body or "",
            "isDraft": issue.pull.draft,
            "closed": not issue.open,
            "merged": merged,
            "state": "MERGED" if merged else issue.state.upper(),
            "url": f"{self._site.url}/{repository.full_name}/pull/{issue.number}",
            "headRefName": issue.pull.head,
            "headRefOid": issue.pull.head_id,
            "baseRefName": issue.pull.base,
            "baseRefOid": issue.pull.base_id,
        }

    def _merge_state(self, repository: Repository, issue: Issue) -> dict[str, Any]:
        """Return the resolvers of what git is asked for only when the query wants it, and once."""
        states = {None: "UNKNOWN", True: "MERGEABLE", False: "CONFLICTING"}
        found = cache(partial(answered, self._site, repository, issue))
        return {
            "mergeable": lambda _info: states[found().mergeable],
            "mergeStateStatus": lambda _info: found().state.upper(),
        }

    def _entry(self, repository: Repository, entry: QueueEntry) -> dict[str, Any]:
        return {
            "__typename": "MergeQueueEntry",
            "id": entry.node_id,
            "position": merge_queue.position(self._site, repository, entry),
            "state": "QUEUED" if entry.group_id is None else "AWAITING_CHECKS",
            "enqueuedAt": entry.enqueued_at,
            "baseCommit": _commit(entry.base_id),
            "headCommit": _commit(entry.group_id),
        }

    def _timeline(
        self, issue: Issue, first: int | None = None, last: int | None = None, **_types: object
    ) -> dict[str, Any]:
        """Return when and why a pull request left the queue; it is all that the hub remembers of its life."""
        left = self._site.store.queue.left(issue.id)
        shown = left[:first] if last is None else left[-last:]
        nodes = [
            {
                "__typename": "RemovedFromMergeQueueEvent",
                "id": f"RFMQE_{entry.id}",
                "createdAt": entry.left_at,
                "reason": entry.reason,
                "beforeCommit": _commit(entry.head_id),
            }
            for entry in shown
        ]
        return {"totalCount": len(left), "nodes": nodes}


def _commit(object_id: str | None) -> dict[str, str] | None:
    return None if object_id is None else {"__typename": "Commit", "id": f"C_{object_id}", "oid": object_id}


def _with_draft(issue: Issue, *, draft: bool) -> Issue:
    """Return a pull request as a draft, or ready; an issue stays as it is."""
    return issue if issue.pull is None else replace(issue, pull=replace(issue.pull, draft=draft))


def _execute(schema: GraphQLSchema, resolvers: _Resolvers, query: Any) -> dict[str, Any]:
    given = query if isinstance(query, dict) else {}
    result = graphql_sync(
        schema,
        str(given.get("query", "")),
        resolvers.root(),
        variable_values=given.get("variables"),
        operation_name=given.get("operationName"),
    )
    # GitHub leaves `data` out when the query could not be run at all.
    data = {} if result.data is None and result.errors else {"data": result.data}
    return data | ({"errors": [_formatted(error) for error in result.errors]} if result.errors else {})


def _error(kind: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": kind})


def _formatted(error: GraphQLError) -> dict[str, Any]:
    """Return an error as GitHub does: its type stands beside the message, not under `extensions`."""
    formatted: dict[str, Any] = dict(error.formatted)
    extensions: dict[str, Any] = formatted.pop("extensions", {})
    return extensions | formatted
