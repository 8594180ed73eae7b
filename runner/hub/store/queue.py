"""Who waits in a merge queue, and who left it why."""

import sqlite3

from runner.hub.store.database import Database, now
from runner.hub.store.records import QueueEntry

_NAMES = ("id", "issue", "base", "head_id", "enqueuer", "enqueued_at", "base_id", "group_id", "left_at", "reason")


class Queue:
    """The table of merge queues, one for each base of a repository."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, repository: int, issue: int, base: str, head_id: str, enqueuer: str) -> QueueEntry:
        """Put a pull request at the end."""
        statement = """INSERT INTO queue_entries (repository, issue, base, head_id, enqueuer, enqueued_at)
            VALUES (?,?,?,?,?,?)"""
        entry = self._database.write(statement, repository, issue, base, head_id, enqueuer, now())
        return _entry(self._database.rows("SELECT * FROM queue_entries WHERE id = ?", entry)[0])

    def waiting(self, repository: int) -> list[QueueEntry]:
        """Return who waits in any queue of a repository, in their order."""
        statement = "SELECT * FROM queue_entries WHERE repository = ? AND left_at IS NULL ORDER BY id"
        return [_entry(row) for row in self._database.rows(statement, repository)]

    def build(self, entry: QueueEntry, base_id: str, group_id: str) -> None:
        """Remember the commit that would be merged, made on `base_id`."""
        statement = "UPDATE queue_entries SET base_id = ?, group_id = ? WHERE id = ?"
        self._database.write(statement, base_id, group_id, entry.id)

    def leave(self, entry: QueueEntry, reason: str) -> None:
        """Take a pull request out."""
        statement = "UPDATE queue_entries SET left_at = ?, reason = ? WHERE id = ? AND left_at IS NULL"
        self._database.write(statement, now(), reason, entry.id)

    def left(self, issue: int) -> list[QueueEntry]:
        """Return how a pull request left, the oldest time first."""
        statement = "SELECT * FROM queue_entries WHERE issue = ? AND left_at IS NOT NULL ORDER BY id"
        return [_entry(row) for row in self._database.rows(statement, issue)]


def _entry(row: sqlite3.Row) -> QueueEntry:
    return QueueEntry(**{name: row[name] for name in _NAMES})
