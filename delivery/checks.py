"""What the checks of a commit come to, decided from what GitHub lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from delivery.github import Check, CheckState
from worktree.naming import some

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
    checks it. `pending` are the names of those that did not finish in time. `vanished` says that there were some, and
    then none.
    """

    own: tuple[Check, ...] = ()
    inherited: tuple[Check, ...] = ()
    absence: Absence | None = None
    pending: tuple[str, ...] = ()
    vanished: bool = False

    @property
    def is_green(self) -> bool:
        """Whether nothing failed, as far as something was there to fail."""
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


def why_absent(
    *, applies: bool, is_filtered: bool, is_required: bool, others_check: bool, is_workflow_token: bool
) -> Absence:
    """Decide why a commit may be without checks.

    `applies` says whether a workflow of it should run, `is_filtered` that there are some whose filters leave it out,
    `is_required` whether a rule of the Base branch asks for a check, `others_check` whether somebody else than GitHub
    Actions has checked the Base commit.
    """
    if others_check:
        return Absence.NOT_STARTED
    if applies or is_required:
        return Absence.CANNOT_START if is_workflow_token else Absence.NOT_STARTED
    return Absence.FILTERED if is_filtered else Absence.NOT_CONFIGURED


def judge_checks(
    checks: Sequence[Check],
    *,
    waited: float,
    seen_before: bool,
    absence: Absence,
    patience: Patience,
    merges: bool,
) -> Verdict | Wait:
    """Decide whether to look again, `waited` seconds after the first look at a commit, or what its checks came to.

    `seen_before` says whether an earlier look showed any, `absence` why there may be none. All that failed is called
    the branch's own. Where none is to be expected only a Merge run (`merges`) waits for the first, and where none
    can come nobody does.
    """
    if not checks and seen_before:
        return Verdict(vanished=True)
    if not checks:
        waits = absence is Absence.NOT_STARTED or (merges and absence is not Absence.CANNOT_START)
        left = patience.grace - waited
        return Wait(min(patience.poll, left)) if waits and left > 0 else Verdict(absence=absence)
    pending = tuple(check.name for check in checks if check.state is CheckState.PENDING)
    if pending and waited < patience.limit:
        longest = min(_LONGEST_POLL, patience.limit - waited)
        return Wait(min(max(patience.poll, waited * _PATIENCE), longest))
    return Verdict(own=failed_of(checks), pending=pending)


def failed_of(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return those that failed."""
    return tuple(check for check in checks if check.state is CheckState.FAILED)


def without_inherited(verdict: Verdict, on_base: Sequence[Check]) -> Verdict:
    """Tell the branch's own failures from those that the Base commit has as well.

    One is inherited when the Base commit has checks of its name and every one of them failed there.
    """
    there = {check.name: [other.state for other in on_base if other.name == check.name] for check in verdict.own}
    inherited = tuple(check for check in verdict.own if there[check.name] and _all_failed(there[check.name]))
    own = tuple(check for check in verdict.own if check not in inherited)
    return Verdict(own=own, inherited=inherited, pending=verdict.pending)


def _all_failed(states: Sequence[CheckState]) -> bool:
    return all(state is CheckState.FAILED for state in states)


def runs_to_repeat(own: Sequence[Check]) -> tuple[int, ...]:
    """Return the workflow runs to ask for a Check re-run; none when a failure is no job of GitHub Actions."""
    runs = [check.run for check in own]
    return tuple(dict.fromkeys(run for run in runs if run is not None)) if None not in runs else ()


def is_new_attempt(checks: Sequence[Check], old: Sequence[Check], runs: Sequence[int]) -> bool:
    """Whether GitHub lists the new attempts of `runs`: something, and none of the `old` check runs of theirs."""
    past = {check.id for check in old if check.run in runs}
    return bool(checks) and not any(check.id in past for check in checks)


def names_of(checks: Sequence[Check]) -> str:
    """Name checks in a sentence, the first few of them, and say which timed out."""
    names = dict.fromkeys(f"{check.name} (timed out)" if check.timed_out else check.name for check in checks)
    return some([*names])
