"""Issues, and pull requests, which are issues with something on top."""

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace

from runner.hub.store.database import Database, now
from runner.hub.store.events import Events
from runner.hub.store.labels import Labels
from runner.hub.store.records import EventKind, Issue, Label, Pull


class Issues:
    """The tables of issues and pull requests, which share their numbers."""

    def __init__(self, database: Database, labels: Labels, events: Events) -> None:
        self._database = database
        self._labels = labels
        self._events = events

    def open(
        self,
        repository: int,
        *,
        title: str,
        body: str | None,
        author: str,
        labels: Iterable[str] = (),
        pull: Pull | None = None,
    ) -> Issue:
        """Open an issue, or a pull request when `pull` is given, under the next free number."""
        time = now()
        statement = """INSERT INTO issues (repository, number, title, body, open, author, created_at, updated_at)
            VALUES (?, ?, ?, ?, 1, ?, ?, ?)"""
        with self._database.transaction():
            number = self._next_number(repository)
            issue = self._database.write(statement, repository, number, title, body, author, time, time)
            if pull is not None:
                self._add_pull(issue, pull)
            self._labels.attach(repository, issue, labels, author)
            return self.get(issue)

    def get(self, issue: int) -> Issue:
        """Return the issue with that id, which must exist."""
        rows = self._database.rows("SELECT * FROM whole_issues WHERE id = ?", issue)
        return _issue(rows[0], self._labels.on_issue(issue))

    def by_id(self, issue: int) -> Issue | None:
        """Return the issue with that id, if there is one."""
        row = self._database.row("SELECT id FROM issues WHERE id = ?", issue)
        return None if row is None else self.get(row["id"])

    def find(self, repository: int, number: int) -> Issue | None:
        """Return the issue or pull request with that number."""
        statement = "SELECT id FROM issues WHERE repository = ? AND number = ?"
        row = self._database.row(statement, repository, number)
        return None if row is None else self.get(row["id"])

    def by_node_id(self, node_id: str) -> Issue | None:
        """Return the issue or pull request with that node id."""
        _, _, digits = node_id.partition("_")
        if not digits.isdecimal():
            return None
        row = self._database.row("SELECT id FROM issues WHERE id = ?", int(digits))
        issue = None if row is None else self.get(row["id"])
        return issue if issue and issue.node_id == node_id else None

    def all(self, repository: int) -> list[Issue]:
        """Return all issues and pull requests, oldest first."""
        labels = self._labels.by_issue(repository)
        rows = self._database.rows("SELECT * FROM whole_issues WHERE repository = ? ORDER BY number", repository)
        return [_issue(row, labels.get(row["id"], ())) for row in rows]

    def change(self, issue: int, edit: Callable[[Issue], Issue]) -> Issue:
        """Apply `edit` to the issue as it stands and store the result, in one step."""
        with self._database.transaction():
            before = self.get(issue)
            after = edit(before)
            if after != before:
                self._save(after)
            return self.get(issue)

    def rewrite(self, issue: int, edit: Callable[[Issue], Issue], by: str) -> Issue:
        """Apply `edit` as `change` does, for the user `by`: another text or title is remembered as theirs."""
        with self._database.transaction():
            before = self.get(issue)
            after = self.change(issue, edit)
            if after.title != before.title:
                self._events.add(issue, EventKind.RENAMED, by, what=before.title)
            if after.body != before.body:
                self._events.edited(issue, by)
            return after

    def close(self, issue: int, by: str) -> Issue:
        """Close an issue; one that is closed stays as it is."""
        return self.change(issue, lambda before: closed(before, by) if before.open else before)

    def transfer(self, issue: Issue, repository: int) -> Issue:
        """Move an issue to another repository and return it; the old number stays taken, and leads to it."""
        with self._database.transaction():
            self._database.write("INSERT INTO transfers VALUES (?,?,?)", issue.repository, issue.number, issue.id)
            number = self._next_number(repository)
            statement = "UPDATE issues SET repository = ?, number = ?, updated_at = ? WHERE id = ?"
            self._database.write(statement, repository, number, now(), issue.id)
            self._labels.carry_over(issue.id, repository)
            return self.get(issue.id)

    def transferred(self, repository: int, number: int) -> Issue | None:
        """Return the issue that had that number in that repository once."""
        statement = "SELECT issue FROM transfers WHERE repository = ? AND number = ?"
        row = self._database.row(statement, repository, number)
        return None if row is None else self.get(row["issue"])

    def _next_number(self, repository: int) -> int:
        statement = """SELECT coalesce(max(number), 0) + 1 AS next FROM
            (SELECT number FROM issues WHERE repository = ? UNION SELECT number FROM transfers WHERE repository = ?)"""
        return int(self._database.rows(statement, repository, repository)[0]["next"])

    def _add_pull(self, issue: int, pull: Pull) -> None:
        statement = "INSERT INTO pulls (issue, draft, head, base, head_id, base_id) VALUES (?,?,?,?,?,?)"
        self._database.write(statement, issue, pull.draft, pull.head, pull.base, pull.head_id, pull.base_id)

    def _save(self, issue: Issue) -> None:
        statement = """UPDATE issues SET title = ?, body = ?, open = ?, closed_at = ?, closed_by = ?, updated_at = ?
            WHERE id = ?"""
        values = (issue.title, issue.body, issue.open, issue.closed_at, issue.closed_by, now(), issue.id)
        self._database.write(statement, *values)
        if issue.pull is not None:
            self._save_pull(issue.id, issue.pull)

    def _save_pull(self, issue: int, pull: Pull) -> None:
        statement = """UPDATE pulls SET draft = ?, base = ?, head_id = ?, base_id = ?, merged_at = ?, merged_by = ?,
            merge_id = ? WHERE issue = ?"""
        values = (pull.draft, pull.base, pull.head_id, pull.base_id, pull.merged_at, pull.merged_by, pull.merge_id)
        self._database.write(statement, *values, issue)


def closed(issue: Issue, by: str) -> Issue:
    """Return `issue` closed now by the user `by`."""
    return replace(issue, open=False, closed_at=now(), closed_by=by)


def _issue(row: sqlite3.Row, labels: tuple[Label, ...]) -> Issue:
    same = ("id", "repository", "number", "title", "body", "author", "comments")
    times = ("created_at", "updated_at", "closed_at", "closed_by")
    values = {name: row[name] for name in (*same, *times)}
    return Issue(**values, open=bool(row["open"]), labels=labels, pull=_pull(row))


def _pull(row: sqlite3.Row) -> Pull | None:
    if row["head"] is None:
        return None
    names = ("head", "base", "head_id", "base_id", "merged_at", "merged_by", "merge_id")
    return Pull(draft=bool(row["draft"]), **{name: row[name] for name in names})
