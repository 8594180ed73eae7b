"""The next step of a Repair loop: a table of what is decided when, and what holds on every way through it."""

import random
from dataclasses import dataclass, field, replace

import pytest

from delivery.causes import Code
from delivery.checks import Absence, Required, Verdict
from delivery.decision import (
    AwaitChecks,
    BaseFix,
    Done,
    Fail,
    LookAtOrigin,
    LookAtPullRequest,
    MakeReady,
    Merge,
    MergeUpstream,
    Push,
    Refused,
    Repair,
    Step,
    Verify,
    decide,
)
from delivery.github import Check, CheckState, PullRequest
from delivery.loop_facts import BaseFixed, Facts, Kind, LoopRules, Sample, Spent
from tests.proof import seed

HEAD, OTHER, BASE, HELD = "a" * 40, "b" * 40, "c" * 40, "d" * 40
NO_FINDINGS = "and the Repair found nothing to fix on the branch"
PLAIN = LoopRules(base="main", branch="issue-7")
MERGES = replace(PLAIN, merges=True)
FIXES = replace(PLAIN, fixes_base=True)
FIXED = BaseFixed(url="u/8", names="lint")
NOTHING_NEW = Sample()


def failed(name: str) -> Check:
    return Check(name=name, state=CheckState.FAILED, url="u", id=1, run=None)


RED, INHERITED = Verdict(own=(failed("build"),)), Verdict(inherited=(failed("lint"),))
GREEN = Verdict()


def pull(head: str = HEAD, **changed: object) -> PullRequest:
    seen = PullRequest(
        number=9,
        url="u",
        is_open=True,
        is_draft=False,
        base="main",
        branch="issue-7",
        head=head,
        body="",
        mergeable=True,
    )
    return replace(seen, **changed)  # type: ignore[arg-type]  # what a row of the table changes


def at(rules: LoopRules = PLAIN, **known: object) -> Facts:
    """Return the facts of a head that was pushed and is ready, and what else is known."""
    facts = Facts(
        rules=rules, head=HEAD, base_commit=HELD, sample=NOTHING_NEW, verified=HEAD, pushed=HEAD, is_ready=True
    )
    return replace(facts, **known)  # type: ignore[arg-type]  # what a row of the table knows


def green(rules: LoopRules = PLAIN, **known: object) -> Facts:
    return at(rules, **{"verdict": GREEN, "pull": pull(), **known})


def spent(repairs: int = 0, moves: int = 0) -> Spent:
    return Spent(repairs=repairs, moves=moves)


def repair(kind: Kind, cause: str, repairs: int = 1, moves: int = 0) -> Repair:
    return Repair(kind=kind, cause=cause, spent=spent(repairs, moves))


