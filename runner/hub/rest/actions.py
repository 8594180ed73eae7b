"""GitHub Actions: workflows, their runs, and the jobs of a run."""

import yaml
from starlette.routing import BaseRoute

from runner.hub.access import Area, Permission
from runner.hub.bare import BareRepository
from runner.hub.check_addresses import suite_of
from runner.hub.checks import PASSING, Source
from runner.hub.job_logs import log_address
from runner.hub.refusal import Refusal, not_found
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.rest.check_shapes import CheckShapes
from runner.hub.store import CheckRun, Repository, Suite

_ACTIONS = "/repos/{owner}/{repo}/actions"
_RUN = _ACTIONS + "/runs/{run:int}"


def action_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        api.route("GET", _ACTIONS + "/workflows", list_workflows, area=Area.ACTIONS),
        api.route("GET", _ACTIONS + "/runs", list_runs, area=Area.ACTIONS),
        api.route("GET", _RUN, get_run, area=Area.ACTIONS),
        api.route("GET", _RUN + "/jobs", list_jobs, area=Area.ACTIONS),
        api.route("POST", _RUN + "/rerun-failed-jobs", run_failed_jobs_again, Permission.WRITE, Area.ACTIONS),
        api.route("GET", _ACTIONS + "/jobs/{job:int}/logs", get_log, area=Area.ACTIONS),
    ]


def list_workflows(call: Call) -> Answer:
    """The workflow files of the default branch."""
    repository, bare = call.repository(), BareRepository(call.repository().path)
    head = bare.commit(bare.default_branch())
    files = bare.files(head, ".github/workflows") if head else {}
    shapes = CheckShapes(call, repository)
    workflows = [shapes.workflow(path, _name(text) or path) for path, text in files.items() if _is_workflow(path)]
    return call.paged(workflows, "workflows")


def list_runs(call: Call) -> Answer:
    """Workflow runs, newest first, of a head or a branch when the query names one."""
    repository, shapes = call.repository(), CheckShapes(call, call.repository())
    head, branch = call.query.get("head_sha"), call.query.get("branch")
    call.site.ci.look(repository)
    suites = [
        suite
        for suite in call.store.checks.suites(repository.id)
        if suite.source is Source.ACTIONS and head in (None, suite.commit_id) and branch in (None, suite.branch)
    ]
    runs = [jobs for suite in suites if (jobs := _jobs(call, repository, suite))]
    return call.paged([shapes.run(jobs) for jobs in runs], "workflow_runs")


def get_run(call: Call) -> Answer:
    """One workflow run."""
    repository = call.repository()
    return Answer(body=CheckShapes(call, repository).run(_run(call, repository)))


def list_jobs(call: Call) -> Answer:
    """The jobs of a run, the newest attempts only unless `filter=all`."""
    repository, shapes = call.repository(), CheckShapes(call, call.repository())
    jobs = _run(call, repository)
    if call.query.get("filter") == "all":
        suite = jobs[0].suite
        jobs = [run for run in call.site.ci.attempts(repository, suite.commit_id) if run.suite == suite]
    return call.paged([shapes.job(job) for job in jobs], "jobs")


def run_failed_jobs_again(call: Call) -> Answer:
    """Start the failed jobs of a run that is over once more."""
    repository = call.repository()
    jobs = _run(call, repository)
    newest = {run.plan: run for run in call.store.checks.of_commit(repository.id, jobs[0].suite.commit_id)}
    if any(newest[job.plan].conclusion is None for job in jobs):
        raise Refusal(403, "This workflow is already running")
    failed = [job for job in jobs if job.conclusion not in PASSING]
    if not failed:
        raise Refusal(403, "This workflow run cannot be retried")
    call.site.ci.run_again(repository, failed)
    return Answer(201, {})


def get_log(call: Call) -> Answer:
    """Where the log of a job is; there is none before it has ended."""
    job = call.store.checks.find(call.repository().id, int(call.path["job"]))
    if job is None or job.suite.source is not Source.ACTIONS or job.conclusion is None:
        raise not_found()
    return Answer(302, headers={"Location": log_address(call.site, job)})


def _run(call: Call, repository: Repository) -> list[CheckRun]:
    """Return the jobs of the run in the path; raises Refusal when there is none to show."""
    identity = suite_of(int(call.path["run"]))
    suite = next((one for one in call.store.checks.suites(repository.id) if one.id == identity), None)
    jobs = _jobs(call, repository, suite) if suite is not None and suite.source is Source.ACTIONS else []
    if not jobs:
        raise not_found()
    return jobs


def _jobs(call: Call, repository: Repository, suite: Suite) -> list[CheckRun]:
    return [run for run in call.site.ci.listed(repository, suite.commit_id) if run.suite == suite]


def _is_workflow(path: str) -> bool:
    return path.endswith((".yml", ".yaml"))


def _name(text: str) -> str:
    """Return what a workflow calls itself."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return ""
    return str(document.get("name", "")) if isinstance(document, dict) else ""
