"""The command `nightkeep`."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from runner.token import shed_tokens


def main() -> None:
    """Run the command line of this process."""
    # Until a command has its own handlers nothing is begun, and Ctrl-C ends it without a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_standard_streams()
    held = shed_tokens()
    from runner.cli import app

    try:
        app(prog_name="nightkeep", obj=held)
    finally:
        _flush_standard_streams()


def _open_standard_streams() -> None:
    """Open those of descriptors 0 to 2 that are closed: the next file opened would be taken for one of them."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest free descriptor is this one, because those below it are open by now.
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
            if stream.fileno() == descriptor:
                os.set_inheritable(descriptor, True)  # noqa: FBT003 - takes it by position only
            setattr(sys, name, stream)


def _flush_standard_streams() -> None:
    """Flush, and if nobody reads drop the rest: Python would turn the exit status into 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
                stream.flush()


if __name__ == "__main__":
    main()
