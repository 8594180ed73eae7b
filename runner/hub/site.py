"""What every part of the hub shares while it is served."""

import secrets
import threading
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.hub.access import Door
from runner.hub.children import Children
from runner.hub.ci import CI
from runner.hub.drills import Drills
from runner.hub.observation import Observe
from runner.hub.store import Store


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
    ci: CI
    children: Children
    requests: list[tuple[str, str]] = field(default_factory=list)
    connections: Connections = field(default_factory=Connections)
    drills: Drills = field(default_factory=Drills)
    observe: Observe | None = None
    queue_lock: threading.RLock = field(default_factory=threading.RLock)
    secret: bytes = field(default_factory=secrets.token_bytes)

    @property
    def api(self) -> str:
        """Where the REST API begins."""
        return f"{self.url}/api/v3"
