"""What every part of the hub shares while it is served."""

import os
import signal
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.hub.access import Door
from runner.hub.drills import Drills
from runner.hub.observation import Observe
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


class Connections:
    """The connections that clients have open."""

    def __init__(self) -> None:
        self._open: Set[Any] = frozenset()

    def watch(self, protocols: Set[Any]) -> None:
        """Know from now on the server's protocol objects, each with a `client` and a `transport`."""
        self._open = protocols

    def abort(self, client: tuple[str, int]) -> None:
        """End the connection of the client at that address, whatever was still to be sent."""
        for connection in tuple(self._open):
            if connection.client == client:
                connection.transport.abort()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One served hub. `url` has no slash at its end; `requests` grows by one pair an API request."""

    url: str
    root: Path
    store: Store
    door: Door
    requests: list[tuple[str, str]] = field(default_factory=list)
    children: Children = field(default_factory=Children)
    connections: Connections = field(default_factory=Connections)
    drills: Drills = field(default_factory=Drills)
    observe: Observe | None = None

    @property
    def api(self) -> str:
        """Where the REST API begins."""
        return f"{self.url}/api/v3"
