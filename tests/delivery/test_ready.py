"""Which issues may be taken, and why others may not: as tables."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from delivery.cycles import cycle_of, waits_of
from delivery.github import Deed, Linked, QueuedIssue, Role, Word
from delivery.labelling import labelling
from delivery.ready import AskForRole, LookForPullRequest, PassedOver, Ready, explain, judge, let_at
from delivery.ready_facts import Lets, Name, PickupRules, Prospect, Vanished, crowd_of
from delivery.tries import read_tries, waits_until

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
REPOSITORY = "acme/widget"
READY = "ready-for-agent"


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def labelled(minutes: float = 60, actor: str = "olga", label: str = READY, what: Word = Word.LABELED) -> Deed:
    return Deed(what=what, actor=actor, at=ago(minutes), label=label)


def renamed(minutes: float, actor: str) -> Deed:
    return Deed(what=Word.RENAMED, actor=actor, at=ago(minutes))


def other(number: int, *, repository: str = REPOSITORY, is_open: bool = True, parent: int | None = None) -> Linked:
    return Linked(
        repository=repository,
        number=number,
        title="Other",
        url="",
        is_open=is_open,
        parent=None if parent is None else (REPOSITORY, parent),
    )


ISSUE = QueuedIssue(
    number=7,
    title="Add a lamp",
    body="It is dark.",
    url="https://github.com/acme/widget/issues/7",
    author="eve",
    is_open=True,
    labels=frozenset({READY}),
    created_at=ago(600),
    deeds=(labelled(),),
)
PROSPECT = Prospect(
    issue=ISSUE,
    repository=REPOSITORY,
    rules=PickupRules(),
    now=NOW,
    viewer="nightkeep",
    pull_request="",
    roles={"olga": Role.WRITE, "adam": Role.ADMIN, "tom": Role.READ, "eve": Role.READ},
)


def issue(**changes: object) -> Prospect:
    return replace(PROSPECT, issue=replace(ISSUE, **changes))  # type: ignore[arg-type]


def with_labels(*labels: str) -> Prospect:
    return issue(labels=frozenset({READY, *labels}))


def passed(prospect: Prospect) -> tuple[Name, str] | None:
    match judge(prospect):
        case Ready():
            return None
        case PassedOver(fact):
            return fact.name, fact.text
        case look:
            raise AssertionError(f"{look} where all is known")


@pytest.mark.parametrize(
    ("prospect", "name", "words"),
    [
        (issue(is_open=False), Name.OPEN, "is closed"),
        (issue(labels=frozenset({"bug"})), Name.LABEL, f"is not labelled {READY}"),
        *[
            (with_labels(label), Name.UNREADY, f"is labelled {label}")
            for label in ("ready-for-human", "Needs-Info", "WONTFIX", "needs-triage")
        ],
        (with_labels("wontfix", "needs-info"), Name.UNREADY, "is labelled needs-info, wontfix"),
        (with_labels("In-Progress"), Name.CLAIM, "is labelled In-Progress"),
        (replace(PROSPECT, holder="run 1 on mill"), Name.CLAIM, "is taken by run 1 on mill"),
        (issue(parent=other(9)), Name.SPEC, "is a sub-issue of #9, and is worked on with it"),
        (issue(parent=other(9, repository="acme/plan")), Name.SPEC, "is a sub-issue of acme/plan#9"),
        (with_labels("Base-Fix"), Name.BASE_FIX, "is labelled Base-Fix"),
        (issue(blockers=(other(3), other(4, is_open=False), other(5))), Name.BLOCKERS, "is blocked by #3, #5"),
        (issue(blockers=(other(3, repository="acme/plan"),)), Name.BLOCKERS, "is blocked by acme/plan#3"),
        (issue(unseen_blockers=1), Name.BLOCKERS, "is blocked by 1 issue that the token may not see"),
        (issue(unseen_blockers=2), Name.BLOCKERS, "is blocked by 2 issues that the token may not see"),
        (
            replace(issue(blockers=(other(3),)), cycle=("#7", "#3")),
            Name.BLOCKERS,
            "is blocked by #3, and waits for itself (#7 waits for #3 waits for #7): take one of the links away",
        ),
        (
            replace(issue(blockers=(other(3),)), cycle=("#7", *(f"#{n}" for n in range(20, 80)))),
            Name.BLOCKERS,
            "waits for #24 waits for #25 waits for #26 waits for … waits for #7): take one of the links away",
        ),
        (
            issue(blockers=tuple(other(number) for number in range(20, 32))),
            Name.BLOCKERS,
            "is blocked by #20, #21, #22, #23, #24, #25, #26, #27, #28, #29 and 2 more",
        ),
        (replace(PROSPECT, branches=frozenset({"issue-7"})), Name.STARTED, "has been started, issue-7 is on origin"),
        (replace(PROSPECT, branches=frozenset({"issue-7-branch-2"})), Name.STARTED, "issue-7-branch-2 is on origin"),
        (replace(PROSPECT, pull_request="https://x/pull/8"), Name.STARTED, "https://x/pull/8 is from its branch"),
        (issue(tickets=2, tickets_closed=2), Name.TICKETS, "has sub-issues, and all of them are closed"),
        (issue(deeds=(labelled(9),)), Name.SETTLED, "is not settled: labels or links changed at 2026-01-02 11:51 UTC"),
        (issue(linked_at=ago(1)), Name.SETTLED, "ready at 2026-01-02 12:09 UTC"),
        (issue(deeds=()), Name.STARTER, f"shows nobody who labelled it {READY}; label it anew"),
        (issue(deeds=(labelled(actor="tom"),)), Name.STARTER, "by @tom, who may not write here"),
        (issue(deeds=(labelled(actor="bot[bot]"),)), Name.STARTER, "a bot that pickup.bots does not name"),
        (issue(deeds=(labelled(actor=""),)), Name.STARTER, "by an account that is gone"),
        (issue(edited_by="eve", edited_at=ago(30)), Name.TEXT, "had its text changed after it was labelled, by @eve"),
        (issue(edited_by="", edited_at=ago(30)), Name.TEXT, "by an account that is gone"),
        (issue(edited_by="eve", edited_at=ago(60)), Name.TEXT, "by @eve"),
        (issue(deeds=(labelled(), renamed(30, "eve"))), Name.TEXT, "had its title changed after it was labelled"),
        (
            replace(PROSPECT, crowd=crowd_of((1, 15), 3, PickupRules(limit=3))),
            Name.LIMIT,
            "3 issues are labelled in-progress, and pickup.limit is 3; merge or close #1, #15, or raise pickup.limit",
        ),
        (
            replace(PROSPECT, tries=(ago(59),)),
            Name.WAIT,
            "until 2026-01-02 12:01 UTC, because its last Run made nothing",
        ),
    ],
)
def test_what_stands_in_the_way(prospect: Prospect, name: Name, words: str) -> None:
    found = passed(prospect)
    assert found is not None
    assert found[0] is name
    assert words in found[1]


@pytest.mark.parametrize(
    "prospect",
    [
        PROSPECT,
        issue(labels=frozenset({"READY-for-Agent", "bug"})),
        issue(blockers=(other(3, is_open=False),)),
        replace(PROSPECT, branches=frozenset({"issue-70", "issue-77-branch-2", "issue-7x", "main"})),
        issue(tickets=3, tickets_closed=2),
        issue(deeds=(labelled(10),)),  # exactly ten minutes
        issue(linked_at=ago(10)),
        issue(deeds=(labelled(1, label="bug"), labelled(600))),  # another label
        issue(edited_by="eve", edited_at=ago(61)),
        issue(edited_by="adam", edited_at=ago(30)),
        issue(deeds=(renamed(90, "eve"), labelled(), renamed(50, "eve"), renamed(40, "olga"))),  # olga has seen it
        issue(deeds=(labelled(90, "tom"), labelled(80, "tom", what=Word.UNLABELED), labelled(70, "olga"))),
        replace(PROSPECT, tries=(ago(59 + 61), ago(61))),  # before it was labelled
        replace(issue(deeds=(labelled(600),)), tries=(ago(300), ago(120))),
        replace(issue(deeds=(labelled(actor="Fix[bot]"),)), rules=PickupRules(bots=("fix[bot]",))),
    ],
)
def test_what_may_be_taken(prospect: Prospect) -> None:
    assert passed(prospect) is None


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize(
    ("login", "role", "may"),
    [
        ("owner", Role.ADMIN, True),
        ("writer", Role.WRITE, True),
        ("triager", Role.READ, False),
        ("reader", Role.READ, False),
        ("outsider", Role.NONE, False),
        ("listed[bot]", None, True),
        ("other[bot]", Role.ADMIN, False),
    ],
)
def test_who_may_start_work(login: str, role: Role | None, *, may: bool, edited: bool) -> None:
    """Who labelled, times whether it was edited afterwards: by the same account, and by somebody who may not write."""
    roles = {"eve": Role.READ} | ({login: role} if role else {})
    prospect = replace(issue(deeds=(labelled(actor=login),)), rules=PickupRules(bots=("listed[bot]",)), roles=roles)
    if edited:
        own = replace(prospect, issue=replace(prospect.issue, edited_by=login, edited_at=ago(5)))
        assert (passed(own) is None) is may
        prospect = replace(prospect, issue=replace(prospect.issue, edited_by="eve", edited_at=ago(5)))
    found = passed(prospect)
    if not may:
        assert found is not None
        assert found[0] is Name.STARTER
    elif edited:
        assert found is not None
        assert found[0] is Name.TEXT
    else:
        assert found is None


LADDER: list[tuple[Name, str, dict[str, object]]] = [
    (Name.UNREADY, "wontfix", {}),
    (Name.CLAIM, "in-progress", {}),
    (Name.SPEC, "", {"parent": other(9)}),
    (Name.BASE_FIX, "base-fix", {}),
    (Name.BLOCKERS, "", {"blockers": (other(3),)}),
    (Name.STARTED, "", {}),
    (Name.TICKETS, "", {"tickets": 1, "tickets_closed": 1}),
    (Name.SETTLED, "", {"linked_at": ago(1)}),
]


@pytest.mark.parametrize("rung", range(len(LADDER)))
def test_the_first_reason_of_several_is_told(rung: int) -> None:
    rest = LADDER[rung:]
    changes = {key: value for _, _, one in rest for key, value in one.items()}
    labels = frozenset({READY, *(label for _, label, _ in rest if label)})
    is_started = any(name is Name.STARTED for name, _, _ in rest)
    prospect = replace(issue(**changes, labels=labels), branches=frozenset({"issue-7"} if is_started else ()))
    found = passed(prospect)
    assert found is not None
    assert found[0] is LADDER[rung][0]


def test_questions_are_asked_only_when_nothing_else_stands_in_the_way() -> None:
    unknown = replace(PROSPECT, pull_request=None, roles={})
    assert judge(unknown) == LookForPullRequest()
    assert judge(replace(unknown, pull_request="")) == AskForRole("olga")
    edited = replace(unknown, pull_request="", roles={"olga": Role.WRITE})
    edited = replace(edited, issue=replace(ISSUE, edited_by="eve", edited_at=ago(5)))
    assert judge(edited) == AskForRole("eve")
    not_settled = replace(unknown, issue=replace(ISSUE, linked_at=ago(1)))
    assert isinstance(judge(not_settled), PassedOver)


TAKEN = replace(
    issue(labels=frozenset({"in-progress"}), deeds=(labelled(90), labelled(60, "nightkeep", what=Word.UNLABELED))),
    vanished=Vanished(run="20260102T110000Z-aa", host="mill", since=ago(60)),
    branches=frozenset({"issue-7"}),
    roles={"eve": Role.READ, "olga": Role.WRITE},
)


@pytest.mark.parametrize(
    ("prospect", "name"),
    [
        (TAKEN, None),
        (replace(TAKEN, holder="run 2"), Name.CLAIM),
        (replace(TAKEN, issue=replace(TAKEN.issue, is_open=False)), Name.OPEN),
        (replace(TAKEN, issue=replace(TAKEN.issue, blockers=(other(3),))), Name.BLOCKERS),
        (replace(TAKEN, issue=replace(TAKEN.issue, edited_by="olga", edited_at=ago(30))), None),
        (replace(TAKEN, issue=replace(TAKEN.issue, edited_by="eve", edited_at=ago(70))), None),
        (replace(TAKEN, issue=replace(TAKEN.issue, edited_by="eve", edited_at=ago(30))), Name.TEXT),
        (replace(TAKEN, tries=(ago(10),)), Name.WAIT),
        (replace(TAKEN, vanished=None), Name.LABEL),
    ],
)
def test_what_a_run_left_that_vanished_is_taken_up(prospect: Prospect, name: Name | None) -> None:
    found = passed(prospect)
    assert (found and found[0]) is name


@pytest.mark.parametrize(
    ("prospect", "minutes"),
    [
        (PROSPECT, 60),
        (issue(deeds=(labelled(90, "tom"), labelled(80, "tom", what=Word.UNLABELED), labelled(70))), 70),
        (issue(deeds=()), None),
        (TAKEN, 90),
        # Taken over for the second time, and started by a person whom no label told.
        (replace(TAKEN, vanished=Vanished(run="r", host="mill", since=ago(30))), 90),
        (replace(TAKEN, issue=replace(TAKEN.issue, deeds=())), 60),
    ],
)
def test_tickets_are_as_they_were_when_somebody_let_the_spec_be_taken(
    prospect: Prospect, minutes: float | None
) -> None:
    assert let_at(prospect) == (None if minutes is None else ago(minutes))


def test_every_fact_is_told_in_order() -> None:
    told = explain(PROSPECT)
    assert [fact.name for fact in told] == list(Name)
    assert all(fact.lets is Lets.YES for fact in told)


def test_whose_word_it_was_is_no_question_where_nobody_has_labelled_it() -> None:
    """Nor whether a Run has started it while one works on it: what would be said then is bad advice."""
    told = {fact.name: fact for fact in explain(issue(labels=frozenset({"in-progress"}), deeds=()))}
    moot = {name: fact.text for name, fact in told.items() if fact.lets is Lets.MOOT}
    assert moot == {
        Name.STARTED: "not asked, see claim",
        Name.STARTER: "not asked, see label",
        Name.TEXT: "not asked, see label",
    }


OFF = Word.UNLABELED


@pytest.mark.parametrize(
    ("deeds", "actor"),
    [
        ([], None),
        ([labelled(actor="olga")], "olga"),
        ([labelled(9, "olga"), labelled(8, "olga", what=OFF)], None),
        ([labelled(9, "tom"), labelled(8, "tom", what=OFF), labelled(7, "olga")], "olga"),
        # A Run took it off and put it back: tom's word it was, and tom's it is.
        ([labelled(9, "tom"), labelled(8, "nightkeep", what=OFF), labelled(7, "nightkeep")], "tom"),
        ([labelled(9, "tom"), *[labelled(8, "nightkeep", what=OFF), labelled(7, "nightkeep")] * 3], "tom"),
        ([labelled(9, "tom"), labelled(8, "nightkeep", what=OFF), labelled(7, "olga")], "olga"),
        ([labelled(9, "tom"), labelled(8, "olga", what=OFF), labelled(7, "nightkeep")], "nightkeep"),
        # Who it was is not in sight any more.
        ([labelled(8, "nightkeep", what=OFF), labelled(7, "nightkeep")], None),
        ([labelled(9, "olga", "READY-FOR-AGENT"), labelled(8, "tom", "bug")], "olga"),
    ],
)
def test_whose_word_it_was(deeds: list[Deed], actor: str | None) -> None:
    found = labelling(deeds, READY, "nightkeep")
    assert (found and found.actor) == actor


@pytest.mark.parametrize(("tries", "hours"), [(1, 1), (2, 2), (3, 4), (4, 8), (10, 512), (30, 512)])
def test_the_wait_doubles(tries: int, hours: int) -> None:
    moments = [ago(minutes) for minutes in range(tries)]
    assert waits_until(moments) == NOW + timedelta(hours=hours)
    assert waits_until(()) is None


def test_tries_are_read_from_the_names_of_refs() -> None:
    refs = ["7/20260102T115900Z", "7/20260102T100000Z", "70/20260102T100000Z", "7/20260230T100000Z", "7/x", "x/y", ""]
    found = read_tries([f"refs/nightkeep/tries/{ref}" for ref in refs] + ["refs/heads/7/20260102T115900Z"])
    assert found == {7: (ago(120), ago(1)), 70: (ago(120),)}


def key(number: int) -> tuple[str, int]:
    return (REPOSITORY, number)


@pytest.mark.parametrize(
    ("waits", "cycle"),
    [
        ({}, ()),
        ({1: [1]}, (1,)),
        ({1: [2], 2: [1]}, (1, 2)),
        ({1: [2, 3], 2: [4], 3: [1], 4: [1]}, (1, 3)),
        ({1: [2], 2: [3], 3: [2]}, ()),  # it waits for a cycle, and is in none
        ({number: [number % 60 + 1] for number in range(1, 61)}, tuple(range(1, 61))),
        ({number: [number + 1] for number in range(1, 61)}, ()),
    ],
)
def test_cycles_are_found_and_end(waits: dict[int, list[int]], cycle: tuple[int, ...]) -> None:
    found = cycle_of(key(1), {key(one): [key(there) for there in those] for one, those in waits.items()})
    assert found == tuple(key(one) for one in cycle)


def test_an_issue_that_its_own_sub_issue_blocks_waits_for_itself() -> None:
    waits = waits_of(replace(ISSUE, blockers=(other(8, parent=7), other(9, is_open=False, parent=7))), REPOSITORY)
    assert cycle_of(key(7), waits) == (key(7), key(8))
