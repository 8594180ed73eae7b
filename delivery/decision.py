"""The next step of a Repair loop, decided from what is known.

The loop brings a branch to its goal: a pull request that is open, ready, mergeable and green at the commit whose checks
were watched, or merged at exactly that commit. Origin may move, checks may fail and agents may give up at any moment;
what bounds it is the number of Repairs, and how often its upstreams (Base branch, others' commits) may move.
"""

from dataclasses import dataclass

from delivery.causes import Code
from delivery.checks import Absence, Required, Verdict, names_of
from delivery.github import Check, PullRequest
from delivery.loop_facts import Facts, Kind, Spent


@dataclass(frozen=True, slots=True)
class LookAtOrigin:
    """Look where origin has the Base branch, and in a Merge run the Issue branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeUpstream:
    """Merge a commit of the Base branch, or others' commits on the Issue branch (`foreign`)."""

    commit: str
    spent: Spent
    foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Have a follow-up session mend something, for the reason in `cause`."""

    kind: Kind
    cause: str
    spent: Spent


@dataclass(frozen=True, slots=True)
class Verify:
    """Run the verify command on the head."""


@dataclass(frozen=True, slots=True)
class Push:
    """Push the head."""


@dataclass(frozen=True, slots=True)
class MakeReady:
    """Open the pull request where there is none, and make it ready."""


@dataclass(frozen=True, slots=True)
class AwaitChecks:
    """Wait for the checks of the head; with `repeat` ask for those that failed to run again first."""

    repeat: bool = False


@dataclass(frozen=True, slots=True)
class BaseFix:
    """Have the Base branch mended, at `base_commit`: `checks` fail there, too."""

    checks: tuple[Check, ...]
    base_commit: str


@dataclass(frozen=True, slots=True)
class LookAtPullRequest:
    """See what GitHub says of the pull request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Merge the pull request at exactly `head`."""

    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The goal: ready at `head`, or `merged` at it."""

    head: str
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A Policy refusal, with what GitHub said."""

    why: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The goal cannot be reached."""

    code: Code
    cause: str


Act = (
    LookAtOrigin
    | MergeUpstream
    | Repair
    | Verify
    | Push
    | MakeReady
    | AwaitChecks
    | BaseFix
    | LookAtPullRequest
    | Merge
)
Step = Act | Done | Refused | Fail


def decide(facts: Facts) -> Step:
    """Return the next step.

    A step that needs nothing from GitHub comes before one that does, and a look at origin before whatever relies on
    it. The head is never merged unless its own checks were watched.
    """
    step = _ended(facts) or _mend(facts) or _catch_up(facts) or _publish(facts)
    if step is not None:
        return step
    if facts.verdict is None:
        handed = facts.checks_repaired == facts.head and facts.repeated != facts.head
        return AwaitChecks(repeat=handed)
    wrong = _wrong_with(facts, facts.verdict)
    if wrong is not None:
        return wrong
    return _reach(facts, facts.pull) if facts.pull else LookAtPullRequest()


def _ended(facts: Facts) -> Step | None:
    """Return the end that nothing can change any more."""
    pull = facts.pull
    if pull is not None and pull.is_merged:
        watched = facts.verdict is not None and _passes(facts, facts.verdict)
        if pull.head == facts.head and watched and pull.base == facts.rules.base:
            return Done(head=facts.head, merged=True)
        return Fail(
            Code.MERGED_ELSEWHERE,
            f"{pull.url} was merged into {pull.base} at {pull.head[:12]}, which is not what was checked here",
        )
    if facts.interrupted:
        return Fail(Code.INTERRUPTED, "interrupted")
    if facts.verdict is not None and (facts.verdict.vanished or facts.verdict.pending):
        return _wrong_with(facts, facts.verdict)
    if facts.base_fix is not None and facts.base_fix.failure is not None:
        there = _fail_there_too(facts, facts.base_fix.names)
        return Fail(Code.BASE_FIX, f"{there}; {facts.base_fix.failure}")
    changed = _changed(facts, pull) if pull else None
    if pull and not pull.is_open and facts.sample is None:
        return LookAtOrigin()  # GitHub closes a pull request whose branch, or Base branch, somebody deletes
    return Fail(Code.PULL_REQUEST, changed) if changed else None


def _mend(facts: Facts) -> Step | None:
    """Return what the last merge, verify or watch left to be mended."""
    if facts.unresolved is not None:
        return Fail(Code.CONFLICT, facts.unresolved)
    if facts.conflict is not None:
        return _repair(facts, Kind.CONFLICT, f"{facts.conflict} conflicts with {facts.rules.branch}")
    if facts.unreviewed is not None:
        return _repair(facts, Kind.REVIEW, f"others' commits on {facts.rules.branch} are to be reviewed")
    verdict = facts.verdict
    if verdict is not None and verdict.own and facts.checks_repaired != facts.head:
        return _repair(facts, Kind.CHECKS, _red(verdict, facts.head))
    return None


def _catch_up(facts: Facts) -> Step | None:
    """Return what it takes to have what origin has; before a pull request is looked at, so that a look is fresh."""
    sample = facts.sample
    if sample is None:
        # What failed for good, or is to be asked of the pull request first, needs no look at origin.
        asks_first = facts.verdict is not None and _passes(facts, facts.verdict) and facts.pull is None
        return None if asks_first else LookAtOrigin()
    # What came before this head was watched costs nothing: somebody was at work on it.
    counts = facts.verdict is not None or (facts.refusal is not None and facts.refusal.head == facts.head)
    if sample.foreign is not None:
        return _merge(facts, sample.foreign, counts=True, foreign=True)
    if sample.base is not None:
        return _merge(facts, sample.base, counts=counts, foreign=False)
    return None


