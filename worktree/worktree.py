"""A git worktree that an agent may do anything in."""

from dataclasses import replace
from datetime import UTC, datetime
from os import getpid
from pathlib import Path
from types import TracebackType
from typing import Self

from worktree.checkout import Checkout, Ledger
from worktree.cleanup import clean_up
from worktree.ending import Ending, Preserved
from worktree.errors import GitError, LaunchError, PreservationError, UnsettledError, WorktreeError
from worktree.files import Listing, list_files, stage_all
from worktree.git import IDENTITY, Git
from worktree.interruption import Interruption
from worktree.launch import Launch
from worktree.preservation import preserve
from worktree.record import RecordDirectory, RunRecord, host_name, new_run_id
from worktree.remote import Fence, Origin, RefUpdate, Remote
from worktree.rescue import keep_snapshot, publish_snapshot
from worktree.state import read_state, why_unsettled


class Worktree:
    """A linked worktree on an Issue branch, from acquisition to clean-up.

    Use it as a context manager: leaving the block is the only clean-up there is. It removes the checkout, and the
    local branch if this object made that, once everything in them is proven to be on origin; otherwise it retains
    both. `ending` says which, and where what was made is.
    """

    def __init__(self, checkout: Checkout, launch: Path) -> None:
        self._checkout = checkout
        self._launch = launch
        self._retained: str | None = None
        self._ending: Ending | None = None
        self._settled: str | None = checkout.record.pinned

    @classmethod
    def create(
        cls,
        launch: Path | Launch,
        *,
        branch: str,
        base: str,
        interruption: Interruption,
        origin: Origin | None = None,
        fence: Fence | None = None,
    ) -> Self:
        """Make a new `branch` at the Base branch's commit on origin, checked out beside the Launch directory.

        The path is `<directory name>-<branch>`, with a number behind it when something is there already. Fetches
        the Base branch. `origin` pins URL and credential, None takes the clone's own; `fence` is called before
        each push. Raises LaunchError, with nothing made, when a local branch of that name exists or the Base
        branch is not on origin; GitError, with whatever is not proven safe left in place and named.
        """
        opened = _opened(launch, interruption)
        obstacle = opened.obstacle(branch, None)
        if obstacle:
            raise LaunchError(obstacle)
        remote = opened.remote(origin)
        pinned = _fetch(opened, remote, base)[base]
        record = _record(opened, base, branch, pinned, pinned, made_branch=True)
        return cls._acquire(opened, remote, fence, record, on_origin=None)

    @classmethod
    def resume(
        cls,
        launch: Path | Launch,
        *,
        branch: str,
        base: str,
        interruption: Interruption,
        origin: Origin | None = None,
        fence: Fence | None = None,
    ) -> Self:
        """Check out `branch` as it stands on origin, to go on from there; otherwise as `create`.

        A local branch of that name is used when it equals origin's, and then stays at the end. Raises LaunchError,
        with nothing made, when it differs.
        """
        opened = _opened(launch, interruption)
        remote = opened.remote(origin)
        fetched = _fetch(opened, remote, base, branch)
        obstacle = opened.obstacle(branch, fetched[branch])
        if obstacle:
            raise LaunchError(obstacle)
        made_branch = f"refs/heads/{branch}" not in opened.refs
        record = _record(opened, base, branch, fetched[branch], fetched[base], made_branch=made_branch)
        return cls._acquire(opened, remote, fence, record, on_origin=record.pinned)

    @classmethod
    def _acquire(
        cls, opened: Launch, remote: Remote, fence: Fence | None, record: RunRecord, *, on_origin: str | None
    ) -> Self:
        directory = RecordDirectory(opened.common, record.run_id)
        directory.write(record)
        new = ["--no-track", "-b", record.branch, str(record.path), record.pinned]
        target = new if record.made_branch else [str(record.path), record.branch]
        reason = f"nightkeep {record.run_id}"
        # Clean-up reads the log of HEAD. Once it is there git goes on with it, whatever is configured.
        logging = replace(opened.git, settings=(("core.logAllRefUpdates", "true"),))
        try:
            logging.run("worktree", "add", "--quiet", "--lock", "--reason", reason, *target)
        except GitError as error:
            _abandon(cls, opened, remote, record, directory, error)
            raise
        return cls(_checkout(opened, remote, fence, record, directory, on_origin), opened.directory)

    @property
    def path(self) -> Path:
        """The checkout: where the agent works."""
        return self._checkout.path

    @property
    def branch(self) -> str:
        """The Issue branch."""
        return self._checkout.record.branch

    @property
    def launch(self) -> Path:
        """The Launch directory."""
        return self._launch

    @property
    def run_id(self) -> str:
        """The run's name in refs, records and logs."""
        return self._checkout.record.run_id

    @property
    def private(self) -> Path:
        """A directory outside the checkout that only this user can read. What is in it at the end is kept and named."""
        return self._checkout.directory.path

    @property
    def ending(self) -> Ending:
        """How it ended; there only after the block."""
        if self._ending is None:
            raise WorktreeError("a worktree has an ending only after its with-block")
        return self._ending

    @property
    def on_origin(self) -> str | None:
        """The commit at which origin was last seen to hold the Issue branch; None when it was not seen there."""
        return self._checkout.ledger.branch

    @property
    def has_work_on_origin(self) -> bool:
        """Whether origin holds an Issue branch with more than the Base branch had at acquisition."""
        return self.on_origin not in (None, self._checkout.record.pinned_base)

    @property
    def filters_off(self) -> tuple[str, ...]:
        """The git filters that appeared, or were changed, during the run and were therefore not run."""
        return self._checkout.ledger.filters

    def head(self) -> str:
        """Return the commit at HEAD. Raises GitError, or Interrupted."""
        return self._checkout.git.run("rev-parse", "--verify", "HEAD").text

    def commits_beyond_base(self) -> int:
        """Return how many commits HEAD has that the Base branch lacked at acquisition."""
        span = f"{self._checkout.record.pinned_base}..HEAD"
        return int(self._checkout.git.run("rev-list", "--count", span).text)

    def push(self) -> str:
        """Push the Issue branch, as a fast-forward, read its id back from origin and return it. Raises GitError."""
        head = self._checkout.shared.run("rev-parse", "--verify", self._checkout.branch_ref).text
        self._checkout.push("Issue branch", RefUpdate(self._checkout.branch_ref, head))
        return head

    def settle(self, subject: str) -> tuple[str, ...]:
        """After a session that ended well, account for uncommitted work.

        A session that made no commit gets one of everything it left, with that subject. Left-overs of one that did
        are no part of the branch: they go into a snapshot on origin. Returns the paths that are in no commit of the
        branch. Raises UnsettledError when HEAD is not on the Issue branch, or a git operation or a conflict is
        unfinished; GitError otherwise.
        """
        self._checkout = checkout = self._checkout.disarmed()
        state = read_state(checkout.git, checkout.admin)
        unsettled = why_unsettled(state, self.branch)
        if unsettled:
            raise UnsettledError(f"the session left {unsettled}; nothing is guessed")
        listing = list_files(checkout.git, checkout.path)
        left = sorted(listing.changed | listing.untracked)
        silent = state.head == self._settled
        if state.index_only or (left and not silent):
            publish_snapshot(checkout, *keep_snapshot(checkout, state))
        if silent:
            left = self._commit_everything(listing, subject)
        self._settled = self.head()
        return tuple(left)

    def _commit_everything(self, listing: Listing, subject: str) -> list[str]:
        git = self._checkout.git
        left = stage_all(git, listing, self.path, git.limits.file)
        if not git.answers("diff-index", "--cached", "--quiet", "HEAD", "--"):
            message = git.redact(subject).encode(errors="surrogateescape")
            flags = ("--quiet", "--no-verify", "--cleanup=whitespace", "--file=-")
            git.within(**IDENTITY).run("commit", *flags, stdin=message)
        return left

    def preserve_failed_run(self, base: str, reason: str) -> None:
        """Bring a Failed run's work to origin, or make sure that it stays here.

        Retention is armed before anything that can fail, and only complete success disarms it. Works after a
        recorded interruption, which stays recorded. `base` is the Base branch, `reason` the first line of the
        cause. Raises PreservationError; then the checkout and the local branch stay, whatever happens after.
        """
        self._retained = "the Failed run's work could not be preserved whole"
        try:
            preserve(self._checkout.completing().disarmed(), base, reason)
        except Exception as error:
            raise PreservationError(
                f"the worktree {self.path} and its local branch {self.branch} are kept, because {error}"
            ) from error
        self._retained = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clean up or retain; raises nothing of its own."""
        checkout = self._checkout.completing()
        head = _head_or_none(checkout.git)
        why = self._retained or clean_up(checkout)
        places = list(checkout.ledger.places)
        if why is not None:
            places.append(("worktree", str(self.path)))
        self._ending = Ending(
            kept=why is not None,
            why=why or "everything in it is on origin",
            path=self.path,
            branch=self.branch,
            head=head,
            places=tuple(places),
            preserved=_preserved(why, places),
        )


def _preserved(why: str | None, places: list[tuple[str, str]]) -> Preserved:
    if why is not None:
        return Preserved.MACHINE
    return Preserved.ORIGIN if places else Preserved.NOTHING_MADE


def _opened(launch: Path | Launch, interruption: Interruption) -> Launch:
    return launch if isinstance(launch, Launch) else Launch.open(launch, interruption=interruption)


def _fetch(opened: Launch, remote: Remote, base: str, *others: str) -> dict[str, str]:
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
    opened.git.run("update-ref", "-m", "nightkeep: fetch", f"refs/remotes/origin/{base}", fetched[base])
    return fetched


def _record(opened: Launch, base: str, branch: str, pinned: str, pinned_base: str, *, made_branch: bool) -> RunRecord:
    return RunRecord(
        run_id=new_run_id(),
        pid=getpid(),
        host=host_name(),
        started=datetime.now(UTC),
        base=base,
        branch=branch,
        made_branch=made_branch,
        path=_free_path(opened.top, branch),
        pinned=pinned,
        pinned_base=pinned_base,
    )


def _free_path(top: Path, branch: str) -> Path:
    wanted = top.with_name(f"{top.name}-{branch.replace('/', '-')}")
    number = 1
    path = wanted
    while path.exists() or path.is_symlink():
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path


def _checkout(
    opened: Launch,
    remote: Remote,
    fence: Fence | None,
    record: RunRecord,
    directory: RecordDirectory,
    on_origin: str | None,
) -> Checkout:
    admin = Path((record.path / ".git").read_text().removeprefix("gitdir: ").strip())
    # Both directories are named outright, so that nothing an agent does to `.git`, `core.bare` or `core.worktree`
    # makes our commands work elsewhere.
    git = replace(opened.git, directory=record.path, selectors=(f"--git-dir={admin}", f"--work-tree={record.path}"))
    return Checkout(
        record=record,
        directory=directory,
        admin=admin,
        git=git,
        shared=opened.git,
        remote=remote,
        refs=opened.refs,
        configuration=opened.configuration,
        fence=fence,
        ledger=Ledger(held={record.pinned, record.pinned_base}, branch=on_origin),
    )


def _abandon(
    cls: type[Worktree], opened: Launch, remote: Remote, record: RunRecord, directory: RecordDirectory, error: GitError
) -> None:
    """Undo an acquisition that failed half-way, as far as that is proven to be safe."""
    if (record.path / ".git").exists():
        with cls(_checkout(opened, remote, None, record, directory, None), opened.directory) as half_made:
            pass
        if half_made.ending.kept:
            error.add_note(str(half_made.ending))
        return
    shared = opened.git.completing()
    if record.made_branch and not record.path.exists():
        shared.run("update-ref", "-d", f"refs/heads/{record.branch}", record.pinned, accept=range(256))
    directory.remove()


def _head_or_none(git: Git) -> str | None:
    try:
        return git.run("rev-parse", "--verify", "HEAD").text
    except (GitError, OSError):
        return None
