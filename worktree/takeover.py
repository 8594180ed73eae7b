"""Going on from the last checkpoint of a run that has vanished with its machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from worktree.checkout import Checkout
from worktree.checkpoint import checkpoint_ref, move_checkpoint, trailers_of
from worktree.errors import GitError, PushRefused
from worktree.launch import Launch
from worktree.remote import ABSENT, Origin, RefUpdate, Remote
from worktree.snapshot import INDEX_SUBJECT, commit_tree

WENT_ON_FROM = "went on from"  # as a place says it
_MOST = 50  # checkpoints that are looked at, the latest of them
_FIELDS = {"Nightkeep-Run": "run_id", "Nightkeep-Branch": "branch", "Nightkeep-Base": "base", "Nightkeep-Host": "host"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The last checkpoint that origin has of a run: a commit, and when it was made by its machine's clock.

    `unsettled` says why nobody can simply go on from it, None when everybody can.
    """

    run_id: str
    branch: str
    base: str
    host: str
    commit: str
    moment: datetime
    unsettled: str | None = None

    def __str__(self) -> str:
        return f"the checkpoint of {self.moment:%Y-%m-%dT%H:%M:%SZ} of run {self.run_id} on {self.host}"


def read_checkpoints(launch: Launch, origin: Origin | None, there: Mapping[str, str]) -> Sequence[Checkpoint]:
    """Return what the refs of checkpoints stand for that origin was seen to hold, by ref; their objects are here then.

    What no run can have written is passed over, and so is what is gone by now. Raises GitError.
    """
    fetched = _fetch(launch.remote(origin), sorted(there)[-_MOST:])
    if not fetched:
        return ()
    shown = "--format=%H%n%ct%n%(trailers:only=true,unfold=true)%x00"
    said = launch.git.run("log", "--no-walk=unsorted", shown, *dict.fromkeys(fetched.values())).text
    found = [_read(text.strip().splitlines()) for text in said.split("\0") if text.strip()]
    return [one for one in found if one and fetched.get(checkpoint_ref(one.run_id)) == one.commit]


def _fetch(remote: Remote, refs: Sequence[str]) -> Mapping[str, str]:
    if not refs:
        return {}
    try:
        return remote.fetch_refs(*refs)
    except GitError:
        # A run that ends takes its own away.
        left = remote.read(*refs)
        if len(left) == len(refs):
            raise
        return remote.fetch_refs(*left) if left else {}


def _read(lines: Sequence[str]) -> Checkpoint | None:
    commit, seconds, *trailers = lines
    told = dict(line.split(": ", 1) for line in trailers if ": " in line)
    if not told.keys() >= _FIELDS.keys():
        return None
    try:
        moment = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None
    facts = {field: told[name] for name, field in _FIELDS.items()}
    return Checkpoint(commit=commit, moment=moment, unsettled=told.get("Nightkeep-Unsettled"), **facts)


def take_over(checkout: Checkout, checkpoint: Checkpoint) -> str | None:
    """Make a worktree in which nothing was done yet what the checkpoint has: its commits on the Issue branch, the rest
    as uncommitted work. Returns where HEAD is then.

    The checkpoint becomes a rescue ref of its run on origin, in one push with the end of its own ref and the first
    checkpoint of this run, which is the same: so only one run takes it over, and it is never nobody's. None is returned
    when it was another run; and, with the rescue ref named, when the Issue branch on origin has gone another way, or
    the session had not left it such that everybody can go on. Raises GitError.
    """
    parents = checkout.git.run("rev-parse", f"{checkpoint.commit}^@").text.split()
    why = _why_not(checkout, checkpoint, parents)
    rescue = f"refs/nightkeep/rescue/{checkpoint.run_id}/checkpoint"
    updates = [
        RefUpdate(rescue, checkpoint.commit, ABSENT),
        RefUpdate(checkpoint_ref(checkpoint.run_id), ABSENT, checkpoint.commit),
    ]
    if why is None:
        message = "".join(f"{name}: {value}\n" for name, value in trailers_of(checkout, None).items())
        subject = f"nightkeep: checkpoint of {checkout.record.branch}"
        own = commit_tree(
            checkout.shared, f"{checkpoint.commit}^{{tree}}", [*parents, checkpoint.commit], f"{subject}\n\n{message}"
        )
        move_checkpoint(checkout, own)
        updates.append(RefUpdate(checkpoint_ref(checkout.record.run_id), own, ABSENT))
    ledger = checkout.ledger
    try:
        checkout.remote.push(*updates)
    except PushRefused:
        return None
    ledger.held.add(checkpoint.commit)
    ledger.refs[rescue] = checkpoint.commit
    where = f"{rescue} at {checkpoint.commit} on origin"
    if why is not None:
        ledger.places.append(("checkpoint of an earlier run", f"{where}; it was not gone on from, for {why}"))
        return None
    ledger.places.append((WENT_ON_FROM, f"{checkpoint}: {where}"))
    ledger.checkpoint_sent = own
    ledger.checkpoints_offered.add(own)
    checkout.git.run("reset", "--quiet", "--hard", parents[0])
    checkout.git.run("read-tree", "--reset", "-u", checkpoint.commit)
    checkout.git.run("read-tree", _index_of(checkout, parents[1:]) or parents[0])
    return parents[0]


def _why_not(checkout: Checkout, checkpoint: Checkpoint, parents: Sequence[str]) -> str | None:
    if not parents:
        return "it was made on no commit"
    if checkpoint.unsettled:
        return f"its session left {checkpoint.unsettled}"
    pinned = checkout.record.pinned
    if checkout.record.resumed and not checkout.git.answers("merge-base", "--is-ancestor", pinned, parents[0]):
        return "the branch has moved since"
    return None


def _index_of(checkout: Checkout, commits: Sequence[str]) -> str | None:
    """Return which of a checkpoint's parents is its index, None for none."""
    if not commits:
        return None
    rows = checkout.git.run("log", "--no-walk=unsorted", "--format=%H %s", *commits).text.splitlines()
    return next((row.split(" ", 1)[0] for row in rows if row.split(" ", 1)[1] == INDEX_SUBJECT), None)
