"""Runs of agents whose streams are read: what they leave in the background, what they may not do, what stops them."""

import signal
from pathlib import Path

import pytest

from tests.scenarios.repairing import COMMITS, QUICKLY, cause, is_ready
from tests.scenarios.stage import NAME, Result, Stage

AGENTS = Path(__file__).parents[1] / "agents"
STREAMS = Path(__file__).parents[1] / "runner" / "agents" / "streams"
SESSION = "8fd25b48-59c2-4d12-85b5-66bbee044dd6"  # of claude-background-stopped
STOPPED = "the session implement ended while this still ran, and was stopped: Review it"


def playing(stage: Stage, stream: str, resumed: str = "claude-commits", **environment: str) -> dict[str, str]:
    """Return the environment of an agent that prints a recorded stream, or another one when it is resumed."""
    kept(stage).mkdir()
    played = {
        "KEEP": str(kept(stage)),
        "STREAM": str(STREAMS / f"{stream}.jsonl"),
        "RESUMED": str(STREAMS / f"{resumed}.jsonl"),
        "DO": f"test $NIGHTKEEP_SESSION != implement || {{ {COMMITS}; }}",
    }
    return played | QUICKLY | environment


def play(stage: Stage, stream: str, *options: str, resumed: str = "claude-commits", **environment: str) -> Result:
    """Run an agent that does that."""
    agent = " ".join([str(AGENTS / "claude"), "-p", *options])
    return stage.run(stage.issue(), agent, **playing(stage, stream, resumed, **environment))


def kept(stage: Stage) -> Path:
    return stage.root / "kept"


def sessions(stage: Stage) -> set[str]:
    return {path.name.removesuffix("-arguments") for path in kept(stage).glob("*-arguments")}


def test_a_session_that_left_work_behind_is_resumed_once(stage: Stage) -> None:
    result = play(stage, "claude-background-stopped")
    assert is_ready(stage, result), result
    assert f"nightkeep: {STOPPED}\nnightkeep: resuming the session, once\n" in result.stderr
    assert sessions(stage) == {"implement", "implement-resume"}
    asked = (kept(stage) / "implement-resume-arguments").read_text().split()
    assert asked == ["--output-format", "stream-json", "--verbose", "--resume", SESSION, "-p"]
    assert "```text\nReview it\n```" in (kept(stage) / "implement-resume-prompt").read_text()
    where = {(kept(stage) / f"{kind}-directory").read_text() for kind in sessions(stage)}
    assert len(where) == 1
    assert {log.name.split("-", 2)[-1] for log in stage.logs()} == {"implement.log", "implement-resume.log"}
    assert stage.pull()["body"].startswith("The lamp is on.\n\nIt was tested.")


def test_a_session_that_ends_like_that_again_is_not_resumed_again(stage: Stage) -> None:
    writes = f"test $NIGHTKEEP_SESSION != implement || {{ {COMMITS}; echo 'Light the room' > $NIGHTKEEP_PR_FILE; }}"
    result = play(stage, "claude-background-stopped", resumed="claude-background-killed-after-result", DO=writes)
    assert stage.pull()["title"] == "Light the room"
    assert is_ready(stage, result), result
    assert "nightkeep: it ended like that again (Run the tests); carrying on\n" in result.stderr
    assert sessions(stage) == {"implement", "implement-resume"}


def test_a_session_that_cannot_be_resumed_is_told_of(stage: Stage) -> None:
    result = play(stage, "claude-background-stopped", "--no-session-persistence")
    assert is_ready(stage, result), result
    assert f"{STOPPED}\nnightkeep: it cannot be resumed; carrying on" in result.stderr
    assert sessions(stage) == {"implement"}


def test_a_later_failure_tells_what_had_been_left_behind(stage: Stage) -> None:
    result = play(
        stage, "claude-background-stopped", "--continue", NIGHTKEEP_VERIFY="sh -c 'exit 5'", NIGHTKEEP_REPAIR_LIMIT="0"
    )
    assert result.status == 1, result
    assert "before that, the session implement ended while this still ran: Review it" in cause(stage)
    assert "verify exited 5" in cause(stage).partition("before that")[0]
    assert "`verify-failed`" in stage.note(stage.pull()["number"])


