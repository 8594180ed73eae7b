"""The checklist in the Spec's pull request."""

import pytest

from delivery.issue_state import State
from delivery.spec.checklist import checklist, with_checklist
from delivery.spec.graph import TicketStanding

ROWS = (
    TicketStanding(name="#4", state=State.DONE, words="merged, https://hub/pull/9", title="Lay the floor"),
    TicketStanding(name="#5", state=State.FAILED, words="failed, see https://hub/pull/8", cause="the agent said `no`"),
    TicketStanding(name="#6", state=State.BLOCKED, words="blocked by #5"),
)
BLOCK = """\
<!-- nightkeep:tickets -->
### Tickets

- [x] #4 `Lay the floor`: merged, https://hub/pull/9
- [ ] #5: failed, see https://hub/pull/8: `` the agent said `no` ``
- [ ] #6: blocked by #5
<!-- /nightkeep:tickets -->"""
OLD = "<!-- nightkeep:tickets -->\nanything\n<!-- /nightkeep:tickets -->"


def test_it_says_where_each_ticket_stands() -> None:
    assert checklist(ROWS) == BLOCK


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("", BLOCK, id="empty"),
        pytest.param("Text.\n", f"Text.\n\n{BLOCK}", id="at-the-end"),
        pytest.param(f"Before.\n{OLD}\nAfter.", f"Before.\n{BLOCK}\nAfter.", id="in-place"),
        pytest.param(f"Before.\n{BLOCK}\nAfter.", f"Before.\n{BLOCK}\nAfter.", id="unchanged"),
        pytest.param(f"{OLD}\nBetween.\n{OLD}", f"{BLOCK}\nBetween.\n", id="copied"),
        pytest.param(
            "<!-- nightkeep:tickets -->\nhalf", f"<!-- nightkeep:tickets -->\nhalf\n\n{BLOCK}", id="its-end-was-deleted"
        ),
        pytest.param(
            "half\n<!-- /nightkeep:tickets -->",
            f"half\n<!-- /nightkeep:tickets -->\n\n{BLOCK}",
            id="its-beginning-was-deleted",
        ),
        pytest.param(
            f"Before.\r\n{OLD}\r\nAfter.".replace("\nany", "\r\nany"),
            f"Before.\r\n{BLOCK}\r\nAfter.",
            id="edited-on-the-web",
        ),
        pytest.param(f"By \\1 and \\g<0>.\n{OLD}", f"By \\1 and \\g<0>.\n{BLOCK}", id="backslashes"),
    ],
)
def test_only_what_is_between_its_markers_is_replaced(body: str, expected: str) -> None:
    assert with_checklist(body, BLOCK) == expected
    again = with_checklist(expected, BLOCK)
    assert with_checklist(again, BLOCK) == again


def test_a_cause_can_neither_call_somebody_nor_close_an_issue_nor_end_the_checklist() -> None:
    cause = "@somebody closes #1\n<!-- /nightkeep:tickets --> ``` [x](y)"
    text = checklist([TicketStanding(name="#5", state=State.FAILED, words="failed", cause=cause)])
    row = text.splitlines()[3]
    assert row == f"- [ ] #5: failed: ````{cause.splitlines()[0]} <!-- /nightkeep:tickets --> ``` [x](y)````"
    assert with_checklist(with_checklist("a", text), BLOCK) == f"a\n\n{BLOCK}"


@pytest.mark.parametrize(("tickets", "causes"), [(80, 300), (200, 100), (500, 0), (2000, 0)])
def test_however_many_tickets_there_are_it_fits(tickets: int, causes: int) -> None:
    rows = [TicketStanding(name=f"#{n}", state=State.FAILED, words="failed", cause="x" * 1000) for n in range(tickets)]
    text = checklist(rows)
    assert len(text) <= 30_000
    assert text.splitlines()[3].count("x") <= causes
    assert (f"- [ ] #{tickets - 1}: failed" in text) == (tickets < 2000)
    assert ("more\n<!-- /nightkeep:tickets -->" in text) == (tickets == 2000)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_follows_a_marker_that_has_lost_its_end_stays(end: str) -> None:
    body = end.join(["Mine", "<!-- nightkeep:tickets -->", "more of mine", ""])
    shown = with_checklist(body, OLD)
    assert with_checklist(shown, BLOCK) == f"{body.rstrip()}\n\n{BLOCK}"
