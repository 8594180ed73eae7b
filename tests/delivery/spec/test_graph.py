"""What may start next in a Spec, where each Ticket stands, and when it is over."""

import random
from collections.abc import Mapping

import pytest

from delivery.causes import Code
from delivery.child_runs import ChildEnding
from delivery.github import Linked, Ticket
from delivery.spec.graph import Attempts, Graph, Over, Start, Step, Wait

HERE = "acme/widget"
LANDED = ChildEnding(merged=True, url="https://hub/pull/9")
FAILED = ChildEnding(cause="the agent exited 3", code=Code.AGENT, url="https://hub/pull/8")
TAKEN = ChildEnding(cause="issue #3 is claimed", taken=True)
STOPPED = ChildEnding(cause="interrupted by SIGTERM", code=Code.INTERRUPTED)


def linked(name: str) -> Linked:
    """Return a blocker; one in brackets is closed."""
    repository, _, number = name.strip("()").rpartition("#")
    is_open = not name.startswith("(")
    return Linked(repository=repository or HERE, number=int(number), title="", url="", is_open=is_open)


def ticket(number: int, *blockers: str, **facts: object) -> Ticket:
    """Return a Ticket that is open; its blockers are as in `linked`."""
    there = {"repository": HERE, "number": number, "is_open": True, "blockers": tuple(map(linked, blockers))}
    return Ticket(title="", url="", **{**there, **facts})  # type: ignore[arg-type]  # facts by name


def graph(*tickets: Ticket) -> Graph:
    return Graph(repository=HERE, tickets=tickets, unready=("needs-info", "wontfix"))


def name(one: Ticket) -> str:
    return one.name_in(HERE)


def started(step: Step) -> tuple[str, ...]:
    assert isinstance(step, Start), step
    return tuple(map(name, step.tickets))


DIAMOND = (ticket(4), ticket(5, "#4"), ticket(6, "#4"), ticket(7, "#5", "#6"))


@pytest.mark.parametrize(
    ("tickets", "attempts", "expected"),
    [
        pytest.param(DIAMOND, {}, ("#4",), id="only what nothing blocks"),
        pytest.param((ticket(12), ticket(3), ticket(7)), {}, ("#3", "#7"), id="the lowest numbers, two at once"),
        pytest.param((ticket(3), ticket(7), ticket(8)), {"#3": None}, ("#7",), id="as much as there is room for"),
        pytest.param((ticket(3), ticket(7)), {"#3": None, "#7": None}, Wait(), id="no room"),
        pytest.param((ticket(3), ticket(7, "#3")), {"#3": None}, Wait(), id="blocked by one that runs"),
        pytest.param(
            (ticket(3, is_open=False), ticket(7, "(#3)")), {"#3": None}, Wait(), id="closed, but its Run has not ended"
        ),
        pytest.param((ticket(3, is_open=False), ticket(7, "(#3)")), {"#3": LANDED}, ("#7",), id="one that landed"),
        pytest.param((ticket(3), ticket(7)), {"#3": TAKEN}, ("#7",), id="one that another run has"),
        pytest.param((ticket(3), ticket(7, "#3")), {"#3": TAKEN}, Wait(), id="only one that another run has"),
        pytest.param((ticket(3, is_open=False), ticket(7, "(#3)")), {}, ("#7",), id="one that was closed before"),
        pytest.param(
            (ticket(3), ticket(7, "#3"), ticket(8)), {"#3": FAILED}, ("#8",), id="a failed one stops what it blocks"
        ),
        pytest.param((ticket(3), ticket(7, "#3")), {"#3": FAILED}, Over(("#3", "#7")), id="and is not tried again"),
        pytest.param((ticket(3), ticket(7, "#3")), {"#3": LANDED}, Over(("#3", "#7")), id="landed, and still open"),
        pytest.param((ticket(3, "#99"),), {}, Over(("#3",)), id="blocked from outside"),
        pytest.param((ticket(3, "(#99)"),), {}, ("#3",), id="blocked from outside no more"),
        pytest.param((ticket(3, "#4"), ticket(4, "#3")), {}, Over(("#3", "#4")), id="a cycle"),
        pytest.param((ticket(3, labels=frozenset({"Needs-Info"})),), {}, Over(("#3",)), id="an unready label"),
        pytest.param((ticket(3, labels=frozenset({"bug"})),), {}, ("#3",), id="another label"),
        pytest.param((ticket(3, tickets=1),), {}, Over(("#3",)), id="a Spec of its own"),
        pytest.param((ticket(3, repository="acme/other"),), {}, Over(("acme/other#3",)), id="elsewhere"),
        pytest.param((ticket(3, is_open=False),), {}, Over(()), id="all done"),
        pytest.param((), {}, Over(()), id="no Ticket"),
    ],
)
def test_the_next_step(tickets: tuple[Ticket, ...], attempts: Attempts, expected: Step | tuple[str, ...]) -> None:
    step = graph(*tickets).decide(attempts, parallel=2, stopping=False)
    assert (started(step) if isinstance(expected, tuple) else step) == expected


