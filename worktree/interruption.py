"""The latch that a signal sets and nothing clears."""

import signal
import time
from collections.abc import Callable

_GLANCE = 0.1  # seconds between looks, while waiting, whether a signal has come


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

    def wait(self, seconds: float, tick: Callable[[], object] | None = None, *, finishing: bool = False) -> None:
        """Wait, but no longer than until a signal is recorded, unless `finishing`. `tick` is called again and again
        meanwhile; what it raises ends the wait.
        """
        end = time.monotonic() + seconds
        while (finishing or not self._recorded) and (left := end - time.monotonic()) > 0:
            if tick is not None:
                tick()
            time.sleep(min(left, _GLANCE))
