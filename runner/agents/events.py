"""What the lines of agents' streams say, in one vocabulary for all agents, and how it is shown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from textwrap import indent
from typing import Any, assert_never


class Trouble(StrEnum):
    """Why an agent could not do its work, as far as its stream tells."""

    USAGE_LIMIT = "usage-limit"
    LOGIN = "login"
    MODEL = "model"
    FAILED = "failed"


class State(StrEnum):
    """What became of work that an agent had started beside its own: a command or another agent.

    `STOPPED` is for work that was ended from outside, by the agent or by its program when that ended.
    """

    RUNNING = "running"
    ENDED = "ended"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Began:
    """A session, by the id that resumes it."""

    session: str


@dataclass(frozen=True, slots=True)
class Said:
    """Words of the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class Used:
    """A tool that the agent used: `brief` for who watches, `whole` for who reads the log."""

    brief: str
    whole: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool answered."""

    text: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Anything else that belongs into the log; `loud` when it is for who watches, too."""

    text: str
    loud: bool = False


@dataclass(frozen=True, slots=True)
class Denied:
    """A use of a tool, by its id, that the agent was not allowed."""

    use: str
    tool: str


@dataclass(frozen=True, slots=True)
class Task:
    """Work beside the agent's own, by its id; its name may come with any of its states."""

    id: str
    state: State
    name: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The model's service refused a request. It may be tried again; if the session ends with it, this is why.

    `resets` is when a limit ends, in seconds since the epoch.
    """

    trouble: Trouble
    resets: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A turn has ended, well unless there is `trouble`; `text` is the last word, or what went wrong."""

    text: str
    trouble: Trouble | None = None
    summary: str = ""


Event = Began | Said | Used | Returned | Noted | Denied | Task | Refused | Ended


@dataclass(frozen=True, slots=True)
class Shown:
    """An event as people read it: `log` for the Session log, `progress` for who watches; `brief` is one short line."""

    log: str
    progress: str = ""
    brief: bool = False


def shown(event: Event) -> Shown | None:
    """Return how an event is shown, None when it is not."""
    match event:
        case Began(session):
            return Shown(f"[session {session}]")
        case Said(text):
            return Shown(text, text)
        case Used(brief, whole):
            return Shown(whole, brief, brief=True)
        case Returned(text):
            return Shown(indent(text, "  ")) if text else None
        case Noted(text, loud):
            return Shown(text, text if loud else "", brief=loud)
        case Denied(_, tool):
            return Shown(f"[not allowed: {tool}]", f"not allowed: {tool}", brief=True)
        case Ended(text, trouble, summary):
            line = "; ".join(part for part in (text if trouble else "", summary) if part)
            return Shown(f"[{line}]", line, brief=True) if line else None
        case Task() | Refused():
            return None
        case _:
            assert_never(event)


def load(line: str) -> Mapping[str, Any] | None:
    """Return the JSON object that a line is, None for any other line."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
        if "\\u" in line:  # half of a character can be escaped, but neither printed nor sent
            found = json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def compact(value: object) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
