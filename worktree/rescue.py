"""What the Issue branch cannot carry."""

from worktree.checkout import Checkout
from worktree.errors import PrivateWorkError
from worktree.record import read_records
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
    try:
        checkout.push("snapshot", RefUpdate(ref, snapshot.commit, ABSENT))
    except PrivateWorkError:
        return False
    checkout.ledger.published.append(checkout.ledger.unpublished.pop(ref))
    checkout.shared.run("update-ref", "-d", ref, snapshot.commit)
    return True


def create_ref(checkout: Checkout, ref: str, commit: str) -> None:
    """Make a local ref that must not exist yet."""
    checkout.shared.run("update-ref", "-m", f"nightkeep {checkout.record.run_id}", ref, commit, "0" * len(commit))


def made_elsewhere(checkout: Checkout) -> list[tuple[str, str]]:
    """Return the refs, the stash among them, that are new in the Launch repository since the run began.

    They may be the agent's work or a person's: they are named, and nothing else. Branches of other runs do not count,
    nor what origin was seen to hold.
    """
    # A push has looked already, after the session's end.
    seen = checkout.ledger.refs_seen or checkout.refs_now()
    others = {f"refs/heads/{record.branch}" for record in read_records(checkout.remote.common)}
    known = others | {checkout.branch_ref} | (checkout.refs.keys() - {"refs/stash"})
    safe = checkout.ledger.held | {checkout.refs.get("refs/stash")}
    passed = ("refs/remotes/", "refs/nightkeep/", "refs/tags/")
    return [
        (ref, oid) for ref, oid in seen.items() if ref not in known and oid not in safe and not ref.startswith(passed)
    ]
