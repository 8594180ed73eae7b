"""What the checks of a commit come to, as tables."""

from dataclasses import replace

import pytest

from delivery.checks import (
    Absence,
    Awaited,
    Expected,
    Listing,
    Patience,
    Verdict,
    Wait,
    is_new_attempt,
    judge_checks,
    names_of,
    reminders,
    runs_to_repeat,
    waited_for,
    why_absent,
    without_inherited,
)
from delivery.github import Check, CheckState

PATIENCE = Patience(grace=60, limit=3600)
EXPECTED, NOT_CONFIGURED = Absence.NOT_STARTED, Absence.NOT_CONFIGURED


def check(name: str, state: CheckState, *, run: int | None = None, number: int = 1) -> Check:
    return Check(name=name, state=state, url=f"u/{name}", id=number, run=run)


def passed(name: str) -> Check:
    return check(name, CheckState.PASSED)


def failed(name: str, **of: int) -> Check:
    return check(name, CheckState.FAILED, run=of.get("run"), number=of.get("number", 1))


def pending(name: str) -> Check:
    return check(name, CheckState.PENDING)


@pytest.mark.parametrize(
    ("checks", "waited", "absence", "merges", "expected"),
    [
        # Nothing has appeared.
        ([], 0, EXPECTED, False, Wait(10)),
        ([], 55, EXPECTED, False, Wait(5)),
        ([], 60, EXPECTED, False, Verdict(absence=EXPECTED)),
        ([], 0, NOT_CONFIGURED, False, Verdict(absence=NOT_CONFIGURED)),
        ([], 0, NOT_CONFIGURED, True, Wait(10)),
        ([], 60, NOT_CONFIGURED, True, Verdict(absence=NOT_CONFIGURED)),
        ([], 0, Absence.FILTERED, False, Verdict(absence=Absence.FILTERED)),
        ([], 0, Absence.CANNOT_START, True, Verdict(absence=Absence.CANNOT_START)),
        # Some have.
        ([passed("a")], 0, EXPECTED, False, Verdict()),
        ([passed("a"), pending("b")], 0, EXPECTED, False, Wait(10)),
        ([pending("b"), failed("a")], 300, EXPECTED, False, Wait(30)),
        ([pending("b")], 3000, EXPECTED, False, Wait(60)),
        ([pending("b")], 3590, EXPECTED, False, Wait(10)),
        ([pending("b"), failed("a")], 3600, EXPECTED, False, Verdict(own=(failed("a"),), pending=("b",))),
        ([passed("b"), failed("a")], 9, EXPECTED, False, Verdict(own=(failed("a"),))),
    ],
)
def test_looking_again_or_not(
    checks: list[Check], waited: float, absence: Absence, *, merges: bool, expected: Verdict | Wait
) -> None:
    listing = Listing(checks=checks, waited=waited, quiet=waited)
    seen = judge_checks(listing, expected=Expected(), absence=absence, patience=PATIENCE, merges=merges)
    assert seen == expected


REQUIRES_B, TWO_RUNS = Expected(required=frozenset("b")), Expected(runs=2)
NEVER_STARTS = Expected(required=frozenset("b"), runs=2, can_start=False)
A7, B8 = replace(passed("a"), run=7), replace(passed("b"), run=8)


@pytest.mark.parametrize(
    ("listing", "expected", "verdict"),
    [
        # What was listed is no more.
        (Listing(checks=[], before="b", waited=300, quiet=0), Expected(), Wait(10)),
        (Listing(checks=[], before="b", waited=300, quiet=60), Expected(), Verdict(vanished=("b",))),
        (Listing(checks=[A7], before="ab", waited=300, quiet=55), Expected(), Wait(5)),
        (Listing(checks=[A7], before="ab", waited=300, quiet=60), Expected(), Verdict(vanished=("b",))),
        (Listing(checks=[A7, B8], before="ab", waited=300, quiet=0), Expected(), Verdict()),
        (Listing(checks=[failed("a")], before="ab", waited=300), Expected(), Verdict(own=(failed("a"),))),
        # What is required is not there: a job may begin only after others.
        (Listing(checks=[A7]), REQUIRES_B, Wait(10)),
        (Listing(checks=[A7], waited=300, quiet=0), REQUIRES_B, Wait(10)),
        (Listing(checks=[A7], waited=60, quiet=60), REQUIRES_B, Verdict(missing=("b",))),
        (Listing(checks=[], waited=60, quiet=60), REQUIRES_B, Verdict(missing=("b",), absence=EXPECTED)),
        (Listing(checks=[A7, B8]), REQUIRES_B, Verdict()),
        (Listing(checks=[failed("a")]), REQUIRES_B, Verdict(own=(failed("a"),))),
        (Listing(checks=[A7]), NEVER_STARTS, Verdict()),
        # Workflows that have shown nothing yet.
        (Listing(checks=[A7], waited=8), TWO_RUNS, Wait(10)),
        (Listing(checks=[A7, replace(B8, run=7)], waited=55), TWO_RUNS, Wait(5)),
        (Listing(checks=[A7], waited=60, quiet=0), TWO_RUNS, Verdict()),
        (Listing(checks=[A7, B8], waited=8), TWO_RUNS, Verdict()),
        (Listing(checks=[failed("a", run=7)]), TWO_RUNS, Verdict(own=(failed("a", run=7),))),
    ],
)
def test_green_is_what_all_that_was_to_come_is(listing: Listing, expected: Expected, verdict: Verdict | Wait) -> None:
    for merges in (False, True):
        seen = judge_checks(listing, expected=expected, absence=EXPECTED, patience=PATIENCE, merges=merges)
        assert seen == verdict


