"""One issue, several machines: one of them has it, and nothing lands of one that has lost it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from runner.hub import drills
from tests.scenarios.claiming import age_claim, claim, claim_ref, claims, put_claim
from tests.scenarios.stage import NAME, NIGHTKEEP, Stage
from tests.scenarios.test_signals import running
from tests.waiting import wait_for
from tests.world import git

QUICK: Any = {"NIGHTKEEP_LIMITS_LEASE": "3s", "NIGHTKEEP_LIMITS_HEARTBEAT": "0.5s"}


def another_clone(stage: Stage, name: str = "second") -> Path:
    """Make a clone as it is on another machine."""
    clone = stage.root / name / "widget"
    clone.parent.mkdir()
    git(stage.root, "clone", "-q", str(stage.world.origin), str(clone))
    git(clone, "remote", "set-url", "origin", f"{stage.hub.url}/{NAME}.git")
    return clone


def begin(stage: Stage, clone: Path, number: int, agent: str, **environment: str) -> "subprocess.Popen[str]":
    """Start a Run in a clone, with a state directory of its own machine's."""
    command = [*NIGHTKEEP, "run", stage.url(number), "--agent", agent, "--token-file", str(stage.token_file)]
    return subprocess.Popen(
        command,
        cwd=clone,
        env={**os.environ, **stage.environment, "XDG_STATE_HOME": str(clone.parent / "state"), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_claim_is_on_origin_while_a_run_works_and_gone_afterwards(stage: Stage) -> None:
    number = stage.issue()
    look = f"git --git-dir {shlex.quote(str(stage.world.origin))} log -1 --format=%B {claim_ref(number)}"
    result = stage.run(number, stage.agent(f"{look} > {stage.root}/said; echo x > x.txt"))
    assert result.status == 0, str(result)
    said = json.loads((stage.root / "said").read_text())
    assert (said["version"], said["issue"], said["branch"]) == (1, stage.url(number), "issue-1")
    assert (said["clock"], said["lease"], len(said["nonce"])) == ("server", 900.0, 32)
    assert claims(stage.world) == []


@pytest.mark.parametrize("script", ["exit 3", "echo x > x.txt; exit 3", "true"])
def test_claim_is_gone_after_a_failed_run(stage: Stage, script: str) -> None:
    result = stage.run(number := stage.issue(), stage.agent(script))
    assert result.status == 1, str(result)
    assert claims(stage.world) == []
    made = "x.txt" in script
    assert ("in-progress" in stage.labels(number), "ready-for-agent" in stage.labels(number)) == (made, not made)


def test_claim_is_gone_after_a_merge_run(stage: Stage) -> None:
    result = stage.run(stage.issue(), stage.agent("echo x > x.txt"), "--merge", NIGHTKEEP_CHECKS_GRACE="0.2s")
    assert result.status == 0, str(result)
    assert claims(stage.world) == []
    assert "refs/heads/issue-1" not in stage.refs()


def test_one_of_two_that_start_at_once_gets_the_issue(stage: Stage) -> None:
    gate = f"until [ -e {stage.root}/go ]; do sleep 0.1; done"
    number, agent = stage.issue(), stage.agent(f"{gate}; echo x > x.txt")
    both = [begin(stage, clone, number, agent) for clone in (stage.clone, another_clone(stage))]
    wait_for(lambda: [process for process in both if process.poll() is not None])
    (stage.root / "go").touch()
    said = [process.communicate(timeout=60)[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], said
    loser = said[0] if both[0].returncode else said[1]
    assert "is claimed: run" in loser
    assert len(stage.pulls()) == 1
    assert claims(stage.world) == []
    assert "in-progress" in stage.labels(number)


def test_issue_that_a_live_run_has_is_left_alone(stage: Stage) -> None:
    """Signs of life keep it, long after its first lease."""
    with running(stage, "touch {there}; sleep 1000", **QUICK) as run:
        wait_for(run.there.exists)
        first = claim(stage.world, 1)
        wait_for(lambda: seconds_since(first, claim(stage.world, 1)) > 4)
        second = another_clone(stage)
        result = stage.run_in(second, 1, stage.agent("true"))
        assert result.status == 2, str(result)
        assert f"issue #1 is claimed: run {first['run']} on " in result.stderr
        assert f"git push origin --delete {claim_ref(1)}" in result.stderr
        assert claim(stage.world, 1)["nonce"] == first["nonce"]
        run.process.send_signal(signal.SIGTERM)
        run.end()
    assert claims(stage.world) == []


def seconds_since(first: dict[str, str], last: dict[str, str]) -> float:
    """Return how long after one record another was made."""
    return (datetime.fromisoformat(last["moment"]) - datetime.fromisoformat(first["moment"])).total_seconds()


def test_run_that_was_frozen_past_its_lease_pushes_nothing_more_and_its_work_is_kept(stage: Stage) -> None:
    with running(stage, "echo mine > mine.txt; git add .; git commit -qm mine; touch {there}; sleep 6", **QUICK) as run:
        wait_for(run.there.exists)
        run.process.send_signal(signal.SIGSTOP)
        second = another_clone(stage)
        wait_for(lambda: stage.run_in(second, 1, stage.agent("echo theirs > theirs.txt")).status == 0)
        theirs = stage.world.on_origin("refs/heads/issue-1")
        run.process.send_signal(signal.SIGCONT)
        document = run.end()
    assert (run.status, document["code"]) == (1, "lease-lost"), run.stderr
    assert stage.world.on_origin("refs/heads/issue-1") == theirs
    (kept,) = [ref for ref in stage.refs() if ref.startswith("refs/nightkeep/")]
    assert kept.startswith("refs/nightkeep/rescue/")
    assert kept.endswith("/head")
    assert "mine.txt" in stage.files(kept)
    pull = stage.pull()
    assert not pull["draft"]
    assert stage.comments(pull["number"]) == []
    (note,) = stage.comments(1)
    assert f"{claim_ref(1)} is lost: on origin it is " in note
    assert kept in note
    assert "are left alone" in note
    assert "in-progress" in stage.labels(1)


def test_claim_of_a_run_that_vanished_is_taken_over(stage: Stage) -> None:
    with running(stage, "touch {there}; sleep 1000") as run:
        wait_for(run.there.exists)
        dead = claim(stage.world, 1)
        run.process.kill()
        run.end()
        for process in stage.processes():
            process.kill()
        for left in Path(os.environ["TMPDIR"]).iterdir():
            shutil.rmtree(left)
    second = another_clone(stage)
    agent = stage.agent("echo x > x.txt")
    early = stage.run_in(second, 1, agent)
    assert early.status == 2, str(early)
    age_claim(stage.world, 1, 15)
    result = stage.run_in(second, 1, agent)
    assert result.status == 0, str(result)
    assert f"taking over the claim of run {dead['run']}" in result.stderr
    assert claims(stage.world) == []
    # Who was killed finds that when it is recovered: another has the issue, and nothing of it is touched.
    pulls, labels = stage.pulls(), stage.labels(1)
    recovered = stage.command("recover", "--token-file", str(stage.token_file))
    assert recovered.status == 0, str(recovered)
    assert (stage.pulls(), stage.labels(1)) == (pulls, labels)


@pytest.mark.parametrize("taken", [False, True], ids=["still its own", "taken over"])
def test_recovery_goes_on_with_the_claim_or_keeps_off(stage: Stage, *, taken: bool) -> None:
    with running(stage, "echo mine > mine.txt; touch {there}; sleep 1000") as run:
        wait_for(run.there.exists)
        run.process.kill()
        run.end()
        if taken:
            said = json.dumps(claim(stage.world, 1) | {"nonce": "f" * 32, "run": "another"})
            theirs = put_claim(stage.world, 1, said, stage.world.on_origin(claim_ref(1)))
        result = stage.command("recover", "--token-file", str(stage.token_file))
    assert result.status == 0, str(result)
    rescued = [ref for ref in stage.refs() if ref.startswith("refs/nightkeep/rescue/")]
    if not taken:
        assert (claims(stage.world), rescued) == ([], [])
        assert "mine.txt" in stage.files("issue-1")
        return
    assert stage.world.on_origin(claim_ref(1)) == theirs
    assert "refs/heads/issue-1" not in stage.refs()
    assert stage.pulls() == []
    assert any("mine.txt" in stage.files(ref) for ref in rescued)
    assert "overtaken" in stage.comments(1)[0]
    assert "in-progress" in stage.labels(1)


@pytest.mark.parametrize("taken", [False, True], ids=["still its own", "taken over"])
def test_run_without_a_journal_is_preserved_by_its_claim(stage: Stage, *, taken: bool) -> None:
    with running(stage, "echo mine > mine.txt; touch {there}; sleep 1000") as run:
        wait_for(run.there.exists)
        run.process.kill()
        run.end()
        for journal in stage.state.rglob("*.jsonl"):
            journal.unlink()
        if taken:
            said = json.dumps(claim(stage.world, 1) | {"nonce": "f" * 32, "run": "another"})
            theirs = put_claim(stage.world, 1, said, stage.world.on_origin(claim_ref(1)))
        result = stage.command("recover", "--token-file", str(stage.token_file))
    assert result.status == 0, str(result)
    rescued = [ref for ref in stage.refs() if ref.startswith("refs/nightkeep/rescue/")]
    if not taken:
        assert (claims(stage.world), rescued) == ([], [])
        assert "mine.txt" in stage.files("issue-1")
        return
    assert stage.world.on_origin(claim_ref(1)) == theirs
    assert "refs/heads/issue-1" not in stage.refs()
    assert any("mine.txt" in stage.files(ref) for ref in rescued)


@pytest.mark.parametrize("message", ["somebody's words", ""])
def test_claim_that_cannot_be_read_is_never_taken_over(stage: Stage, message: str) -> None:
    number = stage.issue()
    there = put_claim(stage.world, number, message)
    before = stage.everything()
    result = stage.run(number, stage.agent("true"))
    assert result.status == 2, str(result)
    assert f"end the claim: git push origin --delete {claim_ref(number)}" in result.stderr
    assert stage.everything() == before
    assert stage.world.on_origin(claim_ref(number)) == there


def test_ref_below_the_name_of_a_claim_is_named_and_nothing_is_begun(stage: Stage) -> None:
    number = stage.issue()
    git(stage.world.origin, "update-ref", f"{claim_ref(number)}/x", "main")
    before = stage.everything()
    result = stage.run(number, stage.agent("true"))
    assert result.status == 2, str(result)
    assert f"delete it: git push origin --delete {claim_ref(number)}/x" in result.stderr
    assert stage.everything() == before


def test_server_that_takes_no_claim_is_told_of_and_the_run_goes_on_with_labels(stage: Stage) -> None:
    stage.world.hook("update", 'case "$1" in refs/nightkeep/claims/*) echo "no claims" >&2; exit 1;; esac')
    result = stage.run(stage.issue(), stage.agent("echo x > x.txt"))
    assert result.status == 0, str(result)
    assert "warning: origin takes no claim" in result.stderr
    assert "another machine may take #1 as well" in result.stderr


def test_server_that_takes_no_refs_together_is_told_of_and_one_machine_alone_has_the_issue(stage: Stage) -> None:
    git(stage.world.origin, "config", "receive.advertiseAtomic", "false")
    number = stage.issue()
    second = another_clone(stage)
    gate = f"until [ -e {stage.root}/go ]; do sleep 0.1; done"
    agent = stage.agent(f"touch {stage.root}/there; {gate}; echo x > x.txt")
    first = begin(stage, second, number, agent)
    wait_for((stage.root / "there").exists)
    refused = stage.run_in(stage.clone, number, agent)
    (stage.root / "go").touch()
    said = first.communicate(timeout=60)[0]
    assert (first.returncode, refused.status) == (0, 2), said + str(refused)
    assert "atomic pushes" in said
    assert claims(stage.world) == []


@pytest.mark.parametrize("trouble", [drills.lost_answer(), drills.dropped_connection(), drills.server_error()])
def test_answers_of_pushes_that_are_lost_are_looked_up(stage: Stage, trouble: drills.Trouble) -> None:
    number = stage.issue()
    agent = stage.agent("echo x > x.txt")
    with stage.hub.drill("POST", "*/git-receive-pack", trouble, times=2):
        result = stage.run(number, agent)
    assert result.status == 0, str(result)
    assert claims(stage.world) == []
    assert len(stage.pulls()) == 1


@pytest.mark.parametrize("by", ["run", "recover"])
def test_a_claim_that_cannot_be_ended_is_ended_by_whoever_comes_next(stage: Stage, by: str) -> None:
    number, hook = stage.issue(), stage.world.origin / "hooks" / "update"
    agent = stage.agent(
        f"printf '#!/bin/sh\\ncase \"$1 $3\" in refs/nightkeep/claims/*\\ 0000*) exit 1;; esac\\n' > {hook}; "
        f"chmod +x {hook}; echo x > x.txt; exit 3"
    )
    result = stage.run(number, agent)
    assert result.status == 1, str(result)
    assert "the claim on #1 could not be ended" in result.stderr
    assert "from elsewhere: git push origin --delete refs/nightkeep/claims/1" in result.stderr
    assert claims(stage.world) == [claim_ref(1)]
    pull = stage.pull()["number"]
    note = stage.note(pull)
    if by == "recover":
        held = stage.command("recover", "--token-file", str(stage.token_file))
        assert (held.status, claims(stage.world)) == (75, [claim_ref(1)]), str(held)
    hook.unlink()
    if by == "recover":
        ended = stage.command("recover", "--token-file", str(stage.token_file))
        assert (ended.status, stage.note(pull)) == (0, note), str(ended)
        again = stage.command("recover", "--token-file", str(stage.token_file))
        assert "there is nothing to recover" in again.stderr, str(again)
    else:
        ended = stage.run(number, stage.agent("echo y > y.txt"))
        assert ended.status == 0, str(ended)
    assert "ending the claim of a run on issue-1 that had ended" in ended.stderr
    assert claims(stage.world) == []


def test_a_claim_that_cannot_be_ended_of_a_run_that_did_not_begin_is_ended_by_recovery(stage: Stage) -> None:
    number = stage.issue()
    stage.world.hook("update", 'case "$1 $3" in refs/nightkeep/claims/*\\ 0000*) exit 1;; esac')
    with stage.hub.drill("POST", "*/issues/*/labels", drills.answer(422, {"message": "no"}), times=None):
        result = stage.run(number, stage.agent("echo x > x.txt"))
    assert (result.status, claims(stage.world)) == (2, [claim_ref(1)]), str(result)
    assert "the claim on #1 could not be ended" in result.stderr
    stage.world.hook("update", "exit 0")
    recovered = stage.command("recover", "--token-file", str(stage.token_file))
    assert (recovered.status, claims(stage.world)) == (0, []), str(recovered)


@pytest.mark.parametrize("merged", [False, True], ids=["delivered", "merged"])
def test_issue_that_another_ended_between_plan_and_claim_is_not_worked_on_again(stage: Stage, *, merged: bool) -> None:
    """The slower of two had looked before the quicker one claimed the issue, and claims it after that has ended."""
    number = stage.issue()
    quick = stage.agent("echo x > x.txt")
    options = ("--merge",) if merged else ()
    # A push is rehearsed between plan and claim.
    with stage.hub.drill("GET", "*/info/refs?service=git-receive-pack", drills.delay(1000)) as late:
        slow = begin(stage, another_clone(stage), number, stage.agent("echo again > again.txt"))
        wait_for(lambda: late.hits)
        result = stage.run(number, quick, *options, NIGHTKEEP_CHECKS_GRACE="0.2s")
    said = slow.communicate(timeout=60)[0]
    assert (result.status, slow.returncode) == (0, 2), f"{result}\n{said}"
    assert f"somebody worked on issue #{number} while this Run was planned" in said
    pull = stage.pull()
    assert (pull["draft"], pull["merged_at"] is not None) == (False, merged)
    assert claims(stage.world) == []
    assert ("in-progress" in stage.labels(number), "ready-for-agent" in stage.labels(number)) == (not merged, False)
