"""`nightkeep recover`: what killed runners left unfinished in this clone."""

import json
from collections.abc import Mapping
from pathlib import Path

from delivery.issue_url import IssueUrl
from delivery.parts import Parts
from runner.access import Access, Place, place_of, with_access
from runner.conclusion import as_document
from runner.configured import logs_of
from runner.exit_codes import ExitCode
from runner.recovery import Recovered, Recovery
from runner.token_source import NoTokenError
from worktree import host_name, runs_at_work


def recover(held: Mapping[str, str], token_file: Path | None, *, as_json: bool) -> int:
    """Finish what killed runners began in this clone; return the exit status."""
    return with_access(lambda access: _recover(access, as_json=as_json), held, token_file, online=True)


def _recover(access: Access, *, as_json: bool) -> int:
    place = Place.of(access.launch)
    if access.github is None or access.remote is None or place is None:
        raise NoTokenError(place_of(access.launch).host)
    done = recovery_of(access, place).recover()
    if as_json:
        print(json.dumps([_as_document(one) for one in done], indent=2))  # noqa: T201 - the command's output
    for line in runs_at_work(access.launch.common):
        access.say(line)
    if not done:
        access.say("there is nothing to recover")
    if any(one.trouble for one in done):
        return ExitCode.DEFERRED
    kept_here = any(one.is_kept_here for one in done)
    return ExitCode.FAILED_KEPT_HERE if kept_here else 0


def recovery_of(access: Access, place: Place) -> Recovery:
    """Return what finishes the Runs of a clone; `access` must have GitHub and origin."""
    assert access.github is not None  # noqa: S101 - the caller has looked
    assert access.remote is not None  # noqa: S101
    git = access.launch.git
    parts = Parts(
        url=IssueUrl.parse(f"{place.server}/{place.repository}/issues/1") or _unreachable(),
        base=None,
        github=access.github,
        launch=access.launch,
        origin=access.remote.origin,
        interruption=git.interruption,
        report=access.say,
        redact=git.redact,
        host=host_name(),
        continue_command="",
    )
    logs = logs_of(access.start.machine.settings)
    return Recovery(run=parts, logs=logs, repository=place.repository, report=access.say)


def _as_document(one: Recovered) -> dict[str, object]:
    ended = as_document(one.outcome) if one.outcome else None
    return {
        "run": one.run_id,
        "branch": one.branch,
        "issue": one.issue_url,
        "ended": ended,
        "note": one.note,
        "trouble": one.trouble,
    }


def _unreachable() -> IssueUrl:
    raise AssertionError("a repository's name makes the URL of an issue")