@pytest.mark.parametrize(
    ("listing", "awaited"),
    [
        (Listing(checks=[]), Awaited("checks to start", "", 60)),
        (Listing(checks=[pending("a")], waited=600), Awaited("1 check", "a (u/a)", 3000)),
        (Listing(checks=[pending("a"), pending("c")], before="x"), Awaited("2 checks", "a (u/a), c (u/c)", 3600)),
        (Listing(checks=[B8], before="ab", quiet=20), Awaited("checks to be listed again", "a", 40)),
        (Listing(checks=[A7], waited=600, quiet=20), Awaited("required checks to start", "b", 40)),
        (Listing(checks=[B8], waited=20), Awaited("checks of other workflows to start", "", 40)),
    ],
)
def test_what_is_waited_for_in_words(listing: Listing, awaited: Awaited) -> None:
    expected = REQUIRES_B if listing.checks else Expected()
    assert waited_for(listing, expected, PATIENCE) == awaited


def test_what_is_waited_for_is_said_again_after_1_5_and_10_minutes_and_then_every_10() -> None:
    said = [reminders(float(waited)) for waited in range(0, 3601, 60)]
    assert [at for at in range(1, 61) if said[at] != said[at - 1]] == [1, 5, 10, 20, 30, 40, 50, 60]


def test_an_hour_of_waiting_has_few_looks() -> None:
    waited, looks = 0.0, 0
    while True:
        listing = Listing(checks=[pending("a")], waited=waited, quiet=waited)
        step = judge_checks(listing, expected=Expected(), absence=EXPECTED, patience=PATIENCE, merges=False)
        looks += 1
        if isinstance(step, Verdict):
            break
        waited += step.seconds
    assert (waited, looks < 90, step.pending) == (3600, True, ("a",))


@pytest.mark.parametrize(
    ("on_base", "own", "inherited"),
    [
        ([], ["build"], []),
        ([failed("build")], [], ["build"]),
        ([failed("build"), failed("build")], [], ["build"]),
        ([failed("build"), passed("build")], ["build"], []),
        ([pending("build")], None, []),
        ([pending("build"), failed("build")], None, []),
        ([pending("build"), passed("build")], ["build"], []),
        ([passed("build")], ["build"], []),
        ([failed("lint")], ["build"], []),
        ([failed("lint"), pending("other")], ["build"], []),
    ],
)
def test_a_failure_is_inherited_when_every_check_of_its_name_failed_on_the_base_commit(
    on_base: list[Check], own: list[str] | None, inherited: list[str]
) -> None:
    red = Verdict(own=(failed("build"),))
    verdict = without_inherited(red, on_base, waited=3590, patience=PATIENCE)
    if own is None:
        assert verdict == Wait(10)
        verdict, own = without_inherited(red, on_base, waited=3600, patience=PATIENCE), ["build"]
    assert isinstance(verdict, Verdict)
    assert [one.name for one in verdict.own] == own
    assert [one.name for one in verdict.inherited] == inherited


@pytest.mark.parametrize(
    ("own", "runs"),
    [
        ([failed("a", run=7)], (7,)),
        ([failed("a", run=7), failed("b", run=7), failed("c", run=8)], (7, 8)),
        ([failed("a", run=7), failed("status")], ()),
        ([], ()),
    ],
)
def test_only_jobs_of_actions_are_asked_to_run_again_once_a_workflow_run(own: list[Check], runs: tuple[int]) -> None:
    assert runs_to_repeat(own) == runs


OLD = [failed("a", run=7, number=1), failed("inherited", run=7, number=2), failed("b", run=8, number=3)]


@pytest.mark.parametrize(
    ("seen", "is_new"),
    [
        ([], False),
        (OLD, False),
        ([failed("a", run=7, number=4), OLD[1], OLD[2]], False),
        ([failed("a", run=7, number=4), failed("inherited", run=7, number=5), OLD[2]], True),
    ],
)
def test_a_new_attempt_lists_none_of_the_old_jobs(seen: list[Check], *, is_new: bool) -> None:
    assert is_new_attempt(seen, OLD, [7]) is is_new


@pytest.mark.parametrize("is_workflow_token", [False, True])
@pytest.mark.parametrize(
    ("known", "absence", "with_workflow_token"),
    [
        (Expected(), Absence.NOT_CONFIGURED, Absence.NOT_CONFIGURED),
        (Expected(is_filtered=True), Absence.FILTERED, Absence.FILTERED),
        (Expected(runs=1), Absence.NOT_STARTED, Absence.CANNOT_START),
        (Expected(required=frozenset("a")), Absence.NOT_STARTED, Absence.CANNOT_START),
    ],
)
def test_why_there_is_no_check(
    known: Expected, absence: Absence, with_workflow_token: Absence, *, is_workflow_token: bool
) -> None:
    expected = replace(known, can_start=not is_workflow_token)
    seen = why_absent(expected, others_check=False)
    assert seen is (with_workflow_token if is_workflow_token else absence)
    assert why_absent(expected, others_check=True) is Absence.NOT_STARTED


def test_many_checks_are_named_in_a_few_words() -> None:
    checks = [failed(name) for name in ("a", "a", "b", "c", "d", "e", "f", "g")]
    assert names_of(checks) == "a, b, c, d, e and 2 more"
    assert names_of([replace(checks[0], name="x")]) == "x"


def test_a_check_that_ran_out_of_time_is_said_to_have() -> None:
    assert names_of([replace(failed("test"), timed_out=True), failed("lint")]) == "test (timed out), lint"
