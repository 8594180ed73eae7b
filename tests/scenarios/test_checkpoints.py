"""The work of a session that still runs is kept: here at once, and on origin for when this machine is gone."""

import os
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.scenarios.claiming import age_claim
from tests.scenarios.stage import Stage
from tests.scenarios.test_signals import Running, running
from tests.waiting import wait_for
from tests.worktree.test_screening import GITHUB
from tests.world import git

ALWAYS: Any = {"NIGHTKEEP_CHECKPOINTS_EVERY": "0.2s", "NIGHTKEEP_CHECKPOINTS_PUSH": "always"}
NEVER = ALWAYS | {"NIGHTKEEP_CHECKPOINTS_PUSH": "never"}
LEFT = """\
echo one > one.txt; git add one.txt; git commit -qm one; echo two >> a.txt; git rm -q b.txt; echo new > new.txt
echo staged > staged.txt; git add staged.txt; echo changed > staged.txt; """


def checkpoints(directory: Path) -> list[str]:
    """Return the commits that a repository's checkpoints are, as far as it has any."""
    return git(directory, "for-each-ref", "--format=%(objectname)", "refs/nightkeep/checkpoints").split()


def until_on_origin(stage: Stage) -> str:
    """Return what makes an agent wait until origin has a checkpoint that was begun after all it has made so far."""
    there = f"git --git-dir {shlex.quote(str(stage.world.origin))}"
    # One can be in the making now, of what HEAD and the index were a moment ago.
    return f"""\
for ready in ready.txt sure.txt; do
    touch $ready; n=0
    until {there} for-each-ref --format='%(objectname)' refs/nightkeep/checkpoints | while read one; do
        {there} cat-file -e $one:$ready 2>/dev/null && echo yes; done | grep -q yes
    do n=$((n+1)); [ $n -lt 900 ] || exit 9; sleep 0.02; done
done; """


def test_checkpoint_is_on_origin_while_the_session_runs_and_gone_after_delivery(stage: Stage) -> None:
    seen = stage.root / "seen"
    agent = stage.agent(LEFT + until_on_origin(stage) + f"git --git-dir {stage.world.origin} show-ref > {seen}")
    result = stage.run(stage.issue(), agent, **ALWAYS)
    assert result.status == 0, str(result)
    assert "refs/nightkeep/checkpoints/" in seen.read_text()
    assert "origin has a checkpoint" in result.stderr
    assert checkpoints(stage.world.origin) == checkpoints(stage.clone) == []


def test_each_checkpoint_is_a_child_of_the_one_before_and_has_the_shape_of_a_stash(stage: Stage) -> None:
    agent = stage.agent(
        f"{LEFT}{until_on_origin(stage)}echo more > more.txt; touch {stage.root}/go; sleep 1; kill -9 $$"
    )
    copy = stage.root / "copy.git"
    stage.world.hook(
        "post-receive",
        f"[ -e {stage.root}/go ] && [ ! -e {copy} ] && cp -r {stage.world.origin} {copy}; true",
    )
    stage.run(stage.issue(), agent, **ALWAYS)
    (last,) = checkpoints(copy)
    head, index, before = git(copy, "rev-parse", f"{last}^@").split()
    assert git(copy, "log", "-1", "--format=%s", head) == "one"
    assert git(copy, "show", f"{index}:staged.txt") == "staged"
    assert git(copy, "show", f"{last}:staged.txt") == "changed"
    assert {"more.txt", "new.txt", "ready.txt"} <= set(git(copy, "ls-tree", "--name-only", last).splitlines())
    assert "b.txt" not in git(copy, "ls-tree", "--name-only", last).splitlines()
    assert "Nightkeep-Branch: issue-1" in git(copy, "log", "-1", "--format=%B", before)


def test_nothing_is_published_of_a_public_repository_unless_it_is_wanted(stage: Stage) -> None:
    said = stage.root / "said"
    agent = stage.agent(
        f"echo x > x.txt; n=0; until git show-ref | grep checkpoints/; do n=$((n+1)); [ $n -lt 900 ] || exit 9; "
        f"sleep 0.02; done; sleep 0.6; git --git-dir {stage.world.origin} show-ref > {said}"
    )
    result = stage.run(stage.issue(), agent, **NEVER)
    assert result.status == 0, str(result)
    assert "checkpoints" not in said.read_text()
    assert checkpoints(stage.clone) == []


