"""`kill -9` at any step: what was made is kept, and `nightkeep recover` finishes the Run."""

import fcntl
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass

import pytest

from tests.proof import full, seed
from tests.scenarios.repairing import QUICKLY, move_base
from tests.scenarios.stage import NIGHTKEEP, Result, Stage, nightkeep
from tests.world import commit, git

# Before or after its n-th git command the runner is killed; what an agent does with git does not count.
_SHIM = """\
#!/bin/sh
runner=$(cat {place}/runner 2>/dev/null)
if [ "$PPID" != "$runner" ]; then exec {git} "$@"; fi
number=$(($(cat {place}/number) + 1)); echo $number > {place}/number
if [ "$number {moment}" = "{wanted} before" ]; then kill -9 "$runner"; exit 1; fi
{git} "$@"; status=$?
if [ "$number {moment}" = "{wanted} after" ]; then kill -9 "$runner"; fi
exit $status
"""
LEAVES = """\
echo one > one.txt; git add one.txt; git commit -qm one; git commit -q --amend -m 'one, amended'
echo two > two.txt; git add two.txt; echo staged > three.txt; git add three.txt; echo edited > three.txt
echo k > secret.env; mkdir -p deep; echo deep > deep/four.txt"""
# Before a Repair the branch conflicts with its Base branch, in the Repair it is half resolved for a while.
_CONFLICTS = f"""\
case $NIGHTKEEP_SESSION in
implement) {LEAVES}; echo ours > a.txt; git commit -qm ours a.txt; {{move}};;
*) echo both > a.txt; git add a.txt; git commit -q --no-edit;;
esac"""
ENDINGS = {
    "delivered": f"{LEAVES}\nexit 0",
    "failed": f"{LEAVES}\nexit 3",
    "repaired": _CONFLICTS,
    "merged": f"{LEAVES}\nexit 0",
}
_MOST = 60  # git commands of one Run, about


@dataclass(frozen=True)
class Kill:
    """Where a Run is killed."""

    ending: str
    number: int
    moment: str

    def __str__(self) -> str:
        return f"{self.ending}-{self.moment}-git-{self.number}"


def _kills() -> list[Kill]:
    all_of_them = [
        Kill(ending, number, moment)
        for ending in ENDINGS
        for number in range(1, _MOST + 1)
        for moment in ("before", "after")
    ]
    return all_of_them if full() else random.Random(seed()).sample(all_of_them, 6)


