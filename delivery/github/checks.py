"""Checks on GitHub: what has checked a commit, why it failed, and having it checked again."""

import re
from collections.abc import Mapping
from typing import Any

from delivery.errors import GitHubError, GitHubForbiddenError
from delivery.github.answers import Check, CheckState
from delivery.github.transport import Transport

ACTIONS = "actions"  # a permission, as GitHub calls it
_ACTIONS = "github-actions"
_JOB = re.compile(r"/actions/runs/(\d+)(?:/attempts/\d+)?(?:/jobs?/(\d+))?(?:[/?#]|$)")
_GOOD = ("success", "neutral", "skipped")


class Checks:
    """The checks of one repository's commits."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def of(self, commit: str) -> tuple[Check, ...]:
        """Return all checks of a commit, the latest of each name: check runs, then statuses."""
        at = f"commits/{commit}"
        pages = self._transport.pages
        runs = pages(f"{at}/check-runs?per_page=100", lambda page: map(_check_run, page["check_runs"]))
        return (*runs, *pages(f"{at}/status?per_page=100", lambda page: map(_status, page["statuses"])))

    def unreadable(self, commit: str, *, actions: bool) -> tuple[str, ...]:
        """Return the permissions that the token lacks to read the checks of a commit, and with `actions` what ran."""
        asked = {
            "checks": f"commits/{commit}/check-runs?per_page=100",
            "statuses": f"commits/{commit}/status?per_page=100",
        }
        asked |= {ACTIONS: "actions/runs?per_page=1"} if actions else {}
        return tuple(permission for permission, path in asked.items() if not self._may_read(path))

    def _may_read(self, path: str) -> bool:
        try:
            self._transport.get(path, lambda _: None)
        except GitHubForbiddenError:
            return False
        return True

    def repeat(self, run: int) -> None:
        """Have the failed jobs of a workflow run run again; once, though the answer is lost. Raises GitHubError."""
        before = self._attempt(run)

        def write() -> bool:
            self._transport.send("POST", f"actions/runs/{run}/rerun-failed-jobs")
            return True

        self._transport.write(write, lambda: True if self._attempt(run) != before else None)

    def _attempt(self, run: int) -> int:
        return self._transport.get(f"actions/runs/{run}", lambda seen: int(seen["run_attempt"]))

    def log_tail(self, job: int, size: int) -> str:
        """Return at most the last `size` bytes of a job's log as text, "" where the token cannot read it."""
        try:
            return self._transport.download_tail(f"actions/jobs/{job}/logs", size).decode(errors="replace")
        except GitHubError:
            return ""


def _check_run(seen: Mapping[str, Any]) -> Check:
    details = str(seen.get("details_url") or "")
    by_actions = (seen.get("app") or {}).get("slug") == _ACTIONS
    match = _JOB.search(details) if by_actions else None
    done = seen["status"] == "completed"
    state = CheckState.PASSED if seen["conclusion"] in _GOOD else CheckState.FAILED
    return Check(
        name=seen["name"],
        state=state if done else CheckState.PENDING,
        url=str(seen.get("html_url") or details),
        id=seen["id"],
        run=int(match[1]) if match else None,
        # The id of a job of Actions is its check run's.
        job=int(match[2] or seen["id"]) if match else None,
        timed_out=seen["conclusion"] == "timed_out",
    )


def _status(seen: Mapping[str, Any]) -> Check:
    states = {"success": CheckState.PASSED, "pending": CheckState.PENDING}
    return Check(
        name=seen["context"],
        state=states.get(seen["state"], CheckState.FAILED),
        url=str(seen.get("target_url") or ""),
    )
