"""Claims as they stand on origin, and what they mean for a run that wants the issue.

The claim on issue N is the ref refs/nightkeep/claims/N: a commit whose message is one JSON document, and each sign of
life of its run a child of the one before. Who makes the ref has the issue; labels are for people.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from delivery.lease import Dead, Doubtful, Lease, Live, Moment
from worktree import Launch, Origin, read_messages
from worktree.moments import written

CLAIMS = "refs/nightkeep/claims/"


class ClaimRecord(Lease):
    """What a run says in its claim: the issue's URL, the Issue branch, and since when it has the claim."""

    issue: str = Field(max_length=1000)
    branch: str = Field(max_length=300)
    since: Moment


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A claim as it was seen: its ref, the commit there, and what that says, None for nothing of ours."""

    ref: str
    commit: str
    record: ClaimRecord | None


@dataclass(frozen=True, slots=True)
class Free:
    """Nobody has the issue."""


@dataclass(frozen=True, slots=True)
class Held:
    """A run that lives has the issue; its lease ends at `until` unless it gives a sign of life before."""

    seen: SeenClaim
    record: ClaimRecord
    until: datetime


@dataclass(frozen=True, slots=True)
class Expired:
    """The run that had the issue has vanished: its claim may be taken over."""

    seen: SeenClaim
    record: ClaimRecord


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Nobody can tell whether the run lives, for `why`; so it is never taken over."""

    seen: SeenClaim
    why: str


ClaimStanding = Free | Held | Expired | Unreadable


def claim_ref(number: int) -> str:
    """Return the ref that is the claim on an issue of that number."""
    return f"{CLAIMS}{number}"


def claimed_issue(ref: str) -> int | None:
    """Return the number of the issue that a ref is the claim on; None when it is none."""
    name = ref.removeprefix(CLAIMS)
    return int(name) if name.isdecimal() and claim_ref(int(name)) == ref else None


def judge_claim(seen: SeenClaim | None, now: datetime) -> ClaimStanding:
    """Decide what a claim means at `now`, the server's time."""
    if seen is None:
        return Free()
    record = seen.record
    if record is None:
        return Unreadable(seen, "what it says is not what this version of Nightkeep writes")
    match record.judge(now):
        case Live(until):
            return Held(seen, record, until)
        case Dead():
            return Expired(seen, record)
        case Doubtful(why):
            return Unreadable(seen, why)


def why_not(standing: Held | Unreadable, number: int) -> str:
    """Say why an issue cannot be taken now, and what to do about it."""
    command = end_command(standing.seen.ref)
    match standing:
        case Held(record=record, until=until):
            return (
                f"issue #{number} is claimed: run {record.run} on {record.host} works on it since "
                f"{written(record.since)}, on the branch {record.branch}; wait for its end. If that machine is gone, "
                f"run this again after {written(until)}, or end the claim by hand: {command}"
            )
        case Unreadable(why=why):
            return (
                f"issue #{number} is claimed, and nobody can tell whether its run lives: {why}; once you know that no "
                f"run works on it, end the claim: {command}"
            )


def end_command(ref: str) -> str:
    """Return what a person types to end a claim."""
    return f"git push origin --delete {ref}"


def read_claims(launch: Launch, origin: Origin | None, there: Mapping[str, str]) -> Mapping[str, SeenClaim]:
    """Return the claims behind those refs, which origin was seen to hold, less what `read_messages` leaves out.

    Whoever takes an issue reads its claim alone. Raises GitError.
    """
    claims = {ref: oid for ref, oid in there.items() if ref.startswith(CLAIMS)}
    return {
        ref: SeenClaim(ref, commit, ClaimRecord.read(message))
        for ref, (commit, message) in (read_messages(launch, origin, claims).items() if claims else ())
    }
