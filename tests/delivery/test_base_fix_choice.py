"""What is done about a Base fix, as a table, and which issue is one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from delivery.base_fix_choice import (
    Ailment,
    Await,
    BaseFixRecord,
    Begin,
    Choice,
    Closed,
    LeftOpen,
    Obstructed,
    SeenBaseFix,
    choose,
    is_base_fix,
    whose_word,
)
from delivery.github import Check, CheckState, Deed, Issue, QueuedIssue, Word

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
COMMIT = "c" * 40
ISSUE = 8


def record(age: float, issue: int | None = ISSUE) -> BaseFixRecord:
    moment = NOW - timedelta(seconds=age)
    return BaseFixRecord(nonce="n" * 32, run="r", host="h", issue=issue, moment=moment, clock="server", lease=900)


def seen(
    found: BaseFixRecord | None, *, commit: str | None = COMMIT, issue: int | None = ISSUE, is_open: bool = True
) -> SeenBaseFix:
    return SeenBaseFix(commit=commit, record=found, issue=issue, is_open=is_open, now=NOW)


GONE = seen(None, commit=None)
TABLE: dict[str, tuple[SeenBaseFix, Choice]] = {
    "nobody has made any": (replace(GONE, issue=None, is_open=False), Begin("")),
    "a run makes it": (seen(record(10)), Await(record(10))),
    "a run looks for its issue": (seen(record(10, None), issue=None, is_open=False), Await(record(10, None))),
    "a run is late with its sign of life": (seen(record(899)), Await(record(899))),
    "a run has vanished": (seen(record(900)), Begin(COMMIT)),
    "a run has vanished before it had an issue": (seen(record(900, None), issue=None, is_open=False), Begin(COMMIT)),
    "a run has vanished after its issue was closed": (seen(record(900), is_open=False), Closed(ISSUE)),
    "the issue is closed, and the run about to end": (seen(record(10), is_open=False), Closed(ISSUE)),
    "the run that was waited for has ended": (replace(GONE, is_open=False), Closed(ISSUE)),
    "and left its issue open": (GONE, LeftOpen(ISSUE)),
    "another run has begun one since": (seen(record(1)), Await(record(1))),
    "its clock is a little ahead": (seen(record(-50)), Await(record(-50))),
}


@pytest.mark.parametrize("row", TABLE)
def test_what_is_done_about_it(row: str) -> None:
    facts, choice = TABLE[row]
    assert choose(facts) == choice


@pytest.mark.parametrize(
    ("found", "why"),
    [(None, "not what this version of Nightkeep writes"), (record(-365 * 86_400), "one of the two clocks is wrong")],
)
def test_nobody_waits_for_a_run_of_which_nobody_can_tell_whether_it_lives(
    found: BaseFixRecord | None, why: str
) -> None:
    choice = choose(seen(found))
    assert isinstance(choice, Obstructed)
    assert why in choice.why


def ailment(*names: str) -> Ailment:
    checks = tuple(Check(name=name, state=CheckState.FAILED, url=f"u/{name}") for name in names)
    return Ailment(base="main", commit=COMMIT, checks=checks, found_by="u/9")


@pytest.mark.parametrize(
    ("title", "names", "named"),
    [
        ("CI red on main: lint", ["lint"], True),
        ("CI red on main: lint, test", ["lint"], True),
        ("CI red on main: test, lint", ["lint", "test"], True),
        ("CI red on main: lint", ["lint", "test"], False),
        ("CI red on next: lint", ["lint"], False),
        ("CI red on main: linter", ["lint"], False),
        ("lint", ["lint"], False),
        ("CI red on main: build (a, b)", ["build (a, b)"], True),
        ("CI red on main: test (3.11, ubuntu), lint", ["test (3.11, ubuntu)"], True),
        ("CI red on main: lint, test (3.11, ubuntu)", ["test (3.11, ubuntu)", "lint"], True),
        ("CI red on main: test (3.11, ubuntu)", ["ubuntu"], False),
        ("CI red on main: lint", ["lint", "lint"], True),
    ],
)
def test_an_issue_is_about_all_the_checks_that_its_title_names(title: str, names: list[str], *, named: bool) -> None:
    assert ailment(*names).is_named_by(title) is named


def test_the_oldest_issue_about_it_comes_first() -> None:
    titles = {9: "CI red on main: lint", 7: "CI red on main: lint, test", 5: "CI red on main: test"}
    assert ailment("lint").named_by(titles) == [7, 9]
    assert ailment("docs").named_by(titles) == []


FILED = NOW - timedelta(days=1)


def about(author: str, *deeds: Deed, edited_by: str | None = None) -> QueuedIssue:
    return QueuedIssue(
        number=7,
        title="CI red on main: lint",
        body="",
        url="u/7",
        author=author,
        is_open=True,
        labels=frozenset({"base-fix"}),
        created_at=FILED,
        edited_by=edited_by,
        edited_at=None if edited_by is None else NOW,
        deeds=deeds,
    )


def labelled(by: str) -> Deed:
    return Deed(what=Word.LABELED, actor=by, at=FILED, label="Base-Fix")


RENAMED_BY_EVE = Deed(what=Word.RENAMED, actor="eve", at=NOW)
WANTED: dict[str, tuple[QueuedIssue, str | None]] = {
    "filed by Nightkeep": (about("us"), None),
    "filed by Nightkeep, labelled again by whoever sorts issues": (about("us", labelled("tom")), None),
    "filed by Nightkeep, and made better by a maintainer": (about("us", edited_by="olga"), None),
    "filed by Nightkeep, and changed by an account that is gone": (
        about("us", edited_by=""),
        "had its text changed by an account that is gone, so nobody can tell what it may do",
    ),
    "labelled by a maintainer": (about("eve", labelled("olga")), None),
    "labelled by whoever sorts issues": (
        about("tom", labelled("tom")),
        "was labelled base-fix by @tom, who may not write here",
    ),
    "not labelled as far as it shows": (about("tom"), "shows nobody who labelled it base-fix"),
    "changed since it was labelled": (
        about("eve", labelled("olga"), edited_by="eve"),
        "had its text changed by @eve, who may not write here",
    ),
    "named otherwise since it was labelled": (
        about("eve", labelled("olga"), RENAMED_BY_EVE),
        "had its title changed by @eve, who may not write here",
    ),
}


@pytest.mark.parametrize("row", WANTED)
def test_an_issue_is_mended_by_the_word_of_those_who_may_start_work(row: str) -> None:
    issue, against = WANTED[row]
    assert whose_word(issue, "us", lambda login: login == "olga") == against


def test_the_issue_names_checks_and_commit_and_lets_nothing_out_of_its_line() -> None:
    text = ailment("lint", "a\n\nb\u202e")
    assert text.title == "CI red on main: lint, a b\\u202e"
    assert f"fail on `main` at {COMMIT}" in text.body
    assert "\n- lint: u/lint\n- a b\\u202e: u/a b\\u202e\n\n" in text.body
    assert text.body.startswith(text.marker)


def test_many_checks_have_a_title_that_github_takes() -> None:
    many = ailment(*(f"a check with a long name, number {number}" for number in range(50)))
    assert len(many.title) == 250
    assert many.is_named_by(many.title)


@pytest.mark.parametrize(("labels", "is_one"), [({"base-fix"}, True), ({"Base-Fix", "bug"}, True), ({"bug"}, False)])
def test_the_label_tells_an_issue_that_mends_the_base_branch(labels: set[str], *, is_one: bool) -> None:
    issue = Issue(number=1, title="t", body="", is_open=True, labels=frozenset(labels), is_pull_request=False, url="u")
    assert is_base_fix(issue) is is_one
