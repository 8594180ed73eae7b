"""Codex: `codex exec` and the events of its `--json`.

Seen with 0.171.0; its own description is `exec_events.rs` in openai/codex. Kinds of items that we do not know are to be
expected.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.agents.events import (
    Began,
    Denied,
    Ended,
    Event,
    Noted,
    Returned,
    Said,
    State,
    Task,
    Trouble,
    Used,
    compact,
    load,
)

NAME = "codex"

_EXEC = ("exec", "e")
_JSON = {"--json", "--experimental-json"}
# A command that names its session, or keeps none, is not resumed: it would not be the same session.
_OWN_SESSION = {"resume", "fork", "review", "--ephemeral"}
# Codex says in words what went wrong, and nowhere else. The first that fits.
_TROUBLE = (
    (Trouble.USAGE_LIMIT, re.compile(r"usage limit|quota exceeded|rate limit|\b429\b", re.IGNORECASE)),
    (
        Trouble.LOGIN,
        re.compile(r"\b40[13]\b|not logged in|log ?in again|missing environment variable|api key", re.IGNORECASE),
    ),
    (
        Trouble.MODEL,
        re.compile(r"\b5\d\d\b|high demand|stream disconnected|error sending request|retry limit", re.IGNORECASE),
    ),
)


def streams(argv: Sequence[str]) -> bool:
    """Say whether the command works without a person."""
    return _place(argv) > 0


def command(argv: Sequence[str], resume: str | None) -> list[str]:
    """Ask for the stream. A prompt of the command's own gives way to that of the resumed session."""
    place = _place(argv)
    # It may be given only once.
    added = [] if not _JSON.isdisjoint(argv) else ["--json"]
    return [*argv[: place + 1], *added, *argv[place + 1 :], *(["resume", resume, "-"] if resume else [])]


def can_resume(argv: Sequence[str]) -> bool:
    """Say whether the command leaves its session to us."""
    return _OWN_SESSION.isdisjoint(argv)


def events(line: str) -> Sequence[Event] | None:
    """Read one line of the stream."""
    match load(line):
        case {"type": "thread.started", "thread_id": str(thread)}:
            return [Began(thread)]
        case {"type": "turn.started" | "item.updated"}:
            return []  # a list that was changed, or output so far: what is over has the whole
        case {"type": "turn.completed", **rest}:
            return [Ended("", summary=_summary(rest.get("usage")))]
        case {"type": "turn.failed", "error": {"message": str(text)}}:
            return [Ended(text, _trouble(text))]
        case {"type": "error", "message": str(text)}:
            return [Noted(text, loud=True)]
        case {"type": "item.started" | "item.completed" as kind, "item": {"type": str()} as item}:
            found = _item(item, is_over=kind == "item.completed")
            return None if found is None else list(found)
        case _:
            return None


def _place(argv: Sequence[str]) -> int:
    """Return where the subcommand is, or 0."""
    return next((place for place, word in enumerate(argv) if place and word in _EXEC), 0)


def _summary(usage: object) -> str:
    match usage:
        case {"input_tokens": int(read), "output_tokens": int(written)}:
            return f"{read} tokens read, {written} written"
    return ""


def _trouble(text: str) -> Trouble:
    return next((trouble for trouble, words in _TROUBLE if words.search(text)), Trouble.FAILED)


def _item(item: Mapping[str, Any], *, is_over: bool) -> Iterator[Event] | None:
    match item:
        case {"type": "agent_message" | "reasoning" | "error" | "todo_list" | "web_search" | "file_change"}:
            return _words(item) if is_over else iter(())
        case {"type": "command_execution", "command": str(ran)}:
            brief = f"$ {_script(ran)}"
            return _work(item, Used(brief, brief), is_over=is_over)
        case {"type": "mcp_tool_call", "server": str(server), "tool": str(tool)}:
            name = f"{server}.{tool}"
            return _work(item, Used(name, f"{name} {compact(item.get('arguments'))}"), is_over=is_over)
        case {"type": "collab_tool_call", "tool": str(tool)}:
            return _work(item, Used(tool, compact(item)), is_over=is_over)
        case _:
            return None


def _words(item: Mapping[str, Any]) -> Iterator[Event]:
    match item:
        case {"type": "agent_message", "text": str(text)}:
            yield Said(text.strip("\n"))
        case {"type": "reasoning", "text": str(text)} | {"type": "error", "message": str(text)}:
            yield Noted(text)
        case {"type": "web_search", "query": str(query)}:
            yield Used(f"web search: {query}", f"web search: {query}")
        case {"type": "file_change", "changes": [*changes]}:
            made = ", ".join(f"{change.get('kind')} {change.get('path')}" for change in changes if _is_object(change))
            yield Used(made, made)
        case _:
            yield Noted(compact(item))


def _work(item: Mapping[str, Any], used: Used, *, is_over: bool) -> Iterator[Event]:
    """Work that was started counts as running beside the agent until it is said to be over."""
    work = str(item.get("id"))
    if not is_over:
        yield used
        yield Task(work, State.RUNNING, used.brief)
        return
    yield Task(work, State.ENDED)
    match item:
        case {"status": "declined"}:
            yield Denied(work, used.brief)
        case {"aggregated_output": str(output), "exit_code": int(status)}:
            yield Returned(output.rstrip("\n") + (f"\n[exit status {status}]" if status else ""))
        case {"result": object() as result} if result is not None:
            yield Returned(compact(result))
        case {"error": {"message": str(text)}}:
            yield Returned(text)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _script(ran: str) -> str:
    """Return what a shell was given, without the shell."""
    try:
        words = shlex.split(ran)
    except ValueError:
        return ran
    return words[2] if len(words) == 3 and words[1] in {"-lc", "-c"} else ran
