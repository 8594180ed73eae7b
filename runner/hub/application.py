"""The web application of one hub."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount

from runner.hub.api_headers import ApiHeaders
from runner.hub.check_pages import check_page_routes
from runner.hub.git_http import git_routes
from runner.hub.graphql_api import graphql_routes
from runner.hub.job_logs import job_log_routes
from runner.hub.lfs import lfs_routes
from runner.hub.misbehaviour import Misbehaviour
from runner.hub.moved import Moved
from runner.hub.observation import Observer
from runner.hub.pages import page_routes
from runner.hub.refusal import Refusal, not_found
from runner.hub.rest import rest_routes
from runner.hub.site import Site


def application(site: Site) -> Starlette:
    """Return the application: the APIs first, because a repository's address would match theirs too."""
    apis = [*graphql_routes(site), Mount("/api/v3", routes=rest_routes(site))]
    routes = [
        *apis,
        *git_routes(site),
        *lfs_routes(site),
        *job_log_routes(site),
        *check_page_routes(site),
        *page_routes(site),
    ]
    handlers = {HTTPException: _missing, Exception: _bug}
    return Starlette(routes=routes, middleware=_middleware(site), exception_handlers=handlers)


def _middleware(site: Site) -> list[Middleware]:
    """Return what a request passes through, the outermost first."""
    # A name that somebody else's page made point to loopback is not ours: that page must not read from here.
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    # Inside the drills, so that what a drill makes of an answer is not taken for GitHub's.
    observers = [] if site.observe is None else [Middleware(Observer, observe=site.observe)]
    return [
        hosts,
        Middleware(ApiHeaders, site=site),
        Middleware(Misbehaviour, site=site),
        *observers,
        Middleware(Moved, site=site),
    ]


def _missing(request: Request, error: Exception) -> Response:
    """GitHub says 404 for addresses and for methods that it does not have."""
    if request.url.path.startswith("/api/"):
        return JSONResponse(not_found().body(), 404)
    return PlainTextResponse("Not Found\n", error.status_code if isinstance(error, HTTPException) else 404)


def _bug(_request: Request, _error: Exception) -> Response:
    return JSONResponse(Refusal(500, "Server Error").body(), 500)
