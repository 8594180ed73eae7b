"""The record of a run on this machine: made before its worktree, removed after it.

<common git dir>/nightkeep/runs/<run id>/
    owner.lock      held by the runner alone; the kernel lets go of it, however the runner ends
    record.json     what the run is and what it pinned
    before.json     the clone's refs, stash and filters as they were before
    checkout.json   the worktree as it was made; there once it was
    clearing        there while files of the worktree are taken away
    retained.json   why it was retained; there once its run has ended with it
    index           a private copy of the index, while it is in use
    session-*       raw output of a session that has not been redacted yet
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from worktree.durable import PARTIAL, make_directory, sync_directory, write_whole
from worktree.machine import boot_id, host_name
from worktree.reading import read_regular, read_words

_LONGEST = 1 << 26  # bytes
_RECORD, _BEFORE, _CHECKOUT, _LOCK = "record.json", "before.json", "checkout.json", "owner.lock"
_RETAINED, _CLEARING = "retained.json", "clearing"
# In the order in which they go: without the record nobody takes what is left for a run, and without the lock there is
# nothing left.
_NAMES = (_RECORD, _CHECKOUT, _CLEARING, _RETAINED, _BEFORE)
_OURS = (*_NAMES, *(f"{name}{PARTIAL}" for name in _NAMES), _LOCK)
_UNFINISHED = ".new-"


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_T = TypeVar("_T", bound=_Document)


class RunRecord(_Document):
    """What is known about a run before anything is made. `pinned` is the commit that the worktree starts from.

    `pid`, with the time of its start, boot and namespace, is for people: whether the runner lives only its lock tells.
    `resumed` says that origin held the Issue branch before. `lock` is the device and inode of the lock, in the git
    directory `common`: in a copy of the clone it is another one, which says nothing about the runner.
    """

    run_id: str
    pid: int
    pid_started: float
    pid_namespace: str
    boot: str
    host: str
    started: datetime
    base: str
    branch: str
    made_branch: bool
    resumed: bool
    path: Path
    pinned: str
    pinned_base: str
    common: Path
    lock: tuple[int, int] = (0, 0)


class Before(_Document):
    """The clone before a run: its refs by name, its stash entries, the configuration of filters, and the branches of
    runs that were there.
    """

    refs: dict[str, str]
    runs: tuple[str, ...]
    stashes: tuple[str, ...]
    filters: tuple[tuple[str, str, str], ...]


class Made(_Document):
    """A worktree as it was made: device and inode of its directory, when, in ns, and what was copied in."""

    identity: tuple[int, int]
    acquired: int
    included: tuple[str, ...]


class Retained(_Document):
    """Why a worktree was retained at the end of its run, when (RFC 3339 in UTC), and where what was made is."""

    why: str
    moment: str
    places: tuple[tuple[str, str], ...]


class Owner(StrEnum):
    """Whether the runner of a run is still there; UNKNOWN for another host's, and whenever nobody can tell."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


