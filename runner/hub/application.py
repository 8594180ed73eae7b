"""The web application of one hub."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount

from runner.hub.git_http import git_routes
from runner.hub.graphql_api import graphql_routes
from runner.hub.pages import page_routes
from runner.hub.refusal import Refusal, not_found
from runner.hub.rest import rest_routes
from runner.hub.site import Site


def application(site: Site) -> Starlette:
    """Return the application: the APIs first, because a repository's address would match theirs too."""
    routes = [*graphql_routes(site), Mount("/api/v3", routes=rest_routes(site)), *git_routes(site), *page_routes(site)]
    # A name that somebody else's page made point to loopback is not ours: that page must not read from here.
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return Starlette(routes=routes, middleware=[hosts], exception_handlers={HTTPException: _missing, Exception: _bug})


def _missing(request: Request, error: Exception) -> Response:
    """GitHub says 404 for addresses and for methods that it does not have."""
    if request.url.path.startswith("/api/"):
        return JSONResponse(not_found().body(), 404)
    return PlainTextResponse("Not Found\n", error.status_code if isinstance(error, HTTPException) else 404)


def _bug(_request: Request, _error: Exception) -> Response:
    return JSONResponse(Refusal(500, "Server Error").body(), 500)
