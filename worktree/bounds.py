"""The bound of what is rescued: what goes of it, and what stays all the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from worktree.cleanup import EMPTY
from worktree.dropping import Deleter, needed
from worktree.errors import Interrupted, WorktreeError
from worktree.stored import Rescued, began, branch_of

_WITHOUT_WORK = {"ignored", EMPTY}  # as a manifest says why something was kept


@dataclass(frozen=True, slots=True)
class Bounds:
    """How old, in days, and how large altogether, in bytes, what is kept may become."""

    days: int = 30
    size: int = 10 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What decides about one run's directory in the store.

    `needed` says why somebody may need it now, `only_copy` whether work in it may be nowhere else.
    """

    run_id: str
    age: timedelta
    size: int
    needed: str | None = None
    only_copy: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """The runs whose directories go, and those that stay in spite of the bounds, each with why; the oldest first."""

    go: Mapping[str, str]
    stay: Mapping[str, str]


def choose(entries: Sequence[Entry], bounds: Bounds) -> Choice:
    """Decide what goes of the store: what is too old, then the oldest until the rest is not too large.

    What somebody needs stays, and the only copy of somebody's work stays until it is too old.
    """
    go: dict[str, str] = {}
    stay: dict[str, str] = {}
    size = sum(entry.size for entry in entries)
    for entry in sorted(entries, key=lambda entry: entry.age, reverse=True):
        old, large = entry.age > timedelta(days=bounds.days), size > bounds.size
        if entry.needed and (old or large):
            stay[entry.run_id] = entry.needed
        elif old:
            go[entry.run_id] = f"older than {bounds.days} days"
        elif large and entry.only_copy:
            stay[entry.run_id] = f"it may hold work that is nowhere else, and is not older than {bounds.days} days"
        elif large:
            go[entry.run_id] = "all that is kept is too large, and of what may go this is the oldest"
        size -= entry.size if entry.run_id in go else 0
    return Choice(go, stay)


def is_only_copy(rescued: Rescued) -> bool:
    """Decide whether work may be in the store alone: a Failed run's always, a delivered one's unless git ignores it."""
    if rescued.manifest is None or rescued.manifest.failed or rescued.bundles or rescued.modules or rescued.local:
        return True
    reasons = {row.entry: row.why for row in rescued.manifest.rows}
    return any(set(reasons.get(entry, "").split(", ")) - _WITHOUT_WORK for entry in rescued.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """How the bounds are kept, at the time `now`.

    `is_closed` says of a branch whether there were pull requests from it and none is open; without it no rescue ref is
    deleted. `stayed` is told of what stays in spite of the bounds, and of what could not be deleted.
    """

    deleter: Deleter
    bounds: Bounds
    now: datetime
    is_closed: Callable[[str], bool] | None
    stayed: Callable[[str, str], None]

    def collect(self, rescued: Sequence[Rescued]) -> bool:
        """Delete what is beyond the bounds; False when something could not be deleted. One run stops no other's.

        A recorded interruption stops it between two runs.
        """
        choice = choose([self._entry(one) for one in rescued if one.store], self.bounds)
        for run_id, why in choice.stay.items():
            self.stayed(run_id, why)
        sound = True
        for one in sorted(rescued, key=lambda one: one.moment):
            if self.deleter.launch.git.interruption.recorded:
                break
            sound &= self._attempt(one, choice.go.get(one.run_id))
        return sound

    def _entry(self, one: Rescued) -> Entry:
        return Entry(
            run_id=one.run_id,
            age=self.now - one.moment,
            size=one.size,
            needed=self._needed(one),
            only_copy=is_only_copy(one),
        )

    def _needed(self, one: Rescued) -> str | None:
        return needed(self.deleter.launch.common, one.run_id)

    def _attempt(self, one: Rescued, why: str | None) -> bool:
        try:
            of_refs = self._reason_for_refs(one)  # may need the manifest
            if why:
                self.deleter.delete_store(one, why)
            if of_refs:
                self.deleter.delete_refs(one, of_refs)
        except Interrupted:
            raise
        except (WorktreeError, OSError) as error:
            self.stayed(one.run_id, str(error))
            return False
        return True

    def _reason_for_refs(self, one: Rescued) -> str | None:
        """Return why the rescue refs of a run go, None when they stay. Whatever cannot be told makes them stay."""
        old = self.now - began(one.run_id) > timedelta(days=self.bounds.days)
        if self.is_closed is None or not old or not (one.local or one.on_origin) or self._needed(one):
            return None
        branch = branch_of(self.deleter.launch.git, one)
        if branch is None:
            unknown = "nothing here says of which branch its rescue refs are; once nobody needs them"
            self.stayed(one.run_id, f"{unknown}: nightkeep rescue drop {one.run_id} --remote")
            return None
        why = f"older than {self.bounds.days} days, and the pull request of {branch} is closed"
        return why if self.is_closed(branch) else None
