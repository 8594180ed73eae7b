"""Making a worktree, or nothing."""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from worktree.checkout import Checkout, selectors
from worktree.cleanup import clean_up
from worktree.errors import AcquisitionError, BranchTakenError, GitError, LaunchError, WorktreeError
from worktree.fence import Fence
from worktree.inclusion import Included, include
from worktree.launch import Launch, registered_paths
from worktree.ledger import Ledger
from worktree.machine import boot_id, host_name, pid_namespace, pid_started
from worktree.origin import Origin
from worktree.reading import read_regular, read_words
from worktree.record import Before, Made, RecordDirectory, RunRecord, new_run_id, read_records
from worktree.remote import Remote


def acquire_new(
    launch: Launch,
    branch: str,
    base: str,
    origin: Origin | None,
    fence: Fence | None,
    fetched: Mapping[str, str] | None,
    run_id: str | None,
) -> Checkout:
    """Make a worktree on a new branch at the Base branch's commit on origin; see `Worktree.create`."""
    _refuse(launch.obstacle(branch, None))
    remote = launch.remote(origin)
    pinned = _pin(launch, remote, fetched, base)[base]
    record = _record(launch, run_id, base, branch, pinned, pinned, made_branch=True, resumed=False)
    return _add(launch, remote, fence, record)


def acquire_existing(
    launch: Launch,
    branch: str,
    base: str,
    origin: Origin | None,
    fence: Fence | None,
    fetched: Mapping[str, str] | None,
    run_id: str | None,
) -> Checkout:
    """Make a worktree on a branch as it stands on origin; see `Worktree.resume`."""
    if f"refs/heads/{branch}" in launch.refs:
        launch = launch.reopened()  # a run that has ended since took it away
    remote = launch.remote(origin)
    pinned = _pin(launch, remote, fetched, base, branch)
    _refuse(launch.obstacle(branch, pinned[branch]))
    made_branch = f"refs/heads/{branch}" not in launch.refs
    record = _record(launch, run_id, base, branch, pinned[branch], pinned[base], made_branch=made_branch, resumed=True)
    return _add(launch, remote, fence, record)


def _refuse(obstacle: str | None) -> None:
    if obstacle:
        raise LaunchError(obstacle)


def _pin(
    launch: Launch, remote: Remote, fetched: Mapping[str, str] | None, base: str, *others: str
) -> Mapping[str, str]:
    """Return the branches' commits on origin, which are here then; `fetched` are those that were fetched just now."""
    branches = (base, *others)
    if fetched is None or not fetched.keys() >= set(branches):
        fetched = _fetch(remote, branches)
    remote.known.update(fetched.values())
    mirror = f"refs/remotes/origin/{base}"
    if launch.refs.get(mirror) != fetched[base]:
        # As `git fetch` does, without naming the old value: this ref only mirrors origin, and the last look wins.
        launch.git.run("update-ref", "--no-deref", "-m", "nightkeep: fetch", mirror, fetched[base])
    return fetched


def _fetch(remote: Remote, branches: tuple[str, ...]) -> Mapping[str, str]:
    try:
        return remote.fetch(*branches)
    except GitError:
        there = remote.read(*(f"refs/heads/{branch}" for branch in branches))
        missing = [branch for branch in branches if f"refs/heads/{branch}" not in there]
        if not missing:
            raise
        raise LaunchError(f"branch {missing[0]} does not exist on origin ({remote.url}); push it first") from None


def _record(
    launch: Launch,
    run_id: str | None,
    base: str,
    branch: str,
    pinned: str,
    pinned_base: str,
    *,
    made_branch: bool,
    resumed: bool,
) -> RunRecord:
    return RunRecord(
        run_id=run_id or new_run_id(),
        pid=os.getpid(),
        pid_started=pid_started(),
        pid_namespace=pid_namespace(),
        boot=boot_id(),
        host=host_name(),
        started=datetime.now(UTC),
        base=base,
        branch=branch,
        made_branch=made_branch,
        resumed=resumed,
        path=_free_path(launch, branch),
        pinned=pinned,
        pinned_base=pinned_base,
        common=launch.common,
    )


def _free_path(launch: Launch, branch: str) -> Path:
    wanted = launch.worktrees / f"{launch.top.name}-{branch.replace('/', '-')}"
    number = 1
    path = wanted
    taken = registered_paths(launch.common)
    while os.path.lexists(path) or path in taken:
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path


def _add(launch: Launch, remote: Remote, fence: Fence | None, record: RunRecord) -> Checkout:
    directory = RecordDirectory(launch.common, record.run_id)
    known = before(launch)
    reason = f"nightkeep {record.run_id}"
    launch = launch.of_run(record.run_id)
    # Clean-up reads the log of HEAD. Once it is there git goes on with it, whatever is configured.
    logging = replace(launch.git, settings=(("core.logAllRefUpdates", "true"),))
    _begin(launch, record, known, directory)
    try:
        logging.run("worktree", "add", "--quiet", "--lock", "--reason", reason, str(record.path), record.branch)
        return _with_included(launch, _checkout(launch, remote, fence, record, known, directory))
    except Exception as error:
        kept = _undo(launch, remote, record, known, directory)
        if isinstance(error, WorktreeError) and kept is None:
            raise
        raise AcquisitionError(f"the worktree {record.path} could not be made: {error}", kept) from error