def test_secret_is_in_no_checkpoint_on_origin(stage: Stage) -> None:
    agent = stage.agent(f"echo {GITHUB} > key.txt; echo one > one.txt; " + until_on_origin(stage) + "exit 3")
    copy = stage.root / "copy.git"
    is_there = "git for-each-ref refs/nightkeep/checkpoints | grep -q ."
    stage.world.hook("post-receive", f"[ -e {copy} ] || ! {is_there} || cp -r {stage.world.origin} {copy}")
    stage.run(stage.issue(), agent, **ALWAYS)
    (last,) = checkpoints(copy)
    assert set(git(copy, "ls-tree", "--name-only", last).splitlines()) >= {"one.txt"}
    held = subprocess.run(["git", "grep", GITHUB, last], cwd=copy, capture_output=True, check=False)
    assert held.returncode == 1


def test_token_is_in_no_process_while_a_checkpoint_is_sent(stage: Stage) -> None:
    """The agent reads what it may of every process of its Run, all the time, and notes what looks like the token."""
    spy = stage.root / "spy.py"
    spy.write_text(
        """\
import ctypes, os, pathlib, sys, time
token = b"writer-token-" + b"0001"
end = time.monotonic() + 20
found = pathlib.Path(sys.argv[1])

def peek(path):
    # By tee(2), which leaves it there: reading would take it from whoever waits for it.
    pipe, (source, sink) = os.open(path, os.O_RDONLY | os.O_NONBLOCK), os.pipe()
    try:
        nonblocking = 2
        return os.read(source, 4096) if ctypes.CDLL(None).tee(pipe, sink, 4096, nonblocking) > 0 else b""
    finally:
        for descriptor in (pipe, source, sink):
            os.close(descriptor)

while time.monotonic() < end and not pathlib.Path("stop").exists():
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            environ, command = ((process / part).read_bytes() for part in ("environ", "cmdline"))
            if os.fsencode(found.parent) not in environ + command:
                continue  # of another Run on this machine, whose token may be the same
            if token in environ + command:
                found.write_text("environ or cmdline")
            for descriptor in (process / "fd").iterdir() if b"git" in command else ():
                if os.readlink(descriptor).startswith("pipe:") and token in peek(descriptor):
                    found.write_text("pipe")
        except OSError:
            pass
"""
    )
    found = stage.root / "found"
    agent = stage.agent(
        f"python3 -B {spy} {found} & {LEFT}{until_on_origin(stage)}"
        "rm ready.txt sure.txt; echo again > again.txt; sleep 2; touch stop; wait; rm stop"
    )
    result = stage.run(stage.issue(), agent, **ALWAYS)
    assert result.status == 0, str(result)
    assert not found.exists(), found.read_text()


def test_origin_that_takes_no_checkpoint_does_not_stop_the_run(stage: Stage) -> None:
    stage.world.hook("update", 'case "$1" in refs/nightkeep/checkpoints/*) echo not those >&2; exit 1;; esac')
    agent = stage.agent("echo x > x.txt; n=0; until git show-ref | grep checkpoints/; do sleep 0.02; done; sleep 1")
    result = stage.run(stage.issue(), agent, **ALWAYS)
    assert result.status == 0, str(result)
    assert result.stderr.count("the checkpoint stays on this machine: origin did not take it") == 1, result.stderr


# The first signal


@pytest.mark.parametrize(("files", "size"), [(500, 40_000)])
def test_first_signal_makes_a_checkpoint_before_anything_slow(stage: Stage, files: int, size: int) -> None:
    """An agent that ignores the signal keeps the runner busy; the work is in a local ref long before."""
    script = f"""\
import os, pathlib, signal, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
for number in range({files}):
    pathlib.Path(f"file-{{number}}.bin").write_bytes(os.urandom({size}))
pathlib.Path({{there}}).touch()
time.sleep(1000)
"""
    program = stage.root / "stubborn.py"
    program.write_text(script.replace("{there}", repr(str(stage.root / "there"))))
    with running(stage, f"exec python3 {program}") as run:
        wait_for(run.there.exists)
        run.send(signal.SIGTERM)
        wait_for(lambda: checkpoints(stage.clone))
        assert run.process.poll() is None
        (last,) = checkpoints(stage.clone)
        held = git(stage.clone, "ls-tree", "-r", "--name-only", last).splitlines()
        assert len([name for name in held if name.startswith("file-")]) == files
        kill(run)
        assert stage.command("recover", "--token-file", str(stage.token_file)).status == 0
    assert checkpoints(stage.clone) == []


def kill(run: Running) -> None:
    """Kill all that runs, as the end of a machine does."""
    run.process.kill()
    run.end()
    for process in run.stage.processes():
        with suppress(psutil.NoSuchProcess):
            process.kill()


# A machine that is gone


