"""SIGINT, SIGTERM and SIGHUP at every moment of a Run: the work is kept, the signal is named, nothing stays behind."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from runner.hub import drills
from tests.scenarios.stage import NIGHTKEEP, Stage
from tests.waiting import wait_for
from tests.world import git

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
EACH = pytest.mark.parametrize("number", [INT, TERM, HUP], ids=lambda number: number.name)
_PATIENCE = 40

HALF = "echo half > half.txt; git add half.txt; git commit -qm half; echo rest > rest.txt; touch {there}; "
STUBBORN = """\
import pathlib, signal, subprocess, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
pathlib.Path("half.txt").write_text("half")
pathlib.Path({there!r}).touch()
while True:
    time.sleep(1000)
"""


@dataclass
class Running:
    """`nightkeep run` while it runs. `there` is a file that agents and hooks make when a moment has come."""

    stage: Stage
    process: "subprocess.Popen[str]"
    there: Path
    status: int = -1
    stdout: str = ""
    stderr: str = ""
    after: float = field(default=0, init=False)
    patience: float = _PATIENCE

    @property
    def runner(self) -> int:
        return self.process.pid

    def send(self, *numbers: signal.Signals) -> None:
        for number in numbers:
            self.process.send_signal(number)

    def say(self, text: str) -> None:
        """Wait until the progress, which goes to a file, has a text."""
        wait_for(lambda: text in self.progress.read_text(), self.patience)

    @property
    def progress(self) -> Path:
        return self.stage.root / "progress"

    def end(self) -> dict[str, object]:
        """Wait for the end; return the JSON document."""
        began = time.monotonic()
        self.stdout, _ = self.process.communicate(timeout=self.patience)
        self.after = time.monotonic() - began
        self.status = self.process.returncode
        self.stderr = self.progress.read_text()
        document: dict[str, object] = json.loads(self.stdout) if self.stdout.startswith("{") else {}
        return document


@contextmanager
def running(stage: Stage, script: str, *, group: bool = False, **environment: str) -> Iterator[Running]:
    """Start a Run of a shell script, which may use {there}; afterwards nothing of it may be left."""
    there = stage.root / "there"
    agent = stage.agent(script.replace("{there}", shlex.quote(str(there))))
    command = [*NIGHTKEEP, "run", stage.url(stage.issue()), "--agent", agent, "--json"]
    with (stage.root / "progress").open("w") as progress:
        process = subprocess.Popen(
            [*command, "--token-file", str(stage.token_file)],
            cwd=stage.clone,
            env={**os.environ, **stage.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=progress,
            text=True,
            start_new_session=group,
        )
    with process:
        try:
            yield Running(stage, process, there)
        finally:
            process.kill()
    nothing_left(stage)


def nothing_left(stage: Stage) -> None:
    """Assert that no process, no lock and no temporary file is left."""
    wait_for(lambda: not [one for one in psutil.process_iter() if belongs(one, stage)])
    # The record of a run that was killed keeps its own, which nobody holds.
    locks = [path for path in (stage.clone / ".git").rglob("*.lock") if path.name != "owner.lock"]
    assert locks == []
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []


def belongs(process: psutil.Process, stage: Stage) -> bool:
    try:
        mine = process.environ().get("XDG_STATE_HOME") == str(stage.state)
        return mine and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def kept(run: Running, document: dict[str, object], number: signal.Signals, *files: str) -> None:
    """Assert that a Run which a signal ended kept its work on origin, and says so everywhere."""
    stage = run.stage
    assert run.status == 128 + number, run.stderr
    assert document["exit_code"] == run.status
    assert document["interrupted_by"] == number.name
    assert document["preserved"] == "origin", run.stderr
    assert set(files) <= stage.files("issue-1"), run.stderr
    assert stage.subject("issue-1").startswith("nightkeep: failed run (")
    pull = stage.pull()
    assert pull["draft"], run.stderr
    assert number.name in stage.note(pull["number"])
    assert stage.worktrees() == [], run.stderr


# While the agent runs


@EACH
def test_while_the_agent_runs(stage: Stage, number: signal.Signals) -> None:
    with running(stage, HALF + "sleep 1000") as run:
        wait_for(run.there.exists)
        run.send(number)
        document = run.end()
        kept(run, document, number, "half.txt", "rest.txt")
        assert document["cause"] == f"interrupted by {number.name}"
        assert f"interrupted by {number.name}" in stage.subject("issue-1")


def test_signal_to_the_whole_group(stage: Stage) -> None:
    with running(stage, HALF + "sleep 1000", group=True) as run:
        wait_for(run.there.exists)
        os.killpg(run.runner, INT)
        os.killpg(run.runner, INT)
        kept(run, run.end(), INT, "half.txt", "rest.txt")


def test_schedule_of_a_cancelled_workflow(stage: Stage) -> None:
    """GitHub sends INT, TERM after 7.5 s and KILL 2.5 s later; an agent that ignores all it can must not matter."""
    (stage.root / "stubborn").write_text(STUBBORN.format(there=str(stage.root / "there")))
    with running(stage, f"exec {sys.executable} {stage.root / 'stubborn'}") as run:
        wait_for(run.there.exists)
        began = time.monotonic()
        run.send(INT)
        try:
            run.process.wait(7.5)
        except subprocess.TimeoutExpired:
            run.send(TERM)
        document = run.end()
        assert time.monotonic() - began < 10
        kept(run, document, INT, "half.txt")


def test_agent_that_signals_the_runner(stage: Stage) -> None:
    with running(stage, HALF + "kill -TERM $(ps -o ppid= -p $PPID); sleep 1000") as run:
        kept(run, run.end(), TERM, "half.txt", "rest.txt")


def test_agent_that_kills_its_supervisor(stage: Stage) -> None:
    with running(stage, HALF + "(setsid env -i sleep 1000 > /dev/null 2>&1 &); kill -KILL $PPID; sleep 1000") as run:
        document = run.end()
        assert (run.status, document["cause"]) == (1, "the session's supervisor was killed"), run.stderr
        assert {"half.txt", "rest.txt"} <= stage.files("issue-1")
        assert stage.pull()["draft"]


# During preservation


def slow_origin(stage: Stage, *, only: str = "") -> tuple[Path, Path]:
    """Make origin wait in each push, but of a claim alone, until told to go on.

    Return what says that it waits, and what lets it go on.
    """
    there, go = stage.root / "at-origin", stage.root / "go"
    patience = f"n=0; while [ ! -e {shlex.quote(str(go))} ] && [ $n -lt 3000 ]; do n=$((n+1)); sleep 0.01; done"
    stage.world.hook(
        "pre-receive", f"grep -qv refs/nightkeep/claims/ || exit 0\n{only}\ntouch {shlex.quote(str(there))}; {patience}"
    )
    return there, go


def test_during_preservation(stage: Stage) -> None:
    there, go = slow_origin(stage)
    with running(stage, HALF + "exit 3") as run:
        wait_for(there.exists)
        run.send(HUP)
        run.say(HUP.name)
        go.touch()
        document = run.end()
        kept(run, document, HUP, "half.txt", "rest.txt")
        assert document["cause"] == "the agent exited 3"  # the first cause stays the headline


def test_second_signal_during_preservation(stage: Stage) -> None:
    there, go = slow_origin(stage)
    with running(stage, HALF + "sleep 1000", group=True) as run:
        wait_for(run.there.exists)
        run.send(TERM)
        wait_for(there.exists)
        os.killpg(run.runner, HUP)
        run.send(HUP)
        go.touch()
        kept(run, run.end(), TERM, "half.txt", "rest.txt")


def test_signal_while_git_stages(stage: Stage) -> None:
    there, go = stage.root / "staging", stage.root / "go"
    git(stage.clone, "config", "filter.slow.clean", f"touch {there}; while [ ! -e {go} ]; do sleep 0.01; done; cat")
    with running(stage, HALF + "echo '*.txt filter=slow' > .gitattributes; touch rest.txt; exit 3") as run:
        wait_for(there.exists)
        run.send(TERM)
        run.say("SIGTERM")
        run.send(TERM, HUP, INT)
        go.touch()
        kept(run, run.end(), TERM, "half.txt", "rest.txt")


# During the push of a Run that would have been delivered


def test_during_the_push(stage: Stage) -> None:
    once = stage.root / "once"
    there, go = slow_origin(stage, only=f"[ -e {once} ] && exit 0; touch {once}")
    with running(stage, "echo made > made.txt") as run:
        wait_for(there.exists)
        run.send(TERM)
        document = run.end()
        go.touch()
        kept(run, document, TERM, "made.txt")
        assert (document["stage"], document["cause"]) == ("push", f"interrupted by {TERM.name}")


def test_push_that_origin_finishes_after_all(stage: Stage) -> None:
    there, go = slow_origin(stage)
    with running(stage, "echo made > made.txt") as run:
        wait_for(there.exists)
        run.send(INT)
        run.say("stage push")
        go.touch()
        kept(run, run.end(), INT, "made.txt")


# Around the goal


def test_before_the_goal(stage: Stage) -> None:
    opening = stage.hub.drill("POST", "*/pulls", drills.delay(_PATIENCE))
    with running(stage, "echo made > made.txt") as run:
        wait_for(lambda: opening.hits)
        run.send(INT)
        run.say(INT.name)
        opening.remove()
        document = run.end()
        kept(run, document, INT, "made.txt")
        assert (document["stage"], document["cause"]) == ("pull-request", f"interrupted by {INT.name}")


def test_after_the_goal(stage: Stage) -> None:
    there, go = stage.root / "there", stage.root / "go"
    wait = f"touch {there}; while [ ! -e {go} ]; do sleep 0.01; done"
    with running(
        stage, "echo made > made.txt", PATH=shim(stage, f'case $* in *"worktree remove"*) {wait};; esac')
    ) as run:
        wait_for(there.exists)
        run.send(HUP)
        run.say(HUP.name)
        go.touch()
        assert (run.end()["result"], run.status) == ("delivered", 0), run.stderr
    assert not stage.pull()["draft"]
    assert stage.worktrees() == []
    assert stage.comments(stage.pull()["number"]) == []


# Before anything began


def shim(stage: Stage, script: str) -> str:
    """Make a git that does something first; return the PATH on which it is found."""
    program = stage.root / "shims" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{script}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def test_before_anything_began(stage: Stage) -> None:
    before = git(stage.world.origin, "for-each-ref")
    shims = shim(stage, f"case $* in *ls-remote*) touch {stage.root / 'there'}; sleep 1000;; esac")
    with running(stage, "echo made > made.txt", PATH=shims) as run:
        wait_for(run.there.exists)
        run.send(TERM)
        document = run.end()
        assert run.status == 128 + TERM, run.stderr
        assert (document["result"], document["exit_code"]) == ("not-begun", run.status)
    assert git(stage.world.origin, "for-each-ref") == before
    assert stage.labels(1) == {"ready-for-agent", "bug"}
    assert not stage.comments(1) + stage.pulls()
    assert stage.worktrees() == []


def test_group_signal_while_git_is_looked_for(stage: Stage) -> None:
    """The very first git command is one that GitPython starts by itself."""
    there = stage.root / "there"
    shims = shim(stage, f"[ -e {there} ] || {{ touch {there}; sleep 1; }}")
    with running(stage, "true", group=True, PATH=shims) as run:
        wait_for(run.there.exists)
        os.killpg(run.runner, INT)
        assert (run.end()["result"], run.status) == ("not-begun", 130), run.stderr
    assert stage.labels(1) == {"ready-for-agent", "bug"}


@pytest.mark.parametrize("moment", range(125, 1000, 250))
def test_at_any_moment_of_the_start(stage: Stage, moment: int) -> None:
    with running(stage, HALF + "sleep 1000") as run:
        time.sleep(moment / 1000)
        run.send(INT)
        with suppress(subprocess.TimeoutExpired):
            run.process.wait(_PATIENCE / 2)
        if run.process.poll() is None:  # Python itself can swallow one while it starts
            run.send(INT)
        run.end()
        # While Python imports its own modules nobody can catch it, and it says so by 1.
        early = run.status == 1 and "KeyboardInterrupt" in run.stderr
        assert early or run.status in (130, -INT), run.stderr
        assert "cli.py" not in run.stderr, run.stderr
    assert stage.worktrees() == []


# Nobody reads what we say


@pytest.mark.parametrize("then", ["sleep 1000", "exit 3"], ids=["session", "preservation"])
def test_standard_error_whose_reader_went_away(stage: Stage, then: str) -> None:
    there, go = slow_origin(stage)
    agent = stage.agent(HALF.format(there=stage.root / "there") + f"echo said; {then}")
    command = [*NIGHTKEEP, "run", stage.url(stage.issue()), "--agent", agent, "--token-file", str(stage.token_file)]
    environment = {**os.environ, **stage.environment}
    with subprocess.Popen(
        command, cwd=stage.clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_for((stage.root / "there" if then == "sleep 1000" else there).exists)
        assert process.stderr is not None
        process.stderr.close()
        process.send_signal(HUP)
        wait_for(there.exists)
        process.send_signal(TERM)
        process.send_signal(signal.SIGPIPE)
        go.touch()
        assert process.stdout is not None
        url = process.stdout.read().decode().strip()
        assert process.wait(_PATIENCE) == 128 + HUP
    assert url == stage.pull()["html_url"]
    assert {"half.txt", "rest.txt"} <= stage.files("issue-1")
    assert stage.worktrees() == []
    nothing_left(stage)


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "2>&1 | true"])
def test_closed_streams(stage: Stage, closed: str) -> None:
    agent = stage.agent("echo said; echo half > half.txt; exit 3")
    words = [*NIGHTKEEP, "run", stage.url(stage.issue()), "--agent", agent, "--token-file", str(stage.token_file)]
    script = f"{{ {shlex.join(words)}; echo $? > {stage.root / 'status'}; }} {closed}"
    environment = {**os.environ, **stage.environment}
    subprocess.run(["sh", "-c", script], cwd=stage.clone, env=environment, check=False, capture_output=True)
    wait_for((stage.root / "status").exists)
    assert (stage.root / "status").read_text() == "1\n"
    assert "half.txt" in stage.files("issue-1")
    assert stage.pull()["draft"]
    nothing_left(stage)


def test_nohup_is_obeyed(stage: Stage) -> None:
    agent = stage.agent(
        f"touch {stage.root / 'there'}; while [ ! -e {stage.root / 'go'} ]; do sleep 0.01; done; echo made > made.txt"
    )
    words = [*NIGHTKEEP, "run", stage.url(stage.issue()), "--agent", agent, "--token-file", str(stage.token_file)]
    environment = {**os.environ, **stage.environment}
    with subprocess.Popen(
        ["nohup", *words], cwd=stage.clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        wait_for((stage.root / "there").exists)
        process.send_signal(HUP)
        (stage.root / "go").touch()
        assert process.wait(_PATIENCE) == 0
    assert not stage.pull()["draft"]


# Death


def test_killed_runner(stage: Stage) -> None:
    with running(stage, HALF + "(setsid sleep 1000 &); sleep 1000") as run:
        wait_for(run.there.exists)
        run.send(signal.SIGKILL)
        run.end()
        wait_for(lambda: not [one for one in psutil.process_iter() if belongs(one, stage)])
        for left in Path(os.environ["TMPDIR"]).iterdir():  # nobody could remove it; recovery is not there yet
            assert left.name.startswith("nightkeep-")
            subprocess.run(["rm", "-r", str(left)], check=True)
    (worktree,) = stage.worktrees()
    assert {"half.txt", "rest.txt"} <= {path.name for path in worktree.iterdir()}
    assert git(worktree, "log", "-1", "--format=%s") == "half"


def test_after_the_end_was_told(stage: Stage) -> None:
    """The status is what was said, whatever comes while the process goes."""
    with running(stage, "echo made > made.txt") as run:
        assert run.process.stdout is not None
        first = run.process.stdout.readline()
        while run.process.poll() is None:
            run.send(HUP, TERM, INT)
        assert (first, run.process.returncode) == ("{\n", 0)
        run.process.stdout.read()
