"""What happened to issues, by whom and when, as far as somebody asks for it."""

import sqlite3

from runner.hub.store.database import Database, now
from runner.hub.store.records import Edit, Event, EventKind

_STAMP = "%Y-%m-%dT%H:%M:%SZ"


class Events:
    """The tables of events, and of who wrote an issue's text last."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, issue: int, kind: EventKind, actor: str, *, what: str = "", other: int | None = None) -> None:
        """Remember that `actor` did this now. `what` is a label's or an earlier title, `other` an issue's id."""
        statement = "INSERT INTO events (issue, kind, actor, what, other, created_at) VALUES (?,?,?,?,?,?)"
        self._database.write(statement, issue, kind, actor, what, other, now())

    def of(self, issue: int) -> list[Event]:
        """Return what happened to an issue, the oldest first."""
        rows = self._database.rows("SELECT * FROM events WHERE issue = ? ORDER BY created_at, id", issue)
        return [_event(row) for row in rows]

    def edited(self, issue: int, editor: str) -> None:
        """Remember that `editor` changed an issue's text now."""
        self._database.write("INSERT OR REPLACE INTO edits VALUES (?,?,?)", issue, editor, now())

    def edit(self, issue: int) -> Edit | None:
        """Return who changed an issue's text last; None when nobody did since it was opened."""
        row = self._database.row("SELECT * FROM edits WHERE issue = ?", issue)
        return None if row is None else Edit(editor=row["editor"], edited_at=row["edited_at"])

    def make_older(self, issue: int, seconds: int) -> None:
        """Let everything about an issue and its comments have happened so much earlier."""
        tables = {
            "issues": ("id", ("created_at", "updated_at")),
            "events": ("issue", ("created_at",)),
            "edits": ("issue", ("edited_at",)),
            "comments": ("issue", ("created_at", "updated_at")),
        }
        with self._database.transaction():
            for table, (key, columns) in tables.items():
                changes = ", ".join(f"{one} = strftime('{_STAMP}', {one}, ?)" for one in columns)
                shifts = [f"-{seconds} seconds"] * len(columns)
                self._database.write(f"UPDATE {table} SET {changes} WHERE {key} = ?", *shifts, issue)  # noqa: S608 - ours


def _event(row: sqlite3.Row) -> Event:
    names = ("id", "actor", "what", "other", "created_at")
    return Event(kind=EventKind(row["kind"]), **{name: row[name] for name in names})
