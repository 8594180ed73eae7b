"""What every part of the hub shares while it is served."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from runner.hub.access import Door
from runner.hub.store import Store


class Children:
    """The process groups that are at work for a client, so that none outlives the hub."""

    def __init__(self) -> None:
        self._groups: set[int] = set()

    @contextmanager
    def running(self, group: int) -> Iterator[None]:
        """Count `group` among them while the block runs; nothing of it may be left at the block's end."""
        self._groups.add(group)
        try:
            yield
        finally:
            self._groups.discard(group)

    def kill(self) -> None:
        """Kill them all; whoever waits for them sees them end."""
        for group in tuple(self._groups):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One served hub. `url` has no slash at its end; `requests` grows by one pair an API request."""

    url: str
    root: Path
    store: Store
    door: Door
    requests: list[tuple[str, str]] = field(default_factory=list)
    children: Children = field(default_factory=Children)

    @property
    def api(self) -> str:
        """Where the REST API begins."""
        return f"{self.url}/api/v3"
