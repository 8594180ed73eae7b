"""`nightkeep status`: how it stands with a repository's issues and runs."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from delivery.errors import GitHubError
from runner.access import Access, with_access
from runner.pass_lock import is_going_on
from runner.picking import Picking, picking
from worktree.inventory import Listed, Standing, list_worktrees

if TYPE_CHECKING:  # they take a while to import
    from delivery.overview import Line, Overview

_EVERY = 10.0  # seconds between two looks on a terminal


def show_status(
    base: str | None, token_file: Path | None, held: Mapping[str, str], *, once: bool, as_json: bool
) -> int:
    """Show it, once or until a signal comes; return the exit status."""

    def work(access: Access) -> int:
        looking = picking(access, base, {})
        if as_json:
            _write(json.dumps(as_document(overview(looking)), indent=2))
        elif once or not sys.stdout.isatty():
            _write("\n".join(as_text(overview(looking))))
        else:
            _live(access, looking)
        return 0

    return with_access(work, held, token_file, online=True)


def overview(looking: Picking) -> "Overview":
    """Look at GitHub, origin and this machine. Raises PreflightError, GitError and Interrupted."""
    from delivery.claims import Expired
    from delivery.overview import Line, Overview, Working, line_of_ready, line_of_working, lines_of_tickets
    from delivery.pickup import holder_of
    from delivery.preflight import unanswered
    from delivery.spec.graph import Graph

    access, github = looking.access, looking.pickup.github
    listed = list_worktrees(access.launch.common)
    at_work = _at_work(listed)
    try:
        survey = looking.pickup.survey()
        queue = survey.queue
        claimed = {number: holder for number, claim in survey.claims.items() if (holder := holder_of(claim))}
        vanished = {
            number: f"run {claim.record.run} on {claim.record.host}"
            for number, claim in survey.claims.items()
            if isinstance(claim, Expired)
        }
        alive = claimed | at_work
        pulls = github.open_pull_requests() if queue.working else []

        def parts(number: int) -> tuple[Line, ...]:
            tickets, unseen = github.issues.tickets(number)
            more = "that the token may not see"
            hidden = [f"{unseen} sub-issue(s) {more}"] if unseen else []
            for line in hidden:
                access.say(f"#{number} has {line}")
            unready = looking.settings.labels.unready
            graph = Graph(repository=looking.place.repository, tickets=tickets, unseen=unseen, unready=unready)
            return lines_of_tickets(graph, alive)

        lines = [
            line_of_ready(issue, against, parts(issue.number) if issue.tickets else ())
            for issue, against in survey.verdicts
        ]
        working = [
            Working(number=number, title=title, holder=(vanished | alive).get(number), alive=number in alive)
            for number, title in queue.working.items()
        ]
        lines += [line_of_working(one, pulls, parts(one.number)) for one in working]
    except GitHubError as error:
        raise unanswered(error) from error
    return Overview.of(
        looking.place.repository,
        datetime.now(UTC),
        lines,
        [_here(one) for one in listed],
        is_pass_going_on=is_going_on(looking.place),
    )


def as_text(seen: "Overview") -> list[str]:
    """Return the lines that a person reads."""
    from runner.table import aligned

    lines = [f"{seen.repository}, {seen.moment:%Y-%m-%d %H:%M:%S} UTC"]
    if seen.is_pass_going_on:
        lines.append("a pass of pickup goes on here")
    rows = [row for line in seen.issues for row in _rows(line, "", is_last=True, is_top=True)]
    lines += aligned(rows) if rows else ["nothing is labelled for an agent, or as being worked on"]
    if seen.here:
        lines += ["", "On this machine:", *(f"  {line}" for line in seen.here)]
    return ["".join(char if char.isprintable() else " " for char in line) for line in lines]


def as_document(seen: "Overview") -> dict[str, object]:
    """Return it as `--json` prints it."""
    return {
        "repository": seen.repository,
        "moment": f"{seen.moment:%Y-%m-%dT%H:%M:%SZ}",
        "pass": seen.is_pass_going_on,
        "issues": [_line_as_document(line) for line in seen.issues],
        "here": list(seen.here),
    }


def _line_as_document(line: "Line") -> dict[str, object]:
    return {
        "state": line.state,
        "issue": line.name,
        "title": line.title,
        "text": line.text,
        "pull_request": line.pull_request,
        "parts": [_line_as_document(part) for part in line.parts],
    }


def _rows(line: "Line", lead: str, *, is_last: bool, is_top: bool = False) -> list[tuple[str, str, str]]:
    """Return the rows of an issue and, below it, of its sub-issues as a tree."""
    branch = "" if is_top else f"{lead}{'└─ ' if is_last else '├─ '}"
    below = "" if is_top else f"{lead}{'   ' if is_last else '│  '}"
    said = f"{line.text}{f': {line.pull_request}' if line.pull_request else ''}"
    rows = [(f"{branch}{line.name} {_cut(line.title)}", line.state.value, said)]
    for place, part in enumerate(line.parts, start=1):
        rows += _rows(part, below, is_last=place == len(line.parts))
    return rows


def _cut(title: str) -> str:
    return title if len(title) <= 50 else f"{title[:49]}…"


def _at_work(listed: list[Listed]) -> dict[int, str]:
    """Return which issues runs of this clone work on, and who."""
    from delivery.branches import issue_of

    alive = [one for one in listed if one.standing is Standing.AT_WORK and one.branch]
    return {
        number: f"run {one.run_id} on this machine, process {one.pid}"
        for one in alive
        if (number := issue_of(one.branch or "")) is not None
    }


def _here(one: Listed) -> str:
    why = f": {one.retained.why}" if one.retained else ""
    return f"{one.branch or one.run_id} is {one.standing} in {one.path}{why}"


def _live(access: Access, looking: Picking) -> None:
    """Show it anew again and again; a signal ends that."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    interruption = access.start.interruption
    with Live(console=Console(), screen=False, auto_refresh=False) as live:
        while not interruption.recorded:
            live.update(Text("\n".join(as_text(overview(looking)))), refresh=True)
            interruption.wait(_EVERY)


def _write(text: str) -> None:
    sys.stdout.buffer.write(f"{text}\n".encode(errors="replace"))
    sys.stdout.flush()
