"""A Run's hold on its issue: the claim on origin, which decides, and the labels, which people see."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from delivery.branches import Continuation, issue_of
from delivery.claims import (
    ClaimRecord,
    Held,
    SeenClaim,
    Unreadable,
    claim_ref,
    end_command,
    judge_claim,
    read_claims,
    why_not,
)
from delivery.conventions import Conventions
from delivery.errors import GitHubError, PreflightError, TakenError
from delivery.github import Issue
from delivery.issue_labels import IssueLabels
from delivery.lease import lease_now, new_nonce
from delivery.parts import Parts
from delivery.preflight import Plan, branches_of
from delivery.taking import take
from delivery.unfinished import Unfinished
from worktree import (
    Fence,
    FenceLostError,
    Interrupted,
    Pace,
    RefUpdate,
    Takeover,
    WorktreeError,
    host_name,
    new_run_id,
)

_AS_PLANNED = "somebody worked on issue #{} while this Run was planned; run this again"


class Claim:
    """Made before anything else of a Run, ended after everything else.

    `fence` goes along with each push, and is None where origin takes no claim: then only the labels tell others.
    `taken` is what was taken over with it of a run that vanished.
    """

    def __init__(
        self, parts: Parts, labels: IssueLabels, fence: Fence | None, run_id: str, taken: Takeover | None = None
    ) -> None:
        self.labels = labels
        self.fence = fence
        self.run_id = run_id
        self.taken = taken
        self._parts = parts

    @classmethod
    def make(cls, parts: Parts, plan: Plan, conventions: Conventions, *, is_atomic: bool) -> "Claim":
        """Claim the issue on origin, then label it. `is_atomic` says whether refs can be pushed together there.

        Raises PreflightError, with the issue as it was, when another run has it or it cannot be labelled.
        """
        labels = IssueLabels(
            parts.github,
            plan.issue,
            ready=conventions.ready_label,
            in_progress=conventions.in_progress_label,
            report=parts.report,
        )
        run_id, nonce = new_run_id(), new_nonce()
        _note(parts, plan, conventions, labels, run_id, nonce, is_atomic=is_atomic)
        fence = _fence(parts, plan.branch, run_id, nonce, conventions.pace, is_atomic=is_atomic)
        claim = cls(parts, labels, fence, run_id)
        try:
            taken = take(parts, plan, run_id, fence)
            claim = cls(parts, labels, taken.fence, run_id, taken.takeover)
            claim._require_as_planned(plan, taken.there)
            with claim.guarding():
                if not labels.make() and not parts.github.issue(plan.issue.number).is_open:
                    claim.withdraw()
                    raise TakenError(_AS_PLANNED.format(plan.issue.number))
        except GitHubError as error:
            claim.withdraw()
            raise PreflightError(f"issue #{plan.issue.number} could not be labelled: {error}") from error
        except FenceLostError as lost:
            parts.journal.discard()
            raise TakenError(_who_has(parts, plan.issue.number) or str(lost)) from lost
        except (WorktreeError, OSError) as error:
            claim._abandon()
            if isinstance(error, Interrupted):
                raise
            raise PreflightError(f"issue #{plan.issue.number} could not be claimed: {error}") from error
        return claim

    @classmethod
    def of(cls, parts: Parts, issue: Issue, unfinished: Unfinished) -> "Claim":
        """Return the claim of a Run that was killed: to go on with, or known to be lost. Raises GitError."""
        labels = IssueLabels.of(parts.github, issue, unfinished, parts.report)
        run_id = unfinished.run_id or unfinished.claimed_as or new_run_id()
        if unfinished.nonce is None:
            return cls(parts, labels, None, run_id)
        pace = Pace(lease=unfinished.lease)
        fence = _fence(parts, unfinished.branch, run_id, unfinished.nonce, pace, is_atomic=unfinished.is_atomic)
        there = parts.launch.remote(parts.origin).read(fence.ref)
        seen = read_claims(parts.launch, parts.origin, there).get(fence.ref)
        ours = seen is not None and seen.record is not None and seen.record.nonce == unfinished.nonce
        return cls(parts, labels, _adopted(fence, seen, ours=ours), run_id)

    @property
    def is_lost(self) -> bool:
        """Whether another run has the issue by now, or nobody: nothing that others see is this Run's to change."""
        return self.fence is not None and self.fence.lost is not None

    def keep(self) -> None:
        """Give a sign of life when it is time for one; call it while waiting. Raises FenceLostError."""
        if self.fence is not None:
            self.fence.tick()
            if self.fence.lost is not None:
                raise FenceLostError(self.fence.lost)

    def push(self, *updates: RefUpdate) -> None:
        """Push refs as completion work, while the claim is the Run's. Raises FenceLostError or GitError."""
        remote = self._parts.launch.remote(self._parts.origin).completing()
        if self.fence is None:
            remote.push(*updates)
        else:
            self.fence.push(remote, *updates)

    def release(self) -> None:
        """Put the labels back, for a Run that made nothing; trouble is reported with the remedy."""
        if self.is_lost:
            return
        try:
            self.labels.release()
        except WorktreeError as error:
            self._parts.report(f"the labels of #{self._parts.url.number} are left as they are: {error}")

    def end(self) -> bool:
        """Take the claim off origin: the last thing that a Run does there; False when that could not be done.

        Trouble is reported with the remedy; recovery does it later, as long as the journal has no end.
        """
        if self.fence is None or self.is_lost:
            return True
        self._parts.journal.enter("unclaim")
        try:
            self.fence.end()
        except (WorktreeError, OSError) as error:
            self._parts.report(
                f"the claim on #{self._parts.url.number} could not be ended, and ends by itself with its lease: "
                f"{error}; the next run here ends it sooner, or: nightkeep recover; from elsewhere: "
                f"{end_command(self.fence.ref)}"
            )
            return False
        return True

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """See before each write to GitHub while the block runs that the claim is still the Run's."""
        with self._parts.github.guarded(self.fence.confirm if self.fence else None):
            yield

    def withdraw(self) -> None:
        """Undo it, for a Run that begins nothing after all."""
        self.release()
        self._abandon()

    def _abandon(self) -> None:
        """End the claim of a Run that begins nothing; while it is on origin the journal is kept, for recovery."""
        if self.end():
            self._parts.journal.discard()

    def _require_as_planned(self, plan: Plan, there: Mapping[str, str]) -> None:
        """Raise PreflightError, with the claim ended, when somebody worked on the issue before it was claimed."""
        number = plan.issue.number
        if branches_of(number, there) == plan.branches:
            return
        self._abandon()
        raise TakenError(_AS_PLANNED.format(number))


