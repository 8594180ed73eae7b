"""What a journal tells of a Run that was killed."""

from collections.abc import Mapping

import pytest

from delivery.causes import Code, Stage
from delivery.unfinished import read_unfinished

Entry = Mapping[str, object]

CLAIM: Entry = {
    "step": "claim",
    "clone": "/c/.git",
    "host": "h",
    "issue": "https://github.com/acme/widget/issues/7",
    "base": "main",
    "branch": "issue-7",
    "ready": "ready-for-agent",
    "in_progress": "in-progress",
    "was_ready": True,
    "was_in_progress": False,
    "continued": False,
    "opens_draft": True,
    "continue_command": "nightkeep run URL",
    "run": "r1",
    "nonce": "n1",
    "lease": 60.0,
    "atomic": True,
}
BEGUN: Entry = {"step": "begun", "run": "r1", "path": "/c-issue-7"}
FAILED: Entry = {"step": "preserve", "cause": "no", "code": "agent-failed", "stage": "session"}


def entry(step: str, stage: str | None = None, **facts: object) -> Entry:
    return {"step": step, **facts, **({"stage": stage} if stage else {})}


@pytest.mark.parametrize(
    "entries",
    [[], [BEGUN], [CLAIM, entry("end")], [CLAIM, BEGUN, FAILED, entry("note", cause="no"), entry("end")]],
)
def test_nothing_is_unfinished(entries: list[Entry]) -> None:
    assert read_unfinished(entries) is None


@pytest.mark.parametrize(
    ("entries", "stage"),
    [
        ([CLAIM], Stage.WORKTREE),
        ([CLAIM, entry("ticket", "tickets", number=8)], Stage.TICKETS),
        ([CLAIM, entry("ticket", "tickets"), entry("worktree", "worktree"), BEGUN], Stage.WORKTREE),
        ([CLAIM, BEGUN, entry("session", "setup", kind="setup")], Stage.SETUP),
        ([CLAIM, BEGUN, entry("session", "session", kind="implement")], Stage.SESSION),
        ([CLAIM, BEGUN, entry("session", "session", kind="implement-resume")], Stage.SESSION),
        ([CLAIM, BEGUN, entry("session", "session", kind="spec-review")], Stage.SESSION),
        ([CLAIM, BEGUN, entry("session", "repair", kind="repair-1")], Stage.REPAIR),
        ([CLAIM, BEGUN, entry("push", "push"), entry("unfenced")], Stage.PUSH),
        ([CLAIM, BEGUN, entry("watch", "checks"), FAILED, entry("clean-up")], Stage.SESSION),
    ],
)
def test_it_was_killed_in_the_stage_that_it_had_last_entered(entries: list[Entry], stage: Stage) -> None:
    unfinished = read_unfinished(entries)
    assert unfinished is not None
    assert unfinished.stage is stage


READY = [CLAIM, BEGUN, entry("ready", "pull-request")]
MERGE = entry("merge", "merge", number=3, head="a")


@pytest.mark.parametrize(
    ("entries", "facts"),
    [
        ([CLAIM], {"run_id": None, "claimed_as": "r1", "nonce": "n1", "lease": 60.0, "is_atomic": True}),
        ([CLAIM, entry("unfenced")], {"claimed_as": "r1", "nonce": None}),
        ([CLAIM, BEGUN], {"run_id": "r1", "took_over": None, "is_spec": False, "unclaimed": False}),
        ([CLAIM, entry("take-over", run="r0"), BEGUN], {"took_over": "r0"}),
        ([CLAIM, entry("ticket", "tickets", number=8)], {"is_spec": True}),
        (READY, {"delivered": False, "cause": None, "code": None, "merging": None}),
        ([*READY, entry("clean-up")], {"delivered": True}),
        ([*READY, MERGE], {"merging": (3, "a"), "delivered": False}),
        ([*READY, MERGE, FAILED], {"merging": None, "cause": "no", "code": Code.AGENT}),
        ([*READY, FAILED, entry("clean-up")], {"delivered": False, "cause": "no", "code": Code.AGENT}),
        ([CLAIM, {**FAILED, "step": "draft"}], {"run_id": None, "cause": "no", "code": Code.AGENT}),
        ([*READY, entry("clean-up"), entry("note", cause=None), entry("unclaim")], {"unclaimed": True}),
    ],
)
def test_what_is_left_to_do(entries: list[Entry], facts: Mapping[str, object]) -> None:
    unfinished = read_unfinished(entries)
    assert {name: getattr(unfinished, name) for name in facts} == facts


@pytest.mark.parametrize("entries", [[{}], [{"step": "claim"}], [CLAIM, {"step": "begun"}]])
def test_entries_of_something_else_are_refused(entries: list[Entry]) -> None:
    with pytest.raises(ValueError, match="an entry lacks"):
        read_unfinished(entries)
