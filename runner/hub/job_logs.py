"""The logs of jobs, at addresses that need no token for a while, as GitHub's storage gives them."""

import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from runner.hub.checks import PASSING
from runner.hub.site import Site
from runner.hub.store import CheckRun


def job_log_routes(site: Site) -> list[BaseRoute]:
    """Return the one route of the logs."""

    def log(request: Request) -> Response:
        repository, job = request.path_params["repository"], request.path_params["job"]
        run = site.store.checks.find(repository, job)
        signature = request.query_params.get("signature", "")
        if run is None or not hmac.compare_digest(signature, _signature(site, run)):
            return PlainTextResponse("Server failed to authenticate the request.\n", 403)
        return PlainTextResponse(log_text(run))

    return [Route("/_logs/{repository:int}/{job:int}", log)]


def log_address(site: Site, run: CheckRun) -> str:
    """Return where the log of a job can be had while this hub is served."""
    return f"{site.url}/_logs/{run.suite.repository}/{run.id}?signature={_signature(site, run)}"


def log_text(run: CheckRun) -> str:
    """Return the log as GitHub writes it: each line with its time, and an error at the end of a failed one."""
    lines = [f"##[group]Run {run.check.command or run.check.name}", "##[endgroup]", *run.log.splitlines()]
    if run.conclusion not in PASSING:
        lines.append("##[error]Process completed with exit code 1.")
    time = (run.completed_at or run.started_at).removesuffix("Z")
    return "".join(f"{time}.0000000Z {line}\n" for line in lines)


def _signature(site: Site, run: CheckRun) -> str:
    return hmac.digest(site.secret, f"{run.suite.repository}/{run.id}".encode(), "sha256").hex()