INHERITS = f"checks fail on {HEAD[:12]} that fail on main at {HELD[:12]}, too: lint"
RED_TEXT = f"checks fail on {HEAD[:12]}: build"
CONFLICTS = "origin/main conflicts with issue-7"
REVIEWS = "others' commits on issue-7 are to be reviewed"
TABLE: dict[str, tuple[Facts, Step]] = {
    # From the opening session to the first watch.
    "origin is looked at before anything else": (at(sample=None, pushed=None, is_ready=False), LookAtOrigin()),
    "what the Base branch has is merged": (at(sample=Sample(base=BASE)), MergeUpstream(commit=BASE, spent=spent())),
    "a head is verified before it is pushed": (
        at(replace(PLAIN, verifies=True), verified=OTHER, pushed=OTHER),
        Verify(),
    ),
    "without a verify command none is run": (at(verified=None, pushed=OTHER), Push()),
    "a head is pushed": (at(pushed=OTHER), Push()),
    "a pull request is made ready": (at(is_ready=False), MakeReady()),
    "the checks are watched": (at(), AwaitChecks()),
    # The goal.
    "a green head has its pull request looked at": (at(verdict=GREEN, sample=None), LookAtPullRequest()),
    "and origin after it": (green(sample=None), LookAtOrigin()),
    "a green head is the goal": (green(), Done(head=HEAD)),
    "so is one that nothing checks": (green(verdict=Verdict(absence=Absence.NOT_CONFIGURED)), Done(head=HEAD)),
    "a plain Run ignores others' commits": (green(pull=pull(OTHER)), Done(head=HEAD)),
    "a plain Run never merges": (green(PLAIN), Done(head=HEAD)),
    "a Merge run merges at the watched head": (green(MERGES), Merge(head=HEAD)),
    "merged at the watched head": (green(MERGES, pull=pull(is_merged=True)), Done(head=HEAD, merged=True)),
    "merged at it by a person, in a plain Run": (green(pull=pull(is_merged=True)), Done(head=HEAD, merged=True)),
    # The Base branch moves.
    "the Base branch moved while checks ran": (
        green(sample=Sample(base=BASE)),
        MergeUpstream(commit=BASE, spent=spent(moves=1)),
    ),
    "the Base branch moved after a Repair that changed nothing": (
        at(checks_repaired=HEAD, spent=spent(1), sample=Sample(base=BASE)),
        MergeUpstream(commit=BASE, spent=spent(1)),
    ),
    "only inherited failures, and the Base branch moved": (
        at(verdict=INHERITED, sample=Sample(base=BASE)),
        MergeUpstream(commit=BASE, spent=spent(moves=1)),
    ),
    "a sixth move is one too many": (
        green(sample=Sample(base=BASE), spent=spent(moves=5)),
        Fail(Code.UPSTREAM, "the Base branch main kept coming; upstream was merged again 5 times"),
    ),
    # Conflicts.
    "a conflict is repaired": (at(conflict="origin/main"), repair(Kind.CONFLICT, CONFLICTS)),
    "a merge that a Repair left unfinished": (
        at(unresolved="it is unfinished"),
        Fail(Code.CONFLICT, "it is unfinished"),
    ),
    # Red.
    "failures of the branch's own are repaired, without a look at origin": (
        at(verdict=RED, sample=None),
        repair(Kind.CHECKS, RED_TEXT),
    ),
    "own and inherited ones together as well": (
        at(verdict=replace(RED, inherited=INHERITED.inherited), sample=None),
        repair(Kind.CHECKS, RED_TEXT),
    ),
    "a Repair that changed nothing has the checks run again": (at(checks_repaired=HEAD), AwaitChecks(repeat=True)),
    "once for each head": (at(checks_repaired=HEAD, repeated=HEAD), AwaitChecks()),
    "which is the goal when they pass": (green(checks_repaired=HEAD, repeated=HEAD), Done(head=HEAD)),
    "and a Declined CI fix when they do not": (
        at(verdict=RED, checks_repaired=HEAD, repeated=HEAD),
        Fail(Code.CHECKS_FAILED, f"{RED_TEXT}, {NO_FINDINGS}"),
    ),
    "or when they cannot be run again": (
        at(verdict=RED, checks_repaired=HEAD, repeated=HEAD, spent=spent(2, 3)),
        Fail(Code.CHECKS_FAILED, f"{RED_TEXT}, {NO_FINDINGS}"),
    ),
    "a re-run that is red by inherited ones only": (
        at(verdict=INHERITED, checks_repaired=HEAD, repeated=HEAD),
        Fail(Code.CHECKS_INHERITED, f"{INHERITS}; mend main first"),
    ),
    "inherited failures alone are not repaired": (
        at(verdict=INHERITED),
        Fail(Code.CHECKS_INHERITED, f"{INHERITS}; mend main first"),
    ),
    "but origin is looked at first": (at(verdict=INHERITED, sample=None), LookAtOrigin()),
    # A Base fix.
    "inherited failures are mended on the Base branch, where that is wanted": (
        at(FIXES, verdict=INHERITED),
        BaseFix(INHERITED.inherited, HELD),
    ),
    "in a Merge run, too": (
        at(replace(MERGES, fixes_base=True), verdict=INHERITED),
        BaseFix(INHERITED.inherited, HELD),
    ),
    "but origin is looked at before that": (at(FIXES, verdict=INHERITED, sample=None), LookAtOrigin()),
    "and a Base branch that has moved is merged first": (
        at(FIXES, verdict=INHERITED, sample=Sample(base=BASE)),
        MergeUpstream(commit=BASE, spent=spent(moves=1)),
    ),
    "failures of the branch's own are repaired before": (
        at(FIXES, verdict=replace(RED, inherited=INHERITED.inherited)),
        repair(Kind.CHECKS, RED_TEXT),
    ),
    "none is made for a Declined CI fix": (
        at(FIXES, verdict=replace(RED, inherited=INHERITED.inherited), checks_repaired=HEAD, repeated=HEAD),
        Fail(Code.CHECKS_FAILED, f"{RED_TEXT}, {NO_FINDINGS}"),
    ),
    "after it origin is looked at": (at(FIXES, verdict=INHERITED).base_fixed(FIXED), LookAtOrigin()),
    "what it made of the Base branch is merged, and costs nothing": (
        replace(at(FIXES, verdict=INHERITED).base_fixed(FIXED), sample=Sample(base=BASE)),
        MergeUpstream(commit=BASE, spent=spent()),
    ),
    "the checks are watched again": (
        replace(at(FIXES, verdict=INHERITED).base_fixed(FIXED), sample=NOTHING_NEW),
        AwaitChecks(),
    ),
    "there is one a Run": (
        at(FIXES, verdict=INHERITED, base_fix=FIXED),
        Fail(Code.CHECKS_INHERITED, f"{INHERITS} still, after the Base fix u/8; mend main first"),
    ),
    "a Base fix that failed is the cause": (
        at(FIXES, verdict=INHERITED).base_fixed(replace(FIXED, failure="the Base fix u/8 failed: no")),
        Fail(Code.BASE_FIX, f"{INHERITS}; the Base fix u/8 failed: no"),
    ),
    "one that others had made before costs none": (at(FIXES, verdict=INHERITED).base_fixed(None), LookAtOrigin()),
    "but a move, so that there is an end": (
        replace(at(FIXES, verdict=INHERITED).base_fixed(None), sample=Sample(base=BASE)),
        MergeUpstream(commit=BASE, spent=spent(moves=1)),
    ),
    "a signal during it": (
        replace(at(FIXES, verdict=INHERITED).base_fixed(replace(FIXED, failure="stopped")), interrupted=True),
        Fail(Code.INTERRUPTED, "interrupted"),
    ),
    "the sixth Repair names its cause": (
        at(verdict=RED, spent=spent(5)),
        Fail(Code.REPAIRS, f"5 Repairs did not help: {RED_TEXT}"),
    ),
    "one cap for all kinds of Repair": (
        at(conflict="origin/main", spent=spent(5)),
        Fail(Code.REPAIRS, f"5 Repairs did not help: {CONFLICTS}"),
    ),
    "with no Repair allowed the failure is the cause": (
        at(replace(PLAIN, repairs=0), verdict=RED),
        Fail(Code.CHECKS_FAILED, RED_TEXT),
    ),
    "checks that vanished": (
        at(verdict=Verdict(vanished=("build",)), sample=None),
        Fail(
            Code.CHECKS_VANISHED,
            f"checks on {HEAD[:12]} disappeared, so nobody can tell whether it is green: build",
        ),
    ),
    "checks that do not finish": (
        at(verdict=Verdict(own=RED.own, pending=("slow",)), sample=None),
        Fail(Code.CHECKS_PENDING, f"checks on {HEAD[:12]} did not finish in time: slow"),
    ),
    "required checks that do not start are the end where the Base branch has not moved": (
        at(verdict=Verdict(missing=("late",))),
        Fail(Code.CHECKS_MISSING, f"checks that main requires did not start on {HEAD[:12]}: late"),
    ),
    "where it has, they may start on what it has": (
        at(verdict=Verdict(missing=("late",)), sample=Sample(base=BASE)),
        MergeUpstream(commit=BASE, spent=spent(moves=1)),
    ),
    "whether or not others ran": (
        green(verdict=Verdict(missing=("late",), absence=Absence.NOT_STARTED)),
        Fail(Code.CHECKS_MISSING, f"checks that main requires did not start on {HEAD[:12]}: late"),
    ),
    "where no check is asked for, none is missed": (
        green(replace(PLAIN, required=Required.NEVER), verdict=Verdict(missing=("late",))),
        Done(head=HEAD),
    ),
    # The verify command.
    "a failing verify command is repaired": (
        at(replace(PLAIN, verifies=True), verify_failure="verify exited 1", pushed=None),
        repair(Kind.VERIFY, "verify exited 1"),
    ),
    "once for each head, too": (
        at(replace(PLAIN, verifies=True), verify_failure="verify exited 1", verify_repaired=HEAD),
        Fail(Code.VERIFY, "verify exited 1, and the Repair found nothing to change"),
    ),
    # Others' commits.
    "others' commits are taken in by a Merge run": (
        at(MERGES, sample=Sample(foreign=OTHER)),
        MergeUpstream(commit=OTHER, foreign=True, spent=spent(moves=1)),
    ),
    "before the Base branch": (
        at(MERGES, sample=Sample(foreign=OTHER, base=BASE)),
        MergeUpstream(commit=OTHER, foreign=True, spent=spent(moves=1)),
    ),
    "and those that came while checks ran": (
        green(MERGES, sample=Sample(foreign=OTHER)),
        MergeUpstream(commit=OTHER, foreign=True, spent=spent(moves=1)),
    ),
    "they are reviewed": (at(MERGES, unreviewed=OTHER, sample=None), repair(Kind.REVIEW, REVIEWS)),
    "after a conflict with them": (
        at(MERGES, unreviewed=OTHER, conflict="origin/issue-7"),
        repair(Kind.CONFLICT, "origin/issue-7 conflicts with issue-7"),
    ),
    "they spend the same budget": (
        at(MERGES, sample=Sample(foreign=OTHER), spent=spent(moves=5)),
        Fail(Code.UPSTREAM, "others' commits on issue-7 kept coming; upstream was merged again 5 times"),
    ),
    "a push that they keep from being taken looks for them": (
        at(MERGES, pushed=OTHER, push_refused=True, sample=None),
        LookAtOrigin(),
    ),
    "and fails when there are none": (
        at(MERGES, pushed=OTHER, push_refused=True),
        Fail(Code.PUSH_REFUSED, "origin did not take issue-7, and shows no new commits on it"),
    ),
    # A merge that GitHub refused.
    "a refused merge looks at everything again": (green(MERGES).refused("no"), LookAtOrigin()),
    "at the checks, too": (replace(green(MERGES).refused("no"), sample=NOTHING_NEW), AwaitChecks()),
    "a refused merge, and the Base branch moved": (
        replace(green(MERGES).refused("no"), sample=Sample(base=BASE)),
        MergeUpstream(commit=BASE, spent=spent(moves=1)),
    ),
    "refused merges spend the budget": (
        replace(green(MERGES, spent=spent(moves=5)).refused("no"), sample=Sample(base=BASE)),
        Fail(
            Code.UPSTREAM,
            "the Base branch main kept coming; upstream was merged again 5 times; the last merge was refused: no",
        ),
    ),
    "nothing left to fix is a Policy refusal": (
        replace(green(MERGES).refused("no"), verdict=GREEN, pull=pull(), sample=NOTHING_NEW),
        Refused("no"),
    ),
    "a round that needed a Repair tries the same head again": (
        replace(green(MERGES).refused("no"), verdict=GREEN, pull=pull(), sample=NOTHING_NEW, spent=spent(1)),
        Merge(head=HEAD),
    ),
    "another head is tried": (
        replace(
            green(MERGES).refused("no"),
            head=OTHER,
            pushed=OTHER,
            verified=OTHER,
            verdict=GREEN,
            pull=pull(OTHER),
            sample=NOTHING_NEW,
        ),
        Merge(head=OTHER),
    ),
    # The pull request.
    "a pull request that was closed": (
        green(pull=pull(is_open=False)),
        Fail(Code.PULL_REQUEST, "u is closed, not open"),
    ),
    "one that is a draft again": (
        green(pull=pull(is_draft=True), sample=None),
        Fail(Code.PULL_REQUEST, "u is a draft"),
    ),
    "one with another Base branch": (green(pull=pull(base="old")), Fail(Code.PULL_REQUEST, "u targets old, not main")),
    "one that conflicts, though the Base branch is merged": (
        green(pull=pull(mergeable=False)),
        Fail(Code.NOT_MERGEABLE, "u is not mergeable"),
    ),
    "but not before origin was looked at": (green(pull=pull(mergeable=False), sample=None), LookAtOrigin()),
    "one of which GitHub cannot tell": (
        green(pull=pull(mergeable=None)),
        Fail(Code.NOT_MERGEABLE, "GitHub has not worked out whether u is mergeable"),
    ),
    "a Merge run does not merge what was not watched": (
        green(MERGES, pull=pull(OTHER)),
        Fail(Code.PULL_REQUEST, f"u shows {OTHER[:12]}, but the checks of {HEAD[:12]} were watched"),
    ),
    "merged at another head": (
        green(MERGES, pull=pull(OTHER, is_merged=True)),
        Fail(Code.MERGED_ELSEWHERE, f"u was merged into main at {OTHER[:12]}, which is not what was checked here"),
    ),
    # A signal.
    "a signal before the merge": (green(MERGES, interrupted=True), Fail(Code.INTERRUPTED, "interrupted")),
    "a signal after it": (green(MERGES, interrupted=True, pull=pull(is_merged=True)), Done(head=HEAD, merged=True)),
}


