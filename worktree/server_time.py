"""The time as a server has it: machines that judge each other's leases may have clocks that are wrong."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime


def elapsed() -> float:
    """Return seconds since some moment, those included in which the machine was asleep."""
    # Unlike Linux's, the monotonic clock of other systems goes on by itself then.
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class ServerTime:
    """What a server's `Date` said last, and what has passed since; before it said anything, this machine's time."""

    def __init__(self) -> None:
        self._heard: tuple[datetime, float] | None = None

    @property
    def is_known(self) -> bool:
        """Whether a server has said it, so that it is the same for everybody who asks there."""
        return self._heard is not None

    def hear(self, date: str | None) -> None:
        """Take what an answer's `Date` says; what is no date is passed over."""
        try:
            said = parsedate_to_datetime(date or "")
        except ValueError:
            return
        self._heard = (said if said.tzinfo else said.replace(tzinfo=UTC), elapsed())

    def now(self) -> datetime:
        """Return the time, to a second."""
        if self._heard is None:
            return datetime.now(UTC)
        said, at = self._heard
        return said.astimezone(UTC) + timedelta(seconds=elapsed() - at)
