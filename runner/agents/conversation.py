"""What is known of a session from its stream: a fold over events, and how it is judged."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import assert_never

from runner.agents.events import Began, Denied, Ended, Event, Noted, Refused, Returned, Said, State, Task, Trouble, Used

_WHAT = {
    Trouble.USAGE_LIMIT: "the agent has used up what its account may use",
    Trouble.LOGIN: "the agent's login, or its key, was refused",
    Trouble.MODEL: "the service of the agent's model failed",
    Trouble.FAILED: "the agent failed",
}


@dataclass(slots=True)
class Conversation:
    """A session as its stream tells it, so far. Nothing in here is redacted.

    `session` is the id that resumes it, empty when it was not told. `ended` is how the last turn ended, None when the
    stream did not say.
    """

    session: str = ""
    ended: Ended | None = None
    _said: str = ""
    _refused: Refused | None = None
    _denied: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _running: dict[str, None] = field(default_factory=dict)
    _stopped: dict[str, None] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Take in what the stream says next."""
        match event:
            case Began(session):
                self.session = session
            case Said(text):
                self._said = text
                self._stopped.clear()
            case Used():
                # The agent has had the word since work was stopped: it stopped that itself, or it has heard of it.
                self._stopped.clear()
            case Denied(use, tool):
                self._denied.setdefault(use, tool)
            case Task():
                self._take_task(event)
            case Refused(trouble, resets):
                known = self._refused.resets if self._refused and self._refused.trouble is trouble else None
                self._refused = Refused(trouble, resets or known)
            case Ended():
                self.ended = event
            case Returned() | Noted():
                pass
            case _:
                assert_never(event)

    def _take_task(self, task: Task) -> None:
        if task.name:
            self._names.setdefault(task.id, task.name)
        self._running.pop(task.id, None)
        match task.state:
            case State.RUNNING:
                self._running[task.id] = None
            case State.STOPPED:
                self._stopped[task.id] = None
            case State.ENDED:
                pass

    @property
    def final_text(self) -> str:
        """What the agent said last."""
        return (self.ended and not self.ended.trouble and self.ended.text) or self._said

    @property
    def denied(self) -> tuple[str, ...]:
        """The tools that the agent was not allowed to use, each once."""
        return tuple(dict.fromkeys(self._denied.values()))

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The names of the work that ran beside the agent when it had said its last word, and was stopped with it."""
        return tuple(self._names.get(task, task) for task in (*self._running, *self._stopped))

    @property
    def trouble(self) -> Trouble | None:
        """Why the session did not end well, None when it did or nothing is said about it."""
        if self.ended is None or self.ended.trouble is None:
            return None
        if self.ended.trouble is Trouble.FAILED and self._refused:
            return self._refused.trouble
        return self.ended.trouble

    @property
    def cause(self) -> str | None:
        """What went wrong, in a sentence, None when the session ended well."""
        if self.ended is None:
            return "the agent exited 0 without saying how its work ended"
        trouble = self.trouble
        if trouble is None:
            return None
        what = _WHAT[trouble]
        if trouble is Trouble.USAGE_LIMIT and self._refused and self._refused.resets:
            what += f", until {_moment(self._refused.resets)}"
        return f"{what}: {' '.join(self.ended.text.split())}" if self.ended.text.strip() else what


def _moment(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return "later"
