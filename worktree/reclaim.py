"""Going on with a run whose runner is gone."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from worktree.checkout import Checkout, is_directory, selectors
from worktree.errors import DeferredError, WorktreeError
from worktree.fence import Fence
from worktree.git import Git
from worktree.inclusion import Included
from worktree.launch import Launch, checkout_noted_in
from worktree.ledger import Ledger
from worktree.machine import boot_id, host_name
from worktree.origin import Origin
from worktree.processes import RUN_MARKER, at_work_in, stop_carrying
from worktree.reading import read_words
from worktree.record import Before, Made, RecordDirectory, RunRecord, aside_of, place_of, read_records
from worktree.remote import Remote
from worktree.run_refs import checkpoint_ref, rescue_ref
from worktree.snapshot import read_snapshot


@dataclass(frozen=True, slots=True)
class Orphan:
    """A run whose runner is gone without having ended it."""

    run_id: str
    base: str
    branch: str
    path: Path


def orphans(launch: Launch) -> Sequence[Orphan]:
    """Return the clone's runs that nobody owns and that have not ended, the oldest first.

    Not among them: another host's, one whose lock is held, and what cannot be read; every doubt means alive.
    """
    found = []
    for record in read_records(launch.common):
        directory = RecordDirectory(launch.common, record.run_id)
        if record.host == host_name() and directory.retained() is None and directory.own():
            directory.release()
            found.append(Orphan(record.run_id, record.base, record.branch, record.path))
    return found


def reclaim(launch: Launch, run_id: str, origin: Origin | None, fence: Fence | None, *, delivered: bool) -> Checkout:
    """Become the owner of an orphan; what its session has left running is stopped.

    `delivered` says that it is known to have been delivered. Raises DeferredError, with nothing done, when somebody
    else owns it or is at work in it; WorktreeError or OSError.
    """
    directory = RecordDirectory(launch.common, run_id)
    if not directory.own():
        raise DeferredError(f"run {run_id} is owned by somebody else")
    try:
        record, before, made = _read(directory)
        _require_quiet(record)
        launch = launch.of_run(run_id)
        checkout = _reopen(launch, directory, record, before, made, origin, fence)
        checkout.ledger.failed = not delivered
        if _is_gone(checkout, made):
            checkout.name_loss()
        checkout.ledger.held |= checkout.of_those_here((record.pinned, record.pinned_base))
        return with_what_is_held(checkout, launch, read_held(checkout.remote, run_id))
    except BaseException:
        directory.release()
        raise


def _is_gone(checkout: Checkout, made: Made | None) -> bool:
    """Whether somebody has removed the directory, and not the run itself."""
    whole = checkout.has_admin and made is not None and not checkout.directory.is_clearing()
    return whole and not os.path.lexists(checkout.record.path)


def reopen(launch: Launch, run_id: str, origin: Origin | None, there: Mapping[str, str] | None) -> Checkout:
    """Become the owner of a retained worktree, to release it.

    `there` are the refs that origin is seen to hold, see `read_held`; None asks it. Nothing else counts as being there,
    for what the run started from can be gone by now. Raises DeferredError, with nothing done, when somebody else owns
    it or it was not retained; WorktreeError or OSError.
    """
    directory = RecordDirectory(launch.common, run_id)
    if not directory.own():
        raise DeferredError(f"run {run_id} is owned by somebody else by now")
    try:
        record, before, made = _read(directory)
        _require_retained(directory, run_id)
        _require_nobody(record)
        checkout = replace(_reopen(launch, directory, record, before, made, origin, None), released=True)
        return with_what_is_held(checkout, launch, read_held(checkout.remote, run_id) if there is None else there)
    except BaseException:
        directory.release()
        raise


def look_into(launch: Launch, run_id: str, origin: Origin | None) -> Checkout:
    """Return a worktree as `reopen` does, to look at it only: it is not owned, and nothing of it is moved."""
    directory = RecordDirectory(launch.common, run_id)
    record, before, made = _read(directory)
    checkout = _checkout(launch, directory, record, before, made, origin, None, _admin_of(launch.common, record))
    aside = aside_of(record.path)
    is_aside = checkout.has_admin and checkout.is_at(aside)
    return replace(checkout, has_tree=True).moved_to(aside) if is_aside else checkout


def _read(directory: RecordDirectory) -> tuple[RunRecord, Before, Made | None]:
    try:
        return directory.read()
    except ValueError as error:
        raise WorktreeError(f"the record {directory.path} cannot be read, so nothing is touched: {error}") from error


def _require_retained(directory: RecordDirectory, run_id: str) -> None:
    if directory.retained() is None:
        raise DeferredError(f"run {run_id} has not ended; finish it first: nightkeep recover")


def _require_quiet(record: RunRecord) -> None:
    left = stop_carrying(f"{RUN_MARKER}={record.run_id}")
    if left:
        raise DeferredError(f"processes of run {record.run_id} cannot be stopped: {', '.join(left)}")
    _require_nobody(record)


def _require_nobody(record: RunRecord) -> None:
    for place in (record.path, aside_of(record.path)):
        at_work = at_work_in(place, record.started) if os.path.lexists(place) else []
        if at_work:
            raise DeferredError(f"somebody is at work in {place}: {', '.join(at_work)}; close it, then try again")


def _reopen(
    launch: Launch,
    directory: RecordDirectory,
    record: RunRecord,
    before: Before,
    made: Made | None,
    origin: Origin | None,
    fence: Fence | None,
) -> Checkout:
    admin = _admin_of(launch.common, record)
    if admin is not None:
        _put_back(record, made, directory)
    return _checkout(launch, directory, record, before, made, origin, fence, admin)


def _checkout(
    launch: Launch,
    directory: RecordDirectory,
    record: RunRecord,
    before: Before,
    made: Made | None,
    origin: Origin | None,
    fence: Fence | None,
    admin: Path | None,
) -> Checkout:
    # Without the note on the worktree no session has begun, so nothing in it was made by one.
    whole = admin is not None and made is not None and not directory.is_clearing()
    there = whole and record.path.is_dir() and not record.path.is_symlink()
    return Checkout(
        record=record,
        path=record.path,
        top=launch.top,
        directory=directory,
        admin=admin or launch.common,
        identity=_identity(record, made),
        acquired=made.acquired if made else int(record.started.timestamp() * 1e9),
        git=_git(launch, admin, record, there=there),
        shared=launch.git,
        remote=launch.remote(origin),
        refs=before.refs,
        runs=frozenset(before.runs),
        stashes=frozenset(before.stashes),
        configuration=before.filters,
        included=Included(made.included if made else (), ()),
        fence=fence,
        ledger=Ledger(failed=True),
        has_tree=there,
        has_admin=admin is not None,
    )


def _identity(record: RunRecord, made: Made | None) -> tuple[int, int]:
    """Return device and inode of the worktree as it was made, or as it is when nobody put that down."""
    place = place_of(record)
    if place is None:
        return made.identity if made else (0, 0)
    status = place.lstat()
    if made is None:
        return (status.st_dev, status.st_ino)
    # Another start of the machine may number its disks otherwise.
    return made.identity if record.boot == boot_id() else (status.st_dev, made.identity[1])


def _admin_of(common: Path, record: RunRecord) -> Path | None:
    """Return the worktree's git directory, known by the reason of its lock; None when there is none any more."""
    for lock in sorted((common / "worktrees").glob("*/locked")):
        if read_words(lock) == ["nightkeep", record.run_id]:
            return _still_there(lock.parent, record)
    # Somebody took the lock away.
    admins = (admin for admin in (common / "worktrees").glob("*") if (admin / "gitdir").exists())
    return next((admin for admin in admins if checkout_noted_in(admin) == record.path), None)


