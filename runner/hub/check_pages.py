"""Pages of checks and of workflow runs, to which the API's links lead."""

from html import escape

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from runner.hub.check_addresses import suite_of
from runner.hub.checks import Source
from runner.hub.job_logs import log_text
from runner.hub.layout import link, missing, object_id, page
from runner.hub.pull_page import check_line
from runner.hub.site import Site
from runner.hub.store import CheckRun, Repository


def check_page_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of these pages."""
    pages = _CheckPages(site)
    return [
        Route("/{owner}/{name}/runs/{check:int}", pages.check),
        Route("/{owner}/{name}/actions/runs/{run:int}", pages.run),
        Route("/{owner}/{name}/actions/runs/{run:int}/job/{check:int}", pages.check),
    ]


class _CheckPages:
    """The endpoints; Starlette runs them in threads."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def check(self, request: Request) -> Response:
        """Show one check, and the log of a job that has ended."""
        repository = self._repository(request)
        if repository is None:
            return missing()
        found = self._site.store.checks.find(repository.id, request.path_params["check"])
        if found is None:
            return missing()
        shown = log_text(found) if found.suite.source is Source.ACTIONS and found.conclusion else found.log
        log = f"<pre>{escape(shown)}</pre>" if shown else "<p class='quiet'>It has written nothing.</p>"
        return page(found.check.name, _heading(repository, found) + f"<p>{check_line(repository, found)}</p>{log}")

    def run(self, request: Request) -> Response:
        """Show the jobs of one workflow run, the newest attempts."""
        repository, identity = self._repository(request), suite_of(request.path_params["run"])
        suites = self._site.store.checks.suites(repository.id) if repository else []
        suite = next((one for one in suites if one.id == identity and one.source is Source.ACTIONS), None)
        if repository is None or suite is None:
            return missing()
        jobs = [run for run in self._site.ci.listed(repository, suite.commit_id) if run.suite == suite]
        if not jobs:
            return missing()
        lines = "".join(f"<li>{check_line(repository, job)}</li>" for job in jobs)
        return page(suite.workflow, f"{_heading(repository, jobs[0])}<ul>{lines}</ul>")

    def _repository(self, request: Request) -> Repository | None:
        return self._site.store.repositories.find(request.path_params["owner"], request.path_params["name"])


def _heading(repository: Repository, run: CheckRun) -> str:
    home = link(f"/{repository.full_name}", repository.full_name)
    title = run.suite.workflow or run.check.name
    where = f"<code>{escape(run.suite.branch)}</code> at {object_id(run.suite.commit_id)}"
    return f"<header><p>{home}</p><h1>{escape(title)}</h1><p>{where}</p></header>"
