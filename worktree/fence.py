"""A ref on origin that one run alone holds, and that moves on with each of its pushes.

The ref names a record: a commit with nothing but a message. It is made where there is none, or in place of a record
that is named, so one of many who try gets it. Each push is one atomic push of its refs and of this ref, moved to a
child of the record that origin was seen to hold last. So whoever takes the ref over ends all pushes of the run before:
an unchanged ref would not be sent, and would hold off nobody.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from worktree.errors import FenceLostError, GitError, Interrupted, TransferError
from worktree.objects import GitObject, empty_tree, pack, record
from worktree.remote import ABSENT, RefUpdate, Remote
from worktree.server_time import ServerTime, elapsed
from worktree.transfer import Parcel, Sending, can_send_to

_ATTEMPTS = 4
_GLANCE = 0.1  # seconds between looks, while waiting, whether a signal has come
_SOONER = 5  # times, by which a sign of life that origin did not get is tried again


@dataclass(frozen=True, slots=True)
class Pace:
    """After how many seconds without a sign of life a run may be taken for dead, and how often it gives one."""

    lease: float = 900
    beat: float = 300


class Fence:
    """A ref that a run holds; see the module. Only the run's own thread may use it.

    `write` returns the message of the next record, which `clock` dates. `lost` says why the run does not hold the ref
    any more, None while nothing is known against it: pushes then raise FenceLostError before anything is pushed.
    Trouble with signs of life is told by `report`, each kind once.
    """

    def __init__(
        self,
        remote: Remote,
        ref: str,
        write: Callable[[], str],
        *,
        clock: ServerTime,
        pace: Pace,
        is_atomic: bool = True,
        report: Callable[[str], object] = str,
    ) -> None:
        self.ref = ref
        self.lost: str | None = None
        self._remote = remote
        self._write = write
        self._clock = clock
        self._pace = pace
        self._is_atomic = is_atomic
        self._report = report
        self._commit = ABSENT
        self._is_held = False
        self._record: GitObject | None = None
        self._proven = self._due = elapsed()
        # Records that origin may hold by now, with when they were made; and those that it may have held before.
        self._offered: dict[str, tuple[GitObject, float]] = {}
        self._past: dict[str, GitObject | None] = {}
        self._sending: Sending | None = None
        self._is_beat = False  # what is being sent
        self._told: set[str] = set()

    def take(self, *besides: RefUpdate, replaces: str = ABSENT, look: str | None = None) -> Mapping[str, str]:
        """Make the ref, or take it over from the record `replaces`, in one push with other refs.

        Returns what origin holds, then, at the refs that begin with `look`. Raises FenceLostError when somebody else
        has it; TransferError or GitError when origin takes no such push.
        """
        self._commit = replaces
        sending = None
        if besides:
            self.push(self._remote, *besides)
        else:
            sending = self._bring(self._remote, self._next, look)
        if look is None:
            return {}
        if sending is None or sending.found is None:
            return self._remote.read(f"{look}*")
        return {ref: oid for ref, oid in sending.found.items() if ref.startswith(look)}

    def adopt(self, commit: str) -> None:
        """Go on with the ref as this run left it, at a record that is here."""
        self._commit = commit
        self._is_held = True
        self._due = elapsed()
        self._proven = -self._pace.lease

    def lose(self, where: str) -> str:
        """Know that the run does not hold the ref any more, and say so; `where` says how origin has it."""
        self.lost = f"{self.ref} is lost: on origin it {where}"
        return self.lost

    # Pushes.

    def push(self, remote: Remote, *updates: RefUpdate) -> tuple[str, ...]:
        """Push as `Remote.push` does, if the run holds the ref; raises FenceLostError when it does not."""
        self._take_turn(remote)
        if not self._is_atomic:
            self.confirm()
            return remote.push(*updates)
        for _ in range(_ATTEMPTS):
            move = self._next()
            try:
                left = remote.push(*updates, move)
            except Interrupted:
                raise
            except GitError as error:
                refused = error
                if self._has_moved(remote, error):
                    continue  # by an earlier move of ours, which was late
                raise
            self._accept(move.new)
            return left
        raise refused

    def _has_moved(self, remote: Remote, error: GitError) -> bool:
        before = self._commit
        try:
            found = remote.read(self.ref)
        except GitError:
            return False  # what was refused stays the headline
        try:
            self._see(found.get(self.ref, ABSENT))
        except FenceLostError as lost:
            raise lost from error
        return self._commit != before

    # Signs of life.

    def tick(self) -> None:
        """Give a sign of life when it is time for one; called several times a second. Raises nothing."""
        with suppress(FenceLostError):  # then `lost` says so
            self._hear()
            if self.lost is None and self._sending is None and elapsed() >= self._due:
                self._begin()

    def _begin(self) -> None:
        self._due = elapsed() + self._pace.beat / _SOONER  # unless it is accepted
        move = self._next()
        if can_send_to(self._remote.origin):
            self.follow(self._start(self._remote, move))
            self._is_beat = True
            return
        try:
            self._bring(self._remote, lambda: move)
        except (GitError, TransferError) as error:
            self._tell(str(error))

    def offer(self) -> RefUpdate | None:
        """Return the move that must go with a push which somebody else sends, when `is_free`; then `follow` that.

        None where origin cannot take refs together: then it is sent without.
        """
        return self._next() if self._is_atomic else None

    @property
    def is_free(self) -> bool:
        """Whether nothing is under way, and nothing known against the run."""
        return self._sending is None and self.lost is None

    def follow(self, sending: Sending) -> None:
        """Take notice of what becomes of a move that is being sent, and let nothing else go until then."""
        self._sending = sending

    def confirm(self) -> None:
        """See that the run still holds the ref. Raises FenceLostError, or GitError or TransferError for no answer.

        For what no push can carry. Others take the ref over once its record is as old as a lease, so it is certain
        without asking while the last one that origin took is younger than that, by the time that a deed may take: the
        heartbeat's, in which GitHub has answered or never will. Its age counts from before it was made, by a clock that
        goes on while the machine sleeps or the process is stopped.
        """
        self._hear()
        self._require()
        if elapsed() - self._proven < self._pace.lease - self._pace.beat:
            return
        remote = self._remote.completing()
        self._take_turn(remote)
        self._bring(remote, self._next)

    # The end.

    def end(self) -> None:
        """Delete the ref, unless it is somebody else's by now. Raises GitError or TransferError."""
        remote = self._remote.completing()
        with suppress(FenceLostError):
            self._take_turn(remote)
            if not self._is_held:  # nobody knows whether it was made
                self._see(remote.read(self.ref).get(self.ref, ABSENT))
            if self._is_held:
                self._bring(remote, lambda: RefUpdate(self.ref, ABSENT, self._commit))

    # What origin holds.

    def _next(self) -> RefUpdate:
        self._require()
        at = elapsed()
        parents = [] if self._commit == ABSENT else [self._commit]
        made = record(self._write(), parents, self._clock.now(), self._format)
        for one in (self._record, made):
            if one is not None:
                # An agent may have thrown away what no ref of the clone names.
                with suppress(OSError):  # then git says what it misses
                    one.write(self._remote.common / "objects")
        self._offered[made.oid] = (made, at)
        return RefUpdate(self.ref, made.oid, self._commit, is_record=True)

    @property
    def _format(self) -> str:
        return self._remote.object_format or "sha1"

    def _require(self) -> None:
        if self.lost is not None:
            raise FenceLostError(self.lost)

    def _see(self, found: str) -> None:
        """Take notice of where the ref is on origin. Raises FenceLostError when that is not where this run had it."""
        if found in self._offered:
            self._accept(found)
        elif found == self._commit:
            return
        elif found in self._past:
            self._go_on_from(found)
        else:
            where = "is gone" if found == ABSENT else f"is at {found[:12]}, which another run made"
            raise FenceLostError(self.lose(where))

    def _go_on_from(self, found: str) -> None:
        """Make the next move from an earlier record of this run, to which somebody has put the ref back.

        A server may also tell what was so a moment ago; then it refuses that move, and tells where the ref is.
        """
        self._commit, self._record = found, self._past[found]
        self._is_held = True
        self._due, self._proven = elapsed(), -self._pace.lease

    def _accept(self, found: str) -> None:
        if found == ABSENT:
            self._commit = ABSENT
            self._is_held = False
            return
        self._is_held = True
        if self._commit != ABSENT:
            self._past.setdefault(self._commit, self._record)
        self._record, self._proven = self._offered[found]
        self._due = self._proven + self._pace.beat
        self._past |= {oid: made for oid, (made, _) in self._offered.items()}
        self._commit = found
        self._offered.clear()

    def _bring(self, remote: Remote, move: Callable[[], RefUpdate], look: str | None = None) -> Sending | None:
        """Bring a move of the ref to origin; return what was sent, None when git did it.

        Raises FenceLostError, GitError or TransferError.
        """
        if can_send_to(remote.origin):
            return self._send(remote, move, look)
        update = move()
        try:
            remote.push(update)
        except Interrupted:
            raise
        except GitError as error:
            if self._has_moved(remote, error) and self._commit == update.new:
                return None
            raise
        self._accept(update.new)
        return None

    def _send(self, remote: Remote, move: Callable[[], RefUpdate], look: str | None) -> Sending:
        for attempt in range(_ATTEMPTS):
            if attempt:
                remote.git.wait(min(remote.pause * 2 ** (attempt - 1), self._pace.beat))
            sending = self._start(remote, move(), look)
            self.follow(sending)
            self._take_turn(remote)
            if sending.trouble is None:
                return sending
        raise TransferError(f"{self.ref}: {sending.trouble}", is_refusal=sending.is_refusal)

    def _start(self, remote: Remote, update: RefUpdate, look: str | None = None) -> Sending:
        made = self._offered.get(update.new)
        sending = Sending(
            Parcel(
                url=remote.url,
                token=remote.origin.current() or "",
                updates=(update,),
                pack=pack([made[0], empty_tree(self._format)]) if made else b"",
                object_format=self._format,
                redact=remote.git.redact,
                heard=self._clock.hear,
                besides=(look,) if look else (),
            )
        )
        sending.start()
        return sending

    def _take_turn(self, remote: Remote) -> None:
        """Wait for what is under way. Raises FenceLostError, or Interrupted."""
        git = remote.git
        while self._sending is not None and self._sending.is_alive():
            self._sending.join(_GLANCE)
            if git.interruption.recorded and not git.finishing:
                raise Interrupted(("git", "push"), remote.common, status=None)
        self._hear()
        self._require()

    def _hear(self) -> None:
        if self._sending is None or self._sending.is_alive():
            return
        sending, self._sending = self._sending, None
        is_beat, self._is_beat = self._is_beat, False
        if sending.trouble is not None and is_beat:
            self._tell(sending.trouble)
        if sending.found is None:
            return
        found = sending.found.get(self.ref, ABSENT)
        (update,) = (update for update in sending.parcel.updates if update.ref == self.ref)
        if update.new == found == ABSENT:
            self._accept(ABSENT)
        else:
            self._see(found)

    def _tell(self, trouble: str) -> None:
        if trouble not in self._told:
            self._told.add(trouble)
            self._report(f"origin did not get a sign of life of this run: {trouble}")
