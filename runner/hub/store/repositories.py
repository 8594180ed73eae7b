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

    def rename(self, repository: Repository, owner: str, name: str) -> None:
        """Serve `repository` under another name, which must be free; the old one is remembered."""
        remember = "INSERT OR REPLACE INTO former_names VALUES (?,?,?)"
        with self._database.transaction():
            self._database.write(remember, repository.owner, repository.name, repository.id)
            self._database.write("UPDATE repositories SET owner = ?, name = ? WHERE id = ?", owner, name, repository.id)

    def state(self, repository: Repository, fact: str) -> None:
        """Remember that `fact` holds for `repository`: `archived` or `no drafts`."""
        self._database.write("INSERT OR IGNORE INTO facts VALUES (?,?)", repository.id, fact)

    def make_private(self, repository: Repository) -> None:
        """Say from now on that `repository` is private."""
        self._database.write("UPDATE repositories SET private = 1 WHERE id = ?", repository.id)

    def has(self, repository: Repository, fact: str) -> bool:
        """Tell whether something was said of `repository` by `state`."""
        statement = "SELECT 1 FROM facts WHERE repository = ? AND fact = ?"
        return self._database.row(statement, repository.id, fact) is not None

    def find(self, owner: str, name: str) -> Repository | None:
        """Return the repository of that name."""
        row = self._database.row("SELECT * FROM whole_repositories WHERE owner = ? AND name = ?", owner, name)
        return None if row is None else _repository(row)

    def named(self, full_name: str) -> Repository:
        """Return the repository OWNER/NAME, which raises ValueError when there is none."""
        owner, _, name = full_name.partition("/")
        found = self.find(owner, name)
        if found is None:
            raise ValueError(f"the hub has no repository {full_name}")
        return found

    def formerly(self, owner: str, name: str) -> Repository | None:
        """Return the repository that had that name once."""
        statement = """SELECT whole_repositories.* FROM former_names
            JOIN whole_repositories ON whole_repositories.id = former_names.repository
            WHERE former_names.owner = ? AND former_names.name = ?"""
        row = self._database.row(statement, owner, name)
        return None if row is None else _repository(row)

    def get(self, repository: int) -> Repository | None:
        """Return the repository with that id."""
        row = self._database.row("SELECT * FROM whole_repositories WHERE id = ?", repository)
        return None if row is None else _repository(row)

    def all(self) -> list[Repository]:
        """Return every repository, by name."""
        return [
            _repository(row) for row in self._database.rows("SELECT * FROM whole_repositories ORDER BY owner, name")
        ]


def _repository(row: sqlite3.Row) -> Repository:
    flags = {name: bool(row[name]) for name in ("private", "archived", "drafts")}
    return Repository(**dict(row) | {"path": Path(row["path"])} | flags)
