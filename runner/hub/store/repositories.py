"""Which repository is served under which name."""

import sqlite3
from pathlib import Path

from runner.hub.store.database import Database, now
from runner.hub.store.records import Repository


class Repositories:
    """The table of repositories. Names are found whatever their case, as on GitHub."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, owner: str, name: str, path: Path, *, description: str | None = None, private: bool = False
    ) -> Repository:
        """Remember a repository; the name and the path must be new."""
        statement = (
            "INSERT INTO repositories (owner, name, path, description, private, created_at) VALUES (?,?,?,?,?,?)"
        )
        with self._database.transaction():
            self._database.write(statement, owner, name, str(path), description, private, now())
            found = self.find(owner, name)
        if found is None:
            raise LookupError(f"{owner}/{name} was stored and is not there")
        return found

    def move(self, repository: Repository, path: Path) -> None:
        """Serve `repository` from another path."""
        self._database.write("UPDATE repositories SET path = ? WHERE id = ?", str(path), repository.id)

    def find(self, owner: str, name: str) -> Repository | None:
        """Return the repository of that name."""
        row = self._database.row("SELECT * FROM repositories WHERE owner = ? AND name = ?", owner, name)
        return None if row is None else _repository(row)

    def all(self) -> list[Repository]:
        """Return every repository, by name."""
        return [_repository(row) for row in self._database.rows("SELECT * FROM repositories ORDER BY owner, name")]


def _repository(row: sqlite3.Row) -> Repository:
    values = dict(row)
    return Repository(**values | {"path": Path(row["path"]), "private": bool(row["private"])})
