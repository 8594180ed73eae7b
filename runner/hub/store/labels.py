"""The labels of a repository, and which issue carries which."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable

from runner.hub.store.database import Database, now
from runner.hub.store.events import Events
from runner.hub.store.records import EventKind, Label

_GREY = "ededed"


class Labels:
    """The tables of labels. A name is the same label whatever its case, as on GitHub."""

    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def add(self, repository: int, name: str, color: str = _GREY, description: str | None = None) -> Label | None:
        """Create a label; returns None when there is one of that name."""
        statement = "INSERT INTO labels (repository, name, color, description) VALUES (?,?,?,?)"
        with self._database.transaction():
            if self.find(repository, name) is not None:
                return None
            self._database.write(statement, repository, name, color, description)
            return self.find(repository, name)

    def find(self, repository: int, name: str) -> Label | None:
        """Return the label of that name."""
        row = self._database.row("SELECT * FROM labels WHERE repository = ? AND name = ?", repository, name)
        return None if row is None else _label(row)

    def all(self, repository: int) -> list[Label]:
        """Return the labels of a repository, by name."""
        rows = self._database.rows("SELECT * FROM labels WHERE repository = ? ORDER BY name", repository)
        return [_label(row) for row in rows]

    def delete(self, label: Label) -> None:
        """Remove a label from the repository and from all its issues."""
        self._database.write("DELETE FROM labels WHERE id = ?", label.id)

    def attach(self, repository: int, issue: int, names: Iterable[str], by: str) -> None:
        """Let the user `by` put labels on an issue; those that the repository does not know yet are created."""
        with self._database.transaction():
            for name in names:
                label = self.find(repository, name) or self.add(repository, name)
                if label is not None and label not in self.on_issue(issue):
                    self._database.write("INSERT INTO issue_labels VALUES (?,?)", issue, label.id)
                    self._events.add(issue, EventKind.LABELED, by, what=label.name)
            self._touch(issue)

    def replace(self, repository: int, issue: int, names: Iterable[str], by: str) -> None:
        """Let the user `by` make `names` the only labels of an issue."""
        wanted = list(names)
        kept = {name.casefold() for name in wanted}
        with self._database.transaction():
            for label in self.on_issue(issue):
                if label.name.casefold() not in kept:
                    self.detach(issue, label, by)
            self.attach(repository, issue, wanted, by)

    def detach(self, issue: int, label: Label, by: str) -> None:
        """Let the user `by` take a label off an issue."""
        with self._database.transaction():
            self._database.write("DELETE FROM issue_labels WHERE issue = ? AND label = ?", issue, label.id)
            self._events.add(issue, EventKind.UNLABELED, by, what=label.name)
            self._touch(issue)

    def carry_over(self, issue: int, repository: int) -> None:
        """Give an issue that came to `repository` the labels of the same names there, as far as there are any."""
        known = [found for label in self.on_issue(issue) if (found := self.find(repository, label.name)) is not None]
        with self._database.transaction():
            self._database.write("DELETE FROM issue_labels WHERE issue = ?", issue)
            for label in known:
                self._database.write("INSERT INTO issue_labels VALUES (?,?)", issue, label.id)
            self._touch(issue)

    def on_issue(self, issue: int) -> tuple[Label, ...]:
        """Return the labels of one issue, oldest first."""
        statement = """SELECT labels.* FROM issue_labels JOIN labels ON labels.id = issue_labels.label
            WHERE issue_labels.issue = ? ORDER BY issue_labels.rowid"""
        return tuple(_label(row) for row in self._database.rows(statement, issue))

    def by_issue(self, repository: int) -> dict[int, tuple[Label, ...]]:
        """Return the labels of every issue in a repository that has some, by the issue's id."""
        statement = """SELECT labels.*, issue_labels.issue FROM issue_labels
            JOIN labels ON labels.id = issue_labels.label
            WHERE labels.repository = ? ORDER BY issue_labels.rowid"""
        found: dict[int, tuple[Label, ...]] = defaultdict(tuple)
        for row in self._database.rows(statement, repository):
            found[row["issue"]] += (_label(row),)
        return found

    def _touch(self, issue: int) -> None:
        self._database.write("UPDATE issues SET updated_at = ? WHERE id = ?", now(), issue)


def _label(row: sqlite3.Row) -> Label:
    return Label(id=row["id"], name=row["name"], color=row["color"], description=row["description"])
