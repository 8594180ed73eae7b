"""Processes that the runner never started: left behind by what git runs for a configuration, or by an agent."""

import signal

from runner.processes import descendants, stop

_GRACE = 1.0  # seconds between SIGTERM and SIGKILL


def stop_strays() -> tuple[str, ...]:
    """Stop every process below this one, and return the names of those that cannot be stopped.

    Only while nothing runs here that is wanted: no session, no git command. Costs next to nothing when there is none.
    """
    return stop(descendants, (signal.SIGTERM, signal.SIGKILL), lambda: _GRACE)