def killed(stage: Stage, number: int, agent: str, kill: Kill) -> int:
    """Run with the shim before git; return the runner's exit status."""
    place = stage.root / "shim"
    place.mkdir()
    (place / "number").write_text("0")
    real = shutil.which("git")
    (place / "git").write_text(_SHIM.format(place=place, git=real, moment=kill.moment, wanted=kill.number))
    (place / "git").chmod(0o755)
    merge = ["--merge"] if kill.ending == "merged" else []
    process = subprocess.Popen(
        [*NIGHTKEEP, "run", stage.url(number), "--agent", agent, "--token-file", str(stage.token_file), *merge],
        cwd=stage.clone,
        env={**os.environ, **stage.environment, **QUICKLY, "PATH": f"{place}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    (place / "runner").write_text(str(process.pid))
    process.communicate(timeout=60)
    return process.returncode


def recover(stage: Stage) -> Result:
    return nightkeep("recover", "--token-file", str(stage.token_file), cwd=stage.clone, environment=stage.environment)


def found(stage: Stage, content: str) -> bool:
    """Whether a file of that content is on origin, in a rescue ref of the clone or in the rescue store."""
    blob = (
        subprocess.run(
            ["git", "hash-object", "--stdin"],
            cwd=stage.clone,
            input=content.encode(),
            stdout=subprocess.PIPE,
            check=True,
        )
        .stdout.decode()
        .strip()
    )
    if blob in git(stage.world.origin, "rev-list", "--objects", "--all"):
        return True
    if blob in git(stage.clone, "rev-list", "--objects", "--glob=refs/nightkeep"):
        return True
    store = stage.clone / ".git" / "nightkeep" / "rescue"
    return any(file.read_text() == content for file in store.rglob("*") if file.is_file() and file.suffix != ".json")


@pytest.mark.parametrize("kill", _kills(), ids=str)
def test_a_killed_run_is_finished_by_recovery(stage: Stage, kill: Kill) -> None:
    number = stage.issue()
    agent = stage.root / "agent"
    script = ENDINGS[kill.ending].replace("{move}", move_base(stage, "a.txt", "theirs"))
    agent.write_text(f"#!/bin/sh\ntouch {stage.root}/begun\n{script}\n")
    agent.chmod(0o755)
    status = killed(stage, number, str(agent), kill)
    if status != -signal.SIGKILL:
        pytest.skip("this Run has fewer git commands") if not full() else None
        return
    done = recover(stage)
    kept_here = any((stage.clone / ".git" / "nightkeep" / "rescue").glob("*"))
    assert done.status == (3 if kept_here else 0), str(done)
    begun = (stage.root / "begun").exists()
    contents = ["one\n", "two\n", "staged\n", "edited\n", "k\n", "deep\n"] if begun else []
    assert [content for content in contents if not found(stage, content)] == [], str(done)
    _check_world(stage, number, done)
    again = recover(stage)
    assert "there is nothing to recover" in again.stderr, str(again)


def _check_world(stage: Stage, number: int, done: Result) -> None:
    """Nothing is left over, and GitHub says what is so."""
    assert stage.worktrees() == [], str(done)
    common = stage.clone / ".git"
    assert not list((common / "nightkeep" / "runs").glob("*")), str(done)
    assert git(stage.clone, "branch", "--list", "issue-1") == "", str(done)
    assert not list(common.rglob("*.lock")), str(done)
    assert not list((common / "worktrees").glob("*")), str(done)
    pulls = stage.api("GET", "pulls?state=all")
    labels = stage.labels(number)
    made = bool(git(stage.world.origin, "for-each-ref", "refs/heads/issue-1"))
    if any(pull["merged_at"] for pull in pulls):
        over = (stage.api("GET", f"issues/{number}")["state"], labels, made)
        assert over == ("closed", {"bug"}, False), str(done)
        return
    if not made:
        assert (pulls, labels & {"in-progress", "ready-for-agent"}) == ([], {"ready-for-agent"}), str(done)
        return
    assert "in-progress" in labels, str(done)
    (pull,) = pulls
    notes = [comment["body"] for comment in stage.api("GET", f"issues/{pull['number']}/comments")]
    if pull["draft"]:
        assert len([note for note in notes if "could not finish this" in note]) == 1, notes
    else:
        assert not [note for note in notes if "could not finish this" in note], notes


def test_the_next_run_finishes_what_was_killed(stage: Stage) -> None:
    number = stage.issue()
    agent = stage.root / "agent"
    agent.write_text(f"#!/bin/sh\ntouch {stage.root}/begun\n{ENDINGS['failed']}\n")
    agent.chmod(0o755)
    assert killed(stage, number, str(agent), Kill("failed", 20, "after")) == -signal.SIGKILL
    assert (stage.root / "begun").exists()
    result = stage.run(number, stage.agent("test -e one.txt && echo on > lamp.txt"))
    assert result.status == 0, str(result)
    assert "finishing a run on issue-1 whose runner was killed" in result.stderr
    assert stage.world.origin_file("issue-1", "one.txt") == "one"
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"
    (pull,) = stage.api("GET", "pulls?state=all")
    assert pull["draft"] is False


def _killed_with_work(stage: Stage) -> None:
    agent = stage.root / "agent"
    agent.write_text(f"#!/bin/sh\ntouch {stage.root}/begun\n{ENDINGS['failed']}\n")
    agent.chmod(0o755)
    assert killed(stage, stage.issue(), str(agent), Kill("failed", 20, "after")) == -signal.SIGKILL
    assert (stage.root / "begun").exists()


def test_a_copy_of_the_clone_leaves_the_originals_run_alone(stage: Stage) -> None:
    go, there = stage.root / "go", stage.root / "there"
    agent = stage.agent(f"echo on > lamp.txt; touch {there}; until [ -e {go} ]; do sleep 0.05; done")
    process = subprocess.Popen(
        [*NIGHTKEEP, "run", stage.url(stage.issue()), "--agent", agent, "--token-file", str(stage.token_file)],
        cwd=stage.clone,
        env={**os.environ, **stage.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    while not there.exists():
        time.sleep(0.05)
    shutil.copytree(stage.clone, stage.root / "copy" / "widget", symlinks=True)
    done = nightkeep("recover", "--token-file", str(stage.token_file), cwd=stage.root / "copy" / "widget")
    go.touch()
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, done.status) == (0, 0), said.decode() + str(done)
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"


@pytest.mark.parametrize("record", ["{", "{}"])
def test_a_record_that_cannot_be_read_is_left_alone_and_nothing_released(stage: Stage, record: str) -> None:
    _killed_with_work(stage)
    (file,) = (stage.clone / ".git" / "nightkeep" / "runs").glob("*/record.json")
    file.write_text(record)
    done = recover(stage)
    assert done.status == 75, str(done)
    assert "its record cannot be read" in done.stderr
    assert (stage.labels(1), len(stage.worktrees())) == ({"bug", "in-progress"}, 1)
    for worktree in stage.worktrees():
        shutil.rmtree(worktree)


def test_without_a_journal_the_work_is_kept_and_a_persons_later_branch_is_theirs(stage: Stage) -> None:
    _killed_with_work(stage)
    for journal in stage.state.rglob("*-journal.jsonl"):
        journal.unlink()
    assert recover(stage).status in (0, 3)
    assert found(stage, "one\n")
    git(stage.clone, "checkout", "-q", "-b", "issue-1")
    mine = commit_in(stage, "my private work")
    git(stage.clone, "checkout", "-q", "main")
    done = recover(stage)
    assert "there is nothing to recover" in done.stderr, str(done)
    assert mine not in git(stage.world.origin, "rev-list", "--all")
    assert git(stage.clone, "rev-parse", "issue-1") == mine


def commit_in(stage: Stage, text: str) -> str:
    (stage.clone / "mine.txt").write_text(text)
    return commit(stage.clone, text)


def test_two_recoveries_do_not_meet(stage: Stage) -> None:
    _killed_with_work(stage)
    descriptor = os.open(stage.clone / ".git" / "nightkeep", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert "another recovery is at work" in recover(stage).stderr
    os.close(descriptor)
    assert stage.labels(1) == {"bug", "in-progress"}
    assert recover(stage).status == 3
