"""Making a worktree, or nothing."""

from dataclasses import replace
from datetime import UTC, datetime
from os import getpid
from pathlib import Path

from worktree.checkout import Checkout, Ledger
from worktree.cleanup import clean_up
from worktree.errors import AcquisitionError, GitError, LaunchError, WorktreeError
from worktree.launch import Launch
from worktree.record import RecordDirectory, RunRecord, host_name, new_run_id
from worktree.remote import Fence, Origin, Remote


def acquire_new(launch: Launch, branch: str, base: str, origin: Origin | None, fence: Fence | None) -> Checkout:
    """Make a worktree on a new branch at the Base branch's commit on origin; see `Worktree.create`."""
    _refuse(launch.obstacle(branch, None))
    remote = launch.remote(origin)
    pinned = _fetch(launch, remote, base)[base]
    record = _record(launch, base, branch, pinned, pinned, made_branch=True)
    return _add(launch, remote, fence, record, resumed=False)


def acquire_existing(launch: Launch, branch: str, base: str, origin: Origin | None, fence: Fence | None) -> Checkout:
    """Make a worktree on a branch as it stands on origin; see `Worktree.resume`."""
    remote = launch.remote(origin)
    fetched = _fetch(launch, remote, base, branch)
    _refuse(launch.obstacle(branch, fetched[branch]))
    made_branch = f"refs/heads/{branch}" not in launch.refs
    record = _record(launch, base, branch, fetched[branch], fetched[base], made_branch=made_branch)
    return _add(launch, remote, fence, record, resumed=True)


def _refuse(obstacle: str | None) -> None:
    if obstacle:
        raise LaunchError(obstacle)


def _fetch(launch: Launch, remote: Remote, base: str, *others: str) -> dict[str, str]:
    branches = (base, *others)
    try:
        fetched = remote.fetch(*branches)
    except GitError:
        there = remote.read(*(f"refs/heads/{branch}" for branch in branches))
        missing = [branch for branch in branches if f"refs/heads/{branch}" not in there]
        if not missing:
            raise
        raise LaunchError(f"branch {missing[0]} does not exist on origin ({remote.url}); push it first") from None
    # As `git fetch` does, without naming the old value: this ref only mirrors origin, and the last look wins.
    launch.git.run("update-ref", "-m", "nightkeep: fetch", f"refs/remotes/origin/{base}", fetched[base])
    return fetched


def _record(launch: Launch, base: str, branch: str, pinned: str, pinned_base: str, *, made_branch: bool) -> RunRecord:
    return RunRecord(
        run_id=new_run_id(),
        pid=getpid(),
        host=host_name(),
        started=datetime.now(UTC),
        base=base,
        branch=branch,
        made_branch=made_branch,
        path=_free_path(launch, branch),
        pinned=pinned,
        pinned_base=pinned_base,
    )


def _free_path(launch: Launch, branch: str) -> Path:
    wanted = launch.worktrees / f"{launch.top.name}-{branch.replace('/', '-')}"
    number = 1
    path = wanted
    while path.exists() or path.is_symlink():
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path


def _add(launch: Launch, remote: Remote, fence: Fence | None, record: RunRecord, *, resumed: bool) -> Checkout:
    directory = RecordDirectory(launch.common, record.run_id)
    new = ["--no-track", "-b", record.branch, str(record.path), record.pinned]
    target = new if record.made_branch else [str(record.path), record.branch]
    # Clean-up reads the log of HEAD. Once it is there git goes on with it, whatever is configured.
    logging = replace(launch.git, settings=(("core.logAllRefUpdates", "true"),))
    reason = f"nightkeep {record.run_id}"
    try:
        directory.write(record)
        logging.run("worktree", "add", "--quiet", "--lock", "--reason", reason, *target)
        return _checkout(launch, remote, fence, record, directory, resumed=resumed)
    except (WorktreeError, OSError) as error:
        kept = _undo(launch, remote, record, directory)
        if isinstance(error, WorktreeError) and kept is None:
            raise
        raise AcquisitionError(f"the worktree {record.path} could not be made: {error}", kept) from error


def _checkout(
    launch: Launch,
    remote: Remote,
    fence: Fence | None,
    record: RunRecord,
    directory: RecordDirectory,
    *,
    resumed: bool,
) -> Checkout:
    admin = Path((record.path / ".git").read_text().removeprefix("gitdir: ").strip())
    # Both directories are named outright, so that nothing an agent does to `.git`, `core.bare` or `core.worktree`
    # makes our commands work elsewhere.
    selectors = (f"--git-dir={admin}", f"--work-tree={record.path}")
    return Checkout(
        record=record,
        directory=directory,
        admin=admin,
        git=replace(launch.git, directory=record.path, selectors=selectors),
        shared=launch.git,
        remote=remote,
        refs=launch.refs,
        configuration=launch.configuration,
        resumed=resumed,
        fence=fence,
        ledger=Ledger(held={record.pinned, record.pinned_base}),
    )


def _undo(launch: Launch, remote: Remote, record: RunRecord, directory: RecordDirectory) -> str | None:
    """Take away what a failed attempt made, as far as that is proven to be safe; return what is left, in a sentence."""
    left = f"the worktree {record.path} and its local branch {record.branch} are left"
    try:
        if (record.path / ".git").exists():
            half_made = _checkout(launch, remote, None, record, directory, resumed=False).completing()
            why = clean_up(half_made).retained
            return None if why is None else f"{left}: {why}"
        if record.path.exists():
            return left
        if record.made_branch:
            shared = launch.git.completing()
            shared.run("update-ref", "-d", f"refs/heads/{record.branch}", record.pinned, accept=range(256))
        directory.remove()
    except (WorktreeError, OSError) as error:
        return f"{left}: {error}"
    return None
