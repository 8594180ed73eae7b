"""How answers about checks, statuses and workflow runs look."""

import zlib
from typing import Any
from urllib.parse import quote

from runner.hub.bare import BareRepository
from runner.hub.check_addresses import check_page, run_of
from runner.hub.checks import PASSING, Source, overall
from runner.hub.rest.call import Call
from runner.hub.store import CheckRun, Repository, Suite

Shape = dict[str, Any]

_APPS = {Source.ACTIONS: (15368, "github-actions", "GitHub Actions"), Source.APP: (4711, "acme-ci", "Acme CI")}


class CheckShapes:
    """Makes the documents about the checks of one repository, for one request."""

    def __init__(self, call: Call, repository: Repository) -> None:
        self._call = call
        self._repository = repository
        self._api = call.api(repository)
        self._html = f"{call.site.url}/{repository.full_name}"

    def check_run(self, run: CheckRun) -> Shape:
        """A check run."""
        address = f"{self._api}/check-runs/{run.id}"
        told = _last_line(run) if run.suite.source is Source.APP else None
        output = {
            "title": f"{run.check.name}: {run.conclusion or 'in progress'}" if told else None,
            "summary": told,
            "text": run.log if told else None,
            "annotations_count": 0,
            "annotations_url": f"{address}/annotations",
        }
        return self._attempt(run) | {
            "node_id": f"CR_{run.id}",
            "external_id": f"{run.plan}",
            "url": address,
            "html_url": check_page(self._html, run),
            "details_url": check_page(self._html, run),
            "output": output,
            "check_suite": {"id": run.suite.id},
            "app": self._app(run.suite.source),
            "pull_requests": [],
        }

    def job(self, run: CheckRun) -> Shape:
        """A job of a workflow run: on GitHub it is its check run, under the same id."""
        number = run_of(run.suite)
        step = {"name": f"Run {run.check.name}", "number": 1, "started_at": run.started_at}
        ended = {"status": _status(run), "conclusion": run.conclusion, "completed_at": run.completed_at}
        return self._attempt(run) | {
            "node_id": f"CR_{run.id}",
            "run_id": number,
            "run_url": f"{self._api}/actions/runs/{number}",
            "run_attempt": run.attempt,
            "url": f"{self._api}/actions/jobs/{run.id}",
            "html_url": check_page(self._html, run),
            "created_at": run.started_at,
            "steps": [step | ended],
            "check_run_url": f"{self._api}/check-runs/{run.id}",
            "labels": ["ubuntu-latest"],
            **dict.fromkeys(("runner_id", "runner_name", "runner_group_id", "runner_group_name")),
            "workflow_name": run.suite.workflow,
            "head_branch": run.suite.branch,
        }

    def run(self, jobs: list[CheckRun]) -> Shape:
        """A workflow run with these jobs, one at least; it is queued once some are to run again, before they do."""
        suite = jobs[0].suite
        attempt = self._call.store.checks.last_attempt(suite.id)
        shown = max(job.attempt for job in jobs)
        ahead = {"status": "queued", "conclusion": None} if attempt > shown else {}
        number = run_of(suite)
        address, workflow = f"{self._api}/actions/runs/{number}", _number(suite.workflow)
        repository = self._call.shapes.repository(self._repository)
        below = ("jobs", "logs", "artifacts", "cancel", "rerun")
        commit = self._commit(suite)
        whole = self._whole(jobs) | ahead
        return whole | {
            "id": number,
            "node_id": f"WFR_{number}",
            "name": suite.workflow,
            "path": suite.workflow,
            "display_title": str(commit["message"]).partition("\n")[0],
            "event": "merge_group" if suite.branch.startswith("gh-readonly-queue/") else "push",
            "run_number": suite.id,
            "run_attempt": attempt,
            "workflow_id": workflow,
            "check_suite_id": suite.id,
            "url": address,
            "html_url": f"{self._html}/actions/runs/{number}",
            **{f"{name}_url": f"{address}/{name}" for name in below},
            "check_suite_url": f"{self._api}/check-suites/{suite.id}",
            "workflow_url": f"{self._api}/actions/workflows/{workflow}",
            "head_commit": commit,
            "head_repository": repository,
            "repository": repository,
            "run_started_at": min(job.started_at for job in jobs),
        }

    def suite(self, runs: list[CheckRun]) -> Shape:
        """A check suite with these check runs, one at least."""
        suite = runs[0].suite
        address = f"{self._api}/check-suites/{suite.id}"
        return self._whole(runs) | {
            "id": suite.id,
            "node_id": f"CS_{suite.id}",
            "url": address,
            "before": None,
            "after": suite.commit_id,
            "app": self._app(suite.source),
            "head_commit": self._commit(suite),
            "repository": self._call.shapes.repository(self._repository),
            "latest_check_runs_count": len(runs),
            "check_runs_url": f"{address}/check-runs",
        }

    def workflow(self, path: str, name: str) -> Shape:
        """A workflow file of the default branch."""
        number = _number(path)
        address, time = f"{self._api}/actions/workflows/{number}", self._repository.created_at
        return {
            "id": number,
            "node_id": f"W_{number}",
            "name": name,
            "path": path,
            "state": "active",
            "created_at": time,
            "updated_at": time,
            "url": address,
            "html_url": f"{self._html}/blob/HEAD/{quote(path)}",
            "badge_url": f"{self._html}/workflows/{quote(name, safe='')}/badge.svg",
        }

    def status(self, run: CheckRun) -> Shape:
        """A commit status, as the combined one lists it."""
        owner = self._call.shapes.user(self._repository.owner)
        return {
            "id": run.id,
            "node_id": f"SC_{run.id}",
            "url": f"{self._api}/statuses/{run.suite.commit_id}",
            "avatar_url": owner["avatar_url"],
            "state": status_state(run),
            "description": _last_line(run),
            "context": run.check.name,
            "target_url": check_page(self._html, run),
            "created_at": run.started_at,
            "updated_at": run.completed_at or run.started_at,
        }

    def full_status(self, run: CheckRun) -> Shape:
        """A commit status in a list of its own."""
        return self.status(run) | {"creator": self._call.shapes.user(self._repository.owner)}

    def _attempt(self, run: CheckRun) -> Shape:
        """Return what a check run and a job have in common."""
        return {
            "id": run.id,
            "name": run.check.name,
            "head_sha": run.suite.commit_id,
            "status": _status(run),
            "conclusion": run.conclusion,
            "started_at": run.started_at,
            "completed_at": run.completed_at,
        }

    def _whole(self, runs: list[CheckRun]) -> Shape:
        """Return what a suite and a workflow run have in common."""
        status, conclusion = overall([run.conclusion for run in runs])
        return {
            "head_branch": runs[0].suite.branch,
            "head_sha": runs[0].suite.commit_id,
            "status": status,
            "conclusion": conclusion,
            "pull_requests": [],
            "created_at": runs[0].suite.created_at,
            "updated_at": max(run.completed_at or run.started_at for run in runs),
        }

    def _commit(self, suite: Suite) -> Shape:
        tree, _, name, email, time, message = BareRepository(self._repository.path).show(suite.commit_id)
        person = {"name": name, "email": email}
        return {
            "id": suite.commit_id,
            "tree_id": tree,
            "message": message.rstrip("\n"),
            "timestamp": time,
            "author": person,
            "committer": person,
        }

    def _app(self, source: Source) -> Shape:
        number, slug, name = _APPS[source]
        epoch = "1970-01-01T00:00:00Z"
        return {
            "id": number,
            "slug": slug,
            "node_id": f"A_{number}",
            "owner": self._call.shapes.user(self._repository.owner),
            "name": name,
            "description": "",
            "external_url": self._call.site.url,
            "html_url": f"{self._call.site.url}/apps/{slug}",
            "created_at": epoch,
            "updated_at": epoch,
            "permissions": {"checks": "write", "metadata": "read"},
            "events": [],
        }


def status_state(run: CheckRun) -> str:
    """Return how a commit status calls the conclusion of a check."""
    if run.conclusion is None:
        return "pending"
    return "success" if run.conclusion in PASSING else "failure"


def _last_line(run: CheckRun) -> str | None:
    """Return what a check said last."""
    return next(reversed(run.log.rstrip().splitlines()), None)


def _status(run: CheckRun) -> str:
    return "in_progress" if run.conclusion is None else "completed"


def _number(path: str) -> int:
    """Return the id of the workflow in a file: the same in every answer, without a table."""
    return zlib.crc32(path.encode())
