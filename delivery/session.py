"""What delivery asks of a session, and what it gets back. `runner` runs the processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from delivery.causes import Code
from delivery.text import as_subject
from worktree import Watch

_SUBJECT_LIMIT = 72  # characters


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
    is told while it runs. `resume` is the `resumable` of an earlier session that this one goes on with.
    """

    kind: str
    prompt: str
    directory: Path
    private: Path
    environment: Mapping[str, str]
    watch: Watch
    argv: Sequence[str] | None = None
    resume: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResult:
    """One session that has ended, with no process of it left but the named `survivors`.

    `cause` is None after a session that ended well, else one sentence that says what went wrong, and `code` is what
    kind of cause that is for an agent. `status` is the agent's exit status, negative for a signal, None when it never
    ran. `final_text` is what the agent said last and `pull_request_text` what it wrote to its `NIGHTKEEP_PR_FILE`, both
    redacted, without control characters and possibly empty.

    Some agents tell more: `denied` names the tools that the agent was not allowed to use, `unfinished` the work that
    still ran beside it when it ended well, and was stopped, and `resumable` is what resumes the session, empty when
    nothing does.
    """

    end: SessionEnd
    cause: str | None
    status: int | None
    final_text: str
    pull_request_text: str
    log: Path
    survivors: tuple[str, ...]
    code: Code = Code.AGENT
    denied: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    resumable: str = ""

    @property
    def subject(self) -> str:
        """What the agent said last, as the subject of a commit; possibly empty."""
        return as_subject(self.final_text, _SUBJECT_LIMIT)

    def after(self, earlier: "SessionResult") -> "SessionResult":
        """Return this result of a session that went on with an earlier one, with what only that one said."""
        return replace(
            self,
            final_text=self.final_text or earlier.final_text,
            pull_request_text=self.pull_request_text if self.pull_request_text.strip() else earlier.pull_request_text,
            denied=tuple(dict.fromkeys((*earlier.denied, *self.denied))),
        )


class Sessions(Protocol):
    """Runs agent sessions."""

    def run(self, request: SessionRequest) -> SessionResult:
        """Run one session to its end; raises nothing of its own."""
        ...
