"""Pickup and Specs: taken as a whole, with no word about their Tickets."""

import pytest

from tests.scenarios.repairing import QUICKLY
from tests.scenarios.spec import agent, pull_of
from tests.scenarios.stage import Result, Stage

pytestmark = pytest.mark.timeout(400)  # a Spec run is several Runs


def pickup(stage: Stage, *options: str) -> Result:
    stage.patience = max(stage.patience, 240)
    return stage.pickup(agent(stage), *options, **{**QUICKLY, "NIGHTKEEP_CHECKS_GRACE": "1s"})


def whole(stage: Stage, *tickets: int) -> int:
    """File a Spec that is ready, with those Tickets, which were there before it was labelled."""
    number = stage.ready("The whole")
    for ticket in tickets:
        stage.people.add_sub_issue(number, ticket, "olga")
        stage.people.age(ticket, 24 * 3600)
    stage.people.age(number, 3600)
    return number


def told(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("nightkeep: #") and "is a sub-issue" in line]


def test_a_ready_spec_is_taken_and_its_tickets_get_no_line(stage: Stage) -> None:
    below = stage.ready("A part")
    number = whole(stage, below)
    result = pickup(stage, "--parallel", "1")
    assert result.status == 0, result
    assert result.stdout.strip() == pull_of(stage, f"issue-{number}")["html_url"]
    assert stage.api("GET", f"issues/{below}")["state"] == "closed"
    assert told(result) == []


def test_a_ticket_that_an_outsider_changed_after_the_label_is_not_begun(stage: Stage) -> None:
    """It would come with a word that was said of another text; what somebody changed who may write is read."""
    same, changed, mended = (stage.people.open("eve", "A part", f"Text {part}") for part in range(3))
    number = whole(stage, same, changed, mended)
    stage.people.edit(changed, "eve", body="Another text")
    stage.people.edit(mended, "olga", body="A better text")
    late = stage.people.open("eve", "A part", "A new text")
    stage.people.add_sub_issue(number, late, "olga")
    stage.people.age(number, 60)
    result = pickup(stage, "--json", "--parallel", "1")
    assert (result.status, result.document["code"]) == (1, "tickets-not-done"), result
    assert {one for one in (same, changed, mended, late) if (stage.root / f"prompt-{one}-implement").exists()} == {
        same,
        mended,
    }
    why = f"not ready: its text is newer than the label of #{number}, and by @eve, who may not write here"
    assert result.document["secondary"][:2] == [f"#{changed}: {why}", f"#{late}: {why}"]
    # Whoever goes on with it by hand has read it.
    again = stage.run(number, agent(stage), **{**QUICKLY, "NIGHTKEEP_CHECKS_GRACE": "1s"})
    assert again.status == 0, again


def test_a_ticket_of_a_spec_that_is_not_ready_waits_for_it(stage: Stage) -> None:
    below = stage.ready("A part")
    number = whole(stage, below)
    stage.people.label(number, "olga", "needs-info")
    result = pickup(stage)
    assert result.status == 0, result
    assert told(result) == [f"nightkeep: #{below} is a sub-issue of #{number}, and is worked on with it"]
    assert stage.labels(below) == {"ready-for-agent"}


def test_a_spec_without_an_open_ticket_is_passed_over_and_changes_nothing(stage: Stage) -> None:
    ticket = stage.people.open("eve", "A part")
    number = whole(stage, ticket)
    stage.people.close(ticket, "olga")
    before = stage.everything()
    result = pickup(stage)
    assert result.status == 0, result
    assert f"#{number} has sub-issues, and all of them are closed" in result.stderr
    assert stage.everything() | {"state": 0} == before | {"state": 0}
