"""Checkpoints: what is in a worktree while a session works there, as commits, each a child of the one before.

The ref refs/nightkeep/checkpoints/<run id> names the last one, here at once, and on origin after it was looked through
for secrets. It goes with the worktree, once all in that is proven to be elsewhere.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from worktree.checkout import Checkout
from worktree.errors import GitError, Interrupted, TransferError, WorktreeError
from worktree.files import Screen, everything_up_to, list_files
from worktree.machine import host_name
from worktree.made import loose_ends
from worktree.private_work import private_commit
from worktree.pushing import send
from worktree.remote import ABSENT, RefUpdate
from worktree.run_refs import checkpoint_ref
from worktree.screening import explained, screen_commits
from worktree.snapshot import take_snapshot
from worktree.state import State, Status, read_status, state_of, why_unsettled
from worktree.transfer import Parcel, Sending, can_send_to

_ATTEMPTS = 2
_STAYS = "the checkpoint stays on this machine"
_QUICK = (("core.looseCompression", "0"),)  # disk for time
_LAST_WAIT = 5.0  # seconds that sending may still take once the run has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRule:
    """How many seconds lie between two checkpoints, and whether origin gets them as well.

    Of more than `most_kept` bytes of changed files none is made, each would take as much of the disk; what origin lacks
    of one may have `most_sent` bytes. After `quiet` seconds origin gets another one of the same, where nothing else
    shows that the run lives.
    """

    every: float = 300
    to_origin: bool = True
    most_kept: int = 500_000_000
    most_sent: int = 100_000_000
    quiet: float = 450


class Watch(Protocol):
    """What is told of a session while it runs, by whoever runs it and from its thread. Neither call raises."""

    def tick(self) -> None:
        """Take notice that time has passed; called several times a second."""
        ...

    def interrupted(self) -> None:
        """Take notice, once, that a signal is recorded; the session has just been told to stop."""
        ...

    @property
    def why_stop(self) -> str | None:
        """Why the session is to be stopped, None while it may go on."""
        ...


_Signature = tuple[int, ...]
_SIZE = 2  # where in a signature


@dataclass(frozen=True, slots=True)
class _Look:
    """A worktree at one moment: its status, and of each file that is not as committed what changes with it."""

    status: Status
    files: Mapping[str, _Signature | None]


class Checkpoints:
    """Takes the checkpoints of one worktree; see `Watch`. Trouble is told by `report`, each kind once."""

    def __init__(self, checkout: Checkout, rule: CheckpointRule, report: Callable[[str], object]) -> None:
        self._checkout = checkout
        self._rule = rule
        self._report = report
        self._ref = checkpoint_ref(checkout.record.run_id)
        self._due = time.monotonic() + rule.every
        self._seen: _Look | None = None
        self._last: object = None
        self._kept_at = 0.0
        self._index: _Signature | None = None
        self._hidden: frozenset[str] = frozenset()
        self._sending: Sending | None = None
        self._is_owing = False
        self._told: set[str] = set()

    def tick(self) -> None:
        """Take one when it is time for it, if anything has changed; and see to the fence."""
        self._hear()
        if self._checkout.fence is not None:
            self._checkout.fence.tick()
        with suppress(Interrupted):
            if self._is_owing and self._may_send():
                self._attempt(self._send)
        if time.monotonic() < self._due:
            return
        with suppress(Interrupted):  # then `interrupted` follows
            self._attempt(self._take_and_send)
        self._due = time.monotonic() + self._rule.every

    def interrupted(self) -> None:
        """Take one at once, of all there is: it stays here, so nothing is looked through for secrets."""
        checkout = self._checkout.completing()
        checkout = replace(checkout, git=replace(checkout.git, settings=(*checkout.git.settings, *_QUICK)))
        self._attempt(lambda: self._take(checkout, everything_up_to(checkout.path, checkout.git.limits.file)))

    def finish(self) -> None:
        """Wait a little for what is still being sent; call it when the worktree's end comes."""
        if self._sending is not None:
            self._sending.join(_LAST_WAIT)
        self._hear()

    def _take_and_send(self) -> None:
        self._take(self._checkout, self._checkout.kept_from_salvage)
        self._is_owing = self._rule.to_origin
        if self._is_owing and self._may_send():
            self._send()

    def _may_send(self) -> bool:
        """Whether nothing is being sent; a checkpoint and a sign of life take turns."""
        return self._sending is None and (self._checkout.fence is None or self._checkout.fence.is_free)

    @property
    def why_stop(self) -> str | None:
        """Why the session must not go on."""
        return self._checkout.fence.lost if self._checkout.fence else None

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Interrupted:
            raise
        except (WorktreeError, OSError) as error:
            self._tell("no checkpoint could be made", str(error))

    def _tell(self, what: str, why: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._report(f"{what}: {why}")

    def _take(self, checkout: Checkout, screen: Screen) -> None:
        checkout = checkout.without_new_filters()
        checkout.require_in_place()
        for _ in range(_ATTEMPTS):
            status = read_status(checkout.git, "--untracked-files=all")
            seen = self._look(checkout, status)
            if seen == self._seen and not self._is_quiet():
                break
            size = sum(signature[_SIZE] for signature in seen.files.values() if signature)
            most = self._rule.most_kept
            if size > most:
                raise WorktreeError(f"{size // 10**6} MB of files have changed, more than {most // 10**6}")
            if status.head != checkout.record.pinned or status.rows or self._hidden:
                self._keep(checkout, state_of(status, checkout.admin), screen)
            self._seen = seen
            # Who commits meanwhile has files in it that belong to the commit, which is not.
            if checkout.git.run("rev-parse", "HEAD").text == status.head:
                break

    def _keep(self, checkout: Checkout, state: State, screen: Screen) -> None:
        """Take one and move the local ref to it, unless there is nothing new."""
        before = checkout.ledger.checkpoint
        ends = loose_ends(checkout, state, [state.head] if state.head else [])
        snapshot = take_snapshot(
            checkout.git,
            checkout.admin,
            checkout.path,
            state,
            scratch=checkout.directory.path,
            screen=screen,
            subject=f"nightkeep: checkpoint of {checkout.record.branch}",
            besides=[*ends, *([before] if before else [])],
            trailers=trailers_of(
                checkout.record.run_id,
                checkout.record.branch,
                checkout.record.base,
                why_unsettled(state, checkout.record.branch),
                is_fenced=checkout.fence is not None,
            ),
        )
        what = (state, snapshot.tree, snapshot.index_tree, tuple(ends))
        if what == self._last and not self._is_quiet():
            return
        move_checkpoint(checkout, snapshot.commit)
        self._last, self._kept_at = what, time.monotonic()

    def _is_quiet(self) -> bool:
        """Whether origin has a checkpoint so old that a run without a fence could be taken for dead."""
        is_there = self._checkout.ledger.checkpoint_sent is not None and self._checkout.fence is None
        return is_there and time.monotonic() - self._kept_at >= self._rule.quiet

    def _look(self, checkout: Checkout, status: Status) -> _Look:
        """Return what is as before only while nothing has changed."""
        index = _signature(os.fspath(checkout.admin / "index"))
        if index != self._index:
            # What git was told not to look at is in no status.
            self._hidden = list_files(checkout.git, checkout.path).hidden
            self._index = index
        paths = {path for _, path in status.rows} | self._hidden
        files = {path: _signature(os.path.join(checkout.path, path)) for path in paths}  # noqa: PTH118 - odd bytes
        return _Look(status, files)

    def _send(self) -> None:
        """Bring the last one to origin, unless something in it is not to be published."""
        checkout, ledger = self._checkout, self._checkout.ledger
        commit, before = ledger.checkpoint, ledger.checkpoint_sent
        self._is_owing = False
        if commit is None or commit == before:
            return
        known = ledger.held | ({before} if before else set())
        why = self._why_not(checkout, commit, known)
        if why:
            self._tell(_STAYS, why)
            return
        update = RefUpdate(self._ref, commit, before or ABSENT)
        ledger.checkpoints_offered.add(commit)
        origin = checkout.remote.origin
        if not can_send_to(origin):
            send(checkout, update)
            ledger.checkpoint_sent = commit
            return
        fence = checkout.fence
        moved = fence.offer() if fence else None
        updates = (update, moved) if moved else (update,)
        known |= {moved.expected} if moved and moved.expected else set()
        lines = "".join(f"{line}\n" for line in (*(one.new for one in updates), *(f"^{oid}" for oid in sorted(known))))
        flags = ("--quiet", "--revs", "--thin", "--stdout", "--delta-base-offset")
        pack = checkout.shared.run("pack-objects", *flags, stdin=lines.encode()).stdout
        parcel = Parcel(
            url=origin.url, token=origin.current() or "", updates=updates, pack=pack, redact=checkout.git.redact
        )
        if checkout.remote.object_format:
            parcel = replace(parcel, object_format=checkout.remote.object_format)
        self._sending = Sending(parcel)
        self._sending.start()
        if fence and moved:
            fence.follow(self._sending)

    def _why_not(self, checkout: Checkout, commit: str, known: set[str]) -> str | None:
        beyond = [f"^{oid}" for oid in sorted(known)]
        size = int(checkout.shared.run("rev-list", "--objects", "--disk-usage", commit, *beyond).text)
        most = self._rule.most_sent
        if size > most:
            return f"{size // 10**6} MB of it are not on origin, more than {most // 10**6}"
        limit = checkout.shared.limits.screen
        found = screen_commits(checkout.shared, [commit], known, checkout.record.pinned, limit=limit)
        if found:
            return ", ".join(f"{place}: {explained(why)}" for place, why in sorted(found.items()))
        private = private_commit(checkout, commit, checkout.refs_now())
        return f"commit {private} in it was only on the person's own branches" if private else None

    def _hear(self) -> None:
        """Take notice of what was sent."""
        if self._sending is None or self._sending.is_alive():
            return
        sending, self._sending = self._sending, None
        ledger = self._checkout.ledger
        if sending.found is not None:
            there = sending.found.get(self._ref)  # an earlier one perhaps, whose answer was lost
            ledger.checkpoint_sent = there if there in ledger.checkpoints_offered else None
        if sending.trouble:
            self._tell(_STAYS, sending.trouble)
        else:
            self._tell("origin has a checkpoint", self._ref)


def move_checkpoint(checkout: Checkout, commit: str) -> None:
    """Let the local ref name `commit`, wherever an agent has left it."""
    ref = checkpoint_ref(checkout.record.run_id)
    empty = "0" * len(commit)
    found = checkout.shared.run("rev-parse", "--verify", "--quiet", ref, accept=(0, 1)).text
    checkout.shared.run("update-ref", "--no-deref", "-m", "nightkeep: checkpoint", ref, commit, found or empty)
    checkout.ledger.checkpoint = commit


def trailers_of(run_id: str, branch: str, base: str, unsettled: str | None, *, is_fenced: bool) -> dict[str, str]:
    """Return what a checkpoint's message says for a later run; `unsettled` is why nobody can simply go on from it."""
    said = {
        "Nightkeep-Run": run_id,
        "Nightkeep-Branch": branch,
        "Nightkeep-Base": base,
        "Nightkeep-Host": host_name(),
    }
    said |= {} if is_fenced else {"Nightkeep-Unfenced": "yes"}
    return said | ({"Nightkeep-Unsettled": " ".join(unsettled.split())} if unsettled else {})


def _signature(path: str) -> _Signature | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def drop_checkpoints(checkout: Checkout) -> None:
    """Delete the refs that name the checkpoints: what they hold is elsewhere. What cannot be deleted is named."""
    ref, ledger = checkpoint_ref(checkout.record.run_id), checkout.ledger
    try:
        if ledger.checkpoint:
            # An agent may have moved or deleted it.
            checkout.shared.run("update-ref", "--no-deref", "-d", ref, ledger.checkpoint, accept=range(256))
        if ledger.checkpoints_offered:
            there = checkout.remote.read(ref).get(ref)
            if there in ledger.checkpoints_offered:
                send(checkout, RefUpdate(ref, ABSENT, there))
    except (GitError, TransferError) as error:
        ledger.places.append(("checkpoint that nobody needs", f"{ref}: {error}"))
    else:
        # What is still being sent may yet arrive, so those that were offered stay noted.
        ledger.checkpoint = ledger.checkpoint_sent = None
