"""How a Run ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from signal import Signals

from delivery.causes import Code, Stage
from delivery.github import PullRequest
from worktree import Preserved


class Result(StrEnum):
    """What became of a Run."""

    DELIVERED = "delivered"
    FAILED = "failed"
    POLICY_REFUSAL = "policy-refusal"
    BUG = "bug"


class Pending(StrEnum):
    """What GitHub was not there for: to turn a pull request into a draft; or, where there is none, to OPEN a draft."""

    CONVERT = "convert"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A Run that has ended.

    `cause`, its `code` and `stage` are None after a delivery. `secondary` is later trouble, which never takes the
    cause's place. `places` says where what was made is, as (what, where), for people; `refs` are the refs of origin
    that hold it, with their commits, the latest last. `retained` says why the worktree at `worktree` is kept, None when
    it is not. `rescued` is where the files are that nothing else held, None when there were none. `note` is the Failure
    note, empty after a delivery. `merged` says that the pull request was merged. `pending` is what could not be done
    about the pull request and can be later; `untold` is the file that keeps that, and a note that could not be written,
    for then. `interruption` is the signal that ended it.
    `overtaken` says that the Run had lost its claim when it ended. `failing` are the checks that failed, by name and
    address. `continue_command` is what a person types to go on, empty where no Run is needed or nobody was asked.
    `continued` says that the Run went on from what earlier ones had made.
    """

    result: Result
    issue_url: str
    base: str
    branch: str
    preserved: Preserved
    run_id: str | None = None
    pull_request: PullRequest | None = None
    merged: bool = False
    cause: str | None = None
    code: Code | None = None
    stage: Stage | None = None
    secondary: tuple[str, ...] = ()
    failing: tuple[tuple[str, str], ...] = ()
    session_log: Path | None = None
    places: tuple[tuple[str, str], ...] = ()
    refs: Mapping[str, str] = field(default_factory=dict)
    retained: str | None = None
    worktree: Path | None = None
    rescued: Path | None = None
    note: str = ""
    pending: Pending | None = None
    untold: Path | None = None
    interruption: Signals | None = None
    overtaken: bool = False
    continue_command: str = ""
    continued: bool = False

    @property
    def left_nothing(self) -> bool:
        """Whether there is nothing to go on from: the Run made nothing, and none before it did."""
        made = self.preserved is not Preserved.NOTHING_MADE or self.result is Result.DELIVERED
        return not (made or self.continued)
