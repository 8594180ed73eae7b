"""Saying how a Run ended: as an outcome, and on GitHub."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from delivery.errors import is_for_later
from delivery.failure import Failure
from delivery.github import PullRequest
from delivery.goal import Goal
from delivery.note import (
    NoteFacts,
    continued_by,
    failure_note,
    note_marker,
    overtaken_marker,
    resolved_note,
    with_earlier,
)
from delivery.outcome import Outcome, Result
from delivery.parts import Parts
from delivery.text import end_of
from delivery.untold import RECOVER, kept
from worktree import WENT_ON_FROM, Worktree

_LOG_READ = 200_000  # bytes from the end of a Session log; a note shows less


def publish(parts: Parts, issue: int, before: PullRequest | None, outcome: Outcome) -> Outcome:
    """Write the Failure note, or turn an earlier one into a short "resolved by"; trouble is only added.

    `before` is the pull request that was there before. A note is on the disk before GitHub is asked; what GitHub may
    take later stays there, see `untold`. The outcome has the command to go on where a Run is needed for that.
    """
    if outcome.result is not Result.DELIVERED:
        outcome = replace(outcome, note=_note(parts, outcome))
    parts.journal.enter("note", cause=outcome.cause)
    with kept(parts, outcome) as file:
        outcome = _told(parts, issue, before, outcome, file)
    if outcome.result in (Result.DELIVERED, Result.POLICY_REFUSAL):
        return outcome
    return replace(outcome, continue_command=continued_by(outcome, parts.continue_command))


def _told(parts: Parts, issue: int, before: PullRequest | None, outcome: Outcome, file: Path | None) -> Outcome:
    for_later = outcome.pending is not None
    lines = []
    try:
        if outcome.note and outcome.overtaken:
            # A comment of its own: that of the branch is whoever's the branch is.
            with parts.github.unguarded():
                url = parts.github.comment(issue, overtaken_marker(outcome), outcome.note)
            parts.report(f"the Failure note is at {url}")
        elif outcome.note:
            number = outcome.pull_request.number if outcome.pull_request else issue
            url = parts.github.comment(number, note_marker(outcome.branch), outcome.note, with_earlier)
            parts.report(f"the Failure note is at {url}")
        elif not outcome.overtaken:
            _resolve_notes(parts, issue, before, outcome)
            _tell_beginning(parts, outcome)
    except Exception as error:
        lines.append(f"the Failure note could not be written: {error}")
        for_later = for_later or is_for_later(error)
    if file and for_later:
        lines.append(f"what GitHub could not be told is kept in {file}; the next Run here tells it, or: {RECOVER}")
    elif file:
        file.unlink(missing_ok=True)
    for line in lines:
        parts.report(line)
    return replace(outcome, secondary=(*outcome.secondary, *lines), untold=file if for_later else None)


def _note(parts: Parts, outcome: Outcome) -> str:
    facts = NoteFacts(
        moment=datetime.now(UTC),
        host=parts.host,
        log_text=end_of(outcome.session_log, _LOG_READ),
        continue_command=parts.continue_command,
    )
    return parts.redact(failure_note(outcome, facts))


def _resolve_notes(parts: Parts, issue: int, before: PullRequest | None, outcome: Outcome) -> None:
    if outcome.pull_request is None or outcome.run_id is None:
        return
    marker = note_marker(outcome.branch)
    note = resolved_note(outcome.branch, outcome.pull_request.url, outcome.run_id, datetime.now(UTC))
    # A note stands on the pull request of a Continuation, or on the issue when there was no pull request then.
    parts.github.edit_comment(issue, marker, note, with_earlier)
    if before:
        parts.github.edit_comment(outcome.pull_request.number, marker, note, with_earlier)


def _tell_beginning(parts: Parts, outcome: Outcome) -> None:
    """Say on the pull request that its work was begun by another run; a Failure note says it anyway."""
    begun = [where for what, where in outcome.places if what == WENT_ON_FROM]
    if begun and outcome.pull_request:
        marker = f"<!-- nightkeep:went-on-from {outcome.run_id} -->"
        text = "The run that began this has not ended; its machine seems to be gone. Run"
        note = f"{marker}\n\n{text} {outcome.run_id} went on from {begun[0]}.\n"
        parts.github.comment(outcome.pull_request.number, marker, parts.redact(note))


def outcome_of(
    parts: Parts, worktree: Worktree, base: str, ended: Goal | Failure | None, session_log: Path | None
) -> Outcome:
    """Return how a Run ended whose worktree did: with a pull request that is ready, or what became of its failure."""
    ending = worktree.ending
    reached = Outcome(
        result=Result.DELIVERED,
        issue_url=str(parts.url),
        base=base,
        branch=worktree.branch,
        run_id=worktree.run_id,
        session_log=session_log,
        preserved=ending.preserved,
        places=ending.places,
        refs=ending.refs,
        retained=ending.why if ending.kept else None,
        worktree=ending.path,
        rescued=ending.rescued,
        overtaken=worktree.is_fence_lost,
    )
    if not isinstance(ended, Failure):
        return replace(
            reached, pull_request=ended.pull_request if ended else None, merged=ended is not None and ended.merged
        )
    return replace(
        reached,
        result=ended.result,
        pull_request=ended.pull_request,
        cause=ended.cause,
        code=ended.code,
        stage=ended.stage,
        secondary=ended.secondary,
        failing=ended.failing,
        pending=ended.pending,
        interruption=parts.interruption.recorded,
    )
