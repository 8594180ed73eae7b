"""One linked worktree and all that is pinned about it; what preservation and clean-up work on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from worktree.configuration import Configuration, as_environment, new_filters, read_configuration, without_filters
from worktree.git import Git
from worktree.record import RecordDirectory, RunRecord
from worktree.remote import Fence, RefUpdate, Remote
from worktree.snapshot import Snapshot


@dataclass(slots=True)
class Ledger:
    """What was seen to be safe.

    `held` are commits whose ids were read back from origin, `refs` the refs of origin that the run moved and was
    seen to have moved, the latest last. `published` are the snapshots among them, `unpublished` those that a local
    ref alone keeps, by its name. `places` is what else a person is told: (what, where) in the order it came about.
    `filters` are the names of those switched off.
    """

    held: set[str] = field(default_factory=set)
    refs: dict[str, str] = field(default_factory=dict)
    published: list[Snapshot] = field(default_factory=list)
    unpublished: dict[str, Snapshot] = field(default_factory=dict)
    places: list[tuple[str, str]] = field(default_factory=list)
    filters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The worktree at `path` whose git directory is `admin`.

    `git` works in it by both names, so that a replaced `.git` leads nowhere; `shared` works in the git directory
    common to all worktrees. `refs` and `configuration` are those of the Launch repository before the run. `resumed`
    says that origin held the Issue branch before.
    """

    record: RunRecord
    directory: RecordDirectory
    admin: Path
    git: Git
    shared: Git
    remote: Remote
    refs: Mapping[str, str]
    configuration: Configuration
    resumed: bool
    fence: Fence | None
    ledger: Ledger

    @property
    def path(self) -> Path:
        """Where the files are."""
        return self.record.path

    @property
    def branch_ref(self) -> str:
        """The full name of the Issue branch."""
        return f"refs/heads/{self.record.branch}"

    @property
    def on_origin(self) -> str | None:
        """The commit at which origin was last seen to hold the Issue branch; None when it was not seen there."""
        return self.ledger.refs.get(self.branch_ref, self.record.pinned if self.resumed else None)

    def local_places(self) -> list[tuple[str, str]]:
        """Return where the snapshots are that only this machine has."""
        kept = self.ledger.unpublished.items()
        return [("snapshot", f"{ref} at {snapshot.commit} in {self.remote.common}") for ref, snapshot in kept]

    def completing(self) -> "Checkout":
        """Return the same checkout with completion views, see `Git.completing`."""
        return replace(
            self, git=self.git.completing(), shared=self.shared.completing(), remote=self.remote.completing()
        )

    def without_new_filters(self) -> "Checkout":
        """Return the same checkout for after a session: filters that it set up, or changed, are not run for us."""
        found = new_filters(self.configuration, read_configuration(self.git))
        self.ledger.filters = tuple(sorted({*self.ledger.filters, *found}))
        if not self.ledger.filters:
            return self
        off = as_environment(without_filters(self.ledger.filters))
        return replace(self, git=self.git.within(**off), shared=self.shared.within(**off))

    def push(self, what: str, update: RefUpdate) -> None:
        """Push one ref, in one push with the claim's where there is one, and enter it in the ledger."""
        claim = [self.fence()] if self.fence else []
        self.remote.push(update, *claim)
        self.ledger.held.add(update.new)
        self.ledger.refs[update.ref] = update.new
        self.ledger.places.append((what, f"{update.ref} at {update.new} on origin"))
