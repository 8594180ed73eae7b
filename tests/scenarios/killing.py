"""Ending a command of Nightkeep by `kill -9` at a chosen point, and what must be so after it was finished."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.hub import Exchange
from tests.scenarios.repairing import QUICKLY, move_base
from tests.scenarios.stage import NIGHTKEEP, Result, Stage, nightkeep
from tests.world import commit, git

# Before or after its n-th git command the runner is killed; what an agent does with git does not count.
_SHIM = """\
#!/bin/sh
runner=$(cat {place}/runner 2>/dev/null)
if [ "$PPID" != "$runner" ]; then exec {git} "$@"; fi
number=$(($(cat {place}/number) + 1)); echo $number > {place}/number
if [ "$number {moment}" = "{wanted} before" ]; then {deed}; exit 1; fi
{git} "$@"; status=$?
if [ "$number {moment}" = "{wanted} after" ]; then {deed}; fi
exit $status
"""
_KILL = 'kill -9 "$runner"'
# The system calls by which the runner changes a file, makes it durable, or asks a server; and how many of each a
# command makes, a little more than that.
_CALLS = {
    "write": 220,
    "fsync": 70,
    "mkdir": 70,
    "rename": 14,
    "renameat2": 2,
    "unlink": 45,
    "unlinkat": 120,
    "rmdir": 25,
    "sendto": 50,
}
LEAVES = """\
echo one > one.txt; git add one.txt; git commit -qm one; git commit -q --amend -m 'one, amended'
echo two > two.txt; git add two.txt; echo staged > three.txt; git add three.txt; echo edited > three.txt
echo k > secret.env; mkdir -p deep; echo deep > deep/four.txt"""
CONTENTS = ("one\n", "two\n", "staged\n", "edited\n", "k\n", "deep\n")
# Before a Repair the branch conflicts with its Base branch, in the Repair it is half resolved for a while.
_CONFLICTS = f"""\
case $NIGHTKEEP_SESSION in
implement) {LEAVES}; echo ours > a.txt; git commit -qm ours a.txt; {{move}}; touch {{left}};;
*) echo both > a.txt; git add a.txt; git commit -q --no-edit;;
esac"""
ENDINGS = {
    "delivered": f"{LEAVES}\ntouch {{left}}",
    "failed": f"{LEAVES}\ntouch {{left}}; exit 3",
    "repaired": _CONFLICTS,
    "merged": f"{LEAVES}\ntouch {{left}}",
}


@dataclass(frozen=True)
class Point:
    """Where a command is killed, `before` or `after` its n-th git command, API call, or own system call of a name."""

    what: str
    number: int
    moment: str

    def __str__(self) -> str:
        return f"{self.moment}-{self.what}-{self.number}"


def points() -> dict[str, list[Point]]:
    """Return the points of a command by their kind; those beyond its end are among them."""
    return {
        "git": [Point("git", number, moment) for number in range(1, 61) for moment in ("before", "after")],
        "api": [Point("api", number, "after") for number in range(1, 41)],
        "call": [Point(name, number, "before") for name, most in _CALLS.items() for number in range(1, most + 1)],
    }


class Exchanges(list[Exchange]):
    """What the hub answered so far; before the client has its n-th answer, the process `victim` is killed."""

    victim = 0
    wanted = 0

    def append(self, exchange: Exchange) -> None:
        super().append(exchange)
        self.wanted -= 1
        if self.victim and self.wanted == 0:
            os.kill(self.victim, signal.SIGKILL)


def killed(stage: Stage, arguments: Sequence[str], point: Point, exchanges: Exchanges) -> bool:
    """Run a command of Nightkeep in the clone and kill it at a point; False when it ended before."""
    process = started(stage, arguments, point, _KILL)
    if point.what == "api":
        exchanges.wanted, exchanges.victim = point.number, process.pid
    try:
        process.communicate(timeout=60)
    finally:
        process.kill()  # one that hangs must not be taken for what the next test has left
        process.communicate()
    exchanges.victim = 0
    return process.returncode == -signal.SIGKILL


def started(stage: Stage, arguments: Sequence[str], point: Point, deed: str) -> "subprocess.Popen[bytes]":
    """Start a command of Nightkeep; `deed`, a line of shell, is done at a point that is a git command."""
    place = stage.root / "shim"
    place.mkdir(exist_ok=True)
    (place / "number").write_text("0")
    (place / "runner").unlink(missing_ok=True)
    wanted = point.number if point.what == "git" else 0
    script = _SHIM.format(place=place, git=shutil.which("git"), moment=point.moment, wanted=wanted, deed=deed)
    (place / "git").write_text(script)
    (place / "git").chmod(0o755)
    process = subprocess.Popen(
        [*_traced(point), *NIGHTKEEP, *arguments, "--token-file", str(stage.token_file)],
        cwd=stage.clone,
        env={**os.environ, **stage.environment, **QUICKLY, "PATH": f"{place}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    (place / "runner").write_text(str(process.pid))
    return process


def _traced(point: Point) -> list[str]:
    if point.what not in _CALLS:
        return []
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("without strace nobody can stop at a system call")
    return [strace, "-o", "/dev/null", "-e", f"inject={point.what}:signal=KILL:when={point.number}"]


def an_agent(stage: Stage, ending: str) -> str:
    """Write the agent that leaves something of each kind; the file `left` says that it did, `begun` that it began."""
    agent = stage.root / "agent"
    script = ENDINGS[ending].format(left=stage.root / "left", move=move_base(stage, "a.txt", "theirs"))
    agent.write_text(f"#!/bin/sh\ntouch {stage.root}/begun; set -e\n{script}\n")
    agent.chmod(0o755)
    return str(agent)


def begun(stage: Stage) -> bool:
    return (stage.root / "begun").exists()


def recover(stage: Stage) -> Result:
    return nightkeep("recover", "--token-file", str(stage.token_file), cwd=stage.clone, environment=stage.environment)


def a_person_at_work(stage: Stage) -> None:
    """Have a person be in the middle of something in the clone, in each way that git knows."""
    clone = stage.clone
    git(clone, "checkout", "-q", "-b", "draft")
    (clone / "draft.txt").write_text("a draft\n")
    commit(clone, "a draft")
    git(clone, "checkout", "-q", "main")
    (clone / "b.txt").write_text("stashed\n")
    git(clone, "stash", "-q")
    (clone / "a.txt").write_text("staged by a person\n")
    git(clone, "add", "a.txt")
    (clone / "a.txt").write_text("edited by a person\n")
    (clone / "notes.txt").write_text("untracked\n")
    (clone / "secret.env").write_text("a person's\n")


def lost(stage: Stage) -> list[str]:
    """Return what the agent had written that is neither on origin nor in the clone's rescue refs and store."""
    return [content for content in CONTENTS if not found(stage, content)]


