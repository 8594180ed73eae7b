"""What the checks of a commit come to, as tables."""

from dataclasses import replace

import pytest

from delivery.checks import (
    Absence,
    Patience,
    Verdict,
    Wait,
    is_new_attempt,
    judge_checks,
    names_of,
    runs_to_repeat,
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
    ("checks", "waited", "seen_before", "absence", "merges", "expected"),
    [
        # Nothing has appeared.
        ([], 0, False, EXPECTED, False, Wait(10)),
        ([], 55, False, EXPECTED, False, Wait(5)),
        ([], 60, False, EXPECTED, False, Verdict(absence=EXPECTED)),
        ([], 0, False, NOT_CONFIGURED, False, Verdict(absence=NOT_CONFIGURED)),
        ([], 0, False, NOT_CONFIGURED, True, Wait(10)),
        ([], 60, False, NOT_CONFIGURED, True, Verdict(absence=NOT_CONFIGURED)),
        ([], 0, False, Absence.FILTERED, False, Verdict(absence=Absence.FILTERED)),
        ([], 0, False, Absence.CANNOT_START, True, Verdict(absence=Absence.CANNOT_START)),
        # Some have.
        ([passed("a")], 0, False, EXPECTED, False, Verdict()),
        ([passed("a"), pending("b")], 0, True, EXPECTED, False, Wait(10)),
        ([pending("b"), failed("a")], 300, True, EXPECTED, False, Wait(30)),
        ([pending("b")], 3000, True, EXPECTED, False, Wait(60)),
        ([pending("b")], 3590, True, EXPECTED, False, Wait(10)),
        ([pending("b"), failed("a")], 3600, True, EXPECTED, False, Verdict(own=(failed("a"),), pending=("b",))),
        ([passed("b"), failed("a")], 9, True, EXPECTED, False, Verdict(own=(failed("a"),))),
        # And then none.
        ([], 5, True, EXPECTED, False, Verdict(vanished=True)),
    ],
)
def test_looking_again_or_not(
    checks: list[Check], waited: float, *, seen_before: bool, absence: Absence, merges: bool, expected: Verdict | Wait
) -> None:
    seen = judge_checks(
        checks, waited=waited, seen_before=seen_before, absence=absence, patience=PATIENCE, merges=merges
    )
    assert seen == expected


def test_an_hour_of_waiting_has_few_looks() -> None:
    waited, looks = 0.0, 0
    while True:
        step = judge_checks(
            [pending("a")], waited=waited, seen_before=True, absence=EXPECTED, patience=PATIENCE, merges=False
        )
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
        ([pending("build")], ["build"], []),
        ([passed("build")], ["build"], []),
        ([failed("lint")], ["build"], []),
    ],
)
def test_a_failure_is_inherited_when_every_check_of_its_name_failed_on_the_base_commit(
    on_base: list[Check], own: list[str], inherited: list[str]
) -> None:
    verdict = without_inherited(Verdict(own=(failed("build"),)), on_base)
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


NOTHING = {"applies": False, "is_filtered": False, "is_required": False, "others_check": False}


@pytest.mark.parametrize("is_workflow_token", [False, True])
@pytest.mark.parametrize(
    ("known", "absence", "with_workflow_token"),
    [
        ({}, Absence.NOT_CONFIGURED, Absence.NOT_CONFIGURED),
        ({"is_filtered": True}, Absence.FILTERED, Absence.FILTERED),
        ({"applies": True}, Absence.NOT_STARTED, Absence.CANNOT_START),
        ({"is_required": True}, Absence.NOT_STARTED, Absence.CANNOT_START),
        ({"others_check": True}, Absence.NOT_STARTED, Absence.NOT_STARTED),
        ({"others_check": True, "applies": True}, Absence.NOT_STARTED, Absence.NOT_STARTED),
    ],
)
def test_why_there_is_no_check(
    known: dict[str, bool], absence: Absence, with_workflow_token: Absence, *, is_workflow_token: bool
) -> None:
    seen = why_absent(**{**NOTHING, **known}, is_workflow_token=is_workflow_token)
    assert seen is (with_workflow_token if is_workflow_token else absence)


def test_many_checks_are_named_in_a_few_words() -> None:
    checks = [failed(name) for name in ("a", "a", "b", "c", "d", "e", "f", "g")]
    assert names_of(checks) == "a, b, c, d, e and 2 more"
    assert names_of([replace(checks[0], name="x")]) == "x"


def test_a_check_that_ran_out_of_time_is_said_to_have() -> None:
    assert names_of([replace(failed("test"), timed_out=True), failed("lint")]) == "test (timed out), lint"
