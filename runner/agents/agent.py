"""What Nightkeep has to know of an agent's program."""

from collections.abc import Sequence
from typing import Protocol

from runner.agents.events import Event


class Agent(Protocol):
    """An agent's program: how it is asked for a stream, and how its stream is read. Each is a module here."""

    NAME: str

    def streams(self, argv: Sequence[str]) -> bool:
        """Say whether what the command prints can be read by `events`, once `command` has asked for it."""
        ...

    def command(self, argv: Sequence[str], resume: str | None) -> list[str]:
        """Return the command that prints a stream; with `resume`, of a session that goes on from that id."""
        ...

    def can_resume(self, argv: Sequence[str]) -> bool:
        """Say whether `command` can make the command one that goes on from an earlier session."""
        ...

    def events(self, line: str) -> Sequence[Event] | None:
        """Return what a line says, nothing when it is of no interest, None when it is no line of the stream."""
        ...