@pytest.mark.parametrize("row", TABLE)
def test_the_next_step(row: str) -> None:
    facts, step = TABLE[row]
    assert decide(facts) == step


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("required", Required)
@pytest.mark.parametrize("absence", Absence)
def test_a_head_without_checks(absence: Absence, required: Required, *, merges: bool) -> None:
    rules = replace(PLAIN, merges=merges, required=required)
    step = decide(green(rules, verdict=Verdict(absence=absence)))
    expected = absence not in (Absence.NOT_CONFIGURED, Absence.FILTERED)
    if required is Required.ALWAYS or (required is Required.AUTO and merges and expected):
        assert step == Fail(Code.CHECKS_MISSING, f"no check ran on {HEAD[:12]}: {absence}")
    else:
        assert step == (Merge(head=HEAD) if merges else Done(head=HEAD))


def test_merges_that_are_refused_for_ever_spend_the_budget() -> None:
    """While the Base branch moves each time: five moves, six tries, and no Policy refusal."""
    facts, tries, moved = green(MERGES), 0, True
    while not isinstance(step := decide(facts), Fail):
        match step:
            case Merge():
                tries, moved, facts = tries + 1, True, facts.refused("no")
            case LookAtOrigin():
                facts, moved = facts.looked(Sample(base=f"{tries:040x}" if moved else None)), False
            case MergeUpstream():
                head = f"f{tries:039x}"
                facts = facts.merged("m", step.commit, head, spent=step.spent, foreign=False, conflicts=False)
            case Push():
                facts = facts.pushed_as(taken=True)
            case AwaitChecks():
                facts = facts.watched(GREEN, repeated=False)
            case LookAtPullRequest():
                facts = replace(facts, pull=pull(facts.head))
            case _:
                raise AssertionError(step)
    assert (tries, facts.spent.moves, step.code) == (6, 5, Code.UPSTREAM)


