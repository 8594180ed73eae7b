"""What a Base fix is, and what to do about the one that is wanted, decided from what origin and GitHub show.

Checks that fail on the Base branch, too, cannot be mended on an Issue branch. One Run on an issue of its own mends them
there, for all that wait for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from delivery.github import Check, Issue
from delivery.lease import Dead, Doubtful, Lease, Live
from delivery.text import one_line, visible

BASE_FIX = "base-fix"  # the label of such an issue
_REFS = "refs/nightkeep/base-fixes/"
_TITLE_LIMIT = 250
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """Checks that fail on the Base branch at `commit`; `found_by` is the pull request that shows it."""

    base: str
    commit: str
    checks: tuple[Check, ...]
    found_by: str

    @property
    def ref(self) -> str:
        """The ref on origin that only one Base fix of the branch has at a time."""
        return f"{_REFS}{self.base}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the checks, each once."""
        return tuple(dict.fromkeys(_name(check.name) for check in self.checks))

    @property
    def title(self) -> str:
        """The title of the issue."""
        return one_line(f"CI red on {self.base}: {', '.join(self.names)}", _TITLE_LIMIT)

    @property
    def body(self) -> str:
        """The text of the issue."""
        rows = [f"- {_name(check.name)}{f': {_name(check.url)}' if check.url else ''}" for check in self.checks]
        return (
            f"{self.marker}\n"
            f"These checks fail on `{self.base}` at {self.commit}, so that no pull request into it can be green:\n\n"
            f"{chr(10).join(rows)}\n\n"
            f"Mend on `{self.base}` what makes them fail. Do not switch a check off, or make it weaker.\n\n"
            f"Found by {self.found_by}, which waits for this.\n"
        )

    @property
    def marker(self) -> str:
        """Hidden text that no other issue has."""
        return f"<!-- nightkeep:base-fix {self.base} {self.commit} -->"

    def oldest_of(self, titles: Mapping[int, str]) -> int | None:
        """Return the oldest of these issues, by their numbers, that is about it."""
        return min((number for number, title in titles.items() if self.is_named_by(title)), default=None)

    def is_named_by(self, title: str) -> bool:
        """Whether an issue of that title is about all of these checks, and perhaps others."""
        start = f"CI red on {self.base}: "
        return title == self.title or (
            title.startswith(start) and {*self.names} <= {*title.removeprefix(start).split(", ")}
        )


class BaseFixRecord(Lease):
    """What the run that has the ref says there: also the issue's number, None while that is looked for."""

    issue: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a Base fix. `commit` is where origin has the ref, None where there is none, and `record` what it
    says, None when that is none of ours. `issue` is the one that was waited for, or that the record names, and
    `is_open` whether it is. `now` is the server's time.
    """

    commit: str | None
    record: BaseFixRecord | None
    issue: int | None
    is_open: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class Begin:
    """Make the Base fix: take the ref, in place of the commit `replaces` ("" for none)."""

    replaces: str


@dataclass(frozen=True, slots=True)
class Await:
    """Another run is making it; look again later."""

    record: BaseFixRecord


@dataclass(frozen=True, slots=True)
class Closed:
    """It has ended: its issue is closed."""

    issue: int


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """It has ended, and left its issue open."""

    issue: int


@dataclass(frozen=True, slots=True)
class Obstructed:
    """The ref is there, and nobody can tell whether a run that lives has it, for `why`."""

    why: str


Choice = Begin | Await | Closed | LeftOpen | Obstructed


def choose(seen: Seen) -> Choice:
    """Decide what to do about the Base fix of a branch."""
    if seen.issue is not None and not seen.is_open:
        return Closed(seen.issue)
    if seen.commit is None:
        return Begin("") if seen.issue is None else LeftOpen(seen.issue)
    if seen.record is None:
        return Obstructed("what it says is not what this version of Nightkeep writes")
    match seen.record.judge(seen.now):
        case Live():
            return Await(seen.record)
        case Dead():
            return Begin(seen.commit)
        case Doubtful(why):
            return Obstructed(why)


def is_base_fix(issue: Issue) -> bool:
    """Whether an issue is there to mend the Base branch."""
    return BASE_FIX in {label.lower() for label in issue.labels}


def _name(text: str) -> str:
    return one_line(" ".join(visible(text).split()), _LONGEST_NAME)