@pytest.mark.parametrize(
    ("attempts", "expected"), [({"#3": None}, Wait()), ({"#3": FAILED}, Over(("#3", "#4"))), ({}, Over(("#3", "#4")))]
)
def test_nothing_starts_any_more_when_it_is_stopping(attempts: Attempts, expected: Step) -> None:
    assert graph(ticket(3), ticket(4)).decide(attempts, parallel=2, stopping=True) == expected


@pytest.mark.parametrize(
    ("one", "attempts", "words", "is_done"),
    [
        pytest.param(ticket(3), {}, "not started", False, id="not-started"),
        pytest.param(ticket(3), {"#3": None}, "running", False, id="running"),
        pytest.param(ticket(3, is_open=False), {"#3": None}, "running", False, id="closed-while-it-runs"),
        pytest.param(ticket(3, is_open=False), {"#3": LANDED}, "merged, https://hub/pull/9", True, id="landed"),
        pytest.param(ticket(3, is_open=False), {}, "closed", True, id="closed"),
        pytest.param(ticket(3, is_open=False), {"#3": FAILED}, "closed", True, id="closed-after-it-failed"),
        pytest.param(ticket(3), {"#3": LANDED}, "merged, https://hub/pull/9, but still open", False, id="still-open"),
        pytest.param(ticket(3), {"#3": STOPPED}, "interrupted", False, id="interrupted"),
        pytest.param(ticket(3), {"#3": TAKEN}, "another run works on it", False, id="another-run-has-it"),
        pytest.param(ticket(3), {"#3": FAILED}, "failed, see https://hub/pull/8", False, id="failed"),
        pytest.param(ticket(3), {"#3": ChildEnding(cause="no")}, "failed", False, id="failed-without-pull-request"),
        pytest.param(
            ticket(3, labels=frozenset({"wontfix", "Needs-Info"})),
            {},
            "not ready: labelled Needs-Info, wontfix",
            False,
            id="labelled",
        ),
        pytest.param(ticket(3, tickets=2), {}, "not ready: it has sub-issues of its own", False, id="a-Spec"),
        pytest.param(
            ticket(3, repository="acme/other"),
            {},
            "not ready: it is in another repository than the Spec",
            False,
            id="elsewhere",
        ),
        pytest.param(ticket(3, "#4"), {}, "blocked by #4", False, id="blocked"),
        pytest.param(
            ticket(3, "#4", "(#5)", "#99", "acme/other#4"),
            {},
            "blocked by #4, #99 (outside the Spec), acme/other#4 (outside the Spec)",
            False,
            id="every-blocker",
        ),
        pytest.param(ticket(3, "#4"), {"#4": FAILED}, "blocked by #4", False, id="blocked-by-a-failed-one"),
    ],
)
def test_where_a_ticket_stands(one: Ticket, attempts: Attempts, words: str, is_done: bool) -> None:  # noqa: FBT001
    standing = graph(one, ticket(4)).standings(attempts)[0 if one.is_in(HERE) else 1]
    assert (standing.name, standing.words, standing.is_done) == (name(one), words, is_done)
    assert standing.cause == (attempts[name(one)].cause if words.startswith("failed") else None)  # type: ignore[union-attr]


