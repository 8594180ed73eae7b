"""What a Base fix is, and what to do about the one that is wanted, decided from what origin and GitHub show.

Checks that fail on the Base branch, too, cannot be mended on an Issue branch. One Run on an issue of its own mends them
there, for all that wait for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from delivery.github import Check, Issue, QueuedIssue
from delivery.labelling import Labelling, changes_since, labelling
from delivery.lease import Dead, Doubtful, Lease, Live
from delivery.ready_facts import who, why_not
from delivery.text import as_name, one_line

BASE_FIX = "base-fix"  # the label of such an issue
_REFS = "refs/nightkeep/base-fixes/"
_TITLE_LIMIT = 250


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
        return tuple(dict.fromkeys(as_name(check.name) for check in self.checks))

    @property
    def title(self) -> str:
        """The title of the issue."""
        return one_line(f"CI red on {self.base}: {', '.join(self.names)}", _TITLE_LIMIT)

    @property
    def body(self) -> str:
        """The text of the issue."""
        rows = [f"- {as_name(check.name)}{f': {as_name(check.url)}' if check.url else ''}" for check in self.checks]
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

    def named_by(self, titles: Mapping[int, str]) -> Sequence[int]:
        """Return which of these issues, by their numbers, are about it, the oldest first."""
        return sorted(number for number, title in titles.items() if self.is_named_by(title))

    def is_named_by(self, title: str) -> bool:
        """Whether an issue of that title is about all of these checks, and perhaps others."""
        start = f"CI red on {self.base}: "
        # A name may have a comma itself, as those of a matrix do.
        told = f", {title.removeprefix(start)}, "
        return title == self.title or (title.startswith(start) and all(f", {name}, " in told for name in self.names))


class BaseFixRecord(Lease):
    """What the run that has the ref says there: also the issue's number, None while that is looked for."""

    issue: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBaseFix:
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


def choose(seen: SeenBaseFix) -> Choice:
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


def whose_word(issue: QueuedIssue, viewer: str, may_start: Callable[[str], bool]) -> str | None:
    """Say why nobody whose word counts wants the Run that mends the Base branch; None when somebody does.

    The word is that of Nightkeep's own account, whose token runs us (`viewer`), which has filed the issue, else of who
    has labelled it; and what was changed since must be by such people, too.
    """
    own = issue.author == viewer
    word = Labelling(viewer, issue.created_at) if own else labelling(issue.deeds, BASE_FIX, viewer)
    if word is None:
        return f"shows nobody who labelled it {BASE_FIX}"

    def may(login: str) -> bool:
        return login == viewer or may_start(login)

    if not may(word.actor):
        return f"was labelled {BASE_FIX} by {who(word.actor)}, {why_not(word.actor)}"
    changed = next((deed for deed in changes_since(word, issue) if not may(deed.actor)), None)
    return (
        None
        if changed is None
        else f"had its {changed.what.part} changed by {who(changed.actor)}, {why_not(changed.actor)}"
    )
