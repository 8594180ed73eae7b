"""What the Issue branch cannot carry."""

from worktree.checkout import Checkout
from worktree.remote import ABSENT, RefUpdate
from worktree.snapshot import take_snapshot
from worktree.state import State


def rescue_ref(checkout: Checkout, name: str) -> str:
    """Return the full name of one of the run's rescue refs."""
    return f"refs/nightkeep/rescue/{checkout.record.run_id}/{name}"


def keep_snapshot(checkout: Checkout, state: State) -> str:
    """Snapshot the worktree into a local rescue ref; return the ref's name."""
    ledger = checkout.ledger
    number = len(ledger.published) + len(ledger.unpublished) + 1
    ref = rescue_ref(checkout, "snapshot" if number == 1 else f"snapshot-{number}")
    subject = f"nightkeep: snapshot of {checkout.record.branch}"
    snapshot = take_snapshot(checkout.git, checkout.admin, checkout.path, checkout.directory.path, state, subject)
    create_ref(checkout, ref, snapshot.commit)
    ledger.unpublished[ref] = snapshot
    return ref


def publish_snapshot(checkout: Checkout, ref: str) -> bool:
    """Push a kept snapshot to the rescue ref of the same name on origin, which must not exist there.

    Not pushed is what would carry a commit along that was the person's alone; then the local ref keeps it, and
    the answer is False.
    """
    snapshot = checkout.ledger.unpublished[ref]
    if _holds_private_commits(checkout, snapshot.commit):
        return False
    checkout.push("snapshot", RefUpdate(ref, snapshot.commit, ABSENT))
    checkout.ledger.published.append(checkout.ledger.unpublished.pop(ref))
    checkout.shared.run("update-ref", "-d", ref, snapshot.commit)
    return True


def create_ref(checkout: Checkout, ref: str, commit: str) -> None:
    """Make a local ref that must not exist yet."""
    checkout.shared.run("update-ref", "-m", f"nightkeep {checkout.record.run_id}", ref, commit, "0" * len(commit))


def _holds_private_commits(checkout: Checkout, commit: str) -> bool:
    """Whether a push of `commit` would publish one that only this person's refs held before the run."""
    published = {
        oid for ref, oid in checkout.refs.items() if ref.startswith("refs/remotes/origin/")
    } | checkout.ledger.held
    return _count_without(checkout, commit, published) > _count_without(
        checkout, commit, published | set(checkout.refs.values())
    )


def _count_without(checkout: Checkout, commit: str, others: set[str]) -> int:
    lines = "".join(f"^{oid}\n" for oid in sorted(others))
    return int(checkout.shared.run("rev-list", "--count", "--stdin", stdin=f"{commit}\n{lines}".encode()).text)
