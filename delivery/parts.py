"""What a Run, and the recovery of one, work with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from delivery.child_runs import ChildRuns
from delivery.github import GitHub
from delivery.issue_url import IssueUrl
from worktree import Interruption, Journal, Launch, Origin, Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a Run works with; `runner` wires it together.

    `base` is the Base branch asked for, None for the one that is checked out. `report` takes a line of progress.
    `continue_command` is what a person types to go on from a Failed run, redacted. `journal` is told of each step
    that changes something before it is taken. `logs` is the directory that logs go to, None where there are none.
    `child_runs` starts other Runs, None where nothing can.
    """

    url: IssueUrl
    base: str | None
    github: GitHub
    launch: Launch
    origin: Origin
    interruption: Interruption
    report: Callable[[str], None]
    redact: Redactor
    host: str
    continue_command: str
    journal: Journal = field(default_factory=Journal)
    logs: Path | None = None
    child_runs: ChildRuns | None = None
