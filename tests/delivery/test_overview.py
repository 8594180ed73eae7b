"""How it stands with an issue, by what shows of its Runs: as a table."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from delivery.claims import ClaimRecord, ClaimStanding, Expired, Held, SeenClaim
from delivery.github import PullRequest
from delivery.issue_state import State
from delivery.note import Noted, NoteFacts, failure_note, resolved_note, what_is_noted
from delivery.outcome import Outcome, Result
from delivery.overview import Traces, state_by, traces_of
from worktree import Preserved
from worktree.inventory import Listed, Standing

READY = PullRequest(
    number=8, url="u/8", is_open=True, is_draft=False, base="main", branch="issue-7", head="c" * 40, body=""
)
DRAFT = replace(READY, is_draft=True)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("traces", "state", "words"),
    [
        (Traces(holder="run r on mill"), State.RUNNING, "run r on mill"),
        (Traces(holder="run r on mill", killed=True), State.FAILED, "finish it: nightkeep recover"),
        (Traces(holder="run r on mill", pull=DRAFT, noted=Noted.FAILED), State.RUNNING, "run r on mill"),
        (Traces(pull=DRAFT, noted=Noted.FAILED), State.FAILED, "the note on its pull request says why"),
        (Traces(pull=DRAFT), State.STARTED, "its pull request is a draft"),
        (Traces(pull=READY), State.DELIVERED, "its pull request is open"),
        (Traces(pull=READY, noted=Noted.NOT_MERGED), State.NOT_MERGED, "says what forbids it"),
        (Traces(vanished="run r on mill"), State.STARTED, "run r on mill has given no sign of life"),
    ],
)
def test_only_what_is_known_is_said(traces: Traces, state: State, words: str) -> None:
    found = state_by(traces)
    assert found is not None
    assert found[0] is state
    assert words in found[1]


def test_of_an_issue_without_a_trace_nothing_is_said() -> None:
    assert state_by(Traces()) is None


RECORD = ClaimRecord(
    nonce="n" * 32,
    run="r",
    host="mill",
    issue="u/7",
    branch="issue-7",
    since=NOW,
    moment=NOW,
    clock="server",
    lease=900,
)
SEEN = SeenClaim("refs/nightkeep/claims/7", "c" * 40, RECORD)


@pytest.mark.parametrize(
    ("claim", "standing", "traces"),
    [
        (None, None, Traces()),
        (Held(SEEN, RECORD, NOW), None, Traces(holder="run r on mill")),
        (Held(SEEN, RECORD, NOW), Standing.AT_WORK, Traces(holder="run r on mill, process 5")),
        (None, Standing.AT_WORK, Traces(holder="run r on mill, process 5")),
        (Expired(SEEN, RECORD), None, Traces(vanished="run r on mill")),
        (Expired(SEEN, RECORD), Standing.ORPHANED, Traces(vanished="run r on mill", killed=True)),
        (Held(SEEN, RECORD, NOW), Standing.ORPHANED, Traces(holder="run r on mill", killed=True)),
    ],
)
def test_a_claim_and_a_worktree_here_tell_who_is_at_work(
    claim: ClaimStanding | None, standing: Standing | None, traces: Traces
) -> None:
    here = Listed(run_id="r", standing=standing, host="mill", pid=5) if standing else None
    assert traces_of(claim, here, None, None) == traces
    assert traces_of(claim, here, DRAFT, Noted.FAILED) == replace(traces, pull=DRAFT, noted=Noted.FAILED)


@pytest.mark.parametrize(
    ("result", "noted"), [(Result.FAILED, Noted.FAILED), (Result.POLICY_REFUSAL, Noted.NOT_MERGED)]
)
def test_a_note_is_read_back(result: Result, noted: Noted) -> None:
    outcome = Outcome(
        result=result, issue_url="u/7", base="main", branch="issue-7", cause="no", preserved=Preserved.ORIGIN
    )
    facts = NoteFacts(moment=NOW, host="mill", log_text="", continue_command="nightkeep run u/7")
    note = failure_note(outcome, facts)
    assert what_is_noted("issue-7", ["a word of a person's", note]) is noted
    assert what_is_noted("issue-70", [note]) is None
    assert what_is_noted("issue-7", [resolved_note("issue-7", "u/8", "r", NOW)]) is None
