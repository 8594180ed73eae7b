"""The Failure note: the one comment that tells a maintainer everything."""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from delivery.causes import Code
from delivery.outcome import Outcome, Result
from delivery.text import as_code, fenced, tail, visible
from worktree import Preserved

_NOTE_LIMIT = 60_000  # characters; GitHub takes 65,536, and redaction may lengthen a little what is short
_LONGEST = 65_536  # characters, as GitHub counts
_LOG_LINES = 60
_MOST_LINES = 12  # of places, and of what went wrong besides
_MEANING = {
    "failure marker": "failure marker: the branch, with what was uncommitted, if anything was",
    "snapshot": "snapshot of the files",
    "withheld": "withheld: all files, with those that may not be published",
    "head": "head: the commits at HEAD, uncommitted work included",
    "made": "made: commits and stash entries that are on no branch of origin",
    "bundle": "bundle of the commits that origin did not take",
}
_COULD_NOT = "### Nightkeep could not"
_LONGEST_HIDDEN = 3_000  # characters
# What a later Run goes on from, or takes the place of.
_ON_BRANCH = ("failure marker", "Issue branch", "session output")
_RESCUED = re.compile(r"nightkeep/rescue/([\w-]+)")
_HERE = "kept on this machine"
_KEPT = re.compile(r"<!-- nightkeep:failure-note [^\n]* -->\n<!-- nightkeep:kept ([A-Za-z0-9+/=]+) -->\n")
_MADE_AT = re.compile(
    r"^(?:<sub>Run .* on .*|An earlier Run on this branch failed\. Resolved by run \S+), (\d{4}-\d\d-\d\dT[\d:]{8}Z)",
    re.MULTILINE,
)
_COMMAND_CHARACTERS = 10_000
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:/?#&=%~+_,;-]{1,500}")
_MENDS, _MENDS_NOT = "--base-fix", "--no-base-fix"
_ABSOLUTE = re.compile(r"""[\s'"=]/""")  # where a path begins in a shell's command


@dataclass(frozen=True, slots=True)
class _Room:
    """How many characters a line may have, and the log."""

    line: int
    log: int


# Tried in turn until the note fits. Backticks make longer what is around them, so nothing else tells beforehand.
_ROOMS = (_Room(2_000, 20_000), _Room(500, 8_000), _Room(100, 2_000))


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


def overtaken_marker(outcome: Outcome) -> str:
    """Return the hidden text of the note of a Run that has lost its claim: nobody else edits that one."""
    return f"<!-- nightkeep:failure-note {outcome.branch} overtaken {outcome.run_id} -->"


def failure_note(outcome: Outcome, facts: NoteFacts) -> str:
    """Return the note in Markdown, short enough for GitHub. Everything in it must be redacted already."""
    notes = (_note(outcome, facts, room) for room in _ROOMS)
    return next((note for note in notes if len(note) <= _NOTE_LIMIT), "") or _note(outcome, facts, _ROOMS[-1])