class RecordDirectory:
    """The private directory of one run, and the lock of the runner that owns it."""

    def __init__(self, common: Path, run_id: str) -> None:
        self.path = common / "nightkeep" / "runs" / run_id
        self._lock: int | None = None

    def write(self, record: RunRecord, before: Before) -> None:
        """Make the directory, which must not exist, with everything in it; whoever sees it sees it owned."""
        make_directory(self.path.parent)
        unfinished = self.path.with_name(f"{_UNFINISHED}{self.path.name}")
        self._lock = _make_locked(unfinished)
        try:
            status = os.fstat(self._lock)
            _write(unfinished / _BEFORE, before)
            _write(unfinished / _RECORD, record.model_copy(update={"lock": (status.st_dev, status.st_ino)}))
            unfinished.rename(self.path)
            sync_directory(self.path.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            self.release()
            raise

    def note(self, made: Made) -> None:
        """Put down the worktree that was made."""
        _write(self.path / _CHECKOUT, made)

    def retain(self, retained: Retained) -> None:
        """Put down that the run has ended, and why its worktree is still there; at no moment is nothing put down."""
        _write(self.path / _RETAINED, retained)
        (self.path / _CLEARING).unlink(missing_ok=True)

    def retained(self) -> Retained | None:
        """Return why the worktree was retained; None for a run that has not ended, or did not end well."""
        try:
            return _read(self.path / _RETAINED, Retained)
        except (OSError, ValueError):
            return None

    def note_clearing(self, tip: str | None) -> None:
        """Put down that files are taken away from here on: what is missing later was not deleted by a session.

        `tip` is where the run left the Issue branch.
        """
        write_whole(self.path / _CLEARING, tip or "")

    def cleared_tip(self) -> str | None:
        """Return where the run left the Issue branch, once its files are taken away; None before."""
        return next(iter(read_words(self.path / _CLEARING)), None)

    def is_clearing(self) -> bool:
        """Whether files may have been taken away."""
        return (self.path / _CLEARING).exists()

    def own(self) -> bool:
        """Become the owner of a run whose runner is gone; False when it lives, or when that cannot be told."""
        return self.own_unless_alive() is Owner.GONE

    def own_unless_alive(self) -> Owner:
        """Become the owner of a run where that is seen to be GONE."""
        try:
            self._lock = _locked(self.path / _LOCK)
            is_its_own = _is_its_lock(_read_record(self.path), os.fstat(self._lock), self.path.parents[2])
        except BlockingIOError:
            return Owner.ALIVE
        except (OSError, ValueError):
            is_its_own = False
        if not is_its_own:
            self.release()
        return Owner.GONE if is_its_own else Owner.UNKNOWN

    def read(self) -> tuple[RunRecord, Before, Made | None]:
        """Return what was put down. Raises OSError or ValueError."""
        record = _read_record(self.path)
        before = _read(self.path / _BEFORE, Before)
        try:
            made = _read(self.path / _CHECKOUT, Made)
        except FileNotFoundError:
            return record, before, None
        return record, before, made

    def remove(self) -> bool:
        """Remove the record if there is one; False when the directory holds anything else, which is left alone."""
        if not self.path.exists():
            return True
        if {entry.name for entry in self.path.iterdir()} - set(_OURS):
            return False
        for name in _OURS:
            (self.path / name).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):  # somebody who recovers was quicker
            self.path.rmdir()
        self.release()
        return True

    def release(self) -> None:
        """Let go of the lock: from here on anybody may own the run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _make_locked(directory: Path) -> int:
    """Make a directory with a lock that is held; return the lock's descriptor."""
    while True:
        # Until it is locked somebody who recovers takes it for a dead one's; then it is made once more.
        directory.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            return _locked(directory / _LOCK, os.O_CREAT | os.O_EXCL, wait=0)


def _locked(file: Path, flags: int = 0, *, wait: int = fcntl.LOCK_NB) -> int:
    """Return a descriptor that holds the lock on a file; raises OSError where somebody else does, or removed it."""
    descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | wait)
        if not os.path.samestat(os.fstat(descriptor), file.lstat()):
            raise FileNotFoundError(f"{file} was replaced")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_its_lock(record: RunRecord, status: os.stat_result, common: Path) -> bool:
    """Whether a lock is the one that the runner had. Another start of the machine may number its disks otherwise."""
    same_disk = record.lock[0] == status.st_dev or (record.boot != boot_id() and record.common == common)
    return same_disk and record.lock[1] == status.st_ino


def _write(file: Path, document: _Document) -> None:
    # ASCII, because a name that is no UTF-8 can be written in no other way.
    write_whole(file, json.dumps(document.model_dump(mode="json"), indent=2) + "\n")


def _read(file: Path, kind: type[_T]) -> _T:
    return kind.model_validate(json.loads(read_regular(file, _LONGEST)))


def _read_record(directory: Path) -> RunRecord:
    """Return the record in a directory of one run. Raises OSError, or ValueError for another run's, too."""
    record = _read(directory / _RECORD, RunRecord)
    if record.run_id != directory.name:
        raise ValueError(f"it is a copy of the record of run {record.run_id}")
    return record


@contextlib.contextmanager
def alone(common: Path) -> Iterator[bool]:
    """Whether nobody else recovers runs of the clone; while the block lasts, nobody else can begin to."""
    directory = common / "nightkeep"
    make_directory(directory)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def has_record(common: Path, run_id: str) -> bool:
    """Whether anything is put down of a run, readable or not."""
    return os.path.lexists(RecordDirectory(common, run_id).path)