def fence_of(parts: Parts, run_id: str, branch: str) -> Fence | None:
    """Return the claim of a run of which nothing is known but its name and its Issue branch.

    None where nobody has the issue: it made none, or that is gone. One that another run has is lost. Raises GitError.
    """
    number = issue_of(branch)
    if number is None:
        return None
    ref = claim_ref(number)
    seen = read_claims(parts.launch, parts.origin, parts.launch.remote(parts.origin).read(ref)).get(ref)
    if seen is None:
        return None
    ours = seen.record is not None and seen.record.run == run_id
    nonce = seen.record.nonce if seen.record and ours else new_nonce()
    parts = replace(parts, url=replace(parts.url, number=number))
    return _adopted(_fence(parts, branch, run_id, nonce, Pace(), is_atomic=True), seen, ours=ours)


def _adopted(fence: Fence, seen: SeenClaim | None, *, ours: bool) -> Fence:
    """Return the fence of a run that was killed: to go on with, or known to be lost."""
    if seen is not None and ours:
        fence.adopt(seen.commit)
    else:
        fence.lose("is gone" if seen is None else "is of another run by now")
    return fence


def _fence(parts: Parts, branch: str, run_id: str, nonce: str, pace: Pace, *, is_atomic: bool) -> Fence:
    clock = parts.github.server_time
    since: list[datetime] = []

    def write() -> str:
        lease = lease_now(run_id, nonce, clock, pace)
        since[:] = since or [lease.moment]
        return ClaimRecord(**dict(lease), issue=str(parts.url), branch=branch, since=since[0]).model_dump_json()

    return Fence(
        parts.launch.remote(parts.origin),
        claim_ref(parts.url.number),
        write,
        clock=clock,
        pace=pace,
        is_atomic=is_atomic,
        report=parts.report,
    )


def _note(
    parts: Parts, plan: Plan, conventions: Conventions, labels: IssueLabels, run_id: str, nonce: str, *, is_atomic: bool
) -> None:
    parts.journal.enter(
        "claim",
        clone=str(parts.launch.common),
        host=host_name(),
        issue=str(parts.url),
        base=plan.base,
        branch=plan.branch,
        ready=conventions.ready_label,
        in_progress=conventions.in_progress_label,
        was_ready=labels.was_ready,
        was_in_progress=labels.was_in_progress,
        continued=isinstance(plan.choice, Continuation),
        opens_draft=conventions.opens_draft,
        continue_command=parts.continue_command,
        text=plan.told.digest,
        run=run_id,
        nonce=nonce,
        lease=conventions.pace.lease,
        atomic=is_atomic,
    )


def _who_has(parts: Parts, number: int) -> str | None:
    """Say who was quicker, None when nobody can tell."""
    ref = claim_ref(number)
    try:
        there = parts.launch.remote(parts.origin).read(ref)
        seen = read_claims(parts.launch, parts.origin, there).get(ref)
    except WorktreeError:
        return None
    standing = judge_claim(seen, parts.github.server_time.now())
    return why_not(standing, number) if isinstance(standing, Held | Unreadable) else None
