"""Claude Code: `claude -p` and its stream-json.

Seen with 2.1.332; its own description is https://code.claude.com/docs/en/headless and, for the messages, that of its
Agent SDK. Keys come in any order, and kinds of lines that we do not know are to be expected.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.agents.events import (
    Began,
    Denied,
    Ended,
    Event,
    Noted,
    Refused,
    Returned,
    Said,
    State,
    Task,
    Trouble,
    Used,
    compact,
    load,
)

NAME = "claude"

_FORMAT = "--output-format"
_PRINT = {"-p", "--print"}
# A command that names its session, or keeps none, is not resumed: it would not be the same session.
_OWN_SESSION = {"-c", "--continue", "-r", "--resume", "--session-id", "--fork-session", "--no-session-persistence"}
_ERRORS = {
    "rate_limit": Trouble.USAGE_LIMIT,
    "billing_error": Trouble.USAGE_LIMIT,
    "authentication_failed": Trouble.LOGIN,
    "oauth_org_not_allowed": Trouble.LOGIN,
    "server_error": Trouble.MODEL,
    "overloaded": Trouble.MODEL,
}
_STATUSES = {401: Trouble.LOGIN, 403: Trouble.LOGIN, 429: Trouble.USAGE_LIMIT}
# Older versions say no more than this, and one that has no key may say it instead of a stream.
_LIMIT = re.compile(r"\b(usage|session|weekly|5-hour) limit\b|\blimit reached\b", re.IGNORECASE)
_NO_LOGIN = re.compile(r"(Not logged in|Invalid API key|Please run /login)\b")
# What a tool is about, by the first of these that its input has.
_ABOUT = ("file_path", "notebook_path", "path", "pattern", "skill", "description", "url", "query")
_STATES = {
    "running": State.RUNNING,
    "completed": State.ENDED,
    "failed": State.ENDED,
    "killed": State.STOPPED,
    "stopped": State.STOPPED,
}
_DEAREST = 1_000_000  # dollars; what costs more, or is no number, is not told
# The whole message follows, or the line says nothing that another one does not.
_SILENT = {"stream_event", "keep_alive", "tool_progress"}


def streams(argv: Sequence[str]) -> bool:
    """Say whether the command works without a person and prints a stream, or leaves the format to us."""
    return not _PRINT.isdisjoint(argv) and _format(argv) in {None, "json", "stream-json"}


def command(argv: Sequence[str], resume: str | None) -> list[str]:
    """Ask for the stream; options stand before all others, which may end in a list."""
    program, *rest = argv
    chosen = _format(argv)
    added = [] if chosen else [_FORMAT, "stream-json"]
    if chosen != "json" and "--verbose" not in argv:
        added.append("--verbose")  # it refuses to stream without
    return [program, *added, *(["--resume", resume] if resume else []), *rest]


def can_resume(argv: Sequence[str]) -> bool:
    """Say whether the command leaves its session to us."""
    return _OWN_SESSION.isdisjoint(word.partition("=")[0] for word in argv)


def events(line: str) -> Sequence[Event] | None:
    """Read one line of the stream."""
    message = load(line)
    if message is None:
        return [Ended(line, Trouble.LOGIN)] if _NO_LOGIN.match(line) else None
    match message:
        case {"type": "system", "subtype": str(subtype)}:
            return list(_system(subtype, message, line))
        case {"type": "assistant", "message": {"content": content}}:
            return list(_assistant(content, message))
        case {"type": "user", "message": {"content": content}}:
            return [Returned(text) for text in _texts(content)]
        case {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", **info}}:
            resets = info.get("resetsAt")
            return [Refused(Trouble.USAGE_LIMIT, resets if isinstance(resets, int) else None)]
        case {"type": "rate_limit_event"}:
            return []
        case {"type": "result"}:
            return list(_result(message))
        case {"type": str(kind)} if kind in _SILENT:
            return []
        case _:
            return None


def _format(argv: Sequence[str]) -> str | None:
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word == _FORMAT:
            return following
        if word.startswith(f"{_FORMAT}="):
            return word.removeprefix(f"{_FORMAT}=")
    return None


def _system(subtype: str, message: Mapping[str, Any], line: str) -> Iterator[Event]:
    match subtype, message:
        case "init", {"session_id": str(session)}:
            yield Began(session)
        case "task_started", {"task_id": str(task), "description": str(name)}:
            # One in the foreground is waited for, and its result is one of a tool.
            yield Task(task, State.RUNNING if message.get("is_backgrounded") else State.ENDED, name)
            yield Noted(f"[started: {name}]")
        case "task_updated", {"task_id": str(task), "patch": {"status": str(status)}}:
            yield from _task(task, status, "")
        case "task_updated", {"task_id": str(task), "patch": {"is_backgrounded": True}}:
            yield Task(task, State.RUNNING)
        case "task_notification", {"task_id": str(task), "status": str(status)}:
            summary = str(message.get("summary", ""))
            yield from _task(task, status, summary)
            yield Noted(f"[{status}: {summary or task}]")
        case "permission_denied", {"tool_use_id": str(use), "tool_name": str(tool)}:
            yield Denied(use, tool)
        case "background_tasks_changed" | "task_progress", _:
            return  # other lines say the same
        case "api_retry", {"error": str(error)}:
            if trouble := _ERRORS.get(error):
                yield Refused(trouble)
            yield Noted(f"[trying again: {error}]", loud=True)
        case _:
            yield Noted(line)


def _task(task: str, status: str, name: str) -> Iterator[Event]:
    if state := _STATES.get(status):
        yield Task(task, state, name)


def _assistant(content: object, message: Mapping[str, Any]) -> Iterator[Event]:
    if trouble := _ERRORS.get(str(message.get("error"))):
        yield Refused(trouble)
    is_other_agent = message.get("parent_tool_use_id") is not None
    for block in content if isinstance(content, list) else []:
        match block:
            case {"type": "text", "text": str(text)} if text.strip():
                yield Noted(text) if is_other_agent else Said(text.strip("\n"))
            case {"type": "thinking", "thinking": str(text)} if text.strip():
                yield Noted(text)
            case {"type": "tool_use", "name": str(tool), "input": dict(given)}:
                used = _use(tool, given)
                yield Noted(used.brief, loud=True) if is_other_agent else used


def _use(tool: str, given: Mapping[str, Any]) -> Used:
    if tool == "Bash" and isinstance(ran := given.get("command"), str):
        return Used(f"$ {ran}", f"$ {ran}")
    about = next((str(given[key]) for key in _ABOUT if given.get(key)), "")
    return Used(f"{tool} {about}".rstrip(), f"{tool} {compact(given)}")


def _texts(content: object) -> Iterator[str]:
    """Return the text in a message to the agent: what its tools have returned, above all."""
    match content:
        case str(text):
            yield text
        case [*blocks]:
            for block in blocks:
                match block:
                    case {"type": "text", "text": str(text)}:
                        yield text
                    case {"type": "tool_result", "content": inner}:
                        yield from _texts(inner)
                    case {"type": str(kind)}:
                        yield f"[{kind}]"


def _result(message: Mapping[str, Any]) -> Iterator[Event]:
    for denial in _list(message, "permission_denials"):
        match denial:
            case {"tool_use_id": str(use), "tool_name": str(tool)}:
                yield Denied(use, tool)
    went_wrong = ", ".join(str(error) for error in _list(message, "errors"))
    text = str(message.get("result") or went_wrong or message.get("subtype") or "")
    turns = message.get("num_turns")
    summary = "1 turn" if turns == 1 else f"{turns} turns"
    cost = message.get("total_cost_usd")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < _DEAREST:
        summary += f", ${cost:.2f}"
    if message.get("subtype") == "success" and message.get("is_error") is not True:
        # A result without text is one whose text was lost on the way: the agent's last words stand for it.
        yield Ended(str(message.get("result") or ""), summary=summary)
    else:
        yield Ended(text, _trouble(message.get("api_error_status"), text), summary)


def _list(message: Mapping[str, Any], key: str) -> Sequence[object]:
    found = message.get(key)
    return found if isinstance(found, list) else ()


def _trouble(status: object, text: str) -> Trouble:
    if isinstance(status, int):
        return _STATUSES.get(status, Trouble.MODEL if status >= 500 else Trouble.FAILED)
    if _LIMIT.search(text):
        return Trouble.USAGE_LIMIT
    return Trouble.LOGIN if _NO_LOGIN.match(text) else Trouble.FAILED
