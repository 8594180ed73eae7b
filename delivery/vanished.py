"""What becomes of the checkpoints that other runs have on origin."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from worktree import Checkpoint, Pace
from worktree.moments import written

_LEASE = timedelta(seconds=Pace().lease)  # what a repository configures is read only after this


@dataclass(frozen=True, slots=True)
class AtWork:
    """Another run seems to be at work on the branch; `why` says so, and what to do."""

    why: str


def choose_checkpoint(
    found: Sequence[Checkpoint], branch: str, now: datetime, dead: str | None = None
) -> Checkpoint | AtWork | None:
    """Decide what a new run on `branch` goes on from at `now`, the server's time, when no run that lives has a claim.

    That of the run `dead`, whose claim is taken over; else the latest one on the branch: its run has vanished, or ended
    without taking it away. One that could make no claim seems to live while its checkpoint is young: it makes one every
    few minutes, as long as something changes.
    """
    of_dead = next((one for one in found if one.run_id == dead), None)
    if of_dead is not None:
        return of_dead
    latest = max((one for one in found if one.branch == branch), key=lambda one: one.moment, default=None)
    if latest is None or latest.is_fenced or now - latest.moment >= _LEASE:
        return latest
    again = max(latest.moment, now - _LEASE) + _LEASE
    return AtWork(
        f"run {latest.run_id} on {latest.host} seems to be at work on {branch}: origin has a checkpoint of it of "
        f"{written(latest.moment)}; wait for its end, or if that machine is gone, run this again at "
        f"{written(again)}"
    )
