"""Any command: what it prints is text."""

from collections.abc import Sequence

from runner.agents.events import Event

NAME = "command"


def streams(argv: Sequence[str]) -> bool:
    """Return True: any text can be read."""
    return True


def command(argv: Sequence[str], resume: str | None) -> list[str]:
    """Return the command as it is."""
    return list(argv)


def can_resume(argv: Sequence[str]) -> bool:
    """Return False: nothing names its sessions."""
    return False


def events(line: str) -> Sequence[Event] | None:
    """Return None: there is no stream."""
    return None
