"""A git worktree that an agent may do anything in."""

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from worktree.acquisition import acquire_existing, acquire_new
from worktree.checkout import Checkout
from worktree.checkpoint import CheckpointRule, Checkpoints, Watch, drop_checkpoints
from worktree.cleanup import Cleaned, clean_up, read_head
from worktree.ending import Ending, end
from worktree.errors import FenceLostError, PreservationError, UnsettledError, WorktreeError
from worktree.fence import Fence
from worktree.files import Listing, list_files, stage_all
from worktree.git import IDENTITY
from worktree.inclusion import Included
from worktree.interruption import Interruption
from worktree.launch import Launch
from worktree.merging import (
    Upstream,
    changed_paths,
    conflicts,
    finish_merge,
    look_upstream,
    merge,
    new_in,
    workflow_texts,
)
from worktree.origin import Origin
from worktree.preservation import preserve
from worktree.pushing import push_branch
from worktree.reclaim import reclaim, reopen
from worktree.rescue import keep_snapshot, name_suspects, publish
from worktree.state import read_state, why_unsettled
from worktree.takeover import Takeover, go_on


class CommitRule(StrEnum):
    """What becomes of uncommitted work: AUTO commits it for a session that made no commit."""

    AUTO = "auto"
    ALL = "all"
    NEVER = "never"


