"""Waiting for the checks of a commit."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from delivery.checks import (
    Absence,
    Expected,
    Listing,
    Patience,
    Verdict,
    failed_of,
    is_new_attempt,
    judge_checks,
    names_of,
    reminders,
    runs_to_repeat,
    waited_for,
    without_inherited,
)
from delivery.errors import GitHubError, GitHubForbiddenError, GitHubUnavailableError
from delivery.github import Check, Checks, CheckState
from worktree import Interruption


class StoppedError(Exception):
    """A signal came while checks were waited for."""


@dataclass(slots=True, kw_only=True)
class CheckWatch:
    """Watches one commit. `base_commit` is the one of the Base branch that it holds; where it is None nothing counts as
    inherited.

    `expected` is called once, after the first look; `absence` with what it returned when nothing is listed: why that
    may be; `keep_fence` several times a second while waiting. `merges` says that this is for a Merge run.
    """

    github: Checks
    head: str
    base_commit: str | None
    expected: Callable[[], Expected]
    absence: Callable[[Expected], Absence]
    patience: Patience
    merges: bool
    interruption: Interruption
    keep_fence: Callable[[], object]
    report: Callable[[str], None]
    _began: float = field(default_factory=time.monotonic, init=False)
    _said: tuple[str, str, int] = field(default=("", "", 0), init=False)
    _before: set[str] = field(default_factory=set, init=False)
    _listed: frozenset[tuple[str, CheckState]] = field(default=frozenset(), init=False)
    _changed: float = field(default=0.0, init=False)
    _expected: Expected | None = field(default=None, init=False)
    _absence: Absence | None = field(default=None, init=False)

    def to_the_end(self) -> Verdict:
        """Wait until no check is pending, and tell own failures from inherited ones.

        GitHub's trouble is waited out as long as checks are, and so are checks of the Base commit; checks that the
        token may not read are none. Raises StoppedError, and GitHubError for what waiting does not help against.
        """
        while True:
            try:
                checks = self._look(self.head)
            except GitHubForbiddenError as error:
                self.report(f"the checks of {self.head[:12]} cannot be read: {error}")
                return Verdict(absence=Absence.UNREADABLE)
            if checks is None:
                continue
            listing, expected = self._noticed(checks), self._what_is_expected()
            verdict = judge_checks(
                listing,
                expected=expected,
                absence=self._why_none(expected) if not checks and not listing.before else Absence.NOT_STARTED,
                patience=self.patience,
                merges=self.merges,
            )
            if isinstance(verdict, Verdict):
                if checks and verdict.is_green and not verdict.missing:
                    self.report(f"checks are green on {self.head[:12]}: {names_of(checks)}")
                return self._told_apart(verdict)
            self._tell(listing, expected)
            self._sleep(verdict.seconds)

    def _noticed(self, checks: Sequence[Check]) -> Listing:
        waited, listed = self._waited, frozenset((check.name, check.state) for check in checks)
        if listed != self._listed:
            self._listed, self._changed = listed, waited
        before = frozenset(self._before)
        self._before |= {check.name for check in checks}
        return Listing(checks=checks, before=before, waited=waited, quiet=waited - self._changed)

    def _told_apart(self, verdict: Verdict) -> Verdict:
        """Tell own failures from inherited ones, once the Base commit's checks say which are which."""
        if not verdict.own or self.base_commit is None:
            return verdict
        said = False
        while True:
            on_base = self._look(self.base_commit)
            if on_base is None:
                continue
            apart = without_inherited(verdict, on_base, waited=self._waited, patience=self.patience)
            if isinstance(apart, Verdict):
                return apart
            if not said:
                at = self.base_commit[:12]
                self.report(f"{names_of(verdict.own)} failed; waiting for the same to end on the Base commit {at}")
            said = True
            self._sleep(apart.seconds)

    def repeat(self, failed: Verdict) -> Verdict:
        """Have what failed run again where it can, and wait for that to end; else look at the checks as they are."""
        runs = runs_to_repeat(failed.own)
        old = self.github.of(self.head) if runs else ()
        taken = self._ask(runs)
        if taken and not self._appears(old, taken):
            self.report("GitHub shows no new attempt of those checks")
            return failed
        self._began, self._changed = time.monotonic(), 0.0
        self._before |= {check.name for check in (*old, *failed.own)}
        return self.to_the_end()

    def _ask(self, runs: Sequence[int]) -> list[int]:
        """Ask for each workflow run, until one is refused; return those that were taken."""
        taken: list[int] = []
        for run in runs:
            self.report(f"asking GitHub to run the failed jobs of workflow run {run} again")
            try:
                self.github.repeat(run)
            except GitHubError as error:
                self.report(f"they are not run again: {error}")
                break
            taken.append(run)
        return taken

    def _appears(self, old: Sequence[Check], runs: Sequence[int]) -> bool:
        asked = time.monotonic()
        while not is_new_attempt(self._look(self.head) or (), failed_of(old), runs):
            if time.monotonic() - asked > self.patience.grace:
                return False
            self._sleep(min(self.patience.poll, self.patience.grace))
        return True

    def _look(self, commit: str) -> tuple[Check, ...] | None:
        """Return a commit's checks as they are; None when GitHub did not answer, after a wait."""
        try:
            return self.github.of(commit)
        except GitHubUnavailableError as error:
            left = self.patience.limit - self._waited
            if left <= 0 or self.interruption.recorded:
                raise
            wait = min(max(error.wait or 0, self.patience.poll), left)
            self.report(f"{error}; looking at the checks again in {wait:.0f} s")
            self._sleep(wait)
            return None

    @property
    def _waited(self) -> float:
        return time.monotonic() - self._began

    def _what_is_expected(self) -> Expected:
        if self._expected is None:
            self._expected = self.expected()
        return self._expected

    def _why_none(self, expected: Expected) -> Absence:
        if self._absence is None:
            self._absence = self.absence(expected)
        return self._absence

    def _tell(self, listing: Listing, expected: Expected) -> None:
        """Say what is waited for, when that has changed, and now and then."""
        awaited = waited_for(listing, expected, self.patience)
        said = (awaited.what, awaited.names, reminders(listing.waited))
        if said == self._said:
            return
        self._said = said
        until = datetime.now(UTC) + timedelta(seconds=awaited.seconds)
        named = f": {awaited.names}" if awaited.names else ""
        since = f", for {listing.waited / 60:.0f} min now" if reminders(listing.waited) else ""
        self.report(f"waiting for {awaited.what}{since}, until {until:%H:%M} UTC at most{named}")

    def _sleep(self, seconds: float) -> None:
        self.interruption.wait(seconds, self.keep_fence)
        if self.interruption.recorded:
            raise StoppedError
