"""The signals that ask a command to stop."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from worktree import Interruption

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def recorded_signals(
    first: str = "ending; an agent that runs is stopped, and its work kept", again: str = "still ending"
) -> Iterator[Interruption]:
    """Record SIGINT, SIGTERM and SIGHUP instead of dying of them, while the block runs.

    `first` says what the first of them makes the command do, `again` what it does when another comes.
    After it they are ignored: how the command ends is decided and told then.
    """
    interruption = Interruption()

    def record(signum: int, _frame: object) -> None:
        said = first if interruption.recorded is None else again
        interruption.record(signum)
        # Written past all buffers: a handler may run while the stream is in use. Whoever read it may be gone, and then
        # what the signal has interrupted must not get an error out of nowhere.
        # Nobody is waited for either.
        with suppress(OSError):
            if select.select([], [2], [], 0)[1]:
                os.write(2, f"nightkeep: {signal.Signals(signum).name}: {said}; please wait\n".encode())

    # `nohup` says so by ignoring it. An ignored SIGINT says only that a shell started us in the background.
    hung_up = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    heard = [signum for signum in _SIGNALS if signum is not signal.SIGHUP or not hung_up]
    for signum in heard:
        signal.signal(signum, record)
    try:
        yield interruption
    finally:
        for signum in heard:
            signal.signal(signum, signal.SIG_IGN)


def end_without_parent(pipe: int) -> None:
    """Have this process told to stop, by SIGTERM, once nobody holds the other end of a pipe.

    Whoever started us holds it, and never writes. Call it while signals are recorded.
    """

    def watch() -> None:
        with suppress(OSError):
            while os.read(pipe, 1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
