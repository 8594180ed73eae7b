"""Several machines race for the issues of one repository, with all that can go wrong, drawn by a seed.

Each contender takes an issue that looks free and runs `nightkeep run` on it in its machine's clone. Some of these are
stopped for longer than their lease, and go on while another is at work; some are killed, and of those some machines
come back and recover, the others are gone. Meanwhile the hub is slow, fails, and loses answers.
"""

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import requests

from runner.hub import drills
from tests.scenarios.stage import NAME, NIGHTKEEP, Stage
from tests.world import git

LEASE, HEARTBEAT = 6.0, 1.0
_AFTER_LEASE = 2.0  # seconds that a frozen run sleeps on once its lease has ended
_LONGEST = 240  # seconds that a Run may take
_QUICK = {
    "NIGHTKEEP_LIMITS_LEASE": f"{LEASE}s",
    "NIGHTKEEP_LIMITS_HEARTBEAT": f"{HEARTBEAT}s",
    "NIGHTKEEP_CHECKPOINTS_EVERY": "0.5s",
    "NIGHTKEEP_CHECKPOINTS_PUSH": "always",
    "NIGHTKEEP_CHECKS_GRACE": "0.2s",
}
# Every push is put down with what it moved: one line a ref, and the number of the push.
PUSHES = """\
exec 9>{log}.lock; flock 9
number=$(($(cat {log}.number 2>/dev/null || echo 0) + 1)); echo $number > {log}.number
while read old new ref; do echo "$number $old $new $ref"; done >> {log}"""
_AGENT = "echo {name} > {name}.txt; git add {name}.txt; git commit -qm {name}; echo left > {name}-left.txt; sleep {nap}"
_ENDS = ("; exit 0", "; exit 0", "; exit 3")
_TROUBLES: tuple[Callable[[], drills.Trouble], ...] = (
    lambda: drills.delay(0.5),
    lambda: drills.lost_answer(),
    lambda: drills.dropped_connection(),
    lambda: drills.dropped_connection(work=False),
    lambda: drills.server_error(),
)
_PLACES = ("*/git-receive-pack", "*/git-receive-pack", "*/git-upload-pack", "*/info/refs*", "/api/v3/*")


