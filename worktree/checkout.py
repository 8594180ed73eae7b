"""One linked worktree and all that is pinned about it; what preservation and clean-up work on."""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from worktree.configuration import (
    Configuration,
    changed_keys,
    git_environment,
    new_filters,
    read_configuration,
    without_filters,
)
from worktree.errors import BranchRewrittenError, FenceLostError, PrivateWorkError, PushRefused, WorktreeError
from worktree.fence import Fence
from worktree.git import Git
from worktree.inclusion import Included
from worktree.launch import checkout_noted_in, detached_heads
from worktree.reading import read_regular, read_words
from worktree.record import RecordDirectory, RunRecord, read_records
from worktree.refusal import Refusal, RefusalKind
from worktree.remote import ABSENT, RefUpdate, Remote
from worktree.run_refs import checkpoint_ref, rescue_ref
from worktree.screening import screen_files
from worktree.snapshot import Snapshot

LOST = "lost with its directory"  # as a place says it
_LONGEST_LOG = 1 << 26  # bytes
# How the log of HEAD tells a commit that was made from one that was only moved to.
_COMMITTING = ("commit", "cherry-pick", "revert", "am:", "rebase (pick)", "rebase (continue)", "rebase (reword)")
_MOVING = "fast-forward"


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

    @property
    def published(self) -> list[Snapshot]:
        """The snapshots that origin holds, the latest last."""
        return [snapshot for ref, snapshot in self.snapshots.items() if ref in self.refs]


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

    def rewritten(self, why: str, there: Mapping[str, str], *, holds: Collection[str] = ()) -> BranchRewrittenError:
        """Take notice that others took commits off a branch, and return the error that says so.

        `there` are the branches that were looked at, as origin has them, `holds` what they are known to hold besides.
        Nothing else of what was pushed to branches counts as safe any more.
        """
        ledger, ref = self.ledger, self.branch_ref
        if ref in ledger.refs and there.get(ref) != ledger.refs[ref]:
            before = f"{ref} at {ledger.refs.pop(ref)} on origin"
            ledger.places = [place for place in ledger.places if place[1] != before]
        joined = {oid for rescue in ledger.refs for oid in ledger.joined.get(rescue, ())}
        ledger.held = {*ledger.refs.values(), *joined, *holds, *self.of_those_here(there.values())}
        ledger.rewritten = why
        return BranchRewrittenError(why)

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

    def private_commit(self, commit: str, now: Mapping[str, str]) -> str | None:
        """Return a commit that a push of `commit` would publish and that was a person's alone, or None.

        A person's alone is what their refs held when the run began, or hold now where the refs were there then, and
        what origin was not seen to hold. Branches of other runs are nobody's, and neither is what was committed here.
        """
        published = {oid for ref, oid in self.refs.items() if ref.startswith("refs/remotes/origin/")} | self.ledger.held
        runs = {f"refs/heads/{branch}" for branch in self.runs}
        others = self.refs.keys() - runs - {self.branch_ref, "refs/stash"}
        owned = [ref for ref in others if not ref.startswith(("refs/remotes/", "refs/nightkeep/checkpoints/"))]
        moved = {now[ref] for ref in owned if ref in now} - self._committed()
        theirs = ({self.refs[ref] for ref in owned} | self.stashes | moved) - published
        if not theirs:
            return None
        offered = self._beyond({commit}, published)
        return next(iter(sorted(offered & self._beyond(theirs, published))), None) if offered else None

    def _on_origin_and_here(self) -> set[str]:
        """Return the ids that origin's branches and tags name now, as far as their objects are here."""
        return self.of_those_here(self.remote.read("refs/heads/*", "refs/tags/*").values())

    def of_those_here(self, oids: Iterable[str]) -> set[str]:
        """Return those of some ids whose objects are in the clone."""
        there = set(oids)
        sure = there & {*self.ledger.refs_seen.values(), *self.ledger.held}
        if sure == there:
            return there
        asked = "".join(f"{oid}\n" for oid in sorted(there - sure)).encode()
        answers = self.shared.run("cat-file", "--batch-check=%(objectname)", stdin=asked).text.splitlines()
        return sure | (there & set(answers))

    def _committed(self) -> set[str]:
        """Return the commits that were made in this worktree, as the log of its HEAD has them."""
        try:
            log = read_regular(self.admin / "logs" / "HEAD", _LONGEST_LOG)
        except FileNotFoundError:
            return set()
        entries = (line.partition("\t") for line in log.decode(errors="replace").splitlines())
        made = (entry for entry in entries if entry[2].startswith(_COMMITTING) and not entry[2].endswith(_MOVING))
        return {entry[0].split(" ")[1] for entry in made}

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

    def _beyond(self, commits: set[str], others: set[str]) -> set[str]:
        lines = [*sorted(commits), *(f"^{oid}" for oid in sorted(others))]
        return set(
            self.shared.run(
                "rev-list", "--ignore-missing", "--stdin", stdin="\n".join(lines).encode() + b"\n"
            ).text.split()
        )

    def send(self, *updates: RefUpdate) -> tuple[str, ...]:
        """Push refs as `Remote.push` does, with the fence's where there is one. Raises FenceLostError, or GitError."""
        own = all(map(self._needs_no_fence, updates))
        if self.fence is not None and not (own and self.fence.lost):
            try:
                return self.fence.push(self.remote, *updates)
            except FenceLostError:
                if not own:
                    raise
        return self.remote.push(*updates)

    def _sent(self, update: RefUpdate) -> tuple[str, ...]:
        """Send the push of one ref; tell commits that others put on the Issue branch from such that they took off it.

        Raises as `push` does.
        """
        try:
            return self.send(update)
        except PushRefused as refused:
            if update.ref != self.branch_ref or refused.refusal.kind is not RefusalKind.STALE_LEASE:
                raise
            there = self.remote.read(self.branch_ref)
            found = self.remote.fetch(self.record.branch)[self.record.branch] if there else None
            if why := self.why_rewritten(found, update.expected or ABSENT):
                raise self.rewritten(why, there) from refused
            if found == update.expected:
                raise
            behind = Refusal(RefusalKind.NON_FAST_FORWARD, refused.refusal.words)
            raise PushRefused(refused, behind, refused.refs) from refused

    def why_rewritten(self, found: str | None, before: str) -> str | None:
        """Say what others took off the Issue branch, which is at `found` on origin and was at `before`; else None."""
        branch = self.record.branch
        if found is None:
            return f"somebody deleted {branch} on origin, where it was at {before[:12]}; it is not put back"
        if self.reaches(found, before):
            return None
        return (
            f"somebody rewrote {branch} on origin: it is at {found[:12]}, without {before[:12]}; "
            "what was taken off is not put back"
        )

    def _needs_no_fence(self, update: RefUpdate) -> bool:
        """Whether it is the run's own, whoever has the issue: a rescue ref of its, or the end of its checkpoint."""
        run_id = self.record.run_id
        return update.ref.startswith(rescue_ref(run_id)) or (
            update.new == ABSENT and update.ref == checkpoint_ref(run_id)
        )

    def push_branch(self, what: str) -> str:
        """Push the Issue branch as it stands here, as a fast-forward; return its commit. Raises as `push` does."""
        tip = self.tip()
        self.push(what, self.step_to(tip), self.ledger.refs_seen)
        return tip

    def step_to(self, commit: str) -> RefUpdate:
        """Return the move of origin's Issue branch to a commit: from where it was seen last, if that is a step forward.

        A plain push would bring back what others took off. One that is no step forward origin refuses.
        """
        before = self.built_on
        forward = before is not None and self.reaches(commit, before)
        return RefUpdate(self.branch_ref, commit, before if forward else None)

    def tip(self) -> str:
        """Return the Issue branch's commit here. Raises WorktreeError when the branch is gone."""
        now = self.refs_now()
        if self.branch_ref not in now:
            raise WorktreeError(f"the local branch {self.record.branch} is gone")
        return now[self.branch_ref]

    def push(self, what: str, update: RefUpdate, now: Mapping[str, str] | None = None) -> None:
        """Push one ref, in one push with the fence's where there is one; enter it in the ledger for the last one.

        `now` are the refs as they are, where somebody has just looked. Raises PrivateWorkError, before anything is
        pushed, when that would publish a commit of the person's; FenceLostError; BranchRewrittenError; else GitError. A
        rescue ref needs no fence once that is lost: it is the run's own, and must not exist.
        """
        if self.ledger.rewritten and update.ref == self.branch_ref:
            raise BranchRewrittenError(self.ledger.rewritten)
        now = self.refs_now() if now is None else now
        private = self.private_commit(update.new, now)
        if private is not None:
            # Others may have pushed it since the run began; only origin itself can tell.
            self.ledger.held |= self._on_origin_and_here()
            private = self.private_commit(update.new, now)
        if private is not None:
            raise PrivateWorkError(
                f"{update.ref} is not pushed, because commit {private} in it was only on the person's own branches"
            )
        left = self._sent(update)
        if left:
            self.ledger.lacks_lfs = True
            # git lfs keeps them in the clone, whatever becomes of the worktree.
            self.ledger.places.append(("Git LFS objects not on origin", f"{len(left)} of them in {self.remote.common}"))
        self.ledger.held.add(update.new)
        before = f"{update.ref} at {self.ledger.refs.get(update.ref)} on origin"
        self.ledger.places = [place for place in self.ledger.places if place[1] != before]
        self.ledger.refs[update.ref] = self.ledger.built_on[update.ref] = update.new
        self.ledger.places.append((what, f"{update.ref} at {update.new} on origin"))
