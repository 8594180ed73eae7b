"""Taking an issue on origin, with what a run has left that vanished from it."""

from collections.abc import Mapping
from dataclasses import dataclass

from delivery.branches import Continuation, branch_name
from delivery.errors import PreflightError
from delivery.parts import Parts
from delivery.preflight import Plan
from worktree import ABSENT, Fence, PushRefused, Takeover, TransferError, prepare

_OF_ANOTHER = "{} is not gone on from: another run has it by now"


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of it.

    `fence` is None where origin takes no claim, `takeover` what was taken over, and `there` the branches of the issue
    that origin has then, at least.
    """

    fence: Fence | None
    takeover: Takeover | None
    there: Mapping[str, str]


def take(parts: Parts, plan: Plan, run_id: str, fence: Fence) -> Taken:
    """Make the claim, or take over that of a run that vanished; go on without one where origin takes none.

    Raises PreflightError where a ref of somebody's is in the way; FenceLostError when another run was quicker;
    GitError, TransferError or OSError.
    """
    takeover = _prepared(parts, plan, run_id, is_fenced=True)
    try:
        taken = _with(parts, plan, fence, takeover)
    except (PushRefused, TransferError) as error:
        if isinstance(error, TransferError) and not error.is_refusal:
            raise
        _require_room(parts, plan, fence)
        return _without(parts, plan, run_id, str(error))
    if plan.dead is not None:
        dead = plan.dead.record
        parts.report(f"taking over the claim of run {dead.run} on {dead.host}, whose lease has ended")
    return taken


def _with(parts: Parts, plan: Plan, fence: Fence, takeover: Takeover | None) -> Taken:
    replaces = plan.dead.seen.commit if plan.dead else ABSENT
    look = f"refs/heads/{branch_name(plan.issue.number, 1)}"
    if takeover is not None:
        parts.journal.enter("take-over", run=takeover.checkpoint.run_id)
        try:
            return Taken(fence, takeover, fence.take(*takeover.updates, replaces=replaces, look=look))
        except PushRefused:
            parts.report(_OF_ANOTHER.format(takeover.checkpoint))
    return Taken(fence, None, fence.take(replaces=replaces, look=look))


def _require_room(parts: Parts, plan: Plan, fence: Fence) -> None:
    """Raise PreflightError where origin took no claim because of a ref below its name."""
    below = sorted(parts.launch.remote(parts.origin).read(f"{fence.ref}/*"))
    if below:
        parts.journal.discard()
        raise PreflightError(
            f"issue #{plan.issue.number} cannot be claimed: origin has {', '.join(below)}, and git keeps no ref "
            f"{fence.ref} beside that; delete it: git push origin --delete {' '.join(below)}"
        )


def _without(parts: Parts, plan: Plan, run_id: str, why: str) -> Taken:
    parts.report(
        f"warning: origin takes no claim ({why}); going on with the labels alone: another machine may take "
        f"#{plan.issue.number} as well, and then both push to {plan.branch}, of which origin takes one"
    )
    parts.journal.enter("unfenced")
    takeover = _prepared(parts, plan, run_id, is_fenced=False)
    if takeover is not None:
        try:
            parts.launch.remote(parts.origin).completing().push(*takeover.updates)
        except PushRefused:
            parts.report(_OF_ANOTHER.format(takeover.checkpoint))
            takeover = None
    return Taken(None, takeover, {f"refs/heads/{name}": oid for name, oid in plan.branches.items()})


def _prepared(parts: Parts, plan: Plan, run_id: str, *, is_fenced: bool) -> Takeover | None:
    if plan.checkpoint is None:
        return None
    return prepare(
        parts.launch,
        plan.checkpoint,
        run_id=run_id,
        branch=plan.branch,
        base=plan.base,
        start=plan.fetched.get(plan.branch) if isinstance(plan.choice, Continuation) else None,
        is_fenced=is_fenced,
    )
