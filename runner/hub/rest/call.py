"""One API request and its answer, and the way from HTTP to the one and back from the other."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from runner.hub.access import Area, Permission, Visitor
from runner.hub.bare import BareRepository
from runner.hub.pull_requests import follow
from runner.hub.refusal import ARCHIVED, Refusal, forbidden, invalid, not_found
from runner.hub.rest.paging import links, page_of
from runner.hub.rest.shapes import Shapes
from runner.hub.site import Site
from runner.hub.store import Issue, Repository, Store

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a JSON document; None is an answer without a body."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, with its sender known and allowed."""

    site: Site
    visitor: Visitor
    method: str
    url: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    @property
    def store(self) -> Store:
        """What the hub remembers."""
        return self.site.store

    @property
    def shapes(self) -> Shapes:
        """How answers look."""
        return Shapes(self.site.url)

    def api(self, repository: Repository) -> str:
        """Return the API address of a repository."""
        return f"{self.site.api}/repos/{repository.full_name}"

    def repository(self) -> Repository:
        """Return the repository in the path; raises Refusal when there is none."""
        found = self.store.repositories.find(self.path["owner"], self.path["repo"])
        if found is None:
            raise not_found()
        return found

    def check_archived(self) -> None:
        """Raise the Refusal for a change to an archived repository."""
        if self.method != "GET" and "repo" in self.path and self.repository().archived:
            raise Refusal(403, ARCHIVED)

    def issue(self, repository: Repository) -> Issue:
        """Return the issue or pull request in the path as it stands; raises Refusal when there is none."""
        found = self.store.issues.find(repository.id, int(self.path["number"]))
        if found is None:
            raise not_found()
        return follow(self.store, repository, found)

    def json(self) -> object:
        """Return the body, parsed; raises Refusal when it is not JSON."""
        try:
            document: object = json.loads(self.body or b"{}")
            # Half a surrogate pair passes as JSON and can be neither stored nor sent.
            json.dumps(document, ensure_ascii=False).encode()
        except ValueError:
            raise Refusal(400, "Problems parsing JSON") from None
        return document

    def read(self, model: type[Model], resource: str) -> Model:
        """Return the body as a `model`; raises the Refusal that names the first bad field of `resource`."""
        try:
            return model.model_validate(self.json(), strict=True)
        except ValidationError as error:
            problem = error.errors()[0]
            code = "missing_field" if problem["type"] == "missing" else "invalid"
            raise invalid(resource, ".".join(map(str, problem["loc"][:1])), code) from None

    def paged(self, items: Sequence[object], name: str = "", **around: object) -> Answer:
        """Return the page of `items` that the query asks for, with the Link header.

        With a `name` the page is in a document, under that name beside `total_count` and what is `around`.
        """
        page = page_of(self.query)
        link, cut = links(self.url, self.query, page, len(items)), page.cut(items)
        body: object = {"total_count": len(items), name: cut, **around} if name else cut
        return Answer(body=body, headers={"Link": link} if link else {})

    def is_first_page(self) -> bool:
        """Tell whether the query asks for the beginning of a list."""
        return page_of(self.query).number == 1

    def commit(self, repository: Repository) -> str:
        """Return the commit that the ref in the path names; raises Refusal when there is none."""
        found = BareRepository(repository.path).commit(self.path["ref"])
        if found is None:
            raise Refusal(422, f"No commit found for SHA: {self.path['ref']}")
        return found


Handler = Callable[[Call], Answer]


class Api:
    """Makes routes out of handlers: authentication, permission, errors and JSON are the same for all of them.

    Handlers block (SQLite, git) and therefore run in threads.
    """

    def __init__(self, site: Site) -> None:
        self._site = site

    def route(
        self,
        method: str,
        path: str,
        handler: Handler,
        needs: Permission = Permission.READ,
        area: Area | None = None,
    ) -> Route:
        """Return the route that lets visitors with the permission `needs`, also in the `area`, through to `handler`."""

        def respond(request: Request, body: bytes) -> Response:
            return self._respond(request, body, handler, needs, area)

        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(respond, request, await request.body())

        return Route(path, endpoint, methods=[method])

    def _respond(
        self, request: Request, body: bytes, handler: Handler, needs: Permission, area: Area | None
    ) -> Response:
        try:
            call = self._admit(request, body, needs, area)
            call.check_archived()
            answer = handler(call)
        except Refusal as refusal:
            return JSONResponse(refusal.body(), refusal.status)
        if answer.body is None:
            return Response(status_code=answer.status, headers=dict(answer.headers))
        response = JSONResponse(answer.body, answer.status, dict(answer.headers))
        return _conditional(request, response) if call.method == "GET" else response

    def _admit(self, request: Request, body: bytes, needs: Permission, area: Area | None) -> Call:
        visitor = self._site.door.visitor(request.headers.get("authorization", ""))
        if visitor is None:
            raise Refusal(401, "Bad credentials")
        if not visitor.may(needs) or area in visitor.without:
            raise forbidden(visitor.kind)
        return Call(
            site=self._site,
            visitor=visitor,
            method=request.method,
            # The address that answers name is ours, whatever the client calls us.
            url=f"{self._site.url}{request.url.path}",
            path=request.path_params,
            query=request.query_params,
            body=body,
        )


def _conditional(request: Request, response: Response) -> Response:
    """Return what a client gets that may have this answer already.

    https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests-if-appropriate
    """
    tag = f'"{sha256(response.body).hexdigest()}"'
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    answer = Response(status_code=304) if tag in known else response
    answer.headers["ETag"] = f"W/{tag}"
    return answer