def vanish(stage: Stage, script: str, minutes: int = 20) -> None:
    """Run an agent until origin has a checkpoint, then put another machine in the place of the one it ran on."""
    with running(stage, script + until_on_origin(stage) + "touch {there}; sleep 1000", **ALWAYS) as run:
        wait_for(run.there.exists)
        kill(run)
        for left in Path(os.environ["TMPDIR"]).iterdir():
            shutil.rmtree(left)
    shutil.rmtree(stage.clone.parent)
    shutil.rmtree(stage.state)
    stage.clone.parent.mkdir()
    git(stage.root, "clone", "-q", str(stage.world.origin), str(stage.clone))
    git(stage.clone, "remote", "set-url", "origin", stage.hub.url + "/acme/widget.git")
    age_claim(stage.world, 1, minutes)


def test_next_run_goes_on_where_the_machine_vanished(stage: Stage) -> None:
    vanish(stage, LEFT)
    looks = stage.root / "looks"
    look = f"{{ git log -1 --format=%s; git status --porcelain; cat staged.txt; }} > {looks}"
    agent = stage.agent(f"{look}; git add -A; git commit -qm rest")
    result = stage.run(1, agent)
    assert result.status == 0, str(result)
    assert looks.read_text().splitlines() == [
        "one", " M a.txt", "D  b.txt", "AM staged.txt", "?? new.txt", "?? ready.txt", "?? sure.txt", "changed",
    ]  # fmt: skip
    pull = stage.pull()
    assert not pull["draft"]
    (said,) = stage.comments(pull["number"])
    assert "went on from the checkpoint of" in said
    assert {"one.txt", "new.txt", "staged.txt"} <= stage.files("issue-1")
    rescued = [ref for ref in stage.refs() if ref.startswith("refs/nightkeep/")]
    assert [ref.rsplit("/", 1)[1] for ref in rescued] == ["checkpoint"]
    assert rescued[0].startswith("refs/nightkeep/rescue/")


def test_failed_run_that_went_on_from_a_checkpoint_says_so(stage: Stage) -> None:
    vanish(stage, LEFT)
    result = stage.run(1, stage.agent("exit 3"), "--json")
    assert result.status == 1, str(result)
    assert "went on from" in stage.note(stage.pull()["number"])
    assert {"one.txt", "new.txt", "staged.txt"} <= stage.files("issue-1")


def test_claim_whose_lease_has_not_ended_is_left_alone(stage: Stage) -> None:
    vanish(stage, LEFT, minutes=5)
    before = stage.refs()
    result = stage.run(1, stage.agent("true"))
    assert result.status == 2, str(result)
    assert "issue #1 is claimed: run 20" in result.stderr
    assert "run this again after 20" in result.stderr
    assert stage.refs() == before


def test_checkpoint_whose_claim_a_person_ended_is_gone_on_from_at_once(stage: Stage) -> None:
    vanish(stage, LEFT, minutes=5)
    git(stage.clone, "push", "-q", str(stage.world.origin), "--delete", "refs/nightkeep/claims/1")
    result = stage.run(1, stage.agent("true"))
    assert result.status == 0, str(result)
    assert {"one.txt", "new.txt", "staged.txt"} <= stage.files("issue-1")


def test_branch_that_has_moved_since_is_gone_on_from_and_the_checkpoint_is_kept(stage: Stage) -> None:
    git(stage.world.origin, "branch", "issue-1", "main")
    vanish(stage, LEFT)
    stage.on_branch("issue-1", "other.txt", "theirs", base="issue-1")
    result = stage.run(1, stage.agent("echo mine > mine.txt"))
    assert result.status == 0, str(result)
    assert {"other.txt", "mine.txt"} <= stage.files("issue-1")
    assert "one.txt" not in stage.files("issue-1")
    (kept,) = [ref for ref in stage.refs() if ref.startswith("refs/nightkeep/")]
    assert {"one.txt", "new.txt"} <= stage.files(kept)


def test_somebodys_words_in_a_checkpoint_are_no_checkpoint_of_ours(stage: Stage) -> None:
    git(stage.world.origin, "update-ref", "refs/nightkeep/checkpoints/odd", "main")
    result = stage.run(stage.issue(), stage.agent("echo x > x.txt"))
    assert result.status == 0, str(result)
    assert "refs/nightkeep/checkpoints/odd" in stage.refs()


def test_worktree_that_somebody_deleted_is_preserved_from_its_checkpoint(stage: Stage) -> None:
    with running(stage, LEFT + until_on_origin(stage) + "touch {there}; sleep 1000", **ALWAYS) as run:
        wait_for(run.there.exists)
        kill(run)
        (path,) = stage.worktrees()
        shutil.rmtree(path)
        result = stage.command("recover", "--token-file", str(stage.token_file), "--json")
    assert result.status == 0, str(result)
    (kept,) = [ref for ref in stage.refs() if ref.endswith("/snapshot")]
    assert {"one.txt", "new.txt", "staged.txt"} <= stage.files(kept)
    assert checkpoints(stage.world.origin) == checkpoints(stage.clone) == []
