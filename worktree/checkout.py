"""One linked worktree and all that is pinned about it; what preservation and clean-up work on."""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from worktree.configuration import (
    Configuration,
    changed_keys,
    git_environment,
    new_filters,
    read_configuration,
    without_filters,
)
from worktree.errors import WorktreeError
from worktree.fence import Fence
from worktree.git import Git
from worktree.inclusion import Included
from worktree.launch import checkout_noted_in, detached_heads
from worktree.ledger import Ledger
from worktree.reading import read_words
from worktree.record import RecordDirectory, RunRecord, read_records
from worktree.remote import Remote
from worktree.screening import screen_files

LOST = "lost with its directory"  # as a place says it


def selectors(admin: Path, path: Path) -> tuple[str, str]:
    """Return the options that name git directory and working files outright.

    Then nothing that an agent does to `.git`, `core.bare` or `core.worktree` makes our commands work elsewhere.
    """
    return (f"--git-dir={admin}", f"--work-tree={path}")


def is_directory(path: Path, identity: tuple[int, int]) -> bool:
    """Whether `path` is the directory, and no link to it, of that device and inode."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and (status.st_dev, status.st_ino) == identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The worktree at `path` whose git directory is `admin`.

    `git` works in it by both names, so that a replaced `.git` leads nowhere; `shared` works in the git directory
    common to all worktrees. `identity` is the device and inode of `path` at acquisition, `acquired` when that was,
    in ns. `top` is the top level of the Launch directory's own checkout; `refs`, `runs` (branches of other runs),
    `stashes` (entries) and `configuration` are those of the Launch repository before the run. `included` is what was
    copied in for the task. Of a run that was reclaimed the files (`has_tree`), or even git's own directory
    (`has_admin`, then `admin` is the clone's), can be gone already, and of the configuration only filters are known.
    `released` says that a person lets it go: an unfinished operation, and what the index alone holds, are then kept by
    a snapshot here, instead of by the worktree.
    """

    record: RunRecord
    path: Path
    top: Path
    directory: RecordDirectory
    admin: Path
    identity: tuple[int, int]
    acquired: int
    git: Git
    shared: Git
    remote: Remote
    refs: Mapping[str, str]
    runs: frozenset[str]
    stashes: frozenset[str]
    configuration: Configuration
    included: Included
    fence: Fence | None
    ledger: Ledger
    has_tree: bool = True
    has_admin: bool = True
    released: bool = False

    @property
    def branch_ref(self) -> str:
        """The full name of the Issue branch."""
        return f"refs/heads/{self.record.branch}"

    @property
    def on_origin(self) -> str | None:
        """The commit at which origin was last seen to hold the Issue branch; None when it was not seen there."""
        return self.ledger.refs.get(self.branch_ref, self.record.pinned if self.record.resumed else None)

    @property
    def built_on(self) -> str | None:
        """The last commit of origin's Issue branch that the work holds; None when origin was not seen to have one."""
        return self.ledger.built_on.get(self.branch_ref) or self.on_origin

    def reaches(self, head: str, commit: str) -> bool:
        """Whether `head` reaches a commit; git is asked of each two but once. Raises GitError."""
        seen = self.ledger.reached
        if head == commit or (head, commit) in seen:
            return True
        if self.shared.answers("merge-base", "--is-ancestor", commit, head):
            seen.add((head, commit))
        return (head, commit) in seen

    def is_in_place(self) -> bool:
        """Whether `path` is still the directory that was acquired, and no link or other directory in its place."""
        return self.is_at(self.path)

    def is_at(self, path: Path) -> bool:
        """Whether that is the directory that was acquired."""
        return is_directory(path, self.identity)

    def is_displaced(self) -> bool:
        """Whether something else stands where the worktree was."""
        return os.path.lexists(self.path) and not self.is_in_place()

    def moved_to_by_git(self) -> Path | None:
        """Return where the worktree is if somebody moved it and told git so; None where nobody did."""
        try:
            noted = checkout_noted_in(self.admin)
        except OSError:
            return None
        return noted if self.has_admin and noted != self.record.path and self.is_at(noted) else None

    def name_loss(self) -> None:
        """Name what went with the directory that somebody else took away."""
        what = "what was in no commit and in no stash"
        place = (LOST, f"{self.record.path} is gone: somebody removed or moved it, and with it {what}")
        if place not in self.ledger.places:
            self.ledger.places.append(place)

    def require_in_place(self) -> None:
        """Raise WorktreeError unless the files at `path` are the worktree's; a person's could be there instead."""
        if not self.is_in_place():
            raise WorktreeError(f"{self.path} was replaced by something else, so nothing in it is touched")

    def local_places(self) -> list[tuple[str, str]]:
        """Return where the rescue refs are that only this machine has."""
        kept = self.ledger.local.items()
        return [(ref.rsplit("/", 1)[1], f"{ref} at {commit} in {self.remote.common}") for ref, commit in kept]

    def branch_left(self) -> str | None:
        """Return where the Issue branch is, as far as that is where the run left it; a person may have it by now."""
        tip = self.refs_now().get(self.branch_ref)
        return tip if self.has_admin or tip in (self.record.pinned, self.directory.cleared_tip()) else None

    def is_checked_out_elsewhere(self) -> bool:
        """Whether somebody else may have the Issue branch checked out: it is not ours alone to move or delete then."""
        common = self.remote.common
        own = self.admin.name if self.has_admin else None
        linked = [head for head in (common / "worktrees").glob("*/HEAD") if head.parent.name != own]
        try:
            return any(read_words(head) == ["ref:", self.branch_ref] for head in (common / "HEAD", *linked))
        except OSError:
            return True

    def is_shared(self) -> bool:
        """Whether moving the Issue branch may move somebody else's: an agent can make it a second name of theirs."""
        try:
            names_another = read_words(self.remote.common / self.branch_ref)[:1] == ["ref:"]
        except OSError:  # a symbolic link, which git takes for such a name
            return True
        return names_another or self.is_checked_out_elsewhere()

    def without_files(self) -> "Checkout":
        """Return the same checkout for when its directory is gone: git works in its git directory then."""
        if not self.has_tree:
            return self
        git = replace(self.git, directory=self.remote.common, selectors=(f"--git-dir={self.admin}",))
        return replace(self, git=git, has_tree=False)

    def moved_to(self, path: Path) -> "Checkout":
        """Return the same checkout for when its directory was renamed to `path`."""
        git = replace(self.git, directory=path, selectors=selectors(self.admin, path))
        return replace(self, path=path, git=git)

    def completing(self) -> "Checkout":
        """Return the same checkout with completion views, see `Git.completing`."""
        return replace(
            self, git=self.git.completing(), shared=self.shared.completing(), remote=self.remote.completing()
        )

    def without_new_filters(self) -> "Checkout":
        """Return the same checkout for after a session: filters that it set up, or changed, are not run for us."""
        now = read_configuration(self.git)
        found = new_filters(self.configuration, now)
        self.ledger.reconfigured = changed_keys(self.configuration, now, f"branch.{self.record.branch}.")
        self.ledger.filters = tuple(sorted({*self.ledger.filters, *found}))
        if not self.ledger.filters:
            return self
        off = git_environment(without_filters(self.ledger.filters))
        return replace(self, git=self.git.within(**off), shared=self.shared.within(**off))

    def kept_from_salvage(self, paths: Collection[str]) -> Mapping[str, str]:
        """Return those of `paths` that salvage does not publish, each with why; see `Screen`.

        Files over the limit, such as look like they hold a secret that origin has not, what was copied in, and
        repositories inside, of which git would stage a mere pointer.
        """
        found = screen_files(self.git, self.path, paths, self.record.pinned, limit=self.git.limits.screen)
        return {**found, **self._never_staged(paths)}

    def kept_from_delivery(self, paths: Collection[str]) -> Mapping[str, str]:
        """Return those of `paths` that are not committed for an agent: as above, but for what only looks like a secret.

        A secret that we know is no part of it either.
        """
        found = screen_files(self.git, self.path, paths, known_only=True, limit=self.git.limits.screen)
        return {**found, **self._never_staged(paths)}

    def _never_staged(self, paths: Collection[str]) -> dict[str, str]:
        # An agent can make git take an ignored file for one of its own; of a repository git would stage a pointer.
        copied = dict.fromkeys(set(paths) & set(self.included.paths), "it was copied in by .worktreeinclude")
        return copied | {path: "a repository of its own" for path in paths if path.endswith("/")}

    def of_those_here(self, oids: Iterable[str]) -> set[str]:
        """Return those of some ids whose objects are in the clone."""
        there = set(oids)
        sure = there & {*self.ledger.refs_seen.values(), *self.ledger.held}
        if sure == there:
            return there
        asked = "".join(f"{oid}\n" for oid in sorted(there - sure)).encode()
        answers = self.shared.run("cat-file", "--batch-check=%(objectname)", stdin=asked).text.splitlines()
        return sure | (there & set(answers))

    def refs_now(self) -> dict[str, str]:
        """Return the refs of the Launch repository as they are now, and the HEADs that were detached before the run."""
        # A run has its record for longer than its branch, and may begin or end just now.
        self._note_others()
        listed = self.shared.run("for-each-ref", "--format=%(objectname) %(refname)").text.splitlines()
        self._note_others()
        heads = {name: oid for name, oid in detached_heads(self.remote.common).items() if name in self.refs}
        self.ledger.refs_seen = heads | {ref: oid for oid, ref in (line.split(" ", 1) for line in listed)}
        return self.ledger.refs_seen

    def _note_others(self) -> None:
        self.ledger.of_others |= {f"refs/heads/{record.branch}" for record in read_records(self.remote.common)}

    def tip(self) -> str:
        """Return the Issue branch's commit here. Raises WorktreeError when the branch is gone."""
        now = self.refs_now()
        if self.branch_ref not in now:
            raise WorktreeError(f"the local branch {self.record.branch} is gone")
        return now[self.branch_ref]
