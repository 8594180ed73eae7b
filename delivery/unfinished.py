"""What a journal tells of a Run that was killed: how far it came, and what is to be done about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delivery.causes import Code, Stage
from delivery.issue_url import IssueUrl
from worktree import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A Run whose journal has no end. `clone` is the git directory of the clone that it was started from, on `host`.

    `run_id` is None when it was killed before its worktree was there. `delivered` says that its pull request was ready,
    `claimed_as` is what it called itself in its claim, `nonce` what it is known by there, None where it made none,
    `lease` in seconds; `is_atomic` says whether refs can be pushed together, `unclaimed` that it was about to end it.
    `cause` and `code` are what it failed with when it did not die, `stage` is the last that it entered, or failed in;
    `merging` is the pull request that it asked GitHub to merge last, and at which head, `took_over` the run whose
    checkpoint it went on from. `is_spec` says that it has started Runs of Tickets. `was_ready` and `was_in_progress`
    are about the labels before it took the issue.
    """

    clone: str
    host: str
    issue_url: str
    base: str
    branch: str
    ready: str
    in_progress: str
    was_ready: bool
    was_in_progress: bool
    continued: bool
    opens_draft: bool
    continue_command: str
    run_id: str | None
    claimed_as: str | None
    nonce: str | None
    lease: float
    is_atomic: bool
    unclaimed: bool
    delivered: bool
    merging: tuple[int, str] | None
    took_over: str | None
    is_spec: bool
    cause: str | None
    code: Code | None
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """A Run that ended with a Failure note. `run_id` is None when it failed before its worktree was there."""

    url: IssueUrl
    base: str
    branch: str
    run_id: str | None


def read_failed(entries: Sequence[Mapping[str, object]]) -> FailedRun | None:
    """Return the Run that a journal's entries are about, None unless it came to its Failure note.

    Raises ValueError for entries that are no journal's.
    """
    try:
        steps = {str(entry["step"]): entry for entry in entries}
        if "claim" not in steps or "note" not in steps or not steps["note"]["cause"]:
            return None
        claim, begun = steps["claim"], steps.get("begun")
        url = IssueUrl.parse(str(claim["issue"]))
        run_id = str(begun["run"]) if begun else None
        if url is None:
            return None
        return FailedRun(url=url, base=str(claim["base"]), branch=str(claim["branch"]), run_id=run_id)
    except (KeyError, TypeError) as error:
        raise ValueError(f"an entry lacks {error}") from error


def read_unfinished(entries: Sequence[Mapping[str, object]]) -> Unfinished | None:
    """Decide from a journal's entries what is unfinished: None for a Run that has ended, or that began nothing.

    Raises ValueError for entries that are no journal's.
    """
    try:
        return _read(entries)
    except (KeyError, TypeError) as error:
        raise ValueError(f"an entry lacks {error}") from error


def _read(entries: Sequence[Mapping[str, object]]) -> Unfinished | None:
    claim = next((entry for entry in entries if entry["step"] == "claim"), None)
    steps = {str(entry["step"]): entry for entry in entries}
    if claim is None or "end" in steps:
        return None
    failed = steps.get("preserve") or steps.get("draft")
    begun, merging = steps.get("begun"), steps.get("merge")
    reached = [Stage(str(entry["stage"])) for entry in entries if "stage" in entry]
    return Unfinished(
        clone=str(claim["clone"]),
        host=str(claim["host"]),
        issue_url=str(claim["issue"]),
        base=str(claim["base"]),
        branch=str(claim["branch"]),
        ready=str(claim["ready"]),
        in_progress=str(claim["in_progress"]),
        was_ready=bool(claim["was_ready"]),
        was_in_progress=bool(claim["was_in_progress"]),
        continued=bool(claim["continued"]),
        opens_draft=bool(claim["opens_draft"]),
        continue_command=str(claim["continue_command"]),
        run_id=str(begun["run"]) if begun else None,
        claimed_as=str(claim["run"]) if "run" in claim else None,
        nonce=str(claim["nonce"]) if "nonce" in claim and "unfenced" not in steps else None,
        lease=float(str(claim.get("lease", Pace().lease))),
        is_atomic=bool(claim.get("atomic", True)),
        unclaimed="unclaim" in steps,
        delivered="clean-up" in steps and failed is None,
        is_spec="ticket" in steps,
        took_over=str(steps["take-over"]["run"]) if "take-over" in steps else None,
        merging=(int(str(merging["number"])), str(merging["head"])) if merging and failed is None else None,
        cause=str(failed["cause"]) if failed else None,
        code=Code(str(failed["code"])) if failed and "code" in failed else None,
        stage=reached[-1] if reached else Stage.WORKTREE,
    )
