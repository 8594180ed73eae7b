"""Runs that made nothing, as refs of origin, so that every machine lets the issue wait.

    refs/nightkeep/tries/<issue>/<20261130T221500Z>     one for each such Run; it names a commit that origin has anyway

A name alone says all, so one `git ls-remote` reads them, and GitHub's API is not asked. Whoever may write one may push
to the repository: a comment could be anybody's. They go once a Run on the issue makes something.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from delivery.errors import GitHubError
from delivery.outcome import Outcome
from delivery.parts import Parts
from worktree import GitError
from worktree.remote import ABSENT, RefUpdate, Remote

TRIES = "refs/nightkeep/tries/"
_FIRST_WAIT = timedelta(hours=1)
_MOST_SECONDS = 30  # that a push of these refs may take: nothing is lost without it
_MOST_DOUBLINGS = 9  # three weeks
_STAMP = "%Y%m%dT%H%M%SZ"
_REF = re.compile(re.escape(TRIES) + r"([1-9][0-9]{0,17})/([0-9]{8}T[0-9]{6}Z)")


def waits_until(tries: Iterable[datetime]) -> datetime | None:
    """Return until when an issue waits after such Runs: an hour after the first, twice as long after each one more."""
    moments = sorted(tries)
    if not moments:
        return None
    doublings = min(len(moments) - 1, _MOST_DOUBLINGS)
    return moments[-1] + _FIRST_WAIT * (1 << doublings)


def read_tries(refs: Iterable[str]) -> dict[int, tuple[datetime, ...]]:
    """Return when which issue's Runs made nothing; what else is among the refs is left out."""
    found: dict[int, list[datetime]] = {}
    for ref in refs:
        match = _REF.fullmatch(ref)
        try:
            moment = datetime.strptime(match[2], _STAMP).replace(tzinfo=UTC) if match else None
        except ValueError:  # the thirtieth of February
            moment = None
        if match and moment:
            found.setdefault(int(match[1]), []).append(moment)
    return {issue: tuple(sorted(moments)) for issue, moments in found.items()}


def keep_count(
    parts: Parts,
    issue: int,
    outcome: Outcome,
    *,
    commit: str | None,
    before: Mapping[str, str] | None = None,
) -> None:
    """Put down a Run that left nothing, or forget those before one that made something; trouble is only reported.

    It started from its Base branch at `commit`, None where that has to be fetched; `before` are the refs of those
    before with their ids, None where nobody has looked. One that a signal ended does not count: somebody stopped it.
    Nor does one count whose issue is closed by now.
    """
    if outcome.interruption is not None:
        return
    limits = parts.launch.git.limits
    hasty = parts.launch.limited(replace(limits, push=min(limits.push, _MOST_SECONDS)))
    tries = Tries(hasty.remote(parts.origin).completing())
    try:
        if not outcome.left_nothing or not _is_open(parts, issue):
            tries.drop(tries.remote.read(f"{TRIES}{issue}/*") if before is None else before)
        else:
            there = commit or tries.remote.fetch(outcome.base)[outcome.base]
            tries.record(issue, datetime.now(UTC), there)
    except GitError as error:
        parts.report(f"that this Run on #{issue} left nothing could not be noted, so pickup will not wait: {error}")


def _is_open(parts: Parts, issue: int) -> bool:
    try:
        return parts.github.issues.is_open(issue)
    except GitHubError:
        return True


@dataclass(frozen=True, slots=True)
class Tries:
    """The refs on one origin. Raises GitError."""

    remote: Remote

    def record(self, issue: int, moment: datetime, commit: str) -> None:
        """Put down that a Run made nothing; `commit` is one that is here, and on origin."""
        ref = f"{TRIES}{issue}/{moment.astimezone(UTC):{_STAMP}}"
        self.remote.push(RefUpdate(ref, commit, ABSENT))

    def forget(self, *issues: int) -> None:
        """Forget the Runs that made nothing on those issues."""
        patterns = [f"{TRIES}{issue}/*" for issue in issues]
        self.drop(self.remote.read(*patterns) if patterns else {})

    def drop(self, refs: Mapping[str, str]) -> None:
        """Delete those refs, which have those ids."""
        if refs:
            self.remote.push(*(RefUpdate(ref, ABSENT, oid) for ref, oid in refs.items()))
