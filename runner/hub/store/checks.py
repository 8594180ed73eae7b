"""What continuous integration is told to do, and what came of it."""

import sqlite3

from pydantic import TypeAdapter

from runner.hub.checks import Check, Source
from runner.hub.store.database import Database, now
from runner.hub.store.records import CheckRun, Suite

_PLAN = TypeAdapter(Check)
_RUNS = "SELECT * FROM whole_check_runs"


class Checks:
    """The tables of checks. An attempt is a row of its own, as a job that runs again has a new id on GitHub."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_plan(self, repository: int, check: Check) -> None:
        """Remember what is to be done with every pushed commit of a repository."""
        document = _PLAN.dump_json(check).decode()
        self._database.write("INSERT INTO check_plans (repository, document) VALUES (?,?)", repository, document)

    def keep_plan(self, repository: int, check: Check) -> None:
        """Have exactly this plan of the check's name."""
        with self._database.transaction():
            same = {plan: known for plan, known in self.plans(repository).items() if known.name == check.name}
            for plan in (plan for plan, known in same.items() if known != check):
                self._database.write("UPDATE check_plans SET ended = 1 WHERE id = ?", plan)
            if check not in same.values():
                self.add_plan(repository, check)

    def end_plans(self, repository: int) -> None:
        """Do nothing with commits that are pushed from now on."""
        self._database.write("UPDATE check_plans SET ended = 1 WHERE repository = ?", repository)

    def plans(self, repository: int) -> dict[int, Check]:
        """Return what is to be done with commits, by id."""
        statement = "SELECT id, document FROM check_plans WHERE repository = ? AND NOT ended ORDER BY id"
        rows = self._database.rows(statement, repository)
        return {row["id"]: _PLAN.validate_json(row["document"]) for row in rows}

    def started(self, repository: int, commit: str) -> set[int]:
        """Return the ids of the plans that were started for a commit."""
        statement = "SELECT DISTINCT plan FROM whole_check_runs WHERE repository = ? AND commit_id = ?"
        return {row["plan"] for row in self._database.rows(statement, repository, commit)}

    def suite(self, repository: int, commit: str, branch: str, check: Check) -> int:
        """Return the id of the suite that the check belongs to, which is made when it is the first of it."""
        workflow = check.workflow if check.source is Source.ACTIONS else ""
        key = (repository, commit, check.source, workflow)
        find = "SELECT id FROM check_suites WHERE repository = ? AND commit_id = ? AND source = ? AND workflow = ?"
        insert = """INSERT INTO check_suites (repository, commit_id, source, workflow, branch, created_at)
            VALUES (?,?,?,?,?,?)"""
        with self._database.transaction():
            row = self._database.row(find, *key)
            return self._database.write(insert, *key, branch, now()) if row is None else int(row["id"])

    def start(self, suite: int, plan: int, *, attempt: int, polls: int, began: float) -> None:
        """Remember an attempt that starts in the list number `polls`, at `began` seconds since the epoch."""
        statement = """INSERT INTO check_runs (suite, plan, attempt, polls, began, started_at) VALUES (?,?,?,?,?,?)"""
        self._database.write(statement, suite, plan, attempt, polls, began, now())

    def conclude(self, run: int, conclusion: str, log: str) -> None:
        """Remember how an attempt ended."""
        statement = "UPDATE check_runs SET conclusion = ?, log = ?, completed_at = ? WHERE id = ?"
        self._database.write(statement, conclusion, log, now(), run)

    def count_poll(self, repository: int, commit: str, source: Source) -> None:
        """Count one more list of what comes from `source`."""
        statement = """INSERT INTO check_polls VALUES (?,?,?,1)
            ON CONFLICT (repository, commit_id, source) DO UPDATE SET polls = polls + 1"""
        self._database.write(statement, repository, commit, source)

    def polls(self, repository: int, commit: str, source: Source) -> int:
        """Return how many lists a client got."""
        statement = "SELECT polls FROM check_polls WHERE repository = ? AND commit_id = ? AND source = ?"
        row = self._database.row(statement, repository, commit, source)
        return 0 if row is None else int(row["polls"])

    def of_commit(self, repository: int, commit: str) -> list[CheckRun]:
        """Return every attempt of every check of a commit, oldest first."""
        rows = self._database.rows(f"{_RUNS} WHERE repository = ? AND commit_id = ? ORDER BY id", repository, commit)
        return [_run(row) for row in rows]

    def last_attempt(self, suite: int) -> int:
        """Return the number of the last attempt of any check of a suite, whether it has appeared or not."""
        row = self._database.row("SELECT max(attempt) AS last FROM check_runs WHERE suite = ?", suite)
        return int(row["last"] or 0) if row is not None else 0

    def find(self, repository: int, run: int) -> CheckRun | None:
        """Return one attempt."""
        row = self._database.row(f"{_RUNS} WHERE repository = ? AND id = ?", repository, run)
        return None if row is None else _run(row)

    def suites(self, repository: int) -> list[Suite]:
        """Return the suites of a repository, newest first."""
        rows = self._database.rows("SELECT * FROM check_suites WHERE repository = ? ORDER BY id DESC", repository)
        return [_suite(row) for row in rows]


def _suite(row: sqlite3.Row, identity: str = "id") -> Suite:
    names = ("repository", "commit_id", "branch", "workflow", "created_at")
    return Suite(id=row[identity], source=Source(row["source"]), **{name: row[name] for name in names})


def _run(row: sqlite3.Row) -> CheckRun:
    names = ("id", "plan", "attempt", "polls", "began", "started_at", "conclusion", "completed_at", "log")
    values = {name: row[name] for name in names}
    return CheckRun(**values, check=_PLAN.validate_json(row["document"]), suite=_suite(row, "suite"))