def test_a_refused_merge_stays_one_after_work_that_was_left_behind(stage: Stage) -> None:
    stage.hub.admin.add_rule(NAME, "main", "pull_request", required_approving_review_count=1)
    result = play(stage, "claude-background-stopped", "--no-session-persistence", NIGHTKEEP_MERGE="true")
    assert (result.status, stage.pull()["draft"]) == (4, False), result
    assert "`policy-refusal`" in stage.note(stage.pull()["number"])


def test_a_resumed_session_that_fails_fails_the_run(stage: Stage) -> None:
    result = play(stage, "claude-background-stopped", resumed="claude-unknown-session")
    assert result.status == 1, result
    assert "No conversation found" in cause(stage)
    assert "before that, the session implement ended while this still ran: Review it" in cause(stage)


def test_a_session_that_had_to_be_finished_says_nothing_of_it_later(stage: Stage) -> None:
    result = play(stage, "claude-background-stopped", NIGHTKEEP_VERIFY="sh -c 'exit 5'", NIGHTKEEP_REPAIR_LIMIT="0")
    assert result.status == 1, result
    assert "before that" not in cause(stage)


def test_a_repair_is_resumed_too(stage: Stage) -> None:
    mends = "test $NIGHTKEEP_SESSION != repair-1-resume || git commit -qm 'Mend it' --allow-empty"
    result = play(
        stage,
        "claude-background-stopped",
        DO=f"test $NIGHTKEEP_SESSION != implement || {{ {COMMITS}; }}; {mends}",
        NIGHTKEEP_VERIFY="sh -c 'git log --format=%s | grep -q Mend'",
        NIGHTKEEP_REPAIR_LIMIT="1",
    )
    assert is_ready(stage, result), result
    assert sessions(stage) == {"implement", "implement-resume", "repair-1", "repair-1-resume"}


@pytest.mark.parametrize(
    ("stream", "code", "hint"),
    [
        ("claude-usage-limit", "agent-usage-limit", "wait until the limit ends"),
        ("claude-key-refused", "agent-login", "log it in"),
        ("claude-overloaded", "model-unavailable", "try again later"),
    ],
)
def test_why_an_agent_could_not_work_is_a_cause_of_its_own(stage: Stage, stream: str, code: str, hint: str) -> None:
    result = play(stage, stream, EXIT="1")
    assert result.status == 1, result
    note = stage.note(stage.pull()["number"])
    assert f"`{code}`" in note
    assert hint in note
    assert sessions(stage) == {"implement"}


def test_what_an_agent_was_not_allowed_explains_that_nothing_was_made(stage: Stage) -> None:
    result = play(stage, "claude-denied", DO="true")
    assert result.status == 1, result
    assert "nightkeep: the agent was not allowed to use Bash; its command decides that\n" in result.stderr
    assert "the agent ended well, but nothing was made; it was not allowed to use Bash" in result.stderr


def test_a_killed_runners_session_log_can_be_read(stage: Stage) -> None:
    temporary = stage.root / "temporary"
    temporary.mkdir()
    kills = f'{COMMITS}; cat "$STREAM"; kill -9 $(ps -o ppid= -p $PPID); sleep 1000'
    environment = playing(stage, "claude-commits", DO=kills, TMPDIR=str(temporary))
    token = ("--token-file", str(stage.token_file))
    killed = stage.command("run", stage.url(stage.issue()), "--agent", f"{AGENTS}/claude -p", *token, **environment)
    assert killed.status == -signal.SIGKILL, killed
    recovered = stage.command("recover", *token)
    assert recovered.status == 0, recovered
    log = next(
        log for log in stage.logs() if log.name.endswith("-implement-2.log")
    )  # beside what the runner had got to
    assert log.read_text().endswith("\nThe lamp is on.\n\nIt was tested.\n[3 turns, $0.00]\n")
