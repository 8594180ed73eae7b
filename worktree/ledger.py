"""What a run was seen to have made safe."""

from dataclasses import dataclass, field
from pathlib import Path

from worktree.snapshot import Snapshot


@dataclass(slots=True)
class Ledger:
    """What was seen to be safe.

    `held` are commits whose ids were read back from origin, or that such a commit reaches. `refs` are the refs of
    origin that the run moved and was seen to have moved, the latest last; `local` the rescue refs that this machine
    alone has. `reached` are pairs of a head and a commit that it reaches. `built_on` is where origin had the branches
    that the work holds, as far as they have moved; `rewritten` says what others took off one of them. `snapshots` are
    those taken, by their refs; `joined` the commits that others of the refs hold together. `bundles` are the commits in
    each bundle of the store. `places` is what else a person is told: (what, where) in the order it came about.
    `filters` are the names of those switched off, `reconfigured` the clone's settings that changed. `refs_seen` are the
    Launch repository's refs as they were when somebody looked last, `of_others` the branches that other runs had
    whenever somebody looked. `failed` says that the run failed, or that nobody knows that it was delivered, `lacks_lfs`
    that origin lacks Git LFS objects of what was pushed. `checkpoint` is the last one here, `checkpoint_sent` the last
    one that origin was seen to hold, and it may hold any of `checkpoints_offered`.
    """

    held: set[str] = field(default_factory=set)
    refs: dict[str, str] = field(default_factory=dict)
    local: dict[str, str] = field(default_factory=dict)
    reached: set[tuple[str, str]] = field(default_factory=set)
    built_on: dict[str, str] = field(default_factory=dict)
    rewritten: str | None = None
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    joined: dict[str, frozenset[str]] = field(default_factory=dict)
    bundles: dict[Path, frozenset[str]] = field(default_factory=dict)
    places: list[tuple[str, str]] = field(default_factory=list)
    filters: tuple[str, ...] = ()
    reconfigured: tuple[str, ...] = ()
    refs_seen: dict[str, str] = field(default_factory=dict)
    of_others: set[str] = field(default_factory=set)
    failed: bool = False
    lacks_lfs: bool = False
    checkpoint: str | None = None
    checkpoint_sent: str | None = None
    checkpoints_offered: set[str] = field(default_factory=set)

    def note_pushed(self, what: str, ref: str, commit: str) -> None:
        """Note that origin was seen to hold `commit` at `ref`, in place of what was pushed there before."""
        self._drop_place(ref)
        self.held.add(commit)
        self.refs[ref] = self.built_on[ref] = commit
        self.places.append((what, f"{ref} at {commit} on origin"))

    def note_taken_off(self, ref: str) -> None:
        """Note that what was pushed to `ref` is not what origin has there."""
        self._drop_place(ref)
        self.refs.pop(ref, None)

    def _drop_place(self, ref: str) -> None:
        before = f"{ref} at {self.refs.get(ref)} on origin"
        self.places = [place for place in self.places if place[1] != before]

    @property
    def published(self) -> list[Snapshot]:
        """The snapshots that origin holds, the latest last."""
        return [snapshot for ref, snapshot in self.snapshots.items() if ref in self.refs]
