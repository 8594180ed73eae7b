"""Agents that do one thing at first and another in each Repair, and what else Runs with a Repair loop share."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.scenarios.stage import Result, Stage
from tests.world import git

COMMITS = "echo on > lamp.txt && git add lamp.txt && git commit -qm 'Let there be light'"
QUICKLY = {"NIGHTKEEP_CHECKS_POLL": "0.1s", "NIGHTKEEP_CHECKS_GRACE": "2s"}


def agent(stage: Stage, **sessions: str) -> str:
    """Write an agent that does `implement`, then what is named for each Repair (`repair_1`), and keeps its prompts."""
    cases = "\n".join(f"{kind.replace('_', '-')}) {script};;" for kind, script in sessions.items())
    keep = f"cat > {stage.root}/prompt-$NIGHTKEEP_SESSION"
    return stage.agent(f"{keep}\ncase $NIGHTKEEP_SESSION in\n{cases}\n*) echo unexpected; exit 9;;\nesac")


def prompt(stage: Stage, kind: str) -> str:
    return (stage.root / f"prompt-{kind}").read_text()


def run(stage: Stage, *options: str, **sessions: str) -> Result:
    return stage.run(stage.issue(), agent(stage, **sessions), *options, **QUICKLY)


def is_ready(stage: Stage, result: Result) -> bool:
    """Whether the Run ended with its pull request ready at what origin has, and as green as that can be."""
    pull = stage.pull()
    ready = (result.status, result.stdout, pull["draft"]) == (0, f"{pull['html_url']}\n", False)
    return ready and pull["head"]["sha"] == stage.world.on_origin("refs/heads/issue-1")


def cause(stage: Stage) -> str:
    note = stage.note(stage.pull()["number"])
    return next(line for line in note.splitlines() if line.startswith("**Cause:**"))


def move_base(stage: Stage, file: str = "moved.txt", text: str = "moved") -> str:
    """Return a shell command by which somebody pushes to main."""
    return pushes(stage, "main", file, text)


def pushes(stage: Stage, branch: str, file: str, text: str) -> str:
    """Return a shell command by which somebody pushes a commit to a branch."""
    other = stage.root / "other"
    if not other.exists():
        git(stage.root, "clone", "-q", str(stage.world.origin), str(other))
    person = "git -c user.name=Person -c user.email=person@example.com"
    return (
        f"(cd {other} && git fetch -q origin && git checkout -q --detach origin/{branch} && echo {text} > {file} && "
        f"git add -A && {person} commit -qm 'write {file}' && git push -q origin HEAD:refs/heads/{branch})"
    )


@contextmanager
def meanwhile(when: Callable[[], bool], deed: Callable[[], None]) -> Iterator[None]:
    """Do something once, as soon as `when` holds."""

    def wait() -> None:
        deadline = time.monotonic() + 50
        while not when() and time.monotonic() < deadline:
            time.sleep(0.02)
        deed()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


def shell(command: str) -> Callable[[], None]:
    """Return a deed of a shell command."""

    def run_it() -> None:
        subprocess.run(["/bin/sh", "-c", command], check=True)

    return run_it