@dataclass
class Race:
    """One race. `tally` counts what came of the Runs: each exit status, what they said, and what was done to them.

    `said` is all that they printed.
    """

    stage: Stage
    seed: int
    clones: list[Path]
    issues: list[int]
    deadline: float
    tally: "Counter[str]" = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self, contenders: int) -> None:
        """Race until each issue has its pull request, or until the deadline."""
        threads = [threading.Thread(target=self._contend, args=(number,)) for number in range(contenders)]
        gremlin = threading.Thread(target=self._trouble)
        for thread in (*threads, gremlin):
            thread.start()
        for thread in threads:
            thread.join()
        self._over.set()
        gremlin.join()

    def _trouble(self) -> None:
        chance = random.Random(f"{self.seed} trouble")
        while not self._over.wait(chance.uniform(0.2, 1)):
            trouble, place = chance.choice(_TROUBLES)(), chance.choice(_PLACES)
            drill = self.stage.hub.drill("*", place, trouble)
            self._over.wait(1)
            drill.remove()

    def _contend(self, number: int) -> None:
        chance = random.Random(f"{self.seed} {number}")
        clone = self.clones[number % len(self.clones)]
        turn = 0
        while time.monotonic() < self.deadline and (wanted := self._wanted()):
            turn += 1
            # Half of the time all go for the same one.
            issue = wanted[0] if chance.random() < 0.5 else chance.choice(wanted)
            self._one(clone, issue, f"w{self.seed}-{number}-{turn}", chance)
            time.sleep(chance.uniform(0, 0.5))

    def _wanted(self) -> list[int]:
        """Return the issues that have no pull request yet."""
        while True:
            with suppress(requests.RequestException):  # the trouble is ours as well
                done = {pull["head"]["ref"] for pull in self.stage.pulls()}
                break
        return [issue for issue in self.issues if f"issue-{issue}" not in done]

    def _agent(self, name: str, chance: random.Random) -> str:
        script = _AGENT.format(name=name, nap=f"{chance.uniform(0.5, 2.5):.2f}") + chance.choice(_ENDS)
        with self._writing:  # agents are numbered
            return self.stage.agent(script)

    def _begin(self, clone: Path, issue: int, name: str, chance: random.Random) -> "_Command":
        self.tally["tried"] += 1
        return self._start(clone, "run", self.stage.url(issue), "--agent", self._agent(name, chance))

    def _one(self, clone: Path, issue: int, name: str, chance: random.Random) -> None:
        process = self._begin(clone, issue, name, chance)
        fate = chance.choice(("left alone", "left alone", "frozen", "frozen", "killed", "gone"))
        if fate != "left alone":
            self._until_at_work(process, chance.choice((True, True, False)))
            time.sleep(chance.uniform(0, 1))
        if process.poll() is not None:
            fate = "left alone"
        if fate == "frozen":
            self.tally["frozen"] += 1
            process.send_signal(signal.SIGSTOP)
            time.sleep(LEASE + _AFTER_LEASE)
            other = self._begin(chance.choice([one for one in self.clones if one != clone]), issue, f"{name}b", chance)
            self._until_at_work(other, chance.choice((True, True, False)))
            time.sleep(chance.uniform(0, 1))
            process.send_signal(signal.SIGCONT)
            self._note(other)
        elif fate != "left alone":
            self.tally["killed"] += 1
            _kill_all(process)
        self._note(process)
        if fate == "killed":
            self._recover(clone)

    def _until_at_work(self, process: "_Command", wanted: bool) -> None:  # noqa: FBT001 - drawn
        """Wait until a Run is at work, if that is `wanted`, or has ended."""
        while wanted and process.poll() is None and "starting the agent" not in process.said():
            time.sleep(0.05)

    def _start(self, clone: Path, *arguments: str) -> "_Command":
        command = [*NIGHTKEEP, *arguments, "--token-file", str(self.stage.token_file)]
        return _Command(command, clone, {**os.environ, **_QUICK, "XDG_STATE_HOME": str(clone.parent / "state")})

    def _note(self, process: "_Command") -> None:
        process.wait(timeout=_LONGEST)
        said = process.said()
        self.said.append(f"exit {process.returncode}\n{said}")
        self.tally[f"exit {process.returncode}"] += 1
        self.tally["refused"] += "is claimed" in said
        self.tally["taken over"] += "taking over the claim" in said
        self.tally["lost"] += " is lost: on origin it " in said
        self.tally["bug"] += "a bug in Nightkeep" in said

    def _recover(self, clone: Path) -> None:
        process = self._start(clone, "recover")
        process.wait(timeout=_LONGEST)
        self.said.append(process.said())

    def recover(self) -> None:
        """Finish what was killed on each machine."""
        for clone in self.clones:
            self._recover(clone)

    # What came of it.

    def without_pull_request(self) -> list[int]:
        """Return the issues that nobody brought to an end."""
        return self._wanted()

    def twice(self) -> dict[str, int]:
        """Return the Issue branches that have more than one pull request, or that are no issue's first."""
        heads = Counter(pull["head"]["ref"] for pull in self.stage.pulls())
        firsts = {f"issue-{issue}" for issue in self.issues}
        return {head: times for head, times in heads.items() if times > 1 or head not in firsts}

    def unfenced(self, log: Path) -> list[str]:
        """Return the pushes to Issue branches and checkpoints that did not move the claim of their issue along."""
        pushes: dict[str, list[list[str]]] = {}
        for line in log.read_text().splitlines():
            number, *rest = line.split(" ")
            pushes.setdefault(number, []).append(rest)
        found = []
        for rows in pushes.values():
            refs = [ref for _, _, ref in rows]
            made = [ref for _, new, ref in rows if set(new) != {"0"}]
            needs = [ref for ref in made if ref.startswith(("refs/heads/issue-", "refs/nightkeep/checkpoints/"))]
            if needs and not any(ref.startswith("refs/nightkeep/claims/") for ref in refs):
                found.append(" ".join(refs))
        return found

    def came_back(self, log: Path) -> list[str]:
        """Return the runs that moved a claim after another run had it."""
        chains: dict[str, list[str]] = {}
        for line in log.read_text().splitlines():
            _, _, new, ref = line.split(" ")
            if ref.startswith("refs/nightkeep/claims/") and set(new) != {"0"}:
                chains.setdefault(ref, []).append(self._run_of(new))
        return [f"{ref}: {runs}" for ref, runs in chains.items() if len(_blocks(runs)) != len(set(runs))]

    def _run_of(self, record: str) -> str:
        message = git(self.stage.world.origin, "log", "-1", "--format=%B", record)
        return message.split('"nonce":"')[1].split('"')[0]

    def lost_work(self) -> set[str]:
        """Return the blobs and commits that an agent had made at its end which nobody has."""
        stage = self.stage
        made = {oid for file in (stage.root / "made").iterdir() for oid in file.read_text().split()}
        held = _objects(stage.world.origin, "--all")
        for clone in self.clones:
            held |= _objects(clone, "--glob=refs/nightkeep", "--glob=refs/heads")
            for tree in (clone / ".git" / "nightkeep" / "rescue").glob("*/tree"):
                files = [str(file) for file in tree.rglob("*") if file.is_file()]
                held |= set(git(clone, "hash-object", "--no-filters", *files).split()) if files else set()
        return made - held


def _blocks(runs: list[str]) -> list[str]:
    return [run for at, run in enumerate(runs) if at == 0 or runs[at - 1] != run]


def _objects(repository: Path, *refs: str) -> set[str]:
    return {line.split(" ", 1)[0] for line in git(repository, "rev-list", "--objects", *refs).splitlines()}


class _Command(subprocess.Popen[bytes]):
    """A command that is at work; what it said so far can be read at any time."""

    def __init__(self, command: list[str], clone: Path, environment: dict[str, str]) -> None:
        self._file = clone.parent / f"said-{time.monotonic_ns()}"
        with self._file.open("wb") as file:
            super().__init__(command, cwd=clone, env=environment, stdout=file, stderr=subprocess.STDOUT)

    def said(self) -> str:
        return self._file.read_text(errors="replace")


def _kill_all(process: _Command) -> None:
    """Kill a command and all below it, as the end of a machine does."""
    with suppress(psutil.Error):
        for one in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
            with suppress(psutil.Error):
                one.kill()


def machines(stage: Stage, number: int) -> list[Path]:
    """Make clones, each as on a machine of its own."""
    made = []
    for at in range(number):
        clone = stage.root / f"machine-{at}" / "widget"
        clone.parent.mkdir()
        git(stage.root, "clone", "-q", str(stage.world.origin), str(clone))
        git(clone, "remote", "set-url", "origin", f"{stage.hub.url}/{NAME}.git")
        made.append(clone)
    return made
