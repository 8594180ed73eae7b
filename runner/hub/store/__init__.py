"""Everything that the hub remembers, in one SQLite file. Only this package knows SQL."""

from runner.hub.store.records import (
    CheckRun,
    Comment,
    Edit,
    Event,
    EventKind,
    Issue,
    Label,
    Pull,
    QueueEntry,
    Repository,
    Settings,
    Suite,
)
from runner.hub.store.store import Store

__all__ = [
    "CheckRun",
    "Comment",
    "Edit",
    "Event",
    "EventKind",
    "Issue",
    "Label",
    "Pull",
    "QueueEntry",
    "Repository",
    "Settings",
    "Store",
    "Suite",
]