def runs_at_work(common: Path) -> list[str]:
    """Say of each run of the clone whose runner may be alive that it is at work, and which records tell nothing."""
    told = []
    for directory, record in _records(common):
        if isinstance(record, str):
            told.append(f"{directory} and its worktree are left alone, because its record cannot be read: {record}")
        elif owner_may_live(common, record):
            where = f"process {record.pid} on {record.host}"
            told.append(f"run {record.run_id} on {record.branch} is at work: {where}")
    return told


def retained_by(common: Path, run_id: str) -> tuple[Path, Retained] | None:
    """Return where the worktree of a run that has ended was retained, and why; None where it was not."""
    directory = RecordDirectory(common, run_id)
    retained = directory.retained()
    try:
        return (_read_record(directory.path).path, retained) if retained else None
    except (OSError, ValueError):
        return None


def sweep_records(common: Path) -> list[str]:
    """Take away the records that stand for nothing any more; say of each retained worktree that is gone where it was.

    That is those that a killed runner had not finished, so that nothing was made for them; and those of retained
    worktrees that somebody has removed since. Not one whose release was begun: it is to be finished.
    """
    gone = []
    for record in read_records(common):
        directory = RecordDirectory(common, record.run_id)
        retained = directory.retained()
        if retained and not directory.is_clearing() and place_of(record) is None and directory.own():
            gone.append(_told_gone(record, retained))
            directory.remove()
            directory.release()
    for left in (common / "nightkeep" / "runs").glob("*"):
        if left.name.startswith(_UNFINISHED) or not (left / _RECORD).exists():
            _drop(left)
    return gone


def _told_gone(record: RunRecord, retained: Retained) -> str:
    others = [f"{what}: {where}" for what, where in retained.places if where != str(record.path)]
    left = "; ".join(others) or f"what was committed is on {record.branch} in {record.common}"
    return f"{record.path} is gone, which was kept because {retained.why}; {left}"


def _drop(directory: Path) -> None:
    """Remove a directory with files of ours, unless somebody holds its lock or it has others."""
    with contextlib.suppress(OSError):
        if not (directory / _LOCK).exists():
            directory.rmdir()
            return
        descriptor = _locked(directory / _LOCK)
        try:
            for name in _OURS:
                (directory / name).unlink(missing_ok=True)
            directory.rmdir()
        finally:
            os.close(descriptor)


def aside_of(path: Path) -> Path:
    """Return what a worktree is called while it is taken apart."""
    return path.with_name(f"{path.name}.removing")


def place_of(record: RunRecord) -> Path | None:
    """Return where something stands under the name of a worktree, or under that of one aside; None where nothing is."""
    places = (record.path, aside_of(record.path))
    return next((place for place in places if os.path.lexists(place)), None)


def owner_may_live(common: Path, record: RunRecord) -> bool:
    """Whether the runner of a run may still be at work. Another host's always may, and so may one in doubt."""
    return owner_of(common, record) is not Owner.GONE


def owner_of(common: Path, record: RunRecord) -> Owner:
    """Return whether the runner of a run is still there."""
    if record.host != host_name():
        return Owner.UNKNOWN
    directory = RecordDirectory(common, record.run_id)
    owner = directory.own_unless_alive()
    directory.release()
    return owner


def recorded_runs(common: Path) -> list[str]:
    """Return the ids of this clone's runs, those whose records cannot be read among them."""
    return sorted(file.parent.name for file in (common / "nightkeep" / "runs").glob(f"[!.]*/{_RECORD}"))


def read_records(common: Path) -> list[RunRecord]:
    """Return the records of this clone's runs that can be read."""
    return [record for _, record in _records(common) if isinstance(record, RunRecord)]


def _records(common: Path) -> Iterator[tuple[Path, RunRecord | str]]:
    """Yield the directory of each run of the clone with its record, or with why that cannot be read."""
    for run_id in recorded_runs(common):
        directory = RecordDirectory(common, run_id).path
        try:
            yield directory, _read_record(directory)
        except FileNotFoundError:
            continue  # the run has ended meanwhile
        except (OSError, ValueError) as error:
            yield directory, next(iter(str(error).splitlines()), "")


def new_run_id() -> str:
    """Return a name for a run that sorts by time and fits in a ref."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
