"""Whose a worktree is: one whose runner lives, or in which anybody is at work, is left alone, and named."""

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.scenarios.killing import Exchanges, Point, an_agent, begun, found, killed, left_over, lost, recover
from tests.scenarios.stage import NIGHTKEEP, Result, Stage, nightkeep
from tests.waiting import wait_for
from tests.world import commit, git

pytestmark = pytest.mark.usefixtures("quickly")


@contextmanager
def live_run(stage: Stage) -> Iterator[None]:
    """Have a Run be at work in the block; it must deliver what its agent then still finds where it was."""
    go, there = stage.root / "go", stage.root / "there"
    agent = stage.agent(f"echo on > lamp.txt; touch {there}; until [ -e {go} ]; do sleep 0.05; done; test -e lamp.txt")
    process = subprocess.Popen(
        [*NIGHTKEEP, "run", stage.url(stage.issue()), "--agent", agent, "--token-file", str(stage.token_file)],
        cwd=stage.clone,
        env={**os.environ, **stage.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_for(there.exists)
        yield
    finally:
        go.touch()
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said.decode()
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"
    assert left_over(stage) == []


def killed_with_work(stage: Stage) -> None:
    """Leave a Run whose runner was killed when its agent had failed."""
    arguments = ["run", stage.url(stage.issue()), "--agent", an_agent(stage, "failed")]
    assert killed(stage, arguments, Point("git", 20, "after"), Exchanges())
    assert begun(stage)


# A runner that lives

_BARE = ("git", "sh", "env", "cat")


def _without_ps(stage: Stage) -> dict[str, str]:
    programs = stage.root / "programs"
    programs.mkdir()
    for name in _BARE:
        (programs / name).symlink_to(shutil.which(name) or name)
    return {"PATH": str(programs)}


@pytest.mark.parametrize(
    "elsewhere",
    [
        (),
        ("unshare", "--pid", "--fork", "--mount-proc"),
        ("unshare", "--uts", "sh", "-c", 'hostname another && exec "$@"', "-"),
    ],
    ids=["the-same-place", "another-container", "another-host"],
)
def test_a_run_that_is_at_work_is_left_alone_from_wherever_somebody_recovers(
    stage: Stage, elsewhere: Sequence[str]
) -> None:
    if elsewhere and subprocess.run([*elsewhere, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a namespace")
    with live_run(stage):
        done = _recover_by(stage, elsewhere, {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", **_without_ps(stage)})
        assert (done.status, "there is nothing to recover" in done.stderr) == (0, True), str(done)
        assert "on issue-1 is at work: process" in done.stderr


def _recover_by(stage: Stage, prefix: Sequence[str], environment: dict[str, str]) -> Result:
    command = [*prefix, *NIGHTKEEP, "recover", "--token-file", str(stage.token_file)]
    done = subprocess.run(
        ["env", *(f"{name}={value}" for name, value in environment.items() if not prefix), *command],
        cwd=stage.clone,
        env={**os.environ, **stage.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_a_second_run_of_the_issue_does_not_begin_while_the_first_is_at_work(stage: Stage) -> None:
    with live_run(stage):
        second = stage.command(
            "run", stage.url(1), "--agent", stage.agent("true"), "--token-file", str(stage.token_file)
        )
        assert second.status == 2, str(second)
        assert len(stage.worktrees()) == 1


def test_a_copy_of_the_clone_leaves_the_originals_run_alone(stage: Stage) -> None:
    with live_run(stage):
        shutil.copytree(stage.clone, stage.root / "copy" / "widget", symlinks=True)
        done = nightkeep("recover", "--token-file", str(stage.token_file), cwd=stage.root / "copy" / "widget")
        assert done.status == 0, str(done)


# Somebody at work in a worktree whose runner is gone


def test_a_person_at_work_in_a_dead_runs_worktree_defers_its_recovery(stage: Stage) -> None:
    killed_with_work(stage)
    (worktree,) = stage.worktrees()
    before = {path: path.read_bytes() for path in worktree.rglob("*") if path.is_file()}
    with subprocess.Popen(["sleep", "100"], cwd=worktree) as person:
        for _ in range(2):
            done = recover(stage)
            assert done.status == 75, str(done)
            assert f"somebody is at work in {worktree}: process {person.pid} (sleep); close it" in done.stderr, str(
                done
            )
            assert {path: path.read_bytes() for path in worktree.rglob("*") if path.is_file()} == before
            assert stage.labels(1) == {"bug", "in-progress"}
        person.kill()
    assert recover(stage).status == 3
    assert (lost(stage), left_over(stage)) == ([], [])


def test_what_a_dead_runs_session_has_left_running_is_stopped_before_its_work_is_kept(stage: Stage) -> None:
    killed_with_work(stage)
    (worktree,) = stage.worktrees()
    (record,) = (stage.clone / ".git" / "nightkeep" / "runs").iterdir()
    late = "while :; do date >> late.txt; sleep 0.05; done"
    writer = subprocess.Popen(["sh", "-c", late], cwd=worktree, env={**os.environ, "NIGHTKEEP_RUN": record.name})
    try:
        wait_for((worktree / "late.txt").exists)
        done = recover(stage)
        assert done.status == 3, str(done)
        assert f"nightkeep: to go on: nightkeep run {stage.url(1)} --agent " in done.stderr
        assert writer.wait(10) == -signal.SIGTERM
    finally:
        writer.kill()
        writer.wait()
    assert "late.txt" in stage.files("issue-1")
    assert (lost(stage), left_over(stage)) == ([], [])


# Records and journals that tell nothing


def test_a_record_that_cannot_be_read_is_left_alone_and_nothing_released(stage: Stage) -> None:
    killed_with_work(stage)
    (file,) = (stage.clone / ".git" / "nightkeep" / "runs").glob("*/record.json")
    file.write_text("{")
    done = recover(stage)
    assert done.status == 75, str(done)
    assert "its record cannot be read" in done.stderr
    assert (stage.labels(1), len(stage.worktrees())) == ({"bug", "in-progress"}, 1)
    for worktree in stage.worktrees():
        shutil.rmtree(worktree)


def test_without_a_journal_the_work_is_kept_and_a_persons_later_branch_is_theirs(stage: Stage) -> None:
    killed_with_work(stage)
    for journal in stage.state.rglob("*-journal.jsonl"):
        journal.unlink()
    assert recover(stage).status in (0, 3)
    assert found(stage, "one\n")
    git(stage.clone, "checkout", "-q", "-b", "issue-1")
    (stage.clone / "mine.txt").write_text("my private work")
    mine = commit(stage.clone, "my private work")
    git(stage.clone, "checkout", "-q", "main")
    done = recover(stage)
    assert "there is nothing to recover" in done.stderr, str(done)
    assert mine not in git(stage.world.origin, "rev-list", "--all")
    assert git(stage.clone, "rev-parse", "issue-1") == mine


def test_two_recoveries_do_not_meet(stage: Stage) -> None:
    killed_with_work(stage)
    descriptor = os.open(stage.clone / ".git" / "nightkeep", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert "another recovery is at work" in recover(stage).stderr
    os.close(descriptor)
    assert stage.labels(1) == {"bug", "in-progress"}
    assert recover(stage).status == 3


# Worktrees of a person's that look like ours


def test_a_persons_worktrees_on_branches_of_runs_are_no_runs(stage: Stage) -> None:
    killed_with_work(stage)
    git(stage.clone, "branch", "issue-2")
    review, away = stage.root / "review", stage.root / "unmounted"
    git(stage.clone, "worktree", "add", "-q", "--lock", "--reason", "nightkeep, to be reviewed", str(review), "issue-2")
    git(stage.clone, "worktree", "add", "-q", "--detach", str(away))
    (away / "a.txt").write_text("detached\n")
    detached = commit(away, "on no branch")
    (review / "notes.txt").write_text("notes\n")
    away.rename(stage.root / "on-its-disk")
    result = stage.command("run", stage.url(1), "--agent", stage.agent("echo on > l"), "--token-file", "../../token")
    assert result.status == 0, str(result)
    assert recover(stage).status == 0
    assert (review / "notes.txt").read_text() == "notes\n"
    assert git(review, "symbolic-ref", "HEAD") == "refs/heads/issue-2"
    (stage.root / "on-its-disk").rename(away)
    assert git(away, "rev-parse", "HEAD") == detached
    assert (lost(stage), set(stage.worktrees())) == ([], set())


def test_a_main_checkout_on_a_dead_runs_branch_is_a_persons(stage: Stage) -> None:
    killed_with_work(stage)
    git(stage.clone, "checkout", "-q", "--ignore-other-worktrees", "issue-1")
    (stage.clone / "one.txt").write_text("edited by a person\n")
    persons = stage._clone_as_it_is()
    linked = stage.root / "linked"
    git(stage.clone, "worktree", "add", "-q", "--detach", str(linked))
    done = nightkeep("recover", "--token-file", str(stage.token_file), cwd=linked, environment=stage.environment)
    assert done.status in (0, 3), str(done)
    after = stage._clone_as_it_is()
    for what in ("branch", "index", "files", "stash", "configuration"):
        assert after[what] == persons[what], what
    assert (stage.clone / "one.txt").read_text() == "edited by a person\n"
    assert lost(stage) == []


# A directory that somebody cleaned away


def test_a_retained_worktree_that_was_cleaned_away_is_told_with_where_its_work_is(stage: Stage) -> None:
    inside = stage.clone / ".worktrees"
    stage.world.hook("pre-receive", "echo 'no, for a reason that is yours to find'; exit 1")
    options = ["--agent", an_agent(stage, "failed"), "--token-file", str(stage.token_file)]
    result = stage.command("run", stage.url(stage.issue()), *options, NIGHTKEEP_WORKTREES_DIRECTORY=str(inside))
    assert result.status == 3, str(result)
    (worktree,) = inside.iterdir()
    git(stage.clone, "clean", "-q", "-ffdx")
    git(stage.clone, "reset", "-q", "--hard")
    done = recover(stage)
    assert f"{worktree} is gone, which was kept because" in done.stderr, str(done)
    (bundle,) = (stage.clone / ".git" / "nightkeep" / "rescue").rglob("*.bundle")
    assert str(bundle) in done.stderr, str(done)
    assert "is gone" not in recover(stage).stderr


def test_a_dead_runs_worktree_that_was_cleaned_away_is_told_and_its_commits_are_kept(stage: Stage) -> None:
    inside = stage.clone / ".worktrees"
    stage.environment["NIGHTKEEP_WORKTREES_DIRECTORY"] = str(inside)
    killed_with_work(stage)
    (worktree,) = inside.iterdir()
    git(stage.clone, "clean", "-q", "-ffdx")
    done = recover(stage)
    assert done.status in (0, 3), str(done)
    assert f"{worktree} is gone" in done.stderr, str(done)
    assert found(stage, "one\n")
    assert left_over(stage) == []
