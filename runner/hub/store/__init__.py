"""Everything that the hub remembers, in one SQLite file. Only this package knows SQL."""

from runner.hub.store.records import Comment, Issue, Label, Pull, Repository
from runner.hub.store.store import Store

__all__ = ["Comment", "Issue", "Label", "Pull", "Repository", "Store"]
