"""Waiting for the checks of a commit."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from delivery.checks import (
    Absence,
    Patience,
    Verdict,
    failed_of,
    is_new_attempt,
    judge_checks,
    names_of,
    runs_to_repeat,
    without_inherited,
)
from delivery.errors import GitHubError, GitHubForbiddenError, GitHubUnavailableError
from delivery.github import Check, Checks, CheckState
from worktree import Interruption

_REMINDER = 600.0  # seconds after which it is said once more what is waited for


class StoppedError(Exception):
    """A signal came while checks were waited for."""


@dataclass(slots=True, kw_only=True)
class Watch:
    """Watches one commit. `base_commit` is the one of the Base branch that it holds; where it is None nothing counts as
    inherited.

    `absence` is called once, when nothing is listed: why that may be; `keep_fence` several times a second while
    waiting. `merges` says that this is for a Merge run.
    """

    github: Checks
    head: str
    base_commit: str | None
    absence: Callable[[], Absence]
    patience: Patience
    merges: bool
    interruption: Interruption
    keep_fence: Callable[[], object]
    report: Callable[[str], None]
    _began: float = field(default_factory=time.monotonic, init=False)
    _said: tuple[str, ...] = field(default=(), init=False)
    _reminded: float = field(default=0.0, init=False)
    _expected: Absence | None = field(default=None, init=False)

    def to_the_end(self) -> Verdict:
        """Wait until no check is pending, and tell own failures from inherited ones.

        GitHub's trouble is waited out as long as checks are; checks that the token may not read are none. Raises
        StoppedError, and GitHubError for what waiting does not help against.
        """
        seen_before = False
        while True:
            try:
                checks = self._look()
            except GitHubForbiddenError as error:
                self.report(f"the checks of {self.head[:12]} cannot be read: {error}")
                return Verdict(absence=Absence.UNREADABLE)
            if checks is None:
                continue
            verdict = judge_checks(
                checks,
                waited=self._waited,
                seen_before=seen_before,
                absence=self._why_none() if not checks and not seen_before else Absence.NOT_STARTED,
                patience=self.patience,
                merges=self.merges,
            )
            seen_before = seen_before or bool(checks)
            if isinstance(verdict, Verdict):
                return self._told_apart(verdict)
            self._tell(checks)
            self._sleep(verdict.seconds)

    def _told_apart(self, verdict: Verdict) -> Verdict:
        if not verdict.own or self.base_commit is None:
            return verdict
        return without_inherited(verdict, self.github.of(self.base_commit))

    def repeat(self, failed: Verdict) -> Verdict:
        """Have what failed run again where it can, and wait for that to end; else look at the checks as they are."""
        runs = runs_to_repeat(failed.own)
        old = self.github.of(self.head) if runs else ()
        taken = self._ask(runs)
        if taken and not self._appears(old, taken):
            self.report("GitHub shows no new attempt of those checks")
            return failed
        self._began = time.monotonic()
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
        while not is_new_attempt(self._look() or (), failed_of(old), runs):
            if time.monotonic() - asked > self.patience.grace:
                return False
            self._sleep(min(self.patience.poll, self.patience.grace))
        return True

    def _look(self) -> tuple[Check, ...] | None:
        """Return the checks as they are; None when GitHub did not answer, after a wait."""
        try:
            return self.github.of(self.head)
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

    def _why_none(self) -> Absence:
        if self._expected is None:
            self._expected = self.absence()
        return self._expected

    def _tell(self, checks: Sequence[Check]) -> None:
        """Say what is waited for, when that has changed, and now and then."""
        pending = [check for check in checks if check.state is CheckState.PENDING]
        names = tuple(check.name for check in pending)
        if checks and names == self._said and self._waited - self._reminded < _REMINDER:
            return
        if not checks:
            if self._said != ("",):
                self.report(f"waiting for checks to start on {self.head[:12]}, {self.patience.grace:.0f} s at most")
            self._said = ("",)
            return
        self._said, self._reminded = names, self._waited
        count = "1 check" if len(names) == 1 else f"{len(names)} checks"
        self.report(f"waiting for {count} on {self.head[:12]}, since {_minutes(self._waited)}: {names_of(pending)}")

    def _sleep(self, seconds: float) -> None:
        self.interruption.wait(seconds, self.keep_fence)
        if self.interruption.recorded:
            raise StoppedError


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
