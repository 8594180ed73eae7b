"""Renamed repositories and transferred issues: their old addresses lead to the new ones.

https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects. The API sends
clients to `/repositories/ID`, which no name change can break; git and people are sent to the new name.
"""

import re
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from runner.hub.site import Site
from runner.hub.store import Repository

_API = "/api/v3"
_BY_NAME = re.compile(r"(?P<api>/api/v3/repos)?/(?P<owner>[^/]+)/(?P<name>[^/]+)(?P<rest>/.*)?")
_BY_ID = re.compile(r"/api/v3/repositories/(?P<id>\d{1,18})(?P<rest>/.*)?")
_ISSUE = re.compile(r"/issues/(?P<number>\d{1,18})(?P<rest>/.*)?")


class Moved:
    """Middleware that answers for what has moved, and lets everything else through."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if by_id := _BY_ID.fullmatch(path):
            scope = await run_in_threadpool(self._by_name, scope, by_id)
            path = scope["path"]
        place = await run_in_threadpool(self._place, path)
        if place is None or not self._may_know(scope):
            await self._app(scope, receive, send)
            return
        await self._redirect(scope, place)(scope, receive, send)

    def _by_name(self, scope: Scope, found: re.Match[str]) -> Scope:
        repository = self._site.store.repositories.get(int(found["id"]))
        if repository is None:
            return scope
        path = f"{_API}/repos/{repository.full_name}{found['rest'] or ''}"
        return {**scope, "path": path, "raw_path": path.encode()}

    def _place(self, path: str) -> str | None:
        """Return the path at which what had `path` is now, or None when nothing moved."""
        found = _BY_NAME.fullmatch(path)
        if found is None or (not found["api"] and found["owner"] == "api"):
            return None
        store, name = self._site.store, found["name"].removesuffix(".git")
        repository, rest = store.repositories.find(found["owner"], name), found["rest"] or ""
        if repository is not None:
            return self._transferred(repository, rest) if found["api"] else None
        renamed = store.repositories.formerly(found["owner"], name)
        return None if renamed is None else _address(renamed, rest, found)

    def _transferred(self, repository: Repository, rest: str) -> str | None:
        found = _ISSUE.fullmatch(rest)
        issue = found and self._site.store.issues.transferred(repository.id, int(found["number"]))
        if not (found and issue):
            return None
        return f"{_API}/repositories/{issue.repository}/issues/{issue.number}{found['rest'] or ''}"

    def _may_know(self, scope: Scope) -> bool:
        """Only who may see a repository learns that it moved; pages need no token."""
        visitor = self._site.door.visitor(Headers(scope=scope).get("authorization", ""))
        return visitor is not None or not scope["path"].startswith("/api/")

    def _redirect(self, scope: Scope, place: str) -> Response:
        query = scope["query_string"].decode("latin-1")
        target = f"{self._site.url}{place}{f'?{query}' if query else ''}"
        # A permanent one would let clients turn a POST into a GET.
        status = HTTPStatus.MOVED_PERMANENTLY if scope["method"] in ("GET", "HEAD") else HTTPStatus.TEMPORARY_REDIRECT
        if not scope["path"].startswith("/api/"):
            return RedirectResponse(target, status)
        return moved(target, status)


def moved(target: str, status: int) -> JSONResponse:
    """Return the API's answer that sends a client to `target`."""
    manual = "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects"
    body = {"message": HTTPStatus(status).phrase, "url": target, "documentation_url": manual}
    return JSONResponse(body, status, {"Location": target})


def _address(repository: Repository, rest: str, found: re.Match[str]) -> str:
    if found["api"]:
        return f"{_API}/repositories/{repository.id}{rest}"
    suffix = ".git" if found["name"].endswith(".git") else ""
    return f"/{repository.full_name}{suffix}{rest}"
