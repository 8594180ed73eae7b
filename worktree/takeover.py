"""Going on from the last checkpoint of a run that has vanished with its machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from worktree.checkout import Checkout
from worktree.checkpoint import move_checkpoint, trailers_of
from worktree.launch import Launch
from worktree.moments import written
from worktree.origin import Origin
from worktree.remote import ABSENT, RefUpdate
from worktree.run_refs import checkpoint_ref, rescue_ref
from worktree.snapshot import INDEX_SUBJECT, commit_tree

WENT_ON_FROM = "went on from"  # as a place says it
_MOST = 50  # checkpoints that are looked at, the latest of them
_FIELDS = {"Nightkeep-Run": "run_id", "Nightkeep-Branch": "branch", "Nightkeep-Base": "base", "Nightkeep-Host": "host"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The last checkpoint that origin has of a run: a commit, and when it was made by its machine's clock.

    `unsettled` says why nobody can simply go on from it, None when everybody can. One that `is_fenced` is of a run that
    held a claim as long as it lived.
    """

    run_id: str
    branch: str
    base: str
    host: str
    commit: str
    moment: datetime
    unsettled: str | None = None
    is_fenced: bool = True

    def __str__(self) -> str:
        return f"the checkpoint of {written(self.moment)} of run {self.run_id} on {self.host}"


def read_checkpoints(launch: Launch, origin: Origin | None, there: Mapping[str, str]) -> Sequence[Checkpoint]:
    """Return what the refs of checkpoints stand for that origin was seen to hold, by ref; their objects are here then.

    What no run can have written is passed over, and so is what is gone by now. Raises GitError.
    """
    fetched = launch.remote(origin).fetch_there(*sorted(there)[-_MOST:])
    if not fetched:
        return ()
    shown = "--format=%H%n%ct%n%(trailers:only=true,unfold=true)%x00"
    said = launch.git.run("log", "--no-walk=unsorted", shown, *dict.fromkeys(fetched.values())).text
    found = [_read(text.strip().splitlines()) for text in said.split("\0") if text.strip()]
    return [one for one in found if one and fetched.get(checkpoint_ref(one.run_id)) == one.commit]


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
    return Checkpoint(
        commit=commit,
        moment=moment,
        unsettled=told.get("Nightkeep-Unsettled"),
        is_fenced="Nightkeep-Unfenced" not in told,
        **facts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """How a run takes a checkpoint over, made ready before there is a worktree.

    `updates` do it on origin, in one push: the checkpoint becomes the ref `rescue` of its own run, its ref ends, and
    `own` is this run's first checkpoint, which is the same. So one run alone takes it over, and it is never nobody's.
    `why` says why it cannot be gone on from; then there is no `own`. `parents` are the checkpoint's.
    """

    checkpoint: Checkpoint
    rescue: str
    parents: tuple[str, ...]
    own: str | None
    why: str | None
    updates: tuple[RefUpdate, ...]


def prepare(
    launch: Launch,
    checkpoint: Checkpoint,
    *,
    run_id: str,
    branch: str,
    base: str,
    start: str | None,
    is_fenced: bool,
) -> Takeover:
    """Make ready how the run `run_id` takes a checkpoint over. Changes nothing. Raises GitError.

    `start` is where origin has the run's branch, None for nowhere.
    """
    parents = launch.git.run("rev-parse", f"{checkpoint.commit}^@").text.split()
    why = _why_not(launch, checkpoint, parents, branch, start)
    rescue = rescue_ref(checkpoint.run_id, "checkpoint")
    updates = [
        RefUpdate(rescue, checkpoint.commit, ABSENT),
        RefUpdate(checkpoint_ref(checkpoint.run_id), ABSENT, checkpoint.commit),
    ]
    own = None
    if why is None:
        trailers = trailers_of(run_id, branch, base, None, is_fenced=is_fenced)
        told = "".join(f"{name}: {value}\n" for name, value in trailers.items())
        message = f"nightkeep: checkpoint of {branch}\n\n{told}"
        own = commit_tree(launch.git, f"{checkpoint.commit}^{{tree}}", [*parents, checkpoint.commit], message)
        updates.append(RefUpdate(checkpoint_ref(run_id), own, ABSENT))
    return Takeover(
        checkpoint=checkpoint, rescue=rescue, parents=tuple(parents), own=own, why=why, updates=tuple(updates)
    )


def go_on(checkout: Checkout, taken: Takeover) -> str | None:
    """Make a worktree in which nothing was done yet what the checkpoint has that was taken over: its commits on the
    Issue branch, the rest as uncommitted work. Returns where HEAD is then, None when it is not gone on from; it is
    named in either case. Raises GitError.
    """
    ledger, commit = checkout.ledger, taken.checkpoint.commit
    ledger.held.add(commit)
    ledger.refs[taken.rescue] = commit
    where = f"{taken.rescue} at {commit} on origin"
    if taken.own is None:
        ledger.places.append(("checkpoint of an earlier run", f"{where}; it was not gone on from, for {taken.why}"))
        return None
    ledger.places.append((WENT_ON_FROM, f"{taken.checkpoint}: {where}"))
    ledger.checkpoint_sent = taken.own
    ledger.checkpoints_offered.add(taken.own)
    move_checkpoint(checkout, taken.own)
    head, *others = taken.parents
    checkout.git.run("reset", "--quiet", "--hard", head)
    checkout.git.run("read-tree", "--reset", "-u", commit)
    checkout.git.run("read-tree", _index_of(checkout, others) or head)
    return head


def _why_not(
    launch: Launch, checkpoint: Checkpoint, parents: Sequence[str], branch: str, start: str | None
) -> str | None:
    if checkpoint.branch != branch:
        return f"it is of the branch {checkpoint.branch}"
    if not parents:
        return "it was made on no commit"
    if checkpoint.unsettled:
        return f"its session left {checkpoint.unsettled}"
    if start is not None and not launch.git.answers("merge-base", "--is-ancestor", start, parents[0]):
        return "the branch has moved since"
    return None


def _index_of(checkout: Checkout, commits: Sequence[str]) -> str | None:
    """Return which of a checkpoint's parents is its index, None for none."""
    if not commits:
        return None
    rows = checkout.git.run("log", "--no-walk=unsorted", "--format=%H %s", *commits).text.splitlines()
    return next((row.split(" ", 1)[0] for row in rows if row.split(" ", 1)[1] == INDEX_SUBJECT), None)
