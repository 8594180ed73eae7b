"""Going on from the last checkpoint of a run that has vanished with its machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from worktree.checkout import Checkout
from worktree.checkpoint import checkpoint_ref
from worktree.errors import PushRefused
from worktree.launch import Launch
from worktree.remote import ABSENT, Origin, RefUpdate
from worktree.snapshot import INDEX_SUBJECT

WENT_ON_FROM = "went on from"  # as a place says it
_MOST = 50  # checkpoints that are looked at, the latest of them
_FIELDS = {"Nightkeep-Run": "run_id", "Nightkeep-Branch": "branch", "Nightkeep-Base": "base", "Nightkeep-Host": "host"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The last checkpoint that origin has of a run: a commit, and when it was made by its machine's clock."""

    run_id: str
    branch: str
    base: str
    host: str
    commit: str
    moment: datetime

    def __str__(self) -> str:
        return f"the checkpoint of {self.moment:%Y-%m-%dT%H:%M:%SZ} of run {self.run_id} on {self.host}"


def read_checkpoints(launch: Launch, origin: Origin | None, there: Mapping[str, str]) -> Sequence[Checkpoint]:
    """Return what the refs of checkpoints stand for that origin was seen to hold, by ref; their objects are here then.

    What no run can have written is passed over. Raises GitError.
    """
    latest = sorted(there)[-_MOST:]
    if not latest:
        return ()
    fetched = launch.remote(origin).fetch_refs(*latest)
    shown = "--format=%H%n%ct%n%(trailers:only=true,unfold=true)%x00"
    said = launch.git.run("log", "--no-walk=unsorted", shown, *dict.fromkeys(fetched.values())).text
    found = [_read(text.strip().splitlines()) for text in said.split("\0") if text.strip()]
    return [one for one in found if one and fetched.get(checkpoint_ref(one.run_id)) == one.commit]


def _read(lines: Sequence[str]) -> Checkpoint | None:
    commit, seconds, *trailers = lines
    told = dict(line.split(": ", 1) for line in trailers if ": " in line)
    if not told.keys() >= _FIELDS.keys():
        return None
    facts = {field: told[name] for name, field in _FIELDS.items()}
    return Checkpoint(commit=commit, moment=datetime.fromtimestamp(int(seconds), UTC), **facts)


def take_over(checkout: Checkout, checkpoint: Checkpoint) -> str | None:
    """Make a worktree in which nothing was done yet what the checkpoint has: its commits on the Issue branch, the rest
    as uncommitted work. Returns where HEAD is then.

    The checkpoint becomes a rescue ref of its run on origin, in one push with the end of its own ref: so only one run
    takes it over, and None is returned when it was another. None also, with the rescue ref named, when the Issue
    branch on origin has gone another way. Raises GitError.
    """
    rescue = f"refs/nightkeep/rescue/{checkpoint.run_id}/checkpoint"
    kept = RefUpdate(rescue, checkpoint.commit, ABSENT)
    ended = RefUpdate(checkpoint_ref(checkpoint.run_id), ABSENT, checkpoint.commit)
    try:
        checkout.remote.push(kept, ended)
    except PushRefused:
        return None
    checkout.ledger.held.add(checkpoint.commit)
    git = checkout.git
    head, *others = git.run("rev-parse", f"{checkpoint.commit}^@").text.split()
    if checkout.record.resumed and not git.answers("merge-base", "--is-ancestor", checkout.record.pinned, head):
        place = f"{rescue} at {checkpoint.commit} on origin; it was not gone on from, for the branch has moved since"
        checkout.ledger.places.append(("checkpoint of an earlier run", place))
        return None
    checkout.ledger.places.append((WENT_ON_FROM, f"{checkpoint}: {rescue} at {checkpoint.commit} on origin"))
    git.run("reset", "--quiet", "--hard", head)
    git.run("read-tree", "--reset", "-u", checkpoint.commit)
    git.run("read-tree", _index_of(checkout, others) or head)
    return head


def _index_of(checkout: Checkout, commits: Sequence[str]) -> str | None:
    """Return which of a checkpoint's parents is its index, None for none."""
    if not commits:
        return None
    rows = checkout.git.run("log", "--no-walk=unsorted", "--format=%H %s", *commits).text.splitlines()
    return next((row.split(" ", 1)[0] for row in rows if row.split(" ", 1)[1] == INDEX_SUBJECT), None)