def found(stage: Stage, content: str) -> bool:
    """Whether a file of that content is on origin, in a rescue ref of the clone or in the rescue store."""
    hashed = ["git", "hash-object", "--stdin"]
    done = subprocess.run(hashed, cwd=stage.clone, input=content.encode(), stdout=subprocess.PIPE, check=True)
    blob = done.stdout.decode().strip()
    if blob in git(stage.world.origin, "rev-list", "--objects", "--all"):
        return True
    if blob in git(stage.clone, "rev-list", "--objects", "--glob=refs/nightkeep"):
        return True
    store = stage.clone / ".git" / "nightkeep" / "rescue"
    return any(
        file.read_bytes() == content.encode() for file in store.rglob("*") if file.is_file() and file.suffix != ".json"
    )


def worktrees_without_a_record(stage: Stage) -> list[Path]:
    """Return the directories beside the clone that no record of a run tells of."""
    texts = [file.read_text() for file in (stage.clone / ".git" / "nightkeep" / "runs").glob("*/record.json")]
    return [
        path for path in stage.worktrees() if not any(str(path).removesuffix(".removing") in text for text in texts)
    ]


def left_over(stage: Stage) -> list[str]:
    """Return what a Run must not leave behind: worktrees, records, branches, locks, temporary files."""
    common = stage.clone / ".git"
    for path in Path(os.environ["TMPDIR"]).iterdir():
        if not path.name.startswith("nightkeep-"):
            path.unlink()  # Python tries once whether it can write there
        with suppress(OSError):
            path.rmdir()  # made in the moment of the kill: nobody can tell whose it is, and there is nothing in it
    return [
        *map(str, stage.worktrees()),
        *map(str, (common / "nightkeep" / "runs").glob("*")),
        *git(stage.clone, "branch", "--list", "issue-*").split(),
        *(str(lock) for place in (common, stage.world.origin) for lock in place.rglob("*.lock")),
        *map(str, (common / "worktrees").glob("*")),
        *map(str, Path(os.environ["TMPDIR"]).iterdir()),
    ]


def told_truly(stage: Stage, number: int) -> None:
    """Assert that labels, pull request and notes say what is so."""
    pulls = stage.pulls()
    labels = stage.labels(number)
    made = bool(git(stage.world.origin, "for-each-ref", "refs/heads/issue-1"))
    if any(pull["merged_at"] for pull in pulls):
        over = (stage.api("GET", f"issues/{number}")["state"], labels, made)
        assert over == ("closed", {"bug"}, False), str(stage.last)
        return
    if not made:
        assert (pulls, labels & {"in-progress", "ready-for-agent"}) == ([], {"ready-for-agent"}), str(stage.last)
        return
    assert "in-progress" in labels, str(stage.last)
    (pull,) = pulls
    notes = [note for note in stage.comments(pull["number"]) if "could not finish this" in note]
    markers = git(stage.world.origin, "log", "--format=%s", "main..issue-1").count("nightkeep: failed run (")
    assert (len(notes), markers) == ((1, 1) if pull["draft"] else (0, 0)), str(stage.last)
