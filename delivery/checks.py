"""What the checks of a commit come to, decided from what GitHub lists."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from delivery.github import Check, CheckState
from worktree.naming import some

# Seconds after which it is said once more what is waited for; then each time after as many as the last.
_REMINDERS = (60.0, 300.0, 600.0)
_LONGEST_POLL = 60.0  # seconds
_PATIENCE = 0.1  # of the time waited so far: how long the next wait is


class Required(StrEnum):
    """Whether a pull request without a single check may count as green.

    AUTO: yes, but where a workflow, or a rule of the Base branch, lets one be expected a Merge run does not merge.
    """

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Absence(StrEnum):
    """Why a commit has no check at all; the value says it to a person."""

    NOT_CONFIGURED = "nothing is configured that would check it"
    FILTERED = "every workflow's filters leave it out"
    NOT_STARTED = "a check was to be expected, but none has started"
    UNREADABLE = "the token may not read checks"
    CANNOT_START = "what the built-in token of a workflow pushes starts no workflows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checks of one commit came to.

    `own` failed on the branch, `inherited` on the Base commit that it holds as well. `absence` is there when nothing
    checks it. `pending` are the names of those that did not finish in time, `vanished` of those that were listed and
    then no more, `missing` of those that a rule of the Base branch asks for and that did not appear.
    """

    own: tuple[Check, ...] = ()
    inherited: tuple[Check, ...] = ()
    absence: Absence | None = None
    pending: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def is_green(self) -> bool:
        """Whether nothing failed, as far as something was there to fail; what is `missing` was not."""
        return not (self.own or self.inherited or self.pending or self.vanished)


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long checks are waited for, in seconds: for the first to appear, and for the last to finish.

    `poll` is the time between two looks at first; it grows as the wait does.
    """

    grace: float = 60
    limit: float = 3600
    poll: float = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is to check a commit. `required` are the checks that a rule of the Base branch asks for.

    `runs` says how many runs of workflows should begin, `is_filtered` that there are workflows whose filters leave the
    commit out, `can_start` whether what was pushed starts any.
    """

    required: frozenset[str] = frozenset()
    runs: int = 0
    is_filtered: bool = False
    can_start: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a look at a commit showed, `waited` seconds after the first one.

    `before` are the names that earlier looks showed. For `quiet` seconds nothing that is listed has changed.
    """

    checks: Sequence[Check]
    before: Collection[str] = ()
    waited: float = 0.0
    quiet: float = 0.0

    @property
    def gone(self) -> tuple[str, ...]:
        """What is listed no more."""
        return tuple(sorted(set(self.before) - {check.name for check in self.checks}))

    def lacks(self, expected: Expected) -> tuple[str, ...]:
        """Return the required checks that are not there, and can be."""
        names = {check.name for check in self.checks}
        return tuple(sorted(expected.required - names)) if expected.can_start else ()

    def has_runs_to_come(self, expected: Expected) -> bool:
        """Whether checks are listed, but of fewer runs of workflows than should begin."""
        runs = {check.run for check in self.checks if check.run is not None}
        return bool(self.checks) and expected.can_start and len(runs) < expected.runs


@dataclass(frozen=True, slots=True)
class Awaited:
    """What is waited for, in words and by names, "" for none, and for how many seconds more at most."""

    what: str
    names: str
    seconds: float


def why_absent(expected: Expected, *, others_check: bool) -> Absence:
    """Decide why a commit may be without checks; `others_check` says that others than Actions check the Base commit."""
    if others_check:
        return Absence.NOT_STARTED
    if expected.runs or expected.required:
        return Absence.NOT_STARTED if expected.can_start else Absence.CANNOT_START
    return Absence.FILTERED if expected.is_filtered else Absence.NOT_CONFIGURED


def judge_checks(
    listing: Listing, *, expected: Expected, absence: Absence, patience: Patience, merges: bool
) -> Verdict | Wait:
    """Decide whether to look again, or what the checks of a commit came to; `absence` is why there may be none.

    All that failed is called the branch's own. What is required and has not appeared, or was listed and is no more, is
    waited for until nothing has changed for the grace: a job may begin only after others. The grace after the first
    look is for workflows that have shown nothing yet, and for a first check; where none is to be expected only a Merge
    run (`merges`) waits for that, and where none can come nobody does.
    """
    pending = tuple(check.name for check in listing.checks if check.state is CheckState.PENDING)
    if pending and listing.waited < patience.limit:
        return _next_look(listing.waited, patience)
    own, gone, missing = failed_of(listing.checks), listing.gone, listing.lacks(expected)
    if pending or own:
        return Verdict(own=own, pending=pending)
    first = not listing.checks and (absence is Absence.NOT_STARTED or (merges and absence is not Absence.CANNOT_START))
    waits = gone or missing or first or listing.has_runs_to_come(expected)
    left = patience.grace - (listing.quiet if gone or missing else listing.waited)
    if waits and left > 0:
        return Wait(min(patience.poll, left))
    if gone:
        return Verdict(vanished=gone)
    return Verdict(absence=None if listing.checks else absence, missing=missing)


def waited_for(listing: Listing, expected: Expected, patience: Patience) -> Awaited:
    """Say what it is that another look is to show, after one that did not."""
    pending = [check for check in listing.checks if check.state is CheckState.PENDING]
    if pending:
        count = "1 check" if len(pending) == 1 else f"{len(pending)} checks"
        return Awaited(count, names_of(pending, addressed=True), patience.limit - listing.waited)
    if listing.gone:
        return Awaited("checks to be listed again", some(listing.gone), patience.grace - listing.quiet)
    if lacking := listing.lacks(expected):
        return Awaited("required checks to start", some(lacking), patience.grace - listing.quiet)
    what = "checks of other workflows to start" if listing.checks else "checks to start"
    return Awaited(what, "", patience.grace - listing.waited)


def reminders(waited: float) -> int:
    """Return how often what is waited for was to be said again by now."""
    *few, last = _REMINDERS
    return sum(waited >= at for at in few) + int(waited // last)


def failed_of(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return those that failed."""
    return tuple(check for check in checks if check.state is CheckState.FAILED)


