"""Preserving a Failed run's work: the steps of `Worktree.preserve_failed_run`."""

from contextlib import suppress
from datetime import UTC, datetime

from worktree.checkout import Checkout
from worktree.errors import WorktreeError
from worktree.files import list_files, stage_all
from worktree.git import IDENTITY
from worktree.record import host_name
from worktree.rescue import keep_snapshot, publish_snapshot
from worktree.state import State, read_state

_LONGEST_SUBJECT = 120


def preserve(checkout: Checkout, base: str, reason: str) -> None:
    """Bring what the run made to origin. `checkout` must be a completion view. Raises GitError or OSError."""
    checkout.require_in_place()
    state = read_state(checkout.git, checkout.admin)
    kept = None if state.is_plain_on(checkout.record.branch) else keep_snapshot(checkout, state)
    try:
        marked = _mark(checkout, state, base, reason)
    except Exception:
        # A lock that a killed git left behind stops a commit, but no snapshot. The first cause stays the headline.
        with suppress(WorktreeError, OSError):
            publish_snapshot(checkout, kept or keep_snapshot(checkout, state))
        raise
    if marked:
        # What origin refuses here is not pushed by another name: it may be the content that it refuses.
        checkout.push_branch("failure marker")
    if kept is not None:
        publish_snapshot(checkout, kept)


def _mark(checkout: Checkout, state: State, base: str, reason: str) -> bool:
    """Commit everything to the Issue branch; False when nothing was made.

    With HEAD elsewhere nothing is aborted, staged or committed, and no ref of anybody's moves: a snapshot has it all.
    """
    if state.home != checkout.record.branch:
        return False
    settled = _abort(checkout, state)
    listing = list_files(checkout.git, checkout.path)
    left = stage_all(checkout.git, listing, checkout.path, checkout.git.limits.file)
    checkout.ledger.places.extend(("could not be staged", str(checkout.path / path)) for path in left)
    if settled.branch != checkout.record.branch or not _made_something(checkout, settled, base):
        return False
    _commit_marker(checkout, reason)
    return True


def _abort(checkout: Checkout, state: State) -> State:
    if state.operation is None:
        return state
    checkout.git.run(*state.operation.value)
    return read_state(checkout.git, checkout.admin)


def _made_something(checkout: Checkout, state: State, base: str) -> bool:
    """Compare the index with the last fetched Base branch; whatever git answers but "equal" means changes.

    Unless nothing was made at all, and the Base branch that everybody shares was moved by somebody else's fetch.
    """
    compared = _diff_index(checkout, f"refs/remotes/origin/{base}")
    if compared == 1 and state.head == checkout.record.pinned:
        return _diff_index(checkout, checkout.record.pinned) != 0
    return compared != 0


def _diff_index(checkout: Checkout, commit: str) -> int:
    flags = ("--cached", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
    return checkout.git.run("diff", *flags, commit, "--", accept=range(256)).status


def _commit_marker(checkout: Checkout, reason: str) -> None:
    flags = ("--quiet", "--allow-empty", "--no-verify", "--cleanup=whitespace", "--file=-")
    message = marker_message(checkout.git.redact(reason), datetime.now(UTC), host_name())
    checkout.git.within(**IDENTITY).run("commit", *flags, stdin=message.encode(errors="surrogateescape"))


def marker_message(reason: str, moment: datetime, host: str) -> str:
    """Return the failure marker's message; `reason` is cut to its first line and to what fits in a subject."""
    lines = reason.strip().splitlines() or ["unknown"]
    room = _LONGEST_SUBJECT - len("nightkeep: failed run ()")
    short = lines[0] if len(lines[0]) <= room else lines[0][: room - 1] + "…"
    return (
        f"nightkeep: failed run ({short})\n\n{moment:%Y-%m-%dT%H:%M:%SZ}, host {host}. "
        "Uncommitted work at the time of failure is included in this commit.\n"
    )
