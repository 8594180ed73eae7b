"""The processes that are at work for a client."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Children:
    """The process groups that are at work for a client, so that none outlives the hub."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self.are_killed = False
        """Whether the hub has ended them; what they end with then says nothing."""

    @contextmanager
    def running(self, group: int) -> Iterator[None]:
        """Count `group` among them while the block runs; nothing of it may be left at the block's end."""
        self._groups.add(group)
        if self.are_killed:
            self.kill()
        try:
            yield
        finally:
            self._groups.discard(group)

    def kill(self) -> None:
        """Kill them all, those that come later too; whoever waits for them sees them end."""
        self.are_killed = True
        for group in tuple(self._groups):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
