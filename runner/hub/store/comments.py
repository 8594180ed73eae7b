"""The comments on issues and pull requests."""

import sqlite3

from runner.hub.store.database import Database, now
from runner.hub.store.records import Comment


class Comments:
    """The table of comments."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, issue: int, author: str, body: str) -> Comment:
        """Append a comment to an issue."""
        time = now()
        statement = "INSERT INTO comments (issue, author, body, created_at, updated_at) VALUES (?,?,?,?,?)"
        with self._database.transaction():
            comment = self._database.write(statement, issue, author, body, time, time)
            self._database.write("UPDATE issues SET updated_at = ? WHERE id = ?", time, issue)
            rows = self._database.rows("SELECT * FROM whole_comments WHERE id = ?", comment)
        return _comment(rows[0])

    def find(self, repository: int, comment: int) -> Comment | None:
        """Return one comment of a repository."""
        statement = "SELECT * FROM whole_comments WHERE repository = ? AND id = ?"
        row = self._database.row(statement, repository, comment)
        return None if row is None else _comment(row)

    def by_node_id(self, node_id: str) -> Comment | None:
        """Return the comment with that node id."""
        kind, _, digits = node_id.partition("_")
        if kind != "IC" or not digits.isdecimal():
            return None
        row = self._database.row("SELECT * FROM whole_comments WHERE id = ?", int(digits))
        return None if row is None else _comment(row)

    def all(self, issue: int) -> list[Comment]:
        """Return the comments of an issue, oldest first."""
        rows = self._database.rows("SELECT * FROM whole_comments WHERE issue = ? ORDER BY id", issue)
        return [_comment(row) for row in rows]

    def edit(self, comment: Comment, body: str) -> None:
        """Give a comment another text."""
        self._database.write("UPDATE comments SET body = ?, updated_at = ? WHERE id = ?", body, now(), comment.id)

    def delete(self, comment: Comment) -> None:
        """Remove a comment."""
        self._database.write("DELETE FROM comments WHERE id = ?", comment.id)


def _comment(row: sqlite3.Row) -> Comment:
    names = ("id", "number", "author", "body", "created_at", "updated_at")
    return Comment(**{name: row[name] for name in names})
