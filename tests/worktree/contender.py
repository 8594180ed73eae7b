"""One of several processes that make, lose and recover worktrees in one clone: `python -m tests.worktree.contender`.

It takes the clone, a seed and how often; with the seed it draws each time whether it lets a run end well, fail or be
killed, or recovers what others left. What it wrote into a worktree it puts down in `<clone>-owed`, a mark a line; it
fails when it sees somebody else's hand in its own.
"""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from worktree import (
    Interruption,
    Launch,
    PreservationError,
    Worktree,
    WorktreeError,
    alone,
    orphans,
    sweep_records,
    sweep_temporary,
)

_LONGEST = 1.5  # seconds until a run that is to be killed is


def contend(clone: Path, seed: str, times: int) -> None:
    chance = random.Random(seed)
    for number in range(times):
        deed = chance.choice((_deliver, _fail, _die, _die, _recover))
        deed(clone, f"{seed}-{number}", chance)


def _open(clone: Path) -> Launch:
    return Launch.open(clone, interruption=Interruption())


@contextmanager
def _run(clone: Path, name: str) -> Iterator[Worktree]:
    """Be at work in a worktree; the work is one's own until the end."""
    with Worktree.create(_open(clone), branch=f"issue-{name}", base="main", interruption=Interruption()) as wt:
        marks = {"committed.txt": f"c-{name}", "left.txt": f"l-{name}", "secret.env": f"s-{name}"}
        for file, mark in marks.items():
            (wt.path / file).write_text(f"{mark}\n")
            with clone.with_name(f"{clone.name}-owed").open("a") as owed:
                owed.write(f"{mark}\n")
        person = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        for command in (("add", "committed.txt"), (*person, "commit", "-q", "-m", f"m-{name}")):
            subprocess.run(["git", *command], cwd=wt.path, check=True, stdin=subprocess.DEVNULL)
        yield wt
        if [file for file, mark in marks.items() if (wt.path / file).read_text() != f"{mark}\n"]:
            raise AssertionError("somebody was at work in it")


def _deliver(clone: Path, name: str, _: random.Random) -> None:
    with _run(clone, name) as wt:
        wt.settle("subject")
        wt.push()


def _fail(clone: Path, name: str, _: random.Random) -> None:
    with _run(clone, name) as wt, suppress(PreservationError):
        wt.preserve_failed_run("main", "agent exited 3")


def _die(clone: Path, name: str, chance: random.Random) -> None:
    """Be killed at some moment of a run, in a process of its own."""
    after = chance.uniform(0, _LONGEST)
    child = os.fork()
    if not child:
        threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL)).start()
        try:
            _fail(clone, name, chance)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def _recover(clone: Path, _name: str, _chance: random.Random) -> None:
    recover(clone)


def recover(clone: Path) -> int:
    """Recover all that nobody is at work on, as `nightkeep recover` does; return how many could not be."""
    troubled = 0
    launch = _open(clone)
    with alone(launch.common) as is_alone:
        if is_alone:
            sweep_records(launch.common)
            sweep_temporary()
            for orphan in orphans(launch):
                try:
                    with Worktree.reclaim(launch.reopened(), orphan.run_id) as wt, suppress(PreservationError):
                        wt.preserve_failed_run(orphan.base, "Nightkeep was killed")
                except WorktreeError:
                    troubled += 1
    return troubled


if __name__ == "__main__":
    contend(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
