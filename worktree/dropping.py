"""Deleting what was rescued of a run that nobody needs any more."""

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from worktree.copying import opened_directory
from worktree.descent import below, delete
from worktree.errors import GitError
from worktree.launch import Launch
from worktree.mounts import mounts_below
from worktree.record import RecordDirectory, owner_may_live, place_of, read_records
from worktree.remote import ABSENT, RefUpdate, Remote
from worktree.stored import Rescued, RescueError


@dataclass(frozen=True, slots=True)
class Deletion:
    """One thing of a run that was deleted: what it was and where, and why, "" for somebody said so.

    `size` is in bytes, 0 for a ref.
    """

    run_id: str
    what: str
    why: str
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What decides whether somebody may still need what is kept of a run.

    `record` is where the run's record is, None when there is none, `readable` says whether that can be read, `may_live`
    whether its process can still run; `retained` is its worktree, if that is there.
    """

    record: Path | None
    readable: bool = True
    may_live: bool = False
    retained: Path | None = None


def reason_to_spare(facts: RunFacts) -> str | None:
    """Decide: None when what is kept of a run may be deleted, else why not, with what to do about it."""
    if facts.record is None:
        return None
    if not facts.readable:
        return f"its record cannot be read, so nobody knows whether it is over; when it is, remove {facts.record}"
    if facts.may_live:
        return "it may still be at work; wait for its end"
    if facts.retained:
        release = shlex.join(["nightkeep", "worktrees", "release", str(facts.retained)])
        return f"its worktree is still there; release it first: {release}"
    return None


def needed(common: Path, run_id: str) -> str | None:
    """Return why what is kept of a run may not be deleted now, see `reason_to_spare`."""
    return reason_to_spare(_look_at(common, run_id))


def _look_at(common: Path, run_id: str) -> RunFacts:
    place = RecordDirectory(common, run_id).path
    if not os.path.lexists(place):
        return RunFacts(record=None)
    record = next((one for one in read_records(common) if one.run_id == run_id), None)
    if record is None:
        return RunFacts(record=place, readable=False)
    return RunFacts(record=place, may_live=owner_may_live(common, record), retained=place_of(record))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleter:
    """Deletes what is kept of runs, in a `rehearsal` only says so; `deleted` is told of each thing that is gone.

    `remote` is origin, where rescue refs are to be deleted there, too. Somebody else may be deleting the same.
    """

    launch: Launch
    remote: Remote | None
    deleted: Callable[[Deletion], None]
    rehearsal: bool = False

    def delete_refs(self, rescued: Rescued, why: str) -> None:
        """Delete the rescue refs of a run, each as it was read: what was moved meanwhile stays. Raises GitError."""
        if self.remote is not None and rescued.on_origin:
            if not self.rehearsal:
                self.remote.push(*(RefUpdate(ref, ABSENT, oid) for ref, oid in rescued.on_origin.items()))
            for ref in rescued.on_origin:
                self.deleted(Deletion(rescued.run_id, f"{ref} on origin", why))
        for ref, oid in rescued.local.items():
            if not self.rehearsal:
                self._delete_ref(ref, oid)
            self.deleted(Deletion(rescued.run_id, f"{ref} in this clone", why))

    def _delete_ref(self, ref: str, oid: str) -> None:
        git = self.launch.git
        try:
            git.run("update-ref", "--no-deref", "-d", ref, oid)
        except GitError:
            if git.answers("show-ref", "--verify", "--quiet", ref):
                raise

    def delete_store(self, rescued: Rescued, why: str) -> None:
        """Delete what the store has of a run. Raises OSError, with the manifest left as long as anything is."""
        if rescued.store is None:
            return
        path = rescued.store.path
        if mounted := mounts_below(path.resolve()):
            raise OSError(f"{path} was not deleted, because something is mounted in it: {mounted[0]}")
        if not self.rehearsal:
            self._delete_directory(path.name)
        self.deleted(Deletion(rescued.run_id, str(path), why, rescued.size))

    def _delete_directory(self, run_id: str) -> None:
        with opened_directory(self.launch.common.resolve()) as common, below(common, "nightkeep/rescue") as rescue:
            with suppress(FileNotFoundError), below(rescue, run_id) as directory:
                for name in sorted(os.listdir(directory), key=lambda name: name == "manifest.json"):  # noqa: PTH208
                    delete(directory, name)
            delete(rescue, run_id)


def drop(deleter: Deleter, rescued: Rescued) -> None:
    """Delete all that is kept of a run, because somebody said so.

    Raises RescueError, before anything is deleted, while somebody may need it; GitError or OSError when something
    could not be deleted: what is still there can be listed, and dropped again.
    """
    why = needed(deleter.launch.common, rescued.run_id)
    if why:
        raise RescueError(f"nothing of {rescued.run_id} was deleted: {why}")
    deleter.delete_refs(rescued, "")
    deleter.delete_store(rescued, "")