def without_inherited(
    verdict: Verdict, on_base: Sequence[Check], *, waited: float, patience: Patience
) -> Verdict | Wait:
    """Tell the branch's own failures from those that the Base commit has as well.

    One is inherited when the Base commit has checks of its name and every one of them failed there. While one still
    runs there that may decide it, that is waited for as long as checks are, and the branch is not blamed before.
    """
    there = {check.name: {other.state for other in on_base if other.name == check.name} for check in verdict.own}
    undecided = any(CheckState.PENDING in states and CheckState.PASSED not in states for states in there.values())
    if undecided and waited < patience.limit:
        return _next_look(waited, patience)
    inherited = tuple(check for check in verdict.own if there[check.name] == {CheckState.FAILED})
    own = tuple(check for check in verdict.own if check not in inherited)
    return Verdict(own=own, inherited=inherited, pending=verdict.pending)


def _next_look(waited: float, patience: Patience) -> Wait:
    """Wait the longer, the longer it took so far."""
    longest = min(_LONGEST_POLL, patience.limit - waited)
    return Wait(min(max(patience.poll, waited * _PATIENCE), longest))


def runs_to_repeat(own: Sequence[Check]) -> tuple[int, ...]:
    """Return the workflow runs to ask for a Check re-run; none when a failure is no job of GitHub Actions."""
    runs = [check.run for check in own]
    return tuple(dict.fromkeys(run for run in runs if run is not None)) if None not in runs else ()


def is_new_attempt(checks: Sequence[Check], old: Sequence[Check], runs: Sequence[int]) -> bool:
    """Whether GitHub lists the new attempts of `runs`: something, and none of the `old` check runs of theirs."""
    past = {check.id for check in old if check.run in runs}
    return bool(checks) and not any(check.id in past for check in checks)


def names_of(checks: Sequence[Check], *, addressed: bool = False) -> str:
    """Name checks in a sentence, the first few, and say which timed out; with `addressed` also where they are."""
    return some([*dict.fromkeys(_name_of(check, addressed=addressed) for check in checks)])


def _name_of(check: Check, *, addressed: bool) -> str:
    name = f"{check.name} (timed out)" if check.timed_out else check.name
    return f"{name} ({check.url})" if addressed and check.url else name
