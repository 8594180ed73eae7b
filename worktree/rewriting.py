"""What others took off a branch of origin: it is not put back, and what was pushed there counts as safe no more."""

from collections.abc import Collection, Mapping

from worktree.checkout import Checkout
from worktree.errors import BranchRewrittenError


def why_rewritten(checkout: Checkout, found: str | None, before: str) -> str | None:
    """Say what others took off the Issue branch, which is at `found` on origin and was at `before`; else None."""
    branch = checkout.record.branch
    if found is None:
        return f"somebody deleted {branch} on origin, where it was at {before[:12]}; it is not put back"
    if checkout.reaches(found, before):
        return None
    return (
        f"somebody rewrote {branch} on origin: it is at {found[:12]}, without {before[:12]}; "
        "what was taken off is not put back"
    )


def rewritten(
    checkout: Checkout, why: str, there: Mapping[str, str], *, holds: Collection[str] = ()
) -> BranchRewrittenError:
    """Take notice that others took commits off a branch, and return the error that says so.

    `there` are the branches that were looked at, as origin has them, `holds` what they are known to hold besides.
    Nothing else of what was pushed to branches counts as safe any more.
    """
    ledger, ref = checkout.ledger, checkout.branch_ref
    if ref in ledger.refs and there.get(ref) != ledger.refs[ref]:
        ledger.note_taken_off(ref)
    joined = {oid for rescue in ledger.refs for oid in ledger.joined.get(rescue, ())}
    ledger.held = {*ledger.refs.values(), *joined, *holds, *checkout.of_those_here(there.values())}
    ledger.rewritten = why
    return BranchRewrittenError(why)
