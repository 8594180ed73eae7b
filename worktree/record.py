"""The record of a run on this machine: made before its worktree, removed after it.

<common git dir>/nightkeep/runs/<run id>/
    record.json   what the run is and what it pinned
    index         a private copy of the index, while it is in use
    session-*     raw output of a session that has not been redacted yet
"""

import contextlib
import os
import secrets
import socket
from datetime import UTC, datetime
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from worktree.reading import read_regular


class RunRecord(BaseModel):
    """What is known about a run before anything is made. `pinned` is the commit that the worktree starts from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    pid: int
    host: str
    started: datetime
    base: str
    branch: str
    made_branch: bool
    path: Path
    pinned: str
    pinned_base: str

    def owner_may_live(self) -> bool:
        """Whether the process that made the record may still run; another machine's always may."""
        if self.host != host_name():
            return True
        try:
            return psutil.Process(self.pid).create_time() <= self.started.timestamp()
        except psutil.NoSuchProcess:
            return False


class RecordDirectory:
    """The private directory of one run."""

    def __init__(self, common: Path, run_id: str) -> None:
        self.path = common / "nightkeep" / "runs" / run_id

    def write(self, record: RunRecord) -> None:
        """Make the directory, which must not exist, and write the record durably."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700)
        with (self.path / "record.json").open("x", encoding="utf-8") as file:
            file.write(record.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def remove(self) -> bool:
        """Remove the record if there is one; False when the directory holds anything else, which is left alone."""
        if not self.path.exists():
            return True
        if {entry.name for entry in self.path.iterdir()} - {"record.json"}:
            return False
        (self.path / "record.json").unlink(missing_ok=True)
        self.path.rmdir()
        return True


def read_records(common: Path) -> list[RunRecord]:
    """Return the records of this clone's runs that can be read."""
    found = []
    for file in sorted((common / "nightkeep" / "runs").glob("*/record.json")):
        with contextlib.suppress(OSError, ValueError):
            found.append(RunRecord.model_validate_json(read_regular(file)))
    return found


def new_run_id() -> str:
    """Return a name for a run that sorts by time and fits in a ref."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def host_name() -> str:
    """Return this machine's name, or "unknown"."""
    return socket.gethostname() or "unknown"
