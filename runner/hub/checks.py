"""What a scripted continuous integration does with a pushed commit.

    hub.ci.add("acme/widget", Check("test", command="test ! -e broken"))
    hub.ci.add("acme/widget", Check("lint", conclusions=("failure", "success"), branches="issue-*"))
    hub.ci.add("acme/widget", Check("deploy", source=Source.STATUS, concludes=Wait(polls=3)))

The first looks at the pushed files; the second fails once and succeeds when it is run again; the third is a commit
status that is pending in the first three lists that a client gets.
"""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

PASSING = frozenset({"success", "neutral", "skipped"})
CONCLUSIONS = PASSING | {"failure", "cancelled", "timed_out", "action_required", "stale"}


class Source(StrEnum):
    """Where a check comes from: a job of GitHub Actions, another application, or somebody who reports a status."""

    ACTIONS = "actions"
    APP = "app"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Wait:
    """How long something takes, counted from the push or from the request to run again: both must have passed.

    `polls` are lists of a commit's check runs (of its statuses, for a status) that a client gets before; `seconds` are
    counted from the push over HTTP, or from the first request for a check or a pull request after git put it there.
    """

    polls: int = 0
    seconds: float = 0.0

    def is_over(self, polls: int, seconds: float) -> bool:
        """Tell whether it is over in the list number `polls`, and `seconds` after the start."""
        # Who does not poll sees what the last list showed, or what the first one would.
        return max(polls, 1) > self.polls and seconds >= self.seconds


NEVER = Wait(polls=10**9)


@dataclass(frozen=True, slots=True)
class Check:
    """One check of every commit that is the head of a branch like the pattern `branches`.

    `conclusions` are those of its attempts, the last one for all that follow; None stays pending. With a `command`,
    what `sh -c` ends with in a directory of the pushed files decides instead: 0 is success, anything else failure, and
    more than `limit` seconds are a time-out.
    `paths` are patterns of which a changed file must match one, or the check never appears. `workflow` is the file of
    `Source.ACTIONS`: its checks are jobs of one run. `log` is what the job writes; a command's output takes its place.
    """

    name: str
    conclusions: tuple[str | None, ...] = ("success",)
    command: str | None = None
    limit: float = 60.0
    branches: str = "*"
    source: Source = Source.ACTIONS
    appears: Wait = Wait()
    concludes: Wait = Wait()
    vanishes: Wait = NEVER
    workflow: str = ".github/workflows/ci.yml"
    paths: tuple[str, ...] = ()
    log: str = ""

    def __post_init__(self) -> None:
        unknown = {one for one in self.conclusions if one is not None} - CONCLUSIONS
        if unknown or not self.conclusions:
            raise ValueError(f"{self.conclusions} are no conclusions: use {', '.join(sorted(CONCLUSIONS))} or None")

    def conclusion(self, attempt: int) -> str | None:
        """Return what the attempt, counted from one, ends with when no command decides; None for never."""
        return self.conclusions[min(attempt, len(self.conclusions)) - 1]

    def is_for(self, branch: str, changed: list[str]) -> bool:
        """Tell whether it checks a commit of `branch` that changes these files."""
        touched = not self.paths or any(fnmatchcase(file, pattern) for file in changed for pattern in self.paths)
        return touched and fnmatchcase(branch, self.branches)


class Stage(StrEnum):
    """What a client is to see of an attempt."""

    UNSEEN = "unseen"
    PENDING = "pending"
    DUE = "due"
    GONE = "gone"


def stage(check: Check, polls: int, seconds: float) -> Stage:
    """Return how far an attempt is in the list number `polls` since its start, `seconds` after it."""
    if not check.appears.is_over(polls, seconds):
        return Stage.UNSEEN
    if check.vanishes.is_over(polls, seconds):
        return Stage.GONE
    return Stage.DUE if check.concludes.is_over(polls, seconds) else Stage.PENDING


def overall(conclusions: list[str | None]) -> tuple[str, str | None]:
    """Return status and conclusion of a run whose jobs have these; there must be one at least."""
    if None in conclusions:
        return "in_progress", None
    worst_first = ("failure", "timed_out", "cancelled", "action_required", "stale", "success", "neutral", "skipped")
    return "completed", next(one for one in worst_first if one in conclusions)
