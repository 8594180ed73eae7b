"""What becomes of a Failed run's commits when origin does not take the Issue branch.

A refusal of that one branch leads to a rescue ref. A refusal of what is in the commits is never gone around, and what
the cause may be nobody knows either: those commits stay here, bundled.
"""

from enum import Enum

from worktree.checkout import Checkout
from worktree.errors import GitError, PushRefused, WorktreeError
from worktree.moments import written_now
from worktree.refusal import RefusalKind
from worktree.rescue import keep, publish
from worktree.store import Manifest, Store, write_manifest


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
    """Bring the work, `commit`, to the next rung; return the error that says so, with the refusal as its headline."""
    try:
        place = _carry(checkout, commit, choose_rung(refused))
    except (WorktreeError, OSError) as error:
        return WorktreeError(f"{refused}; the work could be put nowhere else either: {error}")
    return WorktreeError(f"{refused}; {place}")


def _carry(checkout: Checkout, commit: str, rung: Rung) -> str:
    match rung:
        case Rung.RESCUE_REF:
            return _publish_head(checkout, commit)
        case Rung.BUNDLE:
            return _bundle(checkout, commit)


def _publish_head(checkout: Checkout, commit: str) -> str:
    """Bring the work to a rescue ref on origin; to a bundle where it may not go there, or is not taken."""
    ref = keep(checkout, "head", commit)
    try:
        if publish(checkout, ref):
            return f"the work is on {ref} on origin"
    except GitError as refused:
        return f"{refused}; {_bundle(checkout, commit)}"
    return _bundle(checkout, commit)


def _bundle(checkout: Checkout, commit: str) -> str:
    store = _open_store(checkout, commit)
    # A bundle wants refs; they keep what is in it, too. What else stays here goes into it as well.
    keep(checkout, "head", commit)
    ledger = checkout.ledger
    commits = frozenset(ledger.local.values())
    for earlier, bundled in ledger.bundles.items():
        if commits <= bundled and earlier.exists():
            return f"a copy of the work is in {earlier}"
    bundle = store.free_bundle()
    checkout.shared.run("bundle", "create", "--quiet", str(bundle), *ledger.local, *(f"^{oid}" for oid in ledger.held))
    ledger.bundles[bundle] = commits
    ledger.places.append(("bundle", str(bundle)))
    return f"a copy of the work is in {bundle}"


def _open_store(checkout: Checkout, commit: str) -> Store:
    """Open the run's place in the store, with a word on what it is where none is yet.

    Clean-up writes another when it brings files.
    """
    store = Store(checkout.remote.common, checkout.record.run_id)
    store.open()
    if store.has_manifest():
        return store
    manifest = Manifest(
        run_id=checkout.record.run_id,
        branch=checkout.record.branch,
        path=str(checkout.record.path),
        head=commit,
        failed=True,
        moment=written_now(),
        rows=(),
    )
    write_manifest(store.path, manifest)
    return store
