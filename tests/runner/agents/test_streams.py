"""What is made of agents' streams, as recorded."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.agents import Conversation, Trouble, agent_for, agent_named, any_command, shown
from runner.agents.events import Ended, Event, Said, Used
from runner.spool import Follower

STREAMS = Path(__file__).parent / "streams"
WHAT = {
    Trouble.USAGE_LIMIT: "the agent has used up what its account may use",
    Trouble.LOGIN: "the agent's login, or its key, was refused",
    Trouble.MODEL: "the service of the agent's model failed",
    Trouble.FAILED: "the agent failed",
}


def events(name: str) -> list[Event]:
    """Read a recorded stream; each line must be one that we know."""
    agent = agent_named(name.partition("-")[0])
    found: list[Event] = []
    for line in (STREAMS / f"{name}.jsonl").read_text().splitlines():
        said = agent.events(line)
        assert said is not None, line
        found += said
    return found


def conversation(name: str) -> Conversation:
    held = Conversation()
    for event in events(name):
        held.take(event)
    return held


def read(name: str, *lines: str) -> Conversation:
    held = Conversation()
    for line in lines:
        for event in agent_named(name).events(line) or ():
            held.take(event)
    return held


# How sessions end.


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude-commits", "The lamp is on.\n\nIt was tested."),
        ("claude-denied", "I could not."),
        ("claude-background-awaited", "I started the tests; I will report when they are done."),
        ("codex-commits", "All done.\n\nIt was fun."),
        ("codex-sandbox", "Could not."),
    ],
)
def test_a_session_that_ended_well(name: str, text: str) -> None:
    held = conversation(name)
    assert (held.cause, held.trouble, held.final_text) == (None, None, text)


@pytest.mark.parametrize(
    ("name", "trouble", "words"),
    [
        ("claude-max-turns", Trouble.FAILED, "Reached maximum number of turns (1)"),
        ("claude-unknown-session", Trouble.FAILED, "No conversation found with session ID: 00000000-"),
        ("claude-rate-limit", Trouble.USAGE_LIMIT, "API Error: Request rejected (429) · Number of requests"),
        ("claude-usage-limit", Trouble.USAGE_LIMIT, "You've hit your session limit · resets 6pm (UTC)"),
        ("claude-no-credit", Trouble.USAGE_LIMIT, "Credit balance is too low"),
        ("claude-key-refused", Trouble.LOGIN, "Invalid API key · Fix external API key"),
        ("claude-not-logged-in", Trouble.LOGIN, "Not logged in · Please run /login"),
        ("claude-overloaded", Trouble.MODEL, "API Error: 529 Overloaded. This is a server-side issue"),
        ("codex-rate-limit", Trouble.USAGE_LIMIT, "exceeded retry limit, last status: 429 Too Many Requests"),
        ("codex-quota", Trouble.USAGE_LIMIT, "Quota exceeded. Check your plan and billing details."),
        ("codex-usage-limit", Trouble.USAGE_LIMIT, "hit your usage limit. Try again later."),
        ("codex-key-refused", Trouble.LOGIN, "unexpected status 401 Unauthorized: Incorrect API key provided"),
        ("codex-no-key", Trouble.LOGIN, "Missing environment variable: `LOOP_KEY`."),
        ("codex-overloaded", Trouble.MODEL, "currently experiencing high demand"),
    ],
)
def test_a_session_that_failed_says_why(name: str, trouble: Trouble, words: str) -> None:
    held = conversation(name)
    assert held.trouble is trouble
    what, _, said = (held.cause or "").partition(": ")
    assert what.startswith(WHAT[trouble])
    assert words in said


def test_a_limit_says_when_it_ends() -> None:
    assert (conversation("claude-usage-limit").cause or "").startswith(
        "the agent has used up what its account may use, until 2026-11-30 18:00 UTC: "
    )


def test_a_stream_that_breaks_off_has_no_good_end() -> None:
    lines = (STREAMS / "claude-commits.jsonl").read_text().splitlines()[:-1]
    held = read("claude", *lines)
    assert held.cause == "the agent exited 0 without saying how its work ended"
    assert held.final_text == "The lamp is on.\n\nIt was tested."


def test_a_result_that_lost_its_text_has_the_agents_last_words() -> None:
    *lines, last = (STREAMS / "claude-commits.jsonl").read_text().splitlines()
    assert read("claude", *lines, json.dumps(json.loads(last) | {"result": ""})).final_text.startswith("The lamp is on")


@pytest.mark.parametrize("cost", ["9" * 400, "-1", "NaN", "1e999", "true", '"a lot"'])
def test_what_no_session_costs_is_not_told(cost: str) -> None:
    line = f'{{"type":"result","subtype":"success","result":"Done","num_turns":2,"total_cost_usd":{cost}}}'
    (ended,) = agent_named("claude").events(line) or ()
    assert ended == Ended("Done", summary="2 turns")


def test_an_older_program_without_a_key_says_so_as_text() -> None:
    held = read("claude", "Not logged in · Please run /login")
    assert held.trouble is Trouble.LOGIN


def test_a_limit_of_an_older_program_is_known_by_its_words() -> None:
    result = {"type": "result", "subtype": "success", "is_error": True, "result": "Claude AI usage limit reached|1"}
    assert read("claude", json.dumps(result)).trouble is Trouble.USAGE_LIMIT


def test_a_refusal_that_was_tried_again_with_success_is_forgotten() -> None:
    lines = (STREAMS / "claude-overloaded.jsonl").read_text().splitlines()[:2]
    end = (STREAMS / "claude-commits.jsonl").read_text().splitlines()[-1]
    assert read("claude", *lines, end).cause is None


# Work beside the agent's own.


@pytest.mark.parametrize(
    ("name", "unfinished"),
    [
        ("claude-commits", ()),
        ("claude-background-awaited", ()),
        ("claude-own-task-stopped", ()),
        ("claude-background-stopped", ("Review it",)),
        ("claude-background-killed-after-result", ("Run the tests",)),
        ("codex-commits", ()),
        ("codex-background", ("$ sleep 20; touch late",)),
    ],
)
def test_work_that_was_stopped_with_the_session(name: str, unfinished: Sequence[str]) -> None:
    held = conversation(name)
    assert (held.unfinished, held.cause) == (unfinished, None)
    assert held.session


def test_work_that_nothing_more_is_heard_of_is_unfinished() -> None:
    lines = (STREAMS / "claude-background-awaited.jsonl").read_text().splitlines()
    first_result = next(place for place, line in enumerate(lines) if '"type":"result"' in line)
    assert read("claude", *lines[: first_result + 1]).unfinished == ("Run the tests",)


# What the agent was not allowed.


def test_denied_tools_are_named_once() -> None:
    assert conversation("claude-denied").denied == ("Bash",)


def test_an_older_program_names_denied_tools_in_its_result_only() -> None:
    lines = [line for line in (STREAMS / "claude-denied.jsonl").read_text().splitlines() if '"result":' in line]
    assert read("claude", *lines).denied == ("Bash",)


def test_a_command_that_codex_was_not_allowed() -> None:
    item = {"id": "item_1", "type": "command_execution", "command": "/bin/bash -lc 'rm -r x'", "status": "declined"}
    assert read("codex", json.dumps({"type": "item.completed", "item": item})).denied == ("$ rm -r x",)


# How it is shown.


def progress(name: str) -> list[str]:
    return [as_shown.progress for event in events(name) if (as_shown := shown(event)) and as_shown.progress]


def test_progress_of_claude() -> None:
    assert progress("claude-commits") == [
        '$ echo on > lamp.txt && git add lamp.txt && git commit -qm "Add a lamp"',
        "Read /home/me/widget-issue-7/lamp.txt",
        "The lamp is on.\n\nIt was tested.",
        "3 turns, $0.00",
    ]


def test_progress_of_codex() -> None:
    assert progress("codex-commits") == [
        "$ git commit --allow-empty -m hi",
        "All done.\n\nIt was fun.",
        "20 tokens read, 10 written",
    ]


def test_the_log_has_what_tools_returned() -> None:
    logged = [as_shown.log for event in events("codex-commits") if (as_shown := shown(event))]
    assert "  [master 923f9b6] hi" in logged


@pytest.mark.parametrize(
    ("kind", "item", "seen"),
    [
        ("started", {"type": "mcp_tool_call", "server": "files", "tool": "read", "arguments": {"a": 1}}, "files.read"),
        ("started", {"type": "collab_tool_call", "tool": "spawn_agent"}, "spawn_agent"),
        ("completed", {"type": "web_search", "query": "lamps"}, "web search: lamps"),
        (
            "completed",
            {"type": "file_change", "changes": [{"path": "a.py", "kind": "add"}, {"path": "b", "kind": "update"}]},
            "add a.py, update b",
        ),
        ("completed", {"type": "agent_message", "text": "Hello.\n"}, "Hello."),
        ("completed", {"type": "reasoning", "text": "Hm."}, ""),
        ("completed", {"type": "todo_list", "items": [{"text": "test", "completed": False}]}, ""),
        ("updated", {"type": "command_execution", "command": "ls"}, None),
        ("started", {"type": "todo_list", "items": []}, None),
    ],
)
def test_what_else_codex_does(kind: str, item: dict[str, object], seen: str | None) -> None:
    line = json.dumps({"type": f"item.{kind}", "item": {"id": "item_3"} | item})
    found = [as_shown.progress for event in agent_named("codex").events(line) or () if (as_shown := shown(event))]
    assert found == ([] if seen is None else [seen])
    assert agent_named("codex").events(line) is not None


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ({"type": "system", "subtype": "api_retry", "error": "overloaded"}, "[trying again: overloaded]"),
        ({"type": "system", "subtype": "something_new"}, ""),
        ({"type": "user", "message": {"content": "[Request interrupted by user]"}}, ""),
        ({"type": "stream_event", "event": {"delta": "half a sec"}}, None),
        ({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning"}}, None),
    ],
)
def test_what_else_claude_tells(told: dict[str, object], seen: str | None) -> None:
    events_of_it = agent_named("claude").events(json.dumps(told))
    assert events_of_it is not None
    found = [as_shown.progress for event in events_of_it if (as_shown := shown(event))]
    assert found == ([] if seen is None else [seen])


def test_a_line_with_codes_of_a_terminal_before_it_is_known(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_text("\x1b[?1004l" + (STREAMS / "claude-commits.jsonl").read_text())
    with Follower(
        spool, tmp_path / "log", redact=str, progress=lambda _: None, cap=10**6, agent=agent_named("claude")
    ) as follower:
        follower.finish(lambda: 10)
    assert follower.conversation.session


def test_another_agents_words_are_not_the_agents() -> None:
    told = {"message": {"content": [{"type": "text", "text": "Looks good."}]}, "parent_tool_use_id": "toolu_1"}
    found = agent_named("claude").events(json.dumps({"type": "assistant"} | told)) or ()
    assert [type(event) for event in found if isinstance(event, Said | Used)] == []
    assert [as_shown.log for event in found if (as_shown := shown(event))] == ["Looks good."]


# Lines that are not of the stream.


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize(
    "line",
    [
        "",
        "Reading prompt from stdin...",
        "[1, 2]",
        '{"type": "something new", "text": "x"}',
        '{"type": 7}',
        '{"type":"assistant","message":{"content":[{"type":"text","text":"cut',
        "{" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_a_line_that_is_not_of_the_stream_is_left_as_it_is(name: str, line: str) -> None:
    assert agent_named(name).events(line) is None


@pytest.mark.parametrize("name", sorted(path.stem for path in STREAMS.glob("*.jsonl")))
def test_whatever_a_known_line_lacks_or_has_instead_is_survived(name: str) -> None:
    agent = agent_named(name.partition("-")[0])
    for line in (STREAMS / f"{name}.jsonl").read_text().splitlines():
        for broken in mangled(json.loads(line)):
            held = Conversation()
            for event in agent.events(json.dumps(broken)) or ():
                held.take(event)
                shown(event)
            told = [held.session, held.final_text, held.cause or "", *held.denied, *held.unfinished]
            assert all(isinstance(text, str) and text.encode() is not None for text in told)


def mangled(value: object) -> list[object]:
    """Return the value with each part of it left out or replaced, one at a time."""
    strange: list[object] = [None, 7, -1.5, True, "", "\ud800\u2028", [], {}, [None], {"type": None}]
    match value:
        case dict():
            found: list[object] = [{k: v for k, v in value.items() if k != key} for key in value]
            return found + [value | {key: inner} for key in value for inner in [*strange, *mangled(value[key])]]
        case list():
            return [[*value[:i], inner, *value[i + 1 :]] for i in range(len(value)) for inner in mangled(value[i])]
        case _:
            return []


# Command lines.


@pytest.mark.parametrize(
    ("given", "asked", "resumed"),
    [
        (
            "claude -p --permission-mode acceptEdits",
            "claude --output-format stream-json --verbose -p --permission-mode acceptEdits",
            "claude --output-format stream-json --verbose --resume s-1 -p --permission-mode acceptEdits",
        ),
        (
            "/opt/bin/claude --print --verbose --allowedTools Bash Edit",
            "/opt/bin/claude --output-format stream-json --print --verbose --allowedTools Bash Edit",
            "/opt/bin/claude --output-format stream-json --resume s-1 --print --verbose --allowedTools Bash Edit",
        ),
        (
            "claude -p --output-format=stream-json",
            "claude --verbose -p --output-format=stream-json",
            "claude --verbose --resume s-1 -p --output-format=stream-json",
        ),
        (
            "claude -p --output-format json",
            "claude -p --output-format json",
            "claude --resume s-1 -p --output-format json",
        ),
        ("claude -p --output-format text", "claude -p --output-format text", None),
        ("claude", "claude", None),
        ("claude -p -c", "claude --output-format stream-json --verbose -p -c", None),
        (
            "claude -p --session-id=u",
            "claude --output-format stream-json --verbose -p --session-id=u",
            None,
        ),
        (
            "codex exec -s danger-full-access",
            "codex exec --json -s danger-full-access",
            "codex exec --json -s danger-full-access resume s-1 -",
        ),
        (
            "codex -m some e --json do",
            "codex -m some e --json do",
            "codex -m some e --json do resume s-1 -",
        ),
        ("codex exec --ephemeral", "codex exec --json --ephemeral", None),
        ("codex exec resume u", "codex exec --json resume u", None),
        ("codex", "codex", None),
        ("opencode run", "opencode run", None),
        ("env A=1 claude -p", "env A=1 claude -p", None),
        ("./exec", "./exec", None),
    ],
)
def test_command_lines(given: str, asked: str, resumed: str | None) -> None:
    argv = given.split()
    agent = agent_for(argv)
    assert agent.command(argv, None) == asked.split()
    assert (agent.command(argv, "s-1") if agent.can_resume(argv) else None) == (resumed.split() if resumed else None)


def test_only_what_can_be_read_is_taken_for_a_stream() -> None:
    assert agent_for(["claude", "-p"]).NAME == "claude"
    assert agent_for(["claude", "-p", "--output-format", "text"]) is any_command
    assert agent_for(["codex", "login"]) is any_command