def _with_included(launch: Launch, made: Checkout) -> Checkout:
    """Copy in what the task needs, and put down the worktree as it is then."""
    included = include(launch.git, launch.top, made.path)
    made.directory.note(Made(identity=made.identity, acquired=made.acquired, included=included.paths))
    return replace(made, included=included)


def before(launch: Launch) -> Before:
    """Return the clone as it is now, as far as what a run made is told from it later."""
    return Before(
        refs=dict(launch.refs),
        runs=tuple(record.branch for record in read_records(launch.common) if os.path.lexists(record.path)),
        stashes=tuple(entry.commit for entry in launch.stash),
        filters=tuple(entry for entry in launch.configuration if entry[1].startswith("filter.")),
    )


def _begin(launch: Launch, record: RunRecord, known: Before, directory: RecordDirectory) -> None:
    """Write the record and make the branch, or neither."""
    try:
        directory.write(record, known)
        if record.made_branch:
            _make_branch(launch, record)
    except OSError as error:
        why = f"the worktree could not be made, for its record cannot be written: {error}"
        raise AcquisitionError(why, None) from error
    except WorktreeError:
        directory.remove()
        raise


def _make_branch(launch: Launch, record: RunRecord) -> None:
    """Make the local branch, which nobody may have made meanwhile: whoever makes it owns it."""
    ref = f"refs/heads/{record.branch}"
    reason = f"nightkeep {record.run_id}"
    try:
        # Not to be interrupted: whether it was made must be known.
        launch.git.completing().run(
            "update-ref", "--no-deref", "-m", reason, ref, record.pinned, "0" * len(record.pinned)
        )
    except GitError as error:
        if launch.git.completing().run("rev-parse", "--verify", "--quiet", ref, accept=(0, 1)).status == 0:
            raise BranchTakenError(
                f"the local branch {record.branch} was made by somebody else just now; another run works on it, or "
                "somebody does by hand"
            ) from error
        raise


def _checkout(
    launch: Launch,
    remote: Remote,
    fence: Fence | None,
    record: RunRecord,
    known: Before,
    directory: RecordDirectory,
) -> Checkout:
    admin = Path(os.fsdecode(read_regular(record.path / ".git")).removeprefix("gitdir: ").removesuffix("\n"))
    status = record.path.lstat()
    return Checkout(
        record=record,
        path=record.path,
        top=launch.top,
        directory=directory,
        admin=admin,
        identity=(status.st_dev, status.st_ino),
        acquired=time.time_ns(),
        git=replace(
            launch.git,
            directory=record.path,
            selectors=selectors(admin, record.path),
            # Whether modes count is the clone's to say, not an agent's.
            settings=(("core.fileMode", launch.value("core.filemode") or "true"),),
        ),
        shared=launch.git,
        remote=remote,
        refs=launch.refs,
        runs=frozenset(known.runs),
        stashes=frozenset(entry.commit for entry in launch.stash),
        configuration=launch.configuration,
        included=Included((), ()),
        fence=fence,
        ledger=Ledger(held={record.pinned, record.pinned_base}),
    )


def _lock_at(path: Path) -> list[str]:
    """Return the reason, word by word, for which the worktree at `path` is locked; none where nothing says so."""
    if not (path / ".git").exists():
        return []
    admin = Path(os.fsdecode(read_regular(path / ".git")).removeprefix("gitdir: ").removesuffix("\n"))
    return read_words(admin / "locked")


def _undo(launch: Launch, remote: Remote, record: RunRecord, known: Before, directory: RecordDirectory) -> str | None:
    """Take away what a failed attempt made, as far as that is proven to be safe; return what is left, in a sentence."""
    left = f"the worktree {record.path} and its local branch {record.branch} are left"
    try:
        owner = _lock_at(record.path)
        if owner == ["nightkeep", record.run_id]:
            half_made = _checkout(launch, remote, None, record, known, directory).completing()
            why = clean_up(half_made).retained
            return None if why is None else f"{left}: {why}"
        if record.path.exists() and not owner:
            return left
        # With another's lock the path is another's, who was quicker: only our branch and our record are ours.
        if record.made_branch:
            shared = launch.git.completing()
            shared.run(
                "update-ref", "--no-deref", "-d", f"refs/heads/{record.branch}", record.pinned, accept=range(256)
            )
        directory.remove()
    except (WorktreeError, OSError) as error:
        return f"{left}: {error}"
    return None
