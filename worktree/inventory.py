"""Which worktrees there are of the runs of a clone, by their records and by git's locks."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from worktree.copying import opened_directory
from worktree.descent import measure
from worktree.launch import checkout_noted_in
from worktree.machine import host_name
from worktree.reading import read_words
from worktree.record import (
    Owner,
    RecordDirectory,
    Retained,
    RunRecord,
    aside_of,
    owner_of,
    place_of,
    read_records,
    recorded_runs,
)
from worktree.stored import began


class Standing(StrEnum):
    """How it stands with the run of a worktree. In a copy of a clone the runs of the original are IN_DOUBT."""

    AT_WORK = "at work"
    RETAINED = "retained"
    ORPHANED = "orphaned"
    ELSEWHERE = "of another host"
    IN_DOUBT = "in doubt"
    UNREADABLE = "unreadable"
    UNRECORDED = "without record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One worktree. What nobody can tell is None.

    `path` is where its directory is, or was: `size`, in bytes, is None when it is gone. `record` is the directory of
    the run's record; `pid` and `host` are those of its runner. `retained` is why it is still there. `half_released`
    says that its release was begun and not finished.
    """

    run_id: str
    standing: Standing
    owner: Owner = Owner.UNKNOWN
    path: Path | None = None
    branch: str | None = None
    began: datetime | None = None
    size: int | None = None
    record: Path | None = None
    pid: int | None = None
    host: str | None = None
    retained: Retained | None = None
    half_released: bool = False

    def is_at(self, places: Collection[Path]) -> bool:
        """Whether one of some paths, their directories resolved, is that of the worktree, moved aside or not."""
        if self.path is None:
            return False
        path = self.path.parent.resolve() / self.path.name
        named = [place for place in places if place.name]  # but for the root
        return any(path in (place, aside_of(place)) or place == aside_of(path) for place in named)


def standing(owner: Owner, *, is_here: bool, has_ended: bool) -> Standing:
    """Decide how it stands with a run whose record can be read; `is_here` says that it is one of this host."""
    if not is_here:
        return Standing.ELSEWHERE
    if owner is Owner.ALIVE:
        return Standing.AT_WORK
    if has_ended:
        return Standing.RETAINED
    return Standing.ORPHANED if owner is Owner.GONE else Standing.IN_DOUBT


def list_worktrees(common: Path) -> list[Listed]:
    """Return the worktrees of the clone whose git directory is `common`, the oldest run first; changes nothing."""
    locks = dict(_locks(common))
    recorded = recorded_runs(common)
    records = {record.run_id: record for record in read_records(common) if record.run_id in recorded}
    found = [_of_record(common, record) for record in records.values()]
    found += [
        _unread(run_id, locks.get(run_id), Standing.UNREADABLE, record=RecordDirectory(common, run_id).path)
        for run_id in recorded
        if run_id not in records
    ]
    found += [_unread(run_id, admin, Standing.UNRECORDED) for run_id, admin in locks.items() if run_id not in recorded]
    return sorted(found, key=lambda one: one.run_id)


def _locks(common: Path) -> Iterator[tuple[str, Path]]:
    """Yield the runs that git's locks on worktrees name, each with git's directory of it."""
    for lock in sorted((common / "worktrees").glob("*/locked")):
        with suppress(OSError):
            words = read_words(lock)
            if words[:1] == ["nightkeep"] and len(words) == 2:
                yield words[1], lock.parent


def _of_record(common: Path, record: RunRecord) -> Listed:
    directory = RecordDirectory(common, record.run_id)
    owner, retained = owner_of(common, record), directory.retained()
    path = place_of(record) or record.path
    return Listed(
        run_id=record.run_id,
        standing=standing(owner, is_here=record.host == host_name(), has_ended=retained is not None),
        owner=owner,
        path=path,
        branch=record.branch,
        began=record.started,
        size=_size(path),
        record=directory.path,
        pid=record.pid,
        host=record.host,
        retained=retained,
        half_released=retained is not None and directory.is_clearing(),
    )


def _unread(run_id: str, admin: Path | None, how: Standing, record: Path | None = None) -> Listed:
    path = branch = moment = None
    if admin:
        with suppress(OSError):
            noted = checkout_noted_in(admin)
            path = next((place for place in (noted, aside_of(noted)) if place.is_dir()), noted)
            words = read_words(admin / "HEAD")
            branch = words[1].removeprefix("refs/heads/") if words[:1] == ["ref:"] else None
    with suppress(ValueError):
        moment = began(run_id)
    return Listed(
        run_id=run_id,
        standing=how,
        path=path,
        branch=branch,
        began=moment,
        size=_size(path) if path else None,
        record=record,
    )


def _size(path: Path) -> int | None:
    try:
        with opened_directory(path.parent.resolve()) as parent:
            return measure(parent, path.name).size if path.is_dir() and not path.is_symlink() else None
    except OSError:
        return None
