"""The Failure note: the one comment that tells a maintainer everything."""

import re
import shlex
from dataclasses import dataclass
from datetime import datetime

from delivery.outcome import Outcome, Result
from delivery.text import fenced, one_line, tail
from worktree import Preserved

_LOG_LINES = 60
_LOG_CHARACTERS = 20_000
_LINE_CHARACTERS = 2_000
_MOST_LINES = 12  # of places, and of what went wrong besides


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFacts:
    """What a Failure note says beyond the outcome: when, on which host, the log's end, and how to continue."""

    moment: datetime
    host: str
    log_text: str
    continue_command: str


def note_marker(branch: str) -> str:
    """Return the hidden text by which the note on that Issue branch is found again."""
    return f"<!-- nightkeep:failure-note {branch} -->"


def failure_note(outcome: Outcome, facts: NoteFacts) -> str:
    """Return the note in Markdown. Everything in it must be redacted already."""
    parts = [
        note_marker(outcome.branch),
        "### Nightkeep could not finish this",
        f"**Cause:** {_code(outcome.cause or 'unknown')}",
        f"**Stage:** {outcome.stage or 'unknown'}",
        f"**Preserved:** {_preserved(outcome)}",
        _places(outcome),
        _kept(outcome, facts),
        _secondary(outcome),
        f"**To continue** in a clone of this repository:\n\n{fenced(facts.continue_command, 'sh')}",
        _log(outcome, facts),
        f"<sub>Run {outcome.run_id or 'without a worktree'} on {facts.host}, {facts.moment:%Y-%m-%dT%H:%M:%SZ}</sub>",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def resolved_note(branch: str, pull_request_url: str, run_id: str, moment: datetime) -> str:
    """Return what a note becomes when a later Run on the branch succeeds."""
    return (
        f"{note_marker(branch)}\n\nAn earlier Run on this branch failed. Resolved by run {run_id}, "
        f"{moment:%Y-%m-%dT%H:%M:%SZ}: {pull_request_url}\n"
    )


def _preserved(outcome: Outcome) -> str:
    if outcome.result is Result.POLICY_REFUSAL:
        return "nothing had to be: the pull request stays ready as it is"
    match outcome.preserved:
        case Preserved.ORIGIN:
            marker = f"; the last commit of {_code(outcome.branch)} holds what was uncommitted"
            return "everything is on origin" + (marker if f"refs/heads/{outcome.branch}" in outcome.refs else "")
        case Preserved.MACHINE:
            return "something is kept only on the machine that ran it, see below"
        case Preserved.NOTHING_MADE:
            return "nothing was made"


def _places(outcome: Outcome) -> str:
    rows = [f"| {_cell(what)} | {_cell(where)} |" for what, where in outcome.places[:_MOST_LINES]]
    if len(outcome.places) > _MOST_LINES:
        rows.append(f"| and {len(outcome.places) - _MOST_LINES} more | see the output of the run |")
    return "\n".join(["| what | where |", "| --- | --- |", *rows]) if rows else ""


def _kept(outcome: Outcome, facts: NoteFacts) -> str:
    if outcome.retained is None or outcome.worktree is None:
        return ""
    branch, path = shlex.quote(outcome.branch), shlex.quote(str(outcome.worktree))
    commands = (
        f"git push origin {branch}:refs/heads/{branch}-kept  # if it has commits that origin lacks\n"
        f"git worktree remove --force --force {path} && git branch -D {branch}"
    )
    return (
        f"**Kept on {_code(facts.host)}** is the worktree, because {_code(outcome.retained)}. Until somebody took from "
        f"it what is needed and removed it there, no Run on that machine works on this branch:\n\n"
        f"{fenced(commands, 'sh')}"
    )


def _secondary(outcome: Outcome) -> str:
    if not outcome.secondary:
        return ""
    return "**Also:**\n\n" + "\n".join(f"- {_code(line)}" for line in outcome.secondary[:_MOST_LINES])


def _log(outcome: Outcome, facts: NoteFacts) -> str:
    if outcome.session_log is None:
        return ""
    end = tail(facts.log_text, _LOG_LINES, _LOG_CHARACTERS)
    where = f"The whole Session log is {_code(str(outcome.session_log))} on {facts.host}."
    return (
        f"<details><summary>The end of the Session log</summary>\n\n{fenced(end or '(empty)')}\n\n</details>\n\n{where}"
    )


def _code(text: str) -> str:
    """Return `text` as inline code, so that nothing in it is a mention, a link or markup."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    line = one_line(" ".join(printable.split()), _LINE_CHARACTERS)
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    room = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{room}{line}{room}{ticks}"


def _cell(text: str) -> str:
    return _code(text).replace("|", "\\|")
