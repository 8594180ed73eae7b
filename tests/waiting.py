"""Waiting for what another process is about to do."""

import time
from collections.abc import Callable

_PATIENCE = 40


def wait_for(condition: Callable[[], object], patience: float = _PATIENCE) -> None:
    """Wait until something is so, for so many seconds at most."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.01)