def _note(outcome: Outcome, facts: NoteFacts, room: _Room) -> str:
    places = _worth_saying(outcome)
    kept = [place for place in places[-_MOST_LINES:] if place[0] not in _ON_BRANCH]
    parts = [
        f"{overtaken_marker(outcome) if outcome.overtaken else note_marker(outcome.branch)}\n{_hidden(kept)}",
        f"{_COULD_NOT} {'merge' if outcome.result is Result.POLICY_REFUSAL else 'finish'} this",
        f"**Cause:** {_code(outcome.cause or 'unknown', room)}",
        _failing(outcome, room),
        f"**Stage:** {outcome.stage or 'unknown'}",
        _kind(outcome),
        f"**Preserved:** {_preserved(outcome, room)}",
        _places(places, room),
        _kept(outcome, facts, room),
        _rescued(outcome, facts, room),
        _secondary(outcome, room),
        _continuation(outcome, facts),
        _log(outcome, facts, room),
        f"<sub>Run {outcome.run_id or 'without a worktree'} on {facts.host}, {facts.moment:%Y-%m-%dT%H:%M:%SZ}</sub>",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


class Noted(Enum):
    """What the note on an Issue branch tells of its last Run."""

    FAILED = auto()
    NOT_MERGED = auto()


def what_is_noted(branch: str, comments: Iterable[str]) -> Noted | None:
    """Return what a note among those comments tells; None where there is none, or a later Run has got further."""
    note = next((text for text in comments if text.startswith(note_marker(branch))), "")
    if f"\n{_COULD_NOT} merge this" in note:
        return Noted.NOT_MERGED
    return Noted.FAILED if f"\n{_COULD_NOT} finish this" in note else None


def as_note(text: str, branch: str) -> str:
    """Return a text that anybody may have written as the note on that Issue branch: with its marker, and cut to fit."""
    marker = note_marker(branch)
    return (text if text.startswith(f"{marker}\n") else f"{marker}\n\n{text}")[:_LONGEST]


def resolved_note(branch: str, pull_request_url: str, run_id: str, moment: datetime) -> str:
    """Return what a note becomes when a later Run on the branch succeeds."""
    return (
        f"{note_marker(branch)}\n\nAn earlier Run on this branch failed. Resolved by run {run_id}, "
        f"{moment:%Y-%m-%dT%H:%M:%SZ}: {pull_request_url}\n"
    )


def with_earlier(note: str, earlier: str) -> str:
    """Return `note` with the places that an earlier one on the same branch names, as far as it does not name them.

    They are still there when a later Run ends, and nobody else points to them.
    """
    mine, theirs = _kept_in(note), _kept_in(earlier)
    more = [place for place in theirs if place not in mine]
    if not more:
        return note
    shown = [f"| {_cell(_MEANING.get(what, what), _ROOMS[-1])} | {_cell(where, _ROOMS[0])} |" for what, where in more]
    runs = dict.fromkeys(run for _, where in more[-_MOST_LINES:] for run in _RESCUED.findall(where))
    shows = "".join(f"\n\n`nightkeep rescue show {run}` says what is kept of that Run." for run in runs)
    left = f"\n\nAnd {len(more) - _MOST_LINES} more, from Runs before." if len(more) > _MOST_LINES else ""
    table = "\n".join(["| kept by an earlier Run | where |", "| --- | --- |", *shown[-_MOST_LINES:]])
    first, _, rest = note.partition("\n")
    rest = rest.removeprefix(f"{_hidden(mine)}\n")
    longer = f"{first}\n{_hidden([*mine, *more])}\n{rest.rstrip()}\n\n{table}{left}{shows}\n"
    return longer if len(longer) <= _NOTE_LIMIT else note


def newer_of(note: str, other: str) -> str:
    """Return that of two notes on the same branch which was made later, with the places that the other one names.

    For a note that could not be written when it was made: somebody else may have written one since.
    """
    return with_earlier(note, other) if _made_at(note) > _made_at(other) else with_earlier(other, note)


def _made_at(note: str) -> str:
    """Return when a note was made, as its last lines say, which no agent has a say in; "" where they do not."""
    return next(iter(_MADE_AT.findall(note)[-1:]), "")


def _hidden(places: Sequence[tuple[str, str]]) -> str:
    """Return places for the next note to read, the latest that fit; encoded, so that nothing in them ends it."""
    for first in range(len(places) + 1):
        encoded = base64.b64encode(json.dumps([*places[first:]]).encode()).decode()
        if len(encoded) <= _LONGEST_HIDDEN:
            break
    return f"<!-- nightkeep:kept {encoded} -->"


def _kept_in(note: str) -> list[tuple[str, str]]:
    """Return the places that a note has for the next one: of its second line only, which no agent has a say in."""
    match = _KEPT.match(note)
    try:
        return [(str(what), str(where)) for what, where in json.loads(base64.b64decode(match[1]))] if match else []
    except ValueError:
        return []


def _preserved(outcome: Outcome, room: _Room) -> str:
    if outcome.result is Result.POLICY_REFUSAL:
        return "nothing had to be: the pull request stays ready as it is"
    match outcome.preserved:
        case Preserved.ORIGIN:
            marker = f"; if anything was uncommitted, it is in the last commit of {_code(outcome.branch, room)}"
            is_marked = outcome.run_id is not None and f"refs/heads/{outcome.branch}" in outcome.refs
            return "everything is on origin" + (marker if is_marked else "")
        case Preserved.MACHINE if outcome.refs and outcome.retained is None:
            return "the work is on origin; some files are only on the machine that ran it, see below"
        case Preserved.MACHINE:
            return "something is kept only on the machine that ran it, see below"
        case Preserved.NOTHING_MADE if outcome.continued:
            return f"this Run made nothing; what was made before it is on {_code(outcome.branch, room)}"
        case Preserved.NOTHING_MADE if outcome.interruption or outcome.overtaken:
            return "nothing was made"
        case Preserved.NOTHING_MADE:
            return (
                "nothing was made. `nightkeep pickup` lets the issue wait before it takes it again; until when, "
                f"{_code(f'nightkeep explain {outcome.issue_url}', room)} says"
            )


def _kind(outcome: Outcome) -> str:
    return f"**Kind:** `{outcome.code}`. {outcome.code.hint}" if outcome.code else ""


def _failing(outcome: Outcome, room: _Room) -> str:
    """Link the checks that failed; the address of one is told by whoever reported it."""
    lines = [f"- {_code(name, room)}: <{url}>" for name, url in outcome.failing if _ADDRESS.fullmatch(url)]
    return "\n".join(["**Failing checks:**\n", *lines[:_MOST_LINES]]) if lines else ""


def _worth_saying(outcome: Outcome) -> list[tuple[str, str]]:
    """Return the places; where everything is on origin, what was kept here are empty directories."""
    empty = _HERE if outcome.preserved is Preserved.ORIGIN else None
    return [place for place in outcome.places if place[0] != empty]


def _places(places: Sequence[tuple[str, str]], room: _Room) -> str:
    said = [(_MEANING.get(what, what), where) for what, where in places[:_MOST_LINES]]
    rows = [f"| {_cell(what, room)} | {_cell(where, room)} |" for what, where in said]
    if len(places) > _MOST_LINES:
        rows.append(f"| and {len(places) - _MOST_LINES} more | see the output of the run |")
    return "\n".join(["| what | where |", "| --- | --- |", *rows]) if rows else ""


def before_going_on(outcome: Outcome) -> tuple[str, str] | None:
    """Return the commands that bring the commits of a retained worktree to origin, and release it; None without one."""
    if outcome.retained is None or outcome.worktree is None:
        return None
    branch, path = shlex.quote(outcome.branch), shlex.quote(visible(str(outcome.worktree)))
    return f"git -C {path} push origin HEAD:refs/heads/{branch}", f"nightkeep worktrees release {path}"


def _kept(outcome: Outcome, facts: NoteFacts, room: _Room) -> str:
    commands = before_going_on(outcome)
    if commands is None or outcome.retained is None:
        return ""
    push, release = commands
    # The cause was said already.
    more = outcome.retained.removeprefix(f"{outcome.cause}; ")
    why = _code(more, room) if more == outcome.retained else f"of that; {_code(more, room)}"
    return (
        f"**Kept on {_code(facts.host, room)}** is the worktree, because {why}. Until "
        "somebody has released it, in the clone beside it, no Run from there works on this branch. This shows what it "
        "holds, asks, and loses nothing:\n\n"
        f"{fenced(release, 'sh')}\n\n"
        f"Before that, if its commits may go to origin by now: `{push}`."
    )


def _rescued(outcome: Outcome, facts: NoteFacts, room: _Room) -> str:
    show = show_command(outcome)
    if show is None:
        return ""
    if outcome.rescued is None:
        anywhere = ""
        if refs := [ref for ref in outcome.refs if _RESCUED.search(ref)]:
            log = f"git log --stat -m --first-parent origin/{shlex.quote(outcome.base)}..FETCH_HEAD"
            anywhere = f"\n\nIn any other clone:\n\n{fenced(f'git fetch origin {refs[-1]} && {log}', 'sh')}"
        what = "**Rescue refs** keep what may not be on the Issue branch."
        return f"{what} In the clone on {_code(facts.host, room)}:\n\n{fenced(show, 'sh')}{anywhere}"
    if outcome.preserved is Preserved.ORIGIN and _HERE not in dict(_worth_saying(outcome)):
        return ""
    commands = f"{show}\nnightkeep rescue restore {outcome.run_id} --to DIRECTORY"
    return (
        f"**Kept on {_code(facts.host, room)}** are files that nothing else holds. In the clone there:\n\n"
        f"{fenced(commands, 'sh')}"
    )


def show_command(outcome: Outcome) -> str | None:
    """Return the command that shows what was rescued of the Run, and how to get it back; None when nothing was."""
    # The rescue refs and the directory in the store are called by the run alike.
    named = f"nightkeep/rescue/{outcome.run_id}"
    found = outcome.run_id and (outcome.rescued or any(named in where for _, where in outcome.places))
    return f"nightkeep rescue show {outcome.run_id}" if found else None


def _secondary(outcome: Outcome, room: _Room) -> str:
    lines = [f"- {_code(line, room)}" for line in outcome.secondary[:_MOST_LINES]]
    if len(outcome.secondary) > _MOST_LINES:
        lines.append(f"- and {len(outcome.secondary) - _MOST_LINES} more, see the output of the run")
    return "\n".join(["**Also:**\n", *lines]) if lines else ""


def continued_by(outcome: Outcome, command: str) -> str:
    """Return the command that goes on after a Run, which was started by `command`: with the means that may help it."""
    if outcome.code is not Code.CHECKS_INHERITED or not command or _MENDS in command.split():
        return command
    return f"{command.replace(f' {_MENDS_NOT}', '')} {_MENDS}"


def _continuation(outcome: Outcome, facts: NoteFacts) -> str:
    if outcome.result is Result.POLICY_REFUSAL:
        return "**To go on**, see to what is asked for and merge the pull request on GitHub: no Run is needed."
    # Half a command could do anything.
    if len(facts.continue_command) > _COMMAND_CHARACTERS:
        return "**To continue**, give the command that was given again; it is too long to be shown here."
    typed = continued_by(outcome, facts.continue_command)
    command = fenced(visible(typed), "sh")
    whose = f" on {facts.host} (elsewhere change the paths)" if _ABSOLUTE.search(facts.continue_command) else ""
    first = "" if typed == facts.continue_command else f", and have {_code(outcome.base, _ROOMS[-1])} mended first,"
    return f"**To continue**{first} in a clone of this repository{whose}:\n\n{command}"


def _log(outcome: Outcome, facts: NoteFacts, room: _Room) -> str:
    if outcome.session_log is None:
        return ""
    end = tail(visible(facts.log_text[-2 * room.log :]), _LOG_LINES, room.log)
    where = f"The whole Session log is {_code(str(outcome.session_log), room)} on {facts.host}."
    return (
        f"<details><summary>The end of the Session log</summary>\n\n{fenced(end or '(empty)')}\n\n</details>\n\n{where}"
    )


def _code(text: str, room: _Room) -> str:
    return as_code(text, room.line)


def _cell(text: str, room: _Room) -> str:
    return _code(text, room).replace("|", "\\|")
