"""What runs below the runner: strays are stopped, and what somebody waits for is not."""

import subprocess
import sys
from pathlib import Path

_SCRIPT = """\
import os, signal, subprocess, time
import psutil
from runner.processes import Strays, become_subreaper
become_subreaper()
strays = Strays()
def names():
    return sorted(" ".join(one.cmdline()) for one in psutil.Process().children(recursive=True) if one.cmdline())
wanted = subprocess.Popen(["sh", "-c", "sleep 98 & sleep 97 & wait"])
while len(names()) < 3:
    time.sleep(0.01)
with strays.sparing(wanted):
    assert strays.stop() == ()
    subprocess.run(["sh", "-c", "sleep 99 & exit"], stdout=subprocess.DEVNULL)
    while "sleep 99" not in names():
        time.sleep(0.01)
    assert strays.stop() == ()
    assert names() == ["sh -c sleep 98 & sleep 97 & wait", "sleep 97", "sleep 98"], names()
    wanted.kill()
    while psutil.Process(wanted.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    # What it left behind is nobody's now, and its own end is still there to be waited for.
    assert strays.stop() == ()
    assert names() == [], names()
    assert wanted.wait() == -signal.SIGKILL
print("seen")
"""


def test_a_child_that_is_waited_for_is_spared_with_all_below_it() -> None:
    command = [sys.executable, "-c", _SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert (done.stdout, done.stderr) == ("seen\n", "")