@dataclass
class Weather:
    """A world in which anything may happen at any step; `watched` are the heads whose checks came to green."""

    random: random.Random
    facts: Facts
    commits: int = 0
    watched: set[str] = field(default_factory=set)
    held: str = ""  # by the Base branch, when it was looked at last
    steps: list[Step] = field(default_factory=list)

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def commit(self) -> str:
        self.commits += 1
        return f"{self.commits:040x}"

    def play(self) -> Step:
        """Go on to the end."""
        for _ in range(500):
            if self.chance(0.002):
                self.facts = replace(self.facts, interrupted=True)
            step = decide(self.facts)
            self.steps.append(step)
            if isinstance(step, Done | Refused | Fail):
                return step
            self.facts = self.after(step)
        raise AssertionError(f"no end: {self.steps[-12:]}")

    def after(self, step: Step) -> Facts:
        facts, moves = self.facts, self.chance(0.35)
        match step:
            case LookAtOrigin():
                self.held = "moved" if moves else facts.base_commit
                foreign = self.commit() if facts.rules.merges and facts.pushed and self.chance(0.2) else None
                return facts.looked(Sample(base=self.commit() if moves else None, foreign=foreign))
            case MergeUpstream():
                conflicts = self.chance(0.2)
                self.held = self.held if step.foreign else step.commit
                head = facts.head if conflicts else self.commit()
                return facts.merged(
                    "origin/x", step.commit, head, spent=step.spent, foreign=step.foreign, conflicts=conflicts
                )
            case Repair():
                head = self.commit() if self.chance(0.7) or step.kind is Kind.CONFLICT else facts.head
                left = "left" if self.chance(0.1) and step.kind is Kind.CONFLICT else None
                return facts.repaired(step.kind, head, spent=step.spent, unresolved=left)
            case _:
                return self.after_the_branch(step)

    def after_the_branch(self, step: Step) -> Facts:
        """Return what a step makes of the facts that changes nothing on the branch."""
        facts = self.facts
        match step:
            case Verify():
                return facts.verified_as(facts.head, "verify exited 1" if self.chance(0.2) else None)
            case Push():
                return facts.pushed_as(taken=not (facts.rules.merges and self.chance(0.1)))
            case MakeReady():
                return replace(facts, is_ready=True)
            case AwaitChecks():
                return self.watch(repeat=step.repeat)
            case BaseFix():
                assert self.held == step.base_commit, "the Base branch has moved"
                if self.chance(0.2):
                    return facts.base_fixed(None)
                return facts.base_fixed(replace(FIXED, failure="no" if self.chance(0.3) else None))
            case LookAtPullRequest():
                return replace(facts, pull=self.pull())
            case Merge():
                return self.merge(step)
        raise AssertionError(step)

    def watch(self, *, repeat: bool) -> Facts:
        one = failed("x")
        verdicts = {
            Verdict(): 12,
            Verdict(own=(one,)): 6,
            Verdict(inherited=(one,)): 1,
            Verdict(own=(one,), inherited=(one,)): 1,
            Verdict(absence=self.random.choice(list(Absence))): 2,
            Verdict(vanished=("x",)): 0.2,
            Verdict(missing=("x",)): 0.2,
            Verdict(pending=("x",)): 0.2,
        }
        (verdict,) = self.random.choices(list(verdicts), list(verdicts.values()))
        self.watched.discard(self.facts.head)
        if verdict.is_green and (not verdict.missing or self.facts.rules.required is Required.NEVER):
            self.watched.add(self.facts.head)
        return self.facts.watched(verdict, repeated=repeat)

    def pull(self) -> PullRequest:
        seen = pull(self.facts.head)
        if self.chance(0.03):
            return replace(seen, is_merged=True, head=self.random.choice([seen.head, OTHER]))
        odd = [{"is_open": False}, {"is_draft": True}, {"mergeable": None}, {"mergeable": False}, {"head": OTHER}]
        return pull(**self.random.choice(odd)) if self.chance(0.05) else seen  # type: ignore[arg-type]

    def merge(self, step: Merge) -> Facts:
        assert step.head in self.watched, f"merged unwatched: {self.steps}"
        assert step.head == self.facts.head == self.facts.pushed
        if self.chance(0.5):
            return self.facts.refused("no")
        return replace(self.facts, pull=pull(step.head, is_merged=True))


