"""What becomes of a Failed run's commits when origin does not take the Issue branch.

A refusal of that one branch leads to a rescue ref. A refusal of what is in the commits is never gone around, and what
the cause may be nobody knows either: those commits stay here, bundled.
"""

from enum import Enum

from worktree.checkout import Checkout
from worktree.errors import GitError, PushRefused, WorktreeError
from worktree.refusal import RefusalKind
from worktree.rescue import keep, publish
from worktree.store import Store


class Rung(Enum):
    """Where commits go that the Issue branch on origin does not take."""

    RESCUE_REF = "rescue ref"
    BUNDLE = "bundle"


_ELSEWHERE = {RefusalKind.NON_FAST_FORWARD, RefusalKind.BRANCH_RULE}


def choose_rung(error: GitError) -> Rung:
    """Decide by the refusal: only one of the branch itself, surely recognised, lets the commits go elsewhere."""
    kind = error.refusal.kind if isinstance(error, PushRefused) else RefusalKind.UNKNOWN
    return Rung.RESCUE_REF if kind in _ELSEWHERE else Rung.BUNDLE


def climb(checkout: Checkout, commit: str, refused: GitError) -> WorktreeError:
    """Bring `commit` to the next rung, and return the error that says so; the refusal stays its headline."""
    try:
        place = _carry(checkout, commit, choose_rung(refused))
    except (WorktreeError, OSError) as error:
        return WorktreeError(f"{refused}; it could be put nowhere else either: {error}")
    return WorktreeError(f"{refused}; {place}")


def _carry(checkout: Checkout, commit: str, rung: Rung) -> str:
    if rung is Rung.RESCUE_REF:
        ref = keep(checkout, "head", commit)
        try:
            if publish(checkout, ref):
                return f"it is on {ref} on origin instead"
        except GitError as refused:
            return f"{ref} was not taken either: {refused}; {_bundle(checkout, commit)}"
    return _bundle(checkout, commit)


def _bundle(checkout: Checkout, commit: str) -> str:
    store = Store(checkout.remote.common, checkout.record.run_id)
    store.open()
    # A bundle wants a ref; this one keeps what is in it, too.
    refs = [ref for ref, held in checkout.ledger.local.items() if held == commit]
    ref = refs[0] if refs else keep(checkout, "head", commit)
    beyond = [f"^{oid}" for oid in sorted(checkout.ledger.held)]
    bundle = store.free_bundle()
    checkout.shared.run("bundle", "create", "--quiet", str(bundle), ref, *beyond)
    checkout.ledger.places.append(("bundle", f"{bundle}, for `git fetch`"))
    return f"a copy of it is in {bundle}"
