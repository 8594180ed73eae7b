"""Check runs, check suites and statuses of a commit."""

from starlette.routing import BaseRoute

from runner.hub.access import Area
from runner.hub.checks import Source
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.rest.check_shapes import CheckShapes, status_state
from runner.hub.store import CheckRun

_COMMIT = "/repos/{owner}/{repo}/commits/{ref:path}"


def check_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        api.route("GET", _COMMIT + "/check-runs", list_check_runs, area=Area.CHECKS),
        api.route("GET", _COMMIT + "/check-suites", list_check_suites, area=Area.CHECKS),
        api.route("GET", _COMMIT + "/status", get_status, area=Area.STATUSES),
        api.route("GET", _COMMIT + "/statuses", list_statuses, area=Area.STATUSES),
    ]


def list_check_runs(call: Call) -> Answer:
    """The check runs of a commit, the newest attempts only unless `filter=all`; asking for the first page is a poll."""
    repository = call.repository()
    commit = call.commit(repository)
    runs = call.site.ci.listed(repository, commit, Source.ACTIONS if call.is_first_page() else None)
    if call.query.get("filter") == "all":
        runs = call.site.ci.attempts(repository, commit)
    name = call.query.get("check_name")
    wanted = [run for run in runs if run.suite.source is not Source.STATUS and name in (None, run.check.name)]
    shapes = CheckShapes(call, repository)
    return call.paged([shapes.check_run(run) for run in wanted], "check_runs")


def list_check_suites(call: Call) -> Answer:
    """The check suites of a commit that have a check to show."""
    repository = call.repository()
    commit, shapes = call.commit(repository), CheckShapes(call, repository)
    suites: dict[int, list[CheckRun]] = {}
    for run in call.site.ci.listed(repository, commit):
        if run.suite.source is not Source.STATUS:
            suites.setdefault(run.suite.id, []).append(run)
    return call.paged([shapes.suite(runs) for runs in suites.values()], "check_suites")


def get_status(call: Call) -> Answer:
    """What all statuses of a commit come to; asking for the first page is a poll."""
    repository = call.repository()
    commit, runs = call.commit(repository), _statuses(call)
    api = call.api(repository)
    states = {status_state(run) for run in runs}
    around = {
        "state": "failure" if "failure" in states else "success" if states == {"success"} else "pending",
        "sha": commit,
        "repository": call.shapes.repository(repository),
        "commit_url": f"{api}/commits/{commit}",
        "url": f"{api}/commits/{commit}/status",
    }
    shapes = CheckShapes(call, repository)
    return call.paged([shapes.status(run) for run in runs], "statuses", **around)


def list_statuses(call: Call) -> Answer:
    """The statuses of a commit, the newest first; asking for the first page is a poll."""
    shapes = CheckShapes(call, call.repository())
    return call.paged([shapes.full_status(run) for run in reversed(_statuses(call))])


def _statuses(call: Call) -> list[CheckRun]:
    repository = call.repository()
    polled = Source.STATUS if call.is_first_page() else None
    runs = call.site.ci.listed(repository, call.commit(repository), polled)
    return [run for run in runs if run.suite.source is Source.STATUS]