def _still_there(admin: Path, record: RunRecord) -> Path:
    place = checkout_noted_in(admin)
    if place != record.path:
        raise DeferredError(f"the worktree of run {record.run_id} was moved to {place}; move it back to {record.path}")
    return admin


def _put_back(record: RunRecord, made: Made | None, directory: RecordDirectory) -> None:
    """Give a worktree its name back that was moved aside, unless files were taken from it already."""
    aside = aside_of(record.path)
    is_ours = is_directory(aside, _identity(record, made))
    if is_ours and not os.path.lexists(record.path) and not directory.is_clearing():
        aside.rename(record.path)


def _git(launch: Launch, admin: Path | None, record: RunRecord, *, there: bool) -> Git:
    """Return git in the worktree, or where that is gone in its git directory, or where that is gone in the clone's."""
    settings = (("core.fileMode", launch.value("core.filemode") or "true"),)
    if admin is None:
        return launch.git
    if not there:
        return replace(launch.git, directory=launch.common, selectors=(f"--git-dir={admin}",), settings=settings)
    return replace(launch.git, directory=record.path, selectors=selectors(admin, record.path), settings=settings)


def read_held(remote: Remote, run_id: str) -> dict[str, str]:
    """Return the refs of origin that can hold what a run made. Raises GitError."""
    return remote.read("refs/heads/*", "refs/tags/*", rescue_ref(run_id, "*"), checkpoint_ref(run_id))


def with_what_is_held(checkout: Checkout, launch: Launch, there: Mapping[str, str]) -> Checkout:
    """Enter in the ledger what origin holds now, and the rescue refs that are here."""
    ledger, record = checkout.ledger, checkout.record
    rescue = rescue_ref(record.run_id)
    checkpoint = checkpoint_ref(record.run_id)
    ledger.checkpoint, ledger.checkpoint_sent = launch.refs.get(checkpoint), there.get(checkpoint)
    if ledger.checkpoint_sent:
        ledger.checkpoints_offered.add(ledger.checkpoint_sent)
    there = {ref: oid for ref, oid in there.items() if ref != checkpoint}
    ledger.held |= checkout.of_those_here(there.values())
    ledger.refs |= {ref: oid for ref, oid in there.items() if ref.startswith(rescue)}
    for ref, oid in ledger.refs.items():
        if ref.startswith(f"{rescue}snapshot") and oid in ledger.held:
            ledger.snapshots[ref] = read_snapshot(checkout.shared, oid)
    if there.get(checkout.branch_ref, record.pinned) != record.pinned:
        ledger.refs[checkout.branch_ref] = there[checkout.branch_ref]
    ledger.local |= {ref: oid for ref, oid in launch.refs.items() if ref.startswith(rescue)}
    return checkout
