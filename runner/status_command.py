"""`nightkeep status`: how it stands with a repository's issues and runs."""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from delivery.errors import GitHubError
from runner.access import Access, with_access
from runner.pass_lock import is_going_on
from runner.picking import Picking, picking
from worktree.inventory import Listed, Standing, list_worktrees
from worktree.moments import written

if TYPE_CHECKING:  # they take a while to import
    from delivery.github import PullRequest
    from delivery.overview import Line, Overview, Traces
    from delivery.pickup import Survey
    from delivery.spec.graph import Graph

_EVERY = 10.0  # seconds between two looks on a terminal


def show_status(
    base: str | None, token_file: Path | None, held: Mapping[str, str], *, once: bool, as_json: bool
) -> int:
    """Show it, once or until a signal comes; return the exit status."""

    def work(access: Access) -> int:
        looking = picking(access, base, {})
        if as_json:
            _write(json.dumps(_as_document(_overview(looking)), indent=2))
        elif once or not sys.stdout.isatty():
            _write("\n".join(_as_text(_overview(looking))))
        else:
            _live(access, looking)
        return 0

    return with_access(work, held, token_file, online=True)


def _overview(looking: Picking) -> "Overview":
    """Look at GitHub, origin and this machine. Raises PreflightError, GitError and Interrupted."""
    from delivery.overview import Overview, lines_of
    from delivery.preflight import unanswered

    listed = list_worktrees(looking.access.launch.common)
    try:
        survey = looking.pickup.survey()
        graphs = _graphs(looking, survey)
        below = {one.number for graph in graphs.values() for one in graph.tickets if one.is_open}
        traces = _traces(looking, survey, listed, below | {*survey.queue.working})
    except GitHubError as error:
        raise unanswered(error) from error
    for number, graph in graphs.items():
        if graph.unseen:
            looking.access.say(f"#{number} has {graph.unseen} sub-issue(s) that the token may not see")
    return Overview.of(
        looking.place.repository,
        datetime.now(UTC),
        lines_of(survey, graphs, traces),
        [_here(one) for one in listed],
        is_pass_going_on=is_going_on(looking.place),
    )


def _graphs(looking: Picking, survey: "Survey") -> dict[int, "Graph"]:
    """Return the graphs of the issues that have sub-issues, or are worked on and may have some."""
    from delivery.spec.graph import Graph

    numbers = {issue.number for issue, _ in survey.verdicts if issue.tickets} | {*survey.queue.working}
    found = {}
    for number in sorted(numbers):
        tickets, unseen = looking.pickup.github.issues.tickets(number)
        unready, repository = looking.settings.labels.unready, looking.place.repository
        found[number] = Graph(repository=repository, tickets=tickets, unseen=unseen, unready=unready)
    return found


def _traces(looking: Picking, survey: "Survey", listed: list[Listed], numbers: Collection[int]) -> dict[int, "Traces"]:
    """Return what shows of the Runs on those issues: in their claims, on this machine, and on their pull requests."""
    from delivery.branches import issue_of
    from delivery.note import what_is_noted
    from delivery.overview import traces_of

    github, by_run = looking.pickup.github, {one.run_id: one for one in listed}
    here = {
        issue_of(one.branch): one
        for one in listed
        if one.branch and one.standing in (Standing.AT_WORK, Standing.ORPHANED)
    }
    pulls: dict[int | None, PullRequest] = {}
    for one in github.open_pull_requests() if numbers else []:
        pulls.setdefault(issue_of(one.branch), one)  # the newest comes first
    found = {}
    for number in numbers:
        claim, pull = survey.claims.get(number), pulls.get(number)
        record = getattr(claim, "record", None)
        run = by_run.get(record.run) if record else here.get(number)
        comments = github.issues.comments(pull.number) if pull else []
        own = [comment.body for comment in comments if comment.author == survey.queue.viewer]
        found[number] = traces_of(claim, run, pull, what_is_noted(pull.branch, own) if pull else None)
    return found


def _as_text(seen: "Overview", width: int = 0) -> list[str]:
    """Return the lines that a person reads, on a terminal of that width; 0 is for none."""
    lines = [f"{seen.repository}, {seen.moment:%Y-%m-%d %H:%M:%S} UTC"]
    if seen.is_pass_going_on:
        lines.append("a pass of pickup goes on here")
    lines += _listed(seen.issues, width)
    if seen.here:
        lines += ["", "On this machine:", *(f"  {line}" for line in seen.here)]
    return ["".join(char if char.isprintable() else " " for char in line) for line in lines]


def _as_document(seen: "Overview") -> dict[str, object]:
    """Return it as `--json` prints it."""
    return {
        "repository": seen.repository,
        "moment": written(seen.moment),
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


@dataclass(frozen=True, slots=True)
class _Row:
    """What is shown of one issue; `below` is how lines about it begin."""

    name: str
    state: str
    said: str
    below: str
    url: str | None

    @property
    def address(self) -> tuple[str, ...]:
        """The line with its pull request."""
        return (f"{self.below}  {self.url}",) if self.url else ()


def _listed(issues: Sequence["Line"], width: int) -> list[str]:
    """Return issues as a table; where that is too wide what is said of each goes on a line below it."""
    from runner.table import aligned

    rows = [row for line in issues for row in _rows(line, "", is_last=True, is_top=True)]
    if not rows:
        return ["nothing is labelled for an agent, or as being worked on"]
    whole = aligned([(row.name, row.state, row.said) for row in rows])
    if not width or max(map(len, whole)) <= width:
        return [line for row, said in zip(rows, whole, strict=True) for line in (said, *row.address)]
    heads = aligned([(row.name, row.state) for row in rows])
    said = [[f"{row.below}  {row.said}"] if row.said else [] for row in rows]
    return [line for row, head, more in zip(rows, heads, said, strict=True) for line in (head, *more, *row.address)]


def _rows(line: "Line", lead: str, *, is_last: bool, is_top: bool = False) -> list[_Row]:
    """Return the rows of an issue and, below it, of its sub-issues as a tree."""
    branch = "" if is_top else f"{lead}{'└─ ' if is_last else '├─ '}"
    below = "" if is_top else f"{lead}{'   ' if is_last else '│  '}"
    rows = [_Row(f"{branch}{line.name} {_cut(line.title)}", line.state.value, line.text, below, line.pull_request)]
    for place, part in enumerate(line.parts, start=1):
        rows += _rows(part, below, is_last=place == len(line.parts))
    return rows


def _cut(title: str) -> str:
    return title if len(title) <= 50 else f"{title[:49]}…"


def _here(one: Listed) -> str:
    name = one.branch or one.run_id
    if one.standing is Standing.ORPHANED:
        return f"{name} is left in {one.path}, its runner was killed; finish it: nightkeep recover"
    why = f": {one.retained.why}" if one.retained else ""
    return f"{name} is {one.standing} in {one.path}{why}"


def _live(access: Access, looking: Picking) -> None:
    """Show it anew again and again; a signal ends that."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    interruption = access.start.interruption
    console = Console()
    with Live(Text(f"looking at {looking.place.repository} …"), console=console, auto_refresh=False) as live:
        while not interruption.recorded:
            lines = [*_as_text(_overview(looking), console.width), "", "Ctrl-C ends it"]
            live.update(Text("\n".join(lines)), refresh=True)
            interruption.wait(_EVERY)


def _write(text: str) -> None:
    sys.stdout.buffer.write(f"{text}\n".encode(errors="replace"))
    sys.stdout.flush()
