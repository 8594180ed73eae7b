"""A command of Nightkeep that ends with the process that has started it, which may be killed at any moment.

Run as `python -P -m runner.tethered PID ARGUMENT…`, where PID is the starter's. A signal tells it, as a person's would,
and it keeps its work (Linux; elsewhere it goes on to its own end).
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2); stays through the execution of another program


def main() -> None:
    """Become that command."""
    starter, *arguments = sys.argv[1:]
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != int(starter):
            sys.exit("whoever started this has gone")
    os.execv(sys.executable, [sys.executable, "-E", "-P", "-m", "runner", *arguments])


if __name__ == "__main__":
    main()
