"""What `nightkeep run` was asked for."""

import os
import shlex
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from delivery.child_runs import ConfiguredBy
from delivery.github import Issue
from delivery.issue_url import IssueUrl
from delivery.pickup import Chosen, NotReadyError
from runner.program import is_relative_path, split_command


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundIssue:
    """An issue as it was when found ready, let at `let_at`; `ready_label` is the one that it had, if it had it."""

    title: str
    body: str
    ready_label: str | None
    let_at: datetime

    @classmethod
    def of(cls, chosen: Chosen, ready_label: str | None) -> "FoundIssue":
        """Return how an issue was when it was chosen."""
        return cls(title=chosen.issue.title, body=chosen.issue.body, ready_label=ready_label, let_at=chosen.let_at)

    def check(self, issue: Issue) -> None:
        """Raise NotReadyError for an issue that has been taken or changed since."""
        if self.ready_label and self.ready_label.lower() not in {label.lower() for label in issue.labels}:
            raise NotReadyError(f"#{issue.number} is not labelled {self.ready_label} any more: somebody has taken it")
        if (issue.title, issue.body) != (self.title, self.body):
            raise NotReadyError(f"#{issue.number} was changed just now; the next pass looks at it again")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user asked for, as typed; None for what was left out. `found` is the issue that pickup has found.

    `is_child` when another Run has started this command: it relays what is said, tells the workflow, has recovered
    what was to be recovered, and this one ends with it. `ticket_of` is the number of the Spec that the issue is a
    Ticket of; the configuration that holds is `configured_by`'s, the Base branch's where that is None.
    """

    issue_url: str
    agent: str | None
    base: str | None
    token_file: Path | None
    as_json: bool
    merge: bool | None = None
    base_fix: bool | None = None
    parallel: int | None = None
    is_child: bool = False
    ticket_of: int | None = None
    configured_by: ConfiguredBy | None = None
    found: FoundIssue | None = None
    checks_starter: bool = False

    def settings(self) -> dict[str, object]:
        """Return what was given as settings, by their names."""
        return {
            "agent": self.agent,
            "token-file": self.token_file,
            "merge": self.merge,
            "base-fix": self.base_fix,
            "spec.parallel": self.parallel,
        }

    def continue_command(self, url: IssueUrl, directory: Path) -> str:
        """Return what to type in any clone: a path that was given from `directory` is made absolute."""
        own = self._arguments(_absolute(self.token_file, directory), directory)
        base = [] if self.base is None else ["--base", self.base]
        merge = [] if self.merge is None else ["--merge" if self.merge else "--no-merge"]
        parallel = [] if self.parallel is None else ["--parallel", str(self.parallel)]
        return shlex.join(["nightkeep", "run", str(url), *own, *base, *merge, *parallel])

    def child_arguments(self, directory: Path) -> list[str]:
        """Return what other Runs of this clone are started with: the same from anywhere."""
        configured = [] if self.configured_by is None else ["--configured-by", str(self.configured_by)]
        return [*self._arguments(_absolute(self.lasting_token_file, directory), directory), *configured]

    @property
    def lasting_token_file(self) -> Path | None:
        """The token file; None for one that can be read only once, as a shell's <(…) is."""
        return self.token_file if self.token_file is not None and self.token_file.is_file() else None

    def _arguments(self, token_file: str | None, directory: Path) -> list[str]:
        agent = None if self.agent is None else _from_anywhere(self.agent, directory)
        given = (("--agent", agent), ("--token-file", token_file))
        mends = [] if self.base_fix is None else ["--base-fix" if self.base_fix else "--no-base-fix"]
        return [*(word for name, value in given if value is not None for word in (name, value)), *mends]


def _absolute(path: Path | None, directory: Path) -> str | None:
    return None if path is None else os.path.normpath(directory / path)


def _from_anywhere(agent: str, directory: Path) -> str:
    program, *arguments = split_command("agent", agent)
    if not is_relative_path(program):
        return agent
    return shlex.join([os.path.normpath(directory / program), *arguments])