class Worktree:
    """A linked worktree on an Issue branch, from acquisition to clean-up.

    Use it as a context manager: leaving the block is the only clean-up there is. It removes the checkout, and the
    local branch if this object made that, once all commits are proven to be safe; files that origin does not give back
    go to the rescue store. Where that cannot be told, or somebody is at work in it, both are retained. `ending` says
    which, and where what was made is.
    """

    def __init__(self, checkout: Checkout, launch: Path) -> None:
        self._checkout = checkout
        self._launch = launch
        self._retained: str | None = None
        self._ending: Ending | None = None
        self._settled: str | None = checkout.record.pinned
        self._checkpoints = Checkpoints(checkout, CheckpointRule(), report=str)

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
        fetched: Mapping[str, str] | None = None,
        run_id: str | None = None,
    ) -> Self:
        """Make a new `branch` at the Base branch's commit on origin, checked out beside the Launch directory.

        The path is `<directory name>-<branch>`, with a number behind it when something is there already. Fetches
        the Base branch, unless `fetched` names the commits of all branches needed, which `Remote.fetch` brought
        moments ago. `origin` pins URL and credential, None takes the clone's own; `fence` is what each push must
        move along, None for nothing. `run_id` is the run's name where it has one already, see `new_run_id`. Raises
        LaunchError, with nothing made, when a local branch of that name exists or the Base
        branch is not on origin; GitError, with whatever is not proven safe left in place and named.
        """
        opened = launch if isinstance(launch, Launch) else Launch.open(launch, interruption=interruption)
        return cls(acquire_new(opened, branch, base, origin, fence, fetched, run_id), opened.directory)

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
        fetched: Mapping[str, str] | None = None,
        run_id: str | None = None,
    ) -> Self:
        """Check out `branch` as it stands on origin, to go on from there; otherwise as `create`.

        A local branch of that name is used when it equals origin's, and then stays at the end. Raises LaunchError,
        with nothing made, when it differs.
        """
        opened = launch if isinstance(launch, Launch) else Launch.open(launch, interruption=interruption)
        return cls(acquire_existing(opened, branch, base, origin, fence, fetched, run_id), opened.directory)

    @classmethod
    def reclaim(
        cls,
        launch: Launch,
        run_id: str,
        *,
        origin: Origin | None = None,
        fence: Fence | None = None,
        delivered: bool = False,
    ) -> Self:
        """Go on with an orphan, see `orphans`: to preserve it as a Failed run, or to finish its clean-up.

        What its session has left running is stopped. One that is not known to have been `delivered` counts as failed,
        so that the only copy of what it made is not tidied away before its time. Raises DeferredError, with nothing
        done, when somebody else owns it or is at work in it; GitError when origin does not answer.
        """
        return cls(reclaim(launch, run_id, origin, fence, delivered=delivered), launch.directory)

    @classmethod
    def reopen(
        cls, launch: Launch, run_id: str, *, origin: Origin | None = None, there: Mapping[str, str] | None = None
    ) -> Self:
        """Take over a worktree that was retained, because a person lets it go: leaving the block releases it.

        Then it goes, whatever is unfinished in it: nothing is pushed, and what origin is not seen to hold stays in the
        rescue store and in rescue refs here. `there` are the refs that origin holds, see `read_held`; None asks it.
        Raises DeferredError, with nothing done, when somebody else owns it or it was not retained; GitError when origin
        does not answer. `ending` says whether it is gone.
        """
        return cls(reopen(launch, run_id, origin, there), launch.directory)

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
        return self._checkout.on_origin

    @property
    def has_work_on_origin(self) -> bool:
        """Whether origin holds an Issue branch with more than the Base branch had at acquisition, as others left it."""
        rewritten = self._checkout.ledger.rewritten is not None
        return not rewritten and self.on_origin not in (None, self._checkout.record.pinned_base)

    @property
    def filters_off(self) -> tuple[str, ...]:
        """The git filters that appeared, or were changed, during the run and were therefore not run."""
        return self._checkout.ledger.filters

    @property
    def included(self) -> Included:
        """What was copied in from the Launch directory for the task, by its `.worktreeinclude`."""
        return self._checkout.included

    def take_over(self, taken: Takeover) -> bool:
        """Go on from the last checkpoint of a run that vanished, which was taken over on origin, in a worktree in which
        nothing was done yet.

        False when nobody can simply go on from it, or the Issue branch has gone another way; what it holds is on a
        rescue ref of origin in either case. Raises GitError.
        """
        head = go_on(self._checkout, taken)
        self._settled = head or self._settled
        return head is not None

    @property
    def is_fence_lost(self) -> bool:
        """Whether the run no longer holds its fence: the Issue branch is another run's, and nothing is pushed to it."""
        return self._checkout.fence is not None and self._checkout.fence.lost is not None

    def keep_fence(self) -> None:
        """Give a sign of life when it is time for one; call it while waiting. Raises FenceLostError."""
        if self._checkout.fence is not None:
            self._checkout.fence.tick()
            if self._checkout.fence.lost is not None:
                raise FenceLostError(self._checkout.fence.lost)

    def watch(self, rule: CheckpointRule, report: Callable[[str], object]) -> Watch:
        """Return what takes checkpoints by that rule while sessions run; `report` is told of them."""
        self._checkpoints = Checkpoints(self._checkout, rule, report)
        return self._checkpoints

    def head(self) -> str:
        """Return the commit at HEAD. Raises GitError, or Interrupted."""
        return self._checkout.git.run("rev-parse", "--verify", "HEAD").text

    def head_beyond_base(self) -> str | None:
        """Return the commit at HEAD, None when it has no commit that the Base branch lacked at acquisition."""
        span = f"{self._checkout.record.pinned_base}..HEAD"
        return self._checkout.git.run("rev-list", "--topo-order", "--max-count=1", span).text or None

    def push(self) -> str:
        """Push the Issue branch, as a fast-forward, read its id back from origin and return it.

        What `settle` left out of it goes to its rescue ref then: not before, for origin may refuse what both carry.
        Raises GitError; BranchRewrittenError when somebody took off it what origin was seen to hold.
        """
        self._settled = push_branch(self._checkout, "Issue branch")
        for ref in tuple(self._checkout.ledger.local):
            publish(self._checkout, ref)
        self._checkpoints.finish()
        drop_checkpoints(self._checkout)
        return self._settled

    def look_upstream(self, head: str, base: str, *, foreign: bool) -> Upstream:
        """See what origin has that the commit `head` has not, and fetch it.

        Looks at the Base branch, and with `foreign` at others' commits on the Issue branch. Raises
        BranchRewrittenError when somebody took off one of the two what the work holds, GitError, or Interrupted.
        """
        return look_upstream(self._checkout, head, base, foreign=foreign)

    def new_in(self, commit: str) -> tuple[str, ...]:
        """Return the commits that would come with `commit`, oldest first, each as a short id and its subject."""
        return new_in(self._checkout, commit)

    def merge(self, commit: str, name: str) -> tuple[str, ...]:
        """Merge a commit that `look_upstream` found and that people call `name`; return the paths that conflict.

        With any the merge is left in progress, for a session to resolve; `finish_merge` then sees to it. Call it only
        when nothing is unfinished, as `settle` leaves it. Raises GitError when git refuses the merge.
        """
        if not merge(self._after_session(), commit, name):
            return conflicts(self._checkout)
        self._settled = self.head()
        return ()

    def finish_merge(self, commit: str) -> str | None:
        """See that a session resolved the merge of `commit`; return what it left undone, None for nothing.

        What it staged and did not commit is committed. Call `settle` after it. Raises GitError.
        """
        return finish_merge(self._after_session(), commit)

    def workflow_texts(self) -> tuple[str, ...]:
        """Return the texts of the GitHub workflows in HEAD's commit."""
        return workflow_texts(self._checkout)

    def changed_paths(self, base_commit: str) -> tuple[str, ...]:
        """Return the paths that HEAD changes since it left the Base branch at `base_commit`."""
        return changed_paths(self._checkout, base_commit)

    def settle(self, subject: str, rule: CommitRule = CommitRule.AUTO) -> tuple[str, ...]:
        """After a session that ended well, account for uncommitted work.

        By default a session that made no commit gets one of everything it left, with that subject, and left-overs
        of one that did are no part of the branch: they go into a snapshot, and to origin with the next push. `rule` can
        have everything committed, or nothing. Returns the paths that are in no commit of the branch. Raises
        UnsettledError when HEAD is not on the Issue branch, or a git operation or a conflict is unfinished; GitError
        otherwise.
        """
        checkout = self._after_session()
        checkout.ledger.refs_seen = {}
        state = read_state(checkout.git, checkout.admin)
        unsettled = why_unsettled(state, self.branch)
        if unsettled:
            raise UnsettledError(f"the session left {unsettled}; nothing is guessed")
        listing = list_files(checkout.git, checkout.path)
        left = sorted(listing.changed | listing.untracked)
        commits = rule is CommitRule.ALL or (rule is CommitRule.AUTO and state.head == self._settled)
        if state.index_only or (left and not commits):
            keep_snapshot(checkout, state)
        if commits:
            left = self._commit_everything(listing, subject)
        # After a commit of ours the push that follows tells what it was.
        self._settled = None if commits else state.head
        return tuple(left)

    def _after_session(self) -> Checkout:
        """Return the checkout, once it is sure to be the worktree's own, without filters that a session set up."""
        self._checkout = self._checkout.without_new_filters()
        self._checkout.require_in_place()
        return self._checkout

    def _commit_everything(self, listing: Listing, subject: str) -> list[str]:
        git = self._checkout.git
        left = sorted(stage_all(git, listing, self.path, self._checkout.kept_from_delivery))
        name_suspects(self._checkout, (listing.changed | listing.untracked) - set(left))
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
        self._checkout.ledger.failed = True
        if self._checkout.git.interruption.recorded:
            self._checkpoints.interrupted()  # whoever interrupts may not wait for the rest
        try:
            preserve(self._completing().without_new_filters(), base, reason)
        except Exception as error:
            self._retained = " ".join(str(error).split()) or type(error).__name__
            raise PreservationError(
                f"the worktree {self.path} and its local branch {self.branch} are kept, because {error}"
            ) from error
        self._retained = None

    def _completing(self) -> Checkout:
        """Return the completion view, of a directory that somebody deleted as well."""
        checkout = self._checkout.completing()
        if not checkout.has_tree or os.path.lexists(checkout.path):
            return checkout
        if checkout.moved_to_by_git() is None:
            checkout.name_loss()
        return checkout.without_files()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clean up or retain; raises nothing of its own."""
        self._checkpoints.finish()
        checkout = self._completing()
        checkout.ledger.failed |= kind is not None
        cleaned = Cleaned(self._retained, read_head(checkout)) if self._retained else clean_up(checkout)
        self._ending = end(checkout, cleaned)