def _publish(facts: Facts) -> Step | None:
    """Return what must happen to the head before its checks can be watched."""
    if facts.rules.verifies and facts.verified != facts.head:
        return Verify()
    if facts.verify_failure is not None:
        if facts.verify_repaired == facts.head:
            return Fail(Code.VERIFY, f"{facts.verify_failure}, and the Repair found nothing to change")
        return _repair(facts, Kind.VERIFY, facts.verify_failure)
    if facts.push_refused:
        return Fail(Code.PUSH_REFUSED, f"origin did not take {facts.rules.branch}, and shows no new commits on it")
    if facts.pushed != facts.head:
        return Push()
    return None if facts.is_ready else MakeReady()


def _repair(facts: Facts, kind: Kind, cause: str) -> Step:
    limit, spent = facts.rules.repairs, facts.spent
    if limit == 0:
        code = {Kind.CONFLICT: Code.CONFLICT, Kind.VERIFY: Code.VERIFY, Kind.CHECKS: Code.CHECKS_FAILED}
        return Fail(code.get(kind, Code.REPAIRS), cause)
    if spent.repairs >= limit:
        return Fail(Code.REPAIRS, f"{_times(limit, 'Repair')} did not help: {cause}")
    return Repair(kind=kind, cause=cause, spent=Spent(repairs=spent.repairs + 1, moves=spent.moves))


def _merge(facts: Facts, commit: str, *, counts: bool, foreign: bool) -> Step:
    limit, spent = facts.rules.moves, facts.spent
    if counts and spent.moves >= limit:
        what = f"others' commits on {facts.rules.branch}" if foreign else f"the Base branch {facts.rules.base}"
        after = f"; the last merge was refused: {facts.refusal.why}" if facts.refusal else ""
        return Fail(Code.UPSTREAM, f"{what} kept coming; upstream was merged again {_times(limit, 'time')}{after}")
    moves = spent.moves + 1 if counts else spent.moves
    return MergeUpstream(commit=commit, foreign=foreign, spent=Spent(repairs=spent.repairs, moves=moves))


def _wrong_with(facts: Facts, verdict: Verdict) -> Step | None:
    """Return the end that the checks of the head make; None when they count as green."""
    at = f"on {facts.head[:12]}"
    if verdict.vanished:
        gone = ", ".join(verdict.vanished)
        return Fail(Code.CHECKS_VANISHED, f"checks {at} disappeared, so nobody can tell whether it is green: {gone}")
    if verdict.pending:
        return Fail(Code.CHECKS_PENDING, f"checks {at} did not finish in time: {', '.join(verdict.pending)}")
    if verdict.own:
        return Fail(
            Code.CHECKS_FAILED, f"{_red(verdict, facts.head)}, and the Repair found nothing to fix on the branch"
        )
    if verdict.inherited:
        return _inherited(facts, verdict.inherited)
    if _passes(facts, verdict):
        return None
    if verdict.missing:
        missing = ", ".join(verdict.missing)
        return Fail(Code.CHECKS_MISSING, f"checks that {facts.rules.base} requires did not start {at}: {missing}")
    return Fail(Code.CHECKS_MISSING, f"no check ran {at}: {verdict.absence}")


def _inherited(facts: Facts, checks: tuple[Check, ...]) -> Step:
    """Return the step after checks that fail on the Base branch as well: only there can they be mended, once a Run."""
    if facts.rules.fixes_base and facts.base_fix is None:
        return BaseFix(checks, facts.base_commit)
    first = f"mend {facts.rules.base} first"
    after = f" still, after the Base fix {facts.base_fix.url}" if facts.base_fix else ""
    return Fail(Code.CHECKS_INHERITED, f"{_fail_there_too(facts, names_of(checks))}{after}; {first}")


def _fail_there_too(facts: Facts, names: str) -> str:
    base = f"{facts.rules.base} at {facts.base_commit[:12]}"
    return f"checks fail on {facts.head[:12]} that fail on {base}, too: {names}"


def _passes(facts: Facts, verdict: Verdict) -> bool:
    if facts.rules.required is Required.NEVER:
        return verdict.is_green
    if verdict.absence is None or verdict.missing:
        return verdict.is_green and not verdict.missing
    nothing_expected = verdict.absence in (Absence.NOT_CONFIGURED, Absence.FILTERED)
    return facts.rules.required is Required.AUTO and (nothing_expected or not facts.rules.merges)


def _reach(facts: Facts, pull: PullRequest) -> Step:
    """Return the step from a green head to the goal."""
    rules, refusal = facts.rules, facts.refusal
    if pull.head != facts.head and rules.merges:
        return Fail(
            Code.PULL_REQUEST, f"{pull.url} shows {pull.head[:12]}, but the checks of {facts.head[:12]} were watched"
        )
    if pull.mergeable is None:
        return Fail(Code.NOT_MERGEABLE, f"GitHub has not worked out whether {pull.url} is mergeable")
    if not pull.mergeable:
        return Fail(Code.NOT_MERGEABLE, f"{pull.url} is not mergeable")
    if not rules.merges:
        return Done(head=facts.head)
    if refusal is not None and (refusal.head, refusal.spent) == (facts.head, facts.spent):
        return Refused(refusal.why)
    return Merge(head=facts.head)


def _changed(facts: Facts, pull: PullRequest) -> str | None:
    """Say what somebody has made of the pull request, None for nothing."""
    if not pull.is_open:
        return f"{pull.url} is closed, not open"
    if pull.is_draft:
        return f"{pull.url} is a draft"
    if pull.base != facts.rules.base:
        return f"{pull.url} targets {pull.base}, not {facts.rules.base}"
    return None


def _red(verdict: Verdict, head: str) -> str:
    return f"checks fail on {head[:12]}: {names_of(verdict.own)}"


def _times(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
