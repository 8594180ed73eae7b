"""Stopping processes for good: signals with graces, until nobody is left or nothing helps."""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # psutil takes 30 ms to import, and a session that leaves nothing behind never needs it
    from psutil import Process

# How long after SIGKILL a process may take to go, in seconds; what stays longer hangs in the kernel.
KILL_WAIT = 5.0
_PAUSE = 0.03


def stop(
    find: Callable[[], Sequence["Process"]], signals: Sequence[signal.Signals], grace: Callable[[], float]
) -> tuple[str, ...]:
    """Send each of `signals` to all that `find` finds, and return who is left after the last, as "pid 7 (name)".

    `find` is asked again all the time, so that what is started meanwhile gets the signal too; it returns nothing
    only when nobody is left. `grace` is the time in seconds that each signal but SIGKILL has to work; it may
    shrink while we wait. A reused pid is never signalled: psutil compares start times.
    """
    left: Sequence[Process] = ()
    for number in signals:
        left = _send(number, find, grace)
        if not left:
            break
    return describe(left)


def describe(processes: Sequence["Process"]) -> tuple[str, ...]:
    """Name processes for people, without their arguments, which may hold secrets."""
    import psutil

    names = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            names.append(f"pid {process.pid} ({process.name()})")
    return tuple(names)


def _send(
    number: signal.Signals, find: Callable[[], Sequence["Process"]], grace: Callable[[], float]
) -> Sequence["Process"]:
    began = time.monotonic()
    signalled: set[Process] = set()
    while left := find():
        _signal([process for process in left if process not in signalled], number)
        signalled.update(left)
        if time.monotonic() - began >= (KILL_WAIT if number is signal.SIGKILL else grace()):
            break
        time.sleep(_PAUSE)
    return left


def _signal(processes: Sequence["Process"], number: signal.Signals) -> None:
    import psutil

    for process in processes:
        # Another user's process (set-uid) refuses; it stays in the list and is named in the end.
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.send_signal(number)
