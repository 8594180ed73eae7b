"""What repositories and branches demand, and who approved what."""

import json
from dataclasses import asdict, replace

from pydantic import TypeAdapter

from runner.hub.requirements import Demands, Rule, demands_of
from runner.hub.store.database import Database
from runner.hub.store.records import Settings

_DEMANDS = TypeAdapter(Demands)
_SETTINGS = TypeAdapter(Settings)


class Rules:
    """The tables of settings, protected branches, rules and approvals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def settings(self, repository: int) -> Settings:
        """Return how a repository is set."""
        row = self._database.row("SELECT document FROM settings WHERE repository = ?", repository)
        return Settings() if row is None else _SETTINGS.validate_json(row["document"])

    def set(self, repository: int, **changes: bool | int) -> None:
        """Set a repository otherwise. Raises TypeError for what is no setting."""
        document = json.dumps(asdict(replace(self.settings(repository), **changes)))  # type: ignore[arg-type]
        self._database.write("INSERT OR REPLACE INTO settings VALUES (?,?)", repository, document)

    def protect(self, repository: int, branch: str, demands: Demands) -> None:
        """Protect a branch so, and no longer as before."""
        document = _DEMANDS.dump_json(demands).decode()
        self._database.write("INSERT OR REPLACE INTO protections VALUES (?,?,?)", repository, branch, document)

    def unprotect(self, repository: int, branch: str) -> None:
        """Protect a branch no more."""
        self._database.write("DELETE FROM protections WHERE repository = ? AND branch = ?", repository, branch)

    def protection(self, repository: int, branch: str) -> Demands | None:
        """Return how a branch is protected."""
        statement = "SELECT document FROM protections WHERE repository = ? AND branch = ?"
        row = self._database.row(statement, repository, branch)
        return None if row is None else _DEMANDS.validate_json(row["document"])

    def add(self, repository: int, branch: str, rule: Rule) -> None:
        """Let a rule hold for a branch."""
        document = json.dumps(dict(rule.parameters))
        self._database.write("INSERT INTO rules VALUES (?,?,?,?)", repository, branch, rule.type, document)

    def rules(self, repository: int, branch: str) -> list[Rule]:
        """Return the rules for a branch."""
        statement = "SELECT type, parameters FROM rules WHERE repository = ? AND branch = ? ORDER BY rowid"
        rows = self._database.rows(statement, repository, branch)
        return [Rule(row["type"], json.loads(row["parameters"])) for row in rows]

    def demands(self, repository: int, branch: str) -> list[Demands]:
        """Return everything that a branch demands: its protection, and its rules."""
        protection, rules = self.protection(repository, branch), self.rules(repository, branch)
        return [one for one in (protection, demands_of(rules) if rules else None) if one is not None]

    def approve(self, issue: int, login: str) -> None:
        """Count a user among those who approve of a pull request."""
        self._database.write("INSERT OR IGNORE INTO approvals VALUES (?,?)", issue, login)

    def approvals(self, issue: int) -> int:
        """Return how many users approve of a pull request."""
        return len(self._database.rows("SELECT login FROM approvals WHERE issue = ?", issue))

    def count_answer(self, issue: int, ends: str) -> int:
        """Count one more answer about the pull request with these ends, and return how many there were."""
        statement = """INSERT INTO answers VALUES (?,?,1)
            ON CONFLICT (issue, ends) DO UPDATE SET answers = answers + 1"""
        with self._database.transaction():
            self._database.write(statement, issue, ends)
            rows = self._database.rows("SELECT answers FROM answers WHERE issue = ? AND ends = ?", issue, ends)
            return int(rows[0]["answers"])