def test_every_schedule_ends_within_its_budgets_and_merges_only_what_was_watched() -> None:
    ends = []
    for number in range(2000):
        chance = random.Random(seed() + number)
        rules = LoopRules(
            base="main",
            branch="issue-7",
            merges=chance.random() < 0.7,
            repairs=chance.choice([0, 1, 5]),
            moves=chance.choice([0, 1, 5]),
            required=chance.choice(list(Required)),
            verifies=chance.random() < 0.5,
            fixes_base=chance.random() < 0.5,
        )
        weather = Weather(chance, Facts(rules=rules, head="f" * 40, base_commit="e" * 40))
        end = weather.play()
        spent = weather.facts.spent
        assert (spent.repairs <= rules.repairs, spent.moves <= rules.moves) == (True, True), weather.steps
        assert rules.fixes_base or not any(isinstance(step, BaseFix) for step in weather.steps)
        assert sum(isinstance(step, Repair) for step in weather.steps) == spent.repairs
        assert sum(isinstance(step, Merge) for step in weather.steps) <= 1 + rules.moves + rules.repairs + 1
        if isinstance(end, Done):
            assert end.head in weather.watched
        ends.append((type(end), end.merged if isinstance(end, Done) else end.code if isinstance(end, Fail) else None))
    # A schedule that never gets anywhere would prove nothing.
    assert {(Done, True), (Done, False), (Refused, None)} <= set(ends)
    assert {end[1] for end in ends if end[0] is Fail} >= {
        Code.REPAIRS,
        Code.UPSTREAM,
        Code.CHECKS_FAILED,
        Code.CHECKS_INHERITED,
        Code.BASE_FIX,
        Code.CHECKS_VANISHED,
        Code.INTERRUPTED,
        Code.CONFLICT,
        Code.MERGED_ELSEWHERE,
    }
