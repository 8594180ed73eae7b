"""Trying again what fails while origin cannot be reached, and for how long."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_before_delay, wait_exponential

from worktree.errors import GitError, GitTimeoutError
from worktree.git import Git
from worktree.refusal import RefusalKind

T = TypeVar("T")

_ATTEMPTS = 4
_LONGEST_PAUSE = 30  # times the first one
_OUTAGE = 0.8  # of the deadline of a push; the rest is for the push itself, once origin is back


@dataclass(slots=True)
class Outage:
    """Since when origin has not answered, by `time.monotonic`; `report` is told of each wait.

    It may answer who reads, and take no push.
    """

    report: Callable[[str], object]
    reading: float | None = None
    pushing: float | None = None

    def waited(self, *, pushes: bool) -> float:
        """Notice that it did not answer; return for how many seconds it has not."""
        now = time.monotonic()
        if pushes:
            self.pushing = now if self.pushing is None else self.pushing
            return now - self.pushing
        self.reading = now if self.reading is None else self.reading
        return now - self.reading

    def over(self, *, pushes: bool) -> None:
        """Notice that it answered."""
        self.reading = None
        self.pushing = None if pushes else self.pushing


@dataclass(frozen=True, slots=True)
class Retries:
    """Tries again what may pass: a server that cannot be reached, or fails.

    That is after `pause` seconds, then after twice as many and so on, a few times and within the deadline of a push.
    Where there is an `outage` to be waited out, it is tried again for most of that deadline since origin was last
    reached, but once a signal is recorded a few times.
    """

    git: Git
    pause: float
    outage: Outage | None

    def until_done(self, action: Callable[[], T], *, pushes: bool = False) -> T:
        """Do something, and do it again when what failed may pass. A recorded interruption ends it, see `Git`."""
        retrying = Retrying(
            retry=retry_if_exception(_may_pass),
            stop=partial(self._gives_up, pushes=pushes),
            wait=wait_exponential(multiplier=self.pause, max=self.pause * _LONGEST_PAUSE),
            before_sleep=self._tell,
            sleep=self.git.wait,
            reraise=True,
        )
        done = retrying(action)
        if self.outage is not None:
            self.outage.over(pushes=pushes)
        return done

    def _gives_up(self, state: RetryCallState, *, pushes: bool) -> bool:
        limit, tried = self.git.limits.push, state.attempt_number >= _ATTEMPTS
        waited = self.outage.waited(pushes=pushes) if self.outage else limit
        patient = not self.git.interruption.recorded and waited + state.upcoming_sleep < _OUTAGE * limit
        return (tried and not patient) or stop_before_delay(limit)(state)

    def _tell(self, state: RetryCallState) -> None:
        if self.outage is not None and state.attempt_number >= _ATTEMPTS:
            self.outage.report(f"{RefusalKind.TRANSIENT}; trying again in {state.upcoming_sleep:.0f} s")


def _may_pass(error: BaseException) -> bool:
    # One that was stopped at its deadline has had its time.
    if not isinstance(error, GitError) or isinstance(error, GitTimeoutError):
        return False
    return error.is_outage