def test_a_ticket_that_others_changed_is_not_ready() -> None:
    seen = Graph(repository=HERE, tickets=(ticket(3), ticket(4)), unread={"#3": "its text is by @eve"})
    assert [standing.words for standing in seen.standings({})] == ["not ready: its text is by @eve", "not started"]
    assert started(seen.decide({}, parallel=2, stopping=False)) == ("#4",)


@pytest.mark.parametrize(
    ("tickets", "words"),
    [
        ((ticket(3, "#4"), ticket(4, "#3")), "in a cycle: #3 is blocked by #4, that by #3"),
        ((ticket(3, "#3"),), "in a cycle: #3 is blocked by #3"),
        ((ticket(3, "#5", "#4"), ticket(4, "#3"), ticket(5, "#6"), ticket(6, "#3")), "#3 is blocked by #4, that by #3"),
        ((ticket(3, "#4"), ticket(4, "#5"), ticket(5, "#4")), "blocked by #4"),
        ((ticket(3, "#4"), ticket(4, "(#3)")), "blocked by #4"),
        ((ticket(3, "#4"), ticket(4, "#3", is_open=False)), "blocked by #4"),
    ],
)
def test_a_cycle_is_named_at_each_ticket_in_it(tickets: tuple[Ticket, ...], words: str) -> None:
    assert graph(*tickets).standings({})[0].words.removeprefix("in a cycle: ") == words.removeprefix("in a cycle: ")


def test_a_long_cycle_is_shortened() -> None:
    ring = [ticket(number, f"#{number % 20 + 1}") for number in range(1, 21)]
    words = graph(*ring).standings({})[0].words
    assert words.startswith("in a cycle: #1 is blocked by #2, that by #3, ")
    assert words.endswith(", that by #8, that by …, that by #1")


@pytest.mark.parametrize("seed", range(300))
def test_any_graph_is_worked_off_in_order_and_ends(seed: int) -> None:
    """Play random graphs, cycles among them, with random failures, people who close and reopen, and odd Tickets."""
    chance = random.Random(seed)
    numbers = range(1, chance.randint(2, 25))
    links = {n: [m for m in numbers if m != n and chance.random() < 0.1] for n in numbers}
    odd: dict[int, dict[str, object]] = {
        n: {"labels": frozenset({"wontfix"})} for n in numbers if chance.random() < 0.05
    }
    is_open = dict.fromkeys(numbers, True)
    attempts: dict[str, ChildEnding | None] = {}
    parallel, tried = chance.randint(1, 4), list[str]()
    for _ in range(5 * len(numbers)):
        now = graph(*(_as_it_is(n, links, is_open, odd) for n in numbers))
        step = now.decide(attempts, parallel=parallel, stopping=False)
        if isinstance(step, Over):
            assert set(step.left) == {f"#{n}" for n in numbers if is_open[n]}
            assert not any(now.may_start(one, attempts) for one in now.tickets)
            break
        if isinstance(step, Start):
            for one in step.tickets:
                assert not [m for m in links[one.number] if is_open[m] or attempts.get(f"#{m}", LANDED) is None]
                tried.append(name(one))
                attempts[name(one)] = None
        running = [one for one, ending in attempts.items() if ending is None]
        assert 0 < len(running) <= parallel
        ended = chance.choice(running)
        attempts[ended] = chance.choice([LANDED, LANDED, FAILED])
        is_open[int(ended[1:])] = attempts[ended] is FAILED
    else:
        raise AssertionError("it does not end")
    assert len(tried) == len(set(tried))


def _as_it_is(
    number: int, links: Mapping[int, list[int]], is_open: Mapping[int, bool], odd: Mapping[int, dict[str, object]]
) -> Ticket:
    blockers = [f"#{m}" if is_open[m] else f"(#{m}" for m in links[number]]
    return ticket(number, *blockers, is_open=is_open[number], **odd.get(number, {}))
