"""The SQLite file: its tables and its transactions."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS repositories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL COLLATE NOCASE,
    name TEXT NOT NULL COLLATE NOCASE,
    path TEXT NOT NULL UNIQUE,
    description TEXT,
    private INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (owner, name)
);
CREATE TABLE IF NOT EXISTS labels (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository INTEGER NOT NULL REFERENCES repositories (id),
    name TEXT NOT NULL COLLATE NOCASE,
    color TEXT NOT NULL,
    description TEXT,
    UNIQUE (repository, name)
);
CREATE TABLE IF NOT EXISTS issues (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository INTEGER NOT NULL REFERENCES repositories (id),
    number INTEGER NOT NULL,
    title TEXT NOT NULL,
    body TEXT,
    open INTEGER NOT NULL,
    author TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    closed_at TEXT,
    closed_by TEXT,
    UNIQUE (repository, number)
);
CREATE TABLE IF NOT EXISTS pulls (
    issue INTEGER PRIMARY KEY REFERENCES issues (id),
    draft INTEGER NOT NULL,
    head TEXT NOT NULL,
    base TEXT NOT NULL,
    head_id TEXT NOT NULL,
    base_id TEXT NOT NULL,
    merged_at TEXT,
    merged_by TEXT,
    merge_id TEXT
);
CREATE TABLE IF NOT EXISTS issue_labels (
    issue INTEGER NOT NULL REFERENCES issues (id),
    label INTEGER NOT NULL REFERENCES labels (id) ON DELETE CASCADE,
    UNIQUE (issue, label)
);
CREATE TABLE IF NOT EXISTS comments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    issue INTEGER NOT NULL REFERENCES issues (id),
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (
    repository INTEGER NOT NULL REFERENCES repositories (id),
    fact TEXT NOT NULL,
    UNIQUE (repository, fact)
);
CREATE TABLE IF NOT EXISTS former_names (
    owner TEXT NOT NULL COLLATE NOCASE,
    name TEXT NOT NULL COLLATE NOCASE,
    repository INTEGER NOT NULL REFERENCES repositories (id),
    UNIQUE (owner, name)
);
CREATE TABLE IF NOT EXISTS transfers (
    repository INTEGER NOT NULL REFERENCES repositories (id),
    number INTEGER NOT NULL,
    issue INTEGER NOT NULL REFERENCES issues (id),
    UNIQUE (repository, number)
);
CREATE TABLE IF NOT EXISTS check_plans (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository INTEGER NOT NULL REFERENCES repositories (id),
    document TEXT NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS check_suites (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository INTEGER NOT NULL REFERENCES repositories (id),
    commit_id TEXT NOT NULL,
    source TEXT NOT NULL,
    workflow TEXT NOT NULL,
    branch TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (repository, commit_id, source, workflow)
);
CREATE TABLE IF NOT EXISTS check_runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    suite INTEGER NOT NULL REFERENCES check_suites (id),
    plan INTEGER NOT NULL REFERENCES check_plans (id),
    attempt INTEGER NOT NULL,
    polls INTEGER NOT NULL,
    began REAL NOT NULL,
    started_at TEXT NOT NULL,
    conclusion TEXT,
    completed_at TEXT,
    log TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS check_polls (
    repository INTEGER NOT NULL REFERENCES repositories (id),
    commit_id TEXT NOT NULL,
    source TEXT NOT NULL,
    polls INTEGER NOT NULL,
    UNIQUE (repository, commit_id, source)
);
CREATE TABLE IF NOT EXISTS settings (
    repository INTEGER PRIMARY KEY REFERENCES repositories (id),
    document TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS protections (
    repository INTEGER NOT NULL REFERENCES repositories (id),
    branch TEXT NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (repository, branch)
);
CREATE TABLE IF NOT EXISTS rules (
    repository INTEGER NOT NULL REFERENCES repositories (id),
    branch TEXT NOT NULL,
    type TEXT NOT NULL,
    parameters TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS approvals (
    issue INTEGER NOT NULL REFERENCES issues (id),
    login TEXT NOT NULL,
    UNIQUE (issue, login)
);
CREATE TABLE IF NOT EXISTS answers (
    issue INTEGER NOT NULL REFERENCES issues (id),
    ends TEXT NOT NULL,
    answers INTEGER NOT NULL,
    UNIQUE (issue, ends)
);
CREATE TABLE IF NOT EXISTS queue_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository INTEGER NOT NULL REFERENCES repositories (id),
    issue INTEGER NOT NULL REFERENCES issues (id),
    base TEXT NOT NULL,
    head_id TEXT NOT NULL,
    enqueuer TEXT NOT NULL,
    enqueued_at TEXT NOT NULL,
    base_id TEXT,
    group_id TEXT,
    left_at TEXT,
    reason TEXT
);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    issue INTEGER NOT NULL REFERENCES issues (id),
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    what TEXT NOT NULL DEFAULT '',
    other INTEGER REFERENCES issues (id),
    created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS edits (
    issue INTEGER PRIMARY KEY REFERENCES issues (id),
    editor TEXT NOT NULL,
    edited_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sub_issues (
    child INTEGER PRIMARY KEY REFERENCES issues (id),
    parent INTEGER NOT NULL REFERENCES issues (id)
);
CREATE TABLE IF NOT EXISTS blockers (
    issue INTEGER NOT NULL REFERENCES issues (id),
    blocker INTEGER NOT NULL REFERENCES issues (id),
    UNIQUE (issue, blocker)
);
CREATE TABLE IF NOT EXISTS people (
    repository INTEGER NOT NULL REFERENCES repositories (id),
    login TEXT NOT NULL COLLATE NOCASE,
    role TEXT NOT NULL,
    UNIQUE (repository, login)
);
CREATE INDEX IF NOT EXISTS comments_of_issue ON comments (issue);
CREATE INDEX IF NOT EXISTS events_of_issue ON events (issue);
CREATE VIEW IF NOT EXISTS whole_issues AS
    SELECT issues.*, pulls.*, (SELECT count(*) FROM comments WHERE comments.issue = issues.id) AS comments
    FROM issues LEFT JOIN pulls ON pulls.issue = issues.id;
CREATE VIEW IF NOT EXISTS whole_repositories AS
    SELECT repositories.*,
        EXISTS (SELECT 1 FROM facts WHERE repository = repositories.id AND fact = 'archived') AS archived,
        NOT EXISTS (SELECT 1 FROM facts WHERE repository = repositories.id AND fact = 'no drafts') AS drafts
    FROM repositories;
CREATE VIEW IF NOT EXISTS whole_check_runs AS
    SELECT check_runs.*, check_plans.document, check_suites.repository, check_suites.commit_id, check_suites.source,
        check_suites.workflow, check_suites.branch, check_suites.created_at
    FROM check_runs JOIN check_suites ON check_suites.id = check_runs.suite
        JOIN check_plans ON check_plans.id = check_runs.plan;
CREATE VIEW IF NOT EXISTS whole_comments AS
    SELECT comments.*, issues.number, issues.repository FROM comments JOIN issues ON issues.id = comments.issue;
"""


class Database:
    """One connection for all threads, one at a time. Close it when nothing uses it any more."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        # Autocommit mode: transactions begin and end where this class says so, and nowhere else.
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
        self._connection.row_factory = sqlite3.Row
        self._connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; {_SCHEMA}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the block one transaction, undone when it raises; inside another one it joins that."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def write(self, statement: str, *values: object) -> int:
        """Run one statement in a transaction; returns the id of the row it inserted, if it did."""
        with self.transaction():
            return self._connection.execute(statement, values).lastrowid or 0

    def rows(self, statement: str, *values: object) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except OverflowError:
                return []  # a number that SQLite cannot hold is one that no row has

    def row(self, statement: str, *values: object) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        return next(iter(self.rows(statement, *values)), None)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


def now() -> str:
    """Return the time as GitHub writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
