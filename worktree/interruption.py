"""The latch that a signal sets and nothing clears."""

import signal


class Interruption:
    """Remembers the first signal that asked this process to stop.

    Safe to call from a signal handler: recording is one assignment. Ordinary git commands refuse to run
    once a signal is recorded, completion commands go on (see `worktree.git.Git`).
    """

    __slots__ = ("_recorded",)

    def __init__(self) -> None:
        self._recorded: signal.Signals | None = None

    def record(self, signum: int) -> None:
        """Remember `signum`, unless an earlier signal is remembered already."""
        if self._recorded is None:
            self._recorded = signal.Signals(signum)

    @property
    def recorded(self) -> signal.Signals | None:
        """The first signal recorded, or None."""
        return self._recorded
