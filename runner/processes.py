"""Finding the processes below this one, and stopping them for good: until nobody is left or nothing helps."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # psutil takes 30 ms to import, and a session that leaves nothing behind never needs it
    from subprocess import Popen

    from psutil import Process

# How long after SIGKILL a process may take to go, in seconds; what stays longer hangs in the kernel.
KILL_WAIT = 5.0
_PAUSE = 0.03
_STRAY_GRACE = 1.0  # seconds between SIGTERM and SIGKILL for what nobody waits for
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


def become_subreaper() -> None:
    """Become the parent of every orphan below this process (Linux), so that none can get out of sight."""
    if sys.platform != "linux":
        return
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become the subreaper of what is started here")


def descendants(*own: "Popen[bytes]") -> Sequence["Process"]:
    """Return all descendants of this process; nothing only when there is none. `own` are the children it waits for."""
    for _ in range(20):
        if not reap(*own):
            break
        import psutil

        # One that changes its parent during the scan can be missed: there is a child, so look again.
        if found := psutil.Process().children(recursive=True):
            return found
    return ()


def reap(*own: "Popen[bytes]") -> bool:
    """Bury the children that have ended, and say whether one is left: without a child there is no descendant.

    Only while no child but `own` is waited for by anybody else.
    """
    while True:
        try:
            # WNOWAIT only looks, and takes nobody's exit status away; each is then waited for by its own pid.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        if ended is None:
            return True
        waited_for = next((process for process in own if process.pid == ended.si_pid), None)
        if waited_for is not None:
            waited_for.poll()
        else:
            os.waitpid(ended.si_pid, os.WNOHANG)


class Strays:
    """Processes that end up below this one and that nobody waits for: what git was made to start, orphans of agents.

    Made before anything is started: what runs below this process then was there before, and is left alone with all
    that it starts. As process 1 of a container every orphan ends up here, so nothing can be told apart and nothing
    is stopped.
    """

    def __init__(self) -> None:
        self._spared = set(descendants())
        self._wanted: list[Popen[bytes]] = []

    @contextmanager
    def sparing(self, wanted: "Popen[bytes]") -> Iterator[None]:
        """Leave a child, which the caller waits for, and all below it alone while the block runs."""
        self._wanted.append(wanted)
        try:
            yield
        finally:
            self._wanted.remove(wanted)

    def stop(self) -> tuple[str, ...]:
        """Stop them, and return the names of those that cannot be stopped.

        Only while nothing else runs here that is wanted: no git command. Costs next to nothing when there is none.
        """
        children = _children() if self._wanted else None
        if os.getpid() == 1 or (children is not None and children <= {process.pid for process in self._wanted}):
            return ()
        return stop(self._find, (signal.SIGTERM, signal.SIGKILL), lambda: _STRAY_GRACE)

    def _find(self) -> Sequence["Process"]:
        found = descendants(*self._wanted)
        if self._spared and found:
            # What they start meanwhile is remembered, or its children would be taken for strays once it has ended.
            self._spared |= {child for process in self._spared for child in _family(process)}
        # Looked at after all others, so that what a wanted child starts meanwhile is only ever found in here.
        wanted = {process for child in self._wanted if found for process in _family_of(child.pid)}
        return [process for process in found if process not in self._spared and process not in wanted]


def _children() -> set[int] | None:
    """Return the pids of this process's children, those that have ended as well; None where the kernel does not say."""
    try:
        lists = [(task / "children").read_text(encoding="ascii") for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return None
    return {int(pid) for listed in lists for pid in listed.split()}


def _family_of(pid: int) -> Sequence["Process"]:
    import psutil

    try:
        return _family(psutil.Process(pid))
    except psutil.Error:
        return ()


def _family(process: "Process") -> Sequence["Process"]:
    import psutil

    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return [process]


def stop(
    find: Callable[[], Sequence["Process"]], signals: Sequence[signal.Signals], grace: Callable[[], float]
) -> tuple[str, ...]:
    """Send each of `signals` to all that `find` finds, and return who is left after the last, as "process 7 (name)".

    `find` is asked again all the time, so that what is started meanwhile gets the signal too; it returns nothing
    only when nobody is left. `grace` is the time in seconds that each signal but SIGKILL has to work; it may
    shrink while we wait. A reused pid is never signalled: psutil compares start times.
    """
    left: Sequence[Process] = ()
    for number in signals:
        left = _send(number, find, grace)
        if not left:
            break
    return _describe(left)


def _describe(processes: Sequence["Process"]) -> tuple[str, ...]:
    """Name processes for people, without their arguments, which may hold secrets."""
    import psutil

    names = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            names.append(f"process {process.pid} ({process.name()})")
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
