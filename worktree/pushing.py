"""Bringing refs of a run to origin: under its fence, and nothing that a person alone had."""

from collections.abc import Mapping

from worktree.checkout import Checkout
from worktree.errors import BranchRewrittenError, FenceLostError, PrivateWorkError, PushRefused
from worktree.private_work import private_commit
from worktree.refusal import Refusal, RefusalKind
from worktree.remote import ABSENT, RefUpdate
from worktree.rewriting import rewritten, why_rewritten
from worktree.run_refs import checkpoint_ref, rescue_ref


def push_branch(checkout: Checkout, what: str) -> str:
    """Push the Issue branch as it stands here, as a fast-forward; return its commit. Raises as `push` does."""
    tip = checkout.tip()
    push(checkout, what, step_to(checkout, tip), checkout.ledger.refs_seen)
    return tip


def step_to(checkout: Checkout, commit: str) -> RefUpdate:
    """Return the move of origin's Issue branch to a commit: from where it was seen last, if that is a step forward.

    A plain push would bring back what others took off. One that is no step forward origin refuses.
    """
    before = checkout.built_on
    forward = before is not None and checkout.reaches(commit, before)
    return RefUpdate(checkout.branch_ref, commit, before if forward else None)


def push(checkout: Checkout, what: str, update: RefUpdate, now: Mapping[str, str] | None = None) -> None:
    """Push one ref, in one push with the fence's where there is one; enter it in the ledger for the last one.

    `now` are the refs as they are, where somebody has just looked. Raises PrivateWorkError, before anything is
    pushed, when that would publish a commit of the person's; FenceLostError; BranchRewrittenError; else GitError. A
    rescue ref needs no fence once that is lost: it is the run's own, and must not exist.
    """
    if checkout.ledger.rewritten and update.ref == checkout.branch_ref:
        raise BranchRewrittenError(checkout.ledger.rewritten)
    _require_nobodys(checkout, update, checkout.refs_now() if now is None else now)
    left = _sent(checkout, update)
    if left:
        checkout.ledger.lacks_lfs = True
        # git lfs keeps them in the clone, whatever becomes of the worktree.
        place = f"{len(left)} of them in {checkout.remote.common}"
        checkout.ledger.places.append(("Git LFS objects not on origin", place))
    checkout.ledger.note_pushed(what, update.ref, update.new)


def _require_nobodys(checkout: Checkout, update: RefUpdate, now: Mapping[str, str]) -> None:
    """Raise PrivateWorkError when a push would publish a commit that was a person's alone."""
    private = private_commit(checkout, update.new, now)
    if private is not None:
        # Others may have pushed it since the run began; only origin itself can tell.
        there = checkout.remote.read("refs/heads/*", "refs/tags/*")
        checkout.ledger.held |= checkout.of_those_here(there.values())
        private = private_commit(checkout, update.new, now)
    if private is not None:
        raise PrivateWorkError(
            f"{update.ref} is not pushed, because commit {private} in it was only on the person's own branches"
        )


def send(checkout: Checkout, *updates: RefUpdate) -> tuple[str, ...]:
    """Push refs as `Remote.push` does, with the fence's where there is one. Raises FenceLostError, or GitError."""
    own = all(_needs_no_fence(checkout, update) for update in updates)
    if checkout.fence is not None and not (own and checkout.fence.lost):
        try:
            return checkout.fence.push(checkout.remote, *updates)
        except FenceLostError:
            if not own:
                raise
    return checkout.remote.push(*updates)


def _sent(checkout: Checkout, update: RefUpdate) -> tuple[str, ...]:
    """Send the push of one ref; tell commits that others put on the Issue branch from such that they took off it.

    Raises as `push` does.
    """
    try:
        return send(checkout, update)
    except PushRefused as refused:
        if update.ref != checkout.branch_ref or refused.refusal.kind is not RefusalKind.STALE_LEASE:
            raise
        there = checkout.remote.read(checkout.branch_ref)
        found = checkout.remote.fetch(checkout.record.branch)[checkout.record.branch] if there else None
        if why := why_rewritten(checkout, found, update.expected or ABSENT):
            raise rewritten(checkout, why, there) from refused
        if found == update.expected:
            raise
        behind = Refusal(RefusalKind.NON_FAST_FORWARD, refused.refusal.words)
        raise PushRefused(refused, behind, refused.refs) from refused


def _needs_no_fence(checkout: Checkout, update: RefUpdate) -> bool:
    """Whether it is the run's own, whoever has the issue: a rescue ref of its, or the end of its checkpoint."""
    run_id = checkout.record.run_id
    ends_checkpoint = update.new == ABSENT and update.ref == checkpoint_ref(run_id)
    return ends_checkpoint or update.ref.startswith(rescue_ref(run_id))
