"""What delivery asks of a session, and what it gets back. `runner` runs the processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from worktree import Watch


class SessionEnd(StrEnum):
    """How a session ended."""

    EXITED = "exited"
    TIME_LIMIT = "time-limit"
    IDLE_LIMIT = "idle-limit"
    OUTPUT_LIMIT = "output-limit"
    INTERRUPTED = "interrupted"
    NOT_STARTED = "not-started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """One session to run, or one step: `argv` is its argument list, None for the agent's.

    `directory` is where the agent works. `private` is a directory that only this user can read, for the raw
    output until it is redacted. `environment` holds the variables of the agent's contract that delivery knows. `watch`
    is told while it runs.
    """

    kind: str
    prompt: str
    directory: Path
    private: Path
    environment: Mapping[str, str]
    watch: Watch
    argv: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResult:
    """One session that has ended, with no process of it left but the named `survivors`.

    `cause` is None after a session that ended well, else one sentence that says what went wrong. `status` is the
    agent's exit status, negative for a signal, None when it never ran. `final_text` is what the agent said last
    and `pull_request_text` what it wrote to its `NIGHTKEEP_PR_FILE`, both redacted and possibly empty.
    """

    end: SessionEnd
    cause: str | None
    status: int | None
    final_text: str
    pull_request_text: str
    log: Path
    survivors: tuple[str, ...]


class Sessions(Protocol):
    """Runs agent sessions."""

    def run(self, request: SessionRequest) -> SessionResult:
        """Run one session to its end; raises nothing of its own."""
        ...
