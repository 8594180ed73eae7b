"""The GraphQL API: the excerpt of GitHub's schema that draft and ready need, which REST cannot do.

https://docs.github.com/graphql. A query that fails is answered 200 with `errors`, as on GitHub.
"""

from dataclasses import replace
from typing import Any

from graphql import GraphQLError, GraphQLSchema, build_schema, graphql_sync
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from runner.hub.access import Permission, TokenKind, Visitor
from runner.hub.pull_requests import follow
from runner.hub.refusal import ARCHIVED, FORBIDDEN, NO_DRAFTS, Refusal
from runner.hub.site import Site
from runner.hub.store import Issue, Repository

SCHEMA = """
scalar URI
scalar GitObjectID
interface Node { id: ID! }
enum PullRequestState { CLOSED MERGED OPEN }
type User { login: String! }
type PullRequest implements Node {
  id: ID!
  number: Int!
  title: String!
  body: String!
  isDraft: Boolean!
  closed: Boolean!
  merged: Boolean!
  state: PullRequestState!
  url: URI!
  headRefName: String!
  headRefOid: GitObjectID!
  baseRefName: String!
  baseRefOid: GitObjectID!
}
type IssueComment implements Node { id: ID! body: String! viewerDidAuthor: Boolean! }
input ConvertPullRequestToDraftInput { clientMutationId: String pullRequestId: ID! }
type ConvertPullRequestToDraftPayload { clientMutationId: String pullRequest: PullRequest }
input MarkPullRequestReadyForReviewInput { clientMutationId: String pullRequestId: ID! }
type MarkPullRequestReadyForReviewPayload { clientMutationId: String pullRequest: PullRequest }
type Query {
  node(id: ID!): Node
  viewer: User!
}
type Mutation {
  convertPullRequestToDraft(input: ConvertPullRequestToDraftInput!): ConvertPullRequestToDraftPayload
  markPullRequestReadyForReview(input: MarkPullRequestReadyForReviewInput!): MarkPullRequestReadyForReviewPayload
}
"""


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
            "viewer": {"login": self._visitor.login},
            "node": lambda _info, **arguments: self._node(arguments["id"]),
            "convertPullRequestToDraft": lambda _info, **arguments: self._set(arguments["input"], draft=True),
            "markPullRequestReadyForReview": lambda _info, **arguments: self._set(arguments["input"], draft=False),
        }

    def _node(self, node_id: str) -> dict[str, Any]:
        comment = self._site.store.comments.by_node_id(node_id)
        if comment is not None:
            own = comment.author == self._visitor.login
            return {"__typename": "IssueComment", "id": node_id, "body": comment.body, "viewerDidAuthor": own}
        repository, issue = self._pull_request(node_id)
        return self._shape(repository, issue)

    def _set(self, given: dict[str, Any], *, draft: bool) -> dict[str, Any]:
        repository, issue = self._pull_request(given["pullRequestId"])
        # A workflow's token may not, whatever its permissions are.
        if not self._visitor.may(Permission.WRITE) or self._visitor.kind is TokenKind.ACTIONS:
            raise _error("FORBIDDEN", FORBIDDEN[self._visitor.kind])
        if repository.archived:
            raise _error("FORBIDDEN", ARCHIVED)
        if draft and not repository.drafts:
            raise _error("UNPROCESSABLE", NO_DRAFTS)
        if not issue.open:
            raise _error("UNPROCESSABLE", "Pull request is closed")
        after = self._site.store.issues.change(issue.id, lambda before: with_draft(before, draft=draft))
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
        return {
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


def with_draft(issue: Issue, *, draft: bool) -> Issue:
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
