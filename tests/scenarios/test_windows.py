"""Where the worktrees of others have lost work when they were killed: between two steps that belong together."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass

import psutil
import pytest

from tests.scenarios.killing import an_agent, begun, left_over, lost, recover, told_truly, worktrees_without_a_record
from tests.scenarios.stage import NIGHTKEEP, Result, Stage
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("quickly")


@dataclass(frozen=True)
class Window:
    """A moment before or after a git command, known by its words."""

    words: str
    moment: str

    def __str__(self) -> str:
        return f"{self.moment} {self.words}"

    def shim(self, stage: Stage, deed: str) -> str:
        """Make a git that does something at the moment, once; return the PATH on which it is found."""
        program = stage.root / "window" / "git"
        program.parent.mkdir(exist_ok=True)
        once = f"[ ! -e {program.parent}/done ] && touch {program.parent}/done"
        real = shutil.which("git", path=os.defpath)
        before, after = (deed, "") if self.moment == "before" else ("", deed)
        program.write_text(
            f'#!/bin/sh\ncase "$*" in *{self.words!r}*) {once} && {{ {before or ":"}; {real} "$@"; status=$?; '
            f'{after or ":"}; exit $status; }};; esac\nexec {real} "$@"\n'
        )
        program.chmod(0o755)
        (program.parent / "done").unlink(missing_ok=True)
        return f"{program.parent}:{os.environ['PATH']}"


def _killed(stage: Stage, window: Window, *arguments: str, deed: str = "kill -9 $PPID; exit 1") -> None:
    done = subprocess.run(
        [*NIGHTKEEP, *arguments, "--token-file", str(stage.token_file)],
        cwd=stage.clone,
        env={**os.environ, **stage.environment, "PATH": window.shim(stage, deed)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL


def _run_killed(stage: Stage, window: Window) -> int:
    number = stage.issue()
    _killed(stage, window, "run", stage.url(number), "--agent", an_agent(stage, "failed"))
    assert worktrees_without_a_record(stage) == []
    return number


@pytest.mark.parametrize(
    "window",
    [
        Window("worktree add", "after"),
        Window("refs/heads/issue-1", "after"),
        Window("worktree remove", "before"),
        Window("update-ref --no-deref -d refs/heads/issue-1", "before"),
    ],
    ids=str,
)
def test_what_a_run_began_is_finished(stage: Stage, window: Window) -> None:
    number = _run_killed(stage, window)
    stage.last = done = recover(stage)
    assert done.status == (3 if begun(stage) else 0), str(done)
    assert (lost(stage) if begun(stage) else [], left_over(stage)) == ([], [])
    told_truly(stage, number)
    if begun(stage):
        (store,) = (stage.clone / ".git" / "nightkeep" / "rescue").iterdir()
        assert str(store) in done.stderr, str(done)


def test_a_worktree_is_owned_from_the_moment_that_it_can_be_seen(stage: Stage) -> None:
    there, go = stage.root / "there", stage.root / "go"
    wait = f"touch {there}; until [ -e {go} ]; do sleep 0.05; done"
    agent = stage.agent("echo on > lamp.txt")
    process = subprocess.Popen(
        [*NIGHTKEEP, "run", stage.url(stage.issue()), "--agent", agent, "--token-file", str(stage.token_file)],
        cwd=stage.clone,
        env={**os.environ, **stage.environment, "PATH": Window("worktree add", "after").shim(stage, wait)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_for(there.exists)
        (worktree,) = stage.worktrees()
        done = recover(stage)
        assert "there is nothing to recover" in done.stderr, str(done)
        assert (worktree / "a.txt").exists()
    finally:
        go.touch()
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said.decode()
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"


@pytest.mark.parametrize("words", ["update-ref --no-deref -m nightkeep 2", "worktree add"])
def test_a_git_that_outlives_its_runner_is_stopped_before_anything_is_recovered(stage: Stage, words: str) -> None:
    number, left = stage.issue(), stage.root / "left"
    arguments = ["run", stage.url(number), "--agent", an_agent(stage, "failed")]
    _killed(stage, Window(words, "before"), *arguments, deed=f"echo $$ > {left}; kill -9 $PPID; sleep 50")
    assert _is_alive(int(left.read_text()))
    stage.last = recover(stage)
    assert not _is_alive(int(left.read_text())), str(stage.last)
    assert (lost(stage) if begun(stage) else [], left_over(stage)) == ([], []), str(stage.last)


def _is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_what_a_person_took_back_meanwhile_is_not_brought_back_by_a_second_recovery(stage: Stage) -> None:
    _run_killed(stage, Window("commit --quiet", "before"))
    _killed(stage, Window("refs/heads/issue-1", "after"), "recover")
    assert stage.world.on_origin("issue-1")
    reverted = stage.on_branch("issue-1", "one.txt", "taken back\n", base="issue-1")
    stage.last = done = recover(stage)
    assert stage.world.on_origin("issue-1") == reverted, str(done)
    _is_retained_whole(stage, done)


def _is_retained_whole(stage: Stage, done: Result) -> None:
    (worktree,) = stage.worktrees()
    assert f"worktree: {worktree}" in done.stderr
    assert (lost(stage), (worktree / "secret.env").read_text()) == (["k\n"], "k\n")


def test_a_lock_that_a_killed_git_left_behind_keeps_nothing_from_being_kept(stage: Stage) -> None:
    agent = f"{an_agent(stage, 'failed')}-lock"
    script = f"#!/bin/sh\n{stage.root}/agent; touch $(git rev-parse --absolute-git-dir)/index.lock; exit 3\n"
    (stage.root / "agent-lock").write_text(script)
    (stage.root / "agent-lock").chmod(0o755)
    number = stage.issue()
    _killed(stage, Window("status", "before"), "run", stage.url(number), "--agent", agent)
    assert begun(stage)
    done = recover(stage)
    assert done.status == 3, str(done)
    (lock,) = (stage.clone / ".git" / "worktrees").rglob("index.lock")  # a live process could own it
    _is_retained_whole(stage, done)
    lock.unlink()
