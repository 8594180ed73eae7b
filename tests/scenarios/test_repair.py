"""Runs whose pull request has to be made mergeable and green."""

from pathlib import Path

import pytest

from runner.hub import Check, Source, Wait
from tests.scenarios.repairing import COMMITS, QUICKLY, agent, cause, is_ready, meanwhile, move_base, prompt, run
from tests.scenarios.stage import NAME, Stage
from tests.world import commit, git


def breaks(text: str = "broken") -> str:
    return f"echo {text} > lamp.txt && git add lamp.txt && git commit -qm 'Half of it'"


def mends() -> str:
    return "echo on > lamp.txt && git commit -qam 'The other half'"


TEST = Check("test", command="grep -q on lamp.txt || { echo 'the lamp is off'; false; }", branches="issue-*")


def test_a_pending_check_is_waited_for(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("slow", concludes=Wait(polls=4), branches="issue-*"))
    result = run(stage, implement=COMMITS)
    assert is_ready(stage, result), result
    assert result.stderr.count("waiting for 1 check, until ") == 1
    assert ": slow\n" in result.stderr


def test_failing_checks_go_back_to_the_agent_with_the_end_of_their_log(stage: Stage) -> None:
    stage.hub.ci.add(NAME, TEST)
    result = run(stage, implement=breaks(), repair_1=mends())
    assert is_ready(stage, result), result
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"
    asked = prompt(stage, "repair-1")
    failed = git(stage.world.origin, "rev-parse", "issue-1~1")
    assert f"These checks of the pull request fail on commit {failed}:\n\n- test: {stage.hub.url}/" in asked
    assert "the lamp is off\n" in asked
    assert "Add a lamp" in asked
    assert f"checks fail on {failed[:12]}: test; starting Repair 1 of 5" in result.stderr
    assert [log.name.rsplit("-", 2)[-2:] for log in stage.logs()][-1] == ["repair", "1.log"]


def test_a_failing_status_is_repaired_too(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("deploy", source=Source.STATUS, command="grep -q on lamp.txt", branches="issue-*"))
    result = run(stage, implement=breaks(), repair_1=mends())
    assert is_ready(stage, result), result
    assert "- deploy" in prompt(stage, "repair-1")


def test_repairs_are_exhausted(stage: Stage) -> None:
    stage.hub.ci.add(NAME, TEST)
    broken = {f"repair_{n}": breaks(f"broken-{n}") for n in (1, 2)}
    result = stage.run(stage.issue(), agent(stage, implement=breaks(), **broken), NIGHTKEEP_REPAIR_LIMIT="2", **QUICKLY)
    assert (result.status, stage.pull()["draft"]) == (1, True), result
    assert "2 Repairs did not help: checks fail on" in cause(stage)
    assert "`repairs-exhausted`" in stage.note(stage.pull()["number"])
    assert stage.subject("issue-1").startswith("nightkeep: failed run (2 Repairs did not help: checks fail on ")


def test_a_repair_that_changes_nothing_has_the_checks_run_again(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("flaky", conclusions=("failure", "success"), branches="issue-*"))
    result = run(stage, implement=COMMITS, repair_1="echo It is the network.")
    assert is_ready(stage, result), result
    assert result.stderr.count("asking GitHub to run the failed jobs of workflow run") == 1
    assert stage.subject("issue-1") == "Let there be light"


def test_a_declined_ci_fix(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("broken", conclusions=("failure",), branches="issue-*"))
    result = run(stage, implement=COMMITS, repair_1="echo It is the network.")
    assert (result.status, stage.pull()["draft"]) == (1, True), result
    assert "and the Repair found nothing to fix on the branch" in cause(stage)
    assert f"\n- `broken`: <{stage.hub.url}/{NAME}/" in stage.note(stage.pull()["number"])
    assert result.stderr.count("asking GitHub to run the failed jobs") == 1


def test_a_second_repair_may_decline(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("broken", conclusions=("failure",), branches="issue-*"))
    result = run(stage, implement=COMMITS, repair_1="echo try > try.txt", repair_2="echo It is the network.")
    assert (result.status, stage.pull()["draft"]) == (1, True), result
    assert "and the Repair found nothing to fix on the branch" in cause(stage)
    assert result.stderr.count("asking GitHub to run the failed jobs") == 1, "one that made a commit has nothing run"
    assert f"Session log: {stage.logs()[-1]}" in result.stderr
    assert stage.logs()[-1].name.endswith("-repair-2.log")


def test_a_repair_that_changes_nothing_while_the_base_branch_moves(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("test", command="test -e moved.txt", branches="issue-*"))
    result = run(stage, implement=COMMITS, repair_1=f"echo It is main.; {move_base(stage)}")
    assert is_ready(stage, result), result
    assert "asking GitHub to run" not in result.stderr
    assert stage.subject("issue-1") == "Merge origin/main into issue-1"


def test_a_status_cannot_be_run_again(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("broken", conclusions=("failure",), source=Source.STATUS, branches="issue-*"))
    result = run(stage, implement=COMMITS, repair_1="echo It is not me.")
    assert result.status == 1, result
    assert "asking GitHub to run the failed jobs" not in result.stderr
    assert "and the Repair found nothing to fix on the branch" in cause(stage)


def test_what_fails_on_the_base_branch_too_is_not_repaired(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("lint", conclusions=("failure",)))
    result = run(stage, implement=COMMITS)
    assert (result.status, stage.pull()["draft"]) == (1, True), result
    at = stage.world.on_origin("main")[:12]
    assert f"that fail on main at {at}, too: lint; mend main first" in cause(stage)
    assert "lint fails on main, too: http" in result.stderr


def test_a_repair_is_told_what_to_leave_alone(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("lint", conclusions=("failure",)))
    stage.hub.ci.add(NAME, TEST)
    result = run(stage, implement=breaks(), repair_1=mends())
    assert result.status == 1, result
    own, _, others = prompt(stage, "repair-1").partition("Leave them alone:")
    assert ("- test: " in own, "- lint: " in own, "- lint: " in others) == (True, False, True)


def test_checks_that_vanish(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("test", concludes=Wait(polls=9), vanishes=Wait(polls=2), branches="issue-*"))
    result = run(stage, implement=COMMITS)
    assert result.status == 1, result
    assert "disappeared, so nobody can tell whether it is green" in cause(stage)


def test_checks_that_do_not_end(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("stuck", conclusions=(None,), branches="issue-*"))
    result = stage.run(stage.issue(), agent(stage, implement=COMMITS), NIGHTKEEP_LIMITS_CHECKS="1s", **QUICKLY)
    assert result.status == 1, result
    assert "did not finish in time: stuck" in cause(stage)
    assert "`checks-timed-out`" in stage.note(stage.pull()["number"])


def with_workflow(stage: Stage, text: str) -> None:
    workflow = stage.clone / ".github" / "workflows" / "ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(text)
    commit(stage.clone, "a workflow")
    git(stage.clone, "push", "-q", str(stage.world.origin), "main")


@pytest.mark.parametrize(
    ("workflow", "why"),
    [
        (None, "nothing is configured that would check it"),
        ("on:\n  pull_request:\n    paths: [docs/**]", "every workflow's filters leave it out"),
        ("on: pull_request", "a check was to be expected, but none has started"),
    ],
)
@pytest.mark.parametrize("required", ["auto", "always"])
def test_no_check_at_all(stage: Stage, workflow: str | None, why: str, required: str) -> None:
    if workflow:
        with_workflow(stage, workflow)
    result = stage.run(stage.issue(), agent(stage, implement=COMMITS), NIGHTKEEP_CHECKS_REQUIRED=required, **QUICKLY)
    assert f": {why}\n" in result.stderr, result
    if required == "auto":
        assert is_ready(stage, result), result
    else:
        assert f"no check ran on {stage.world.on_origin('issue-1~1')[:12]}: {why}" in cause(stage)


# The Base branch.


def test_the_base_branch_is_merged_before_the_first_push(stage: Stage) -> None:
    result = run(stage, implement=f"{COMMITS}; {move_base(stage)}")
    assert is_ready(stage, result), result
    assert stage.subject("issue-1") == "Merge origin/main into issue-1"
    assert stage.files("issue-1") >= {"lamp.txt", "moved.txt"}
    assert result.stderr.count("pushing issue-1") == 1


def test_a_base_branch_that_moves_while_checks_run_is_merged(stage: Stage, tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/moved || {{ touch {tmp_path}/moved; {move_base(stage)}; }}"
    stage.hub.ci.add(NAME, Check("test", command=once, branches="issue-*"))
    result = run(stage, implement=COMMITS)
    assert is_ready(stage, result), result
    assert (stage.subject("issue-1"), result.stderr.count("pushing issue-1")) == ("Merge origin/main into issue-1", 2)


def test_a_base_branch_that_moves_into_a_conflict_and_during_its_repair(stage: Stage) -> None:
    """While checks run it conflicts; while that is repaired it moves again, and is merged before the next watch."""
    once = f"test -e {stage.root}/moved || {{ touch {stage.root}/moved; {move_base(stage, 'lamp.txt', 'theirs')}; }}"
    stage.hub.ci.add(NAME, Check("test", command=once, branches="issue-*"))
    resolves = "echo both > lamp.txt; git add lamp.txt; git commit -q --no-edit"
    result = run(stage, implement=COMMITS, repair_1=f"{resolves}; {move_base(stage)}")
    assert is_ready(stage, result), result
    assert stage.world.origin_file("issue-1", "lamp.txt") == "both"
    assert "moved.txt" in stage.files("issue-1")
    assert result.stderr.count("pushing issue-1") == 2
    assert result.stderr.count("merging origin/main, which is at") == 2


def test_a_base_branch_that_keeps_moving(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("test", command=move_base(stage, text="$(date +%s%N)"), branches="issue-*"))
    result = stage.run(stage.issue(), agent(stage, implement=COMMITS), NIGHTKEEP_REPAIR_MOVES="2", **QUICKLY)
    assert (result.status, stage.pull()["draft"]) == (1, True), result
    assert "the Base branch main kept coming; upstream was merged again 2 times" in cause(stage)
    assert git(stage.world.origin, "rev-list", "--count", "--merges", "issue-1") == "2"


def test_a_conflict_is_resolved_by_a_repair(stage: Stage) -> None:
    resolve = "test -e $(git rev-parse --git-path MERGE_HEAD) && echo both > a.txt && git add a.txt"
    result = run(
        stage,
        implement=f"echo ours > a.txt; git commit -qam Ours; {move_base(stage, 'a.txt', 'theirs')}",
        repair_1=f"{resolve} && git commit -q --no-edit",
    )
    assert is_ready(stage, result), result
    assert stage.world.origin_file("issue-1", "a.txt") == "both"
    assert stage.world.on_origin("main") == git(stage.world.origin, "rev-parse", "issue-1^2")
    assert "stopped at conflicts" in prompt(stage, "repair-1")
    assert "origin/main conflicts with issue-1; starting Repair 1 of 5" in result.stderr


@pytest.mark.parametrize(
    ("repair", "left"),
    [
        ("true", "the merge is still in progress, with conflicts in a.txt"),
        ("git merge --abort", "the merge was given up"),
        ("git commit -qam 'Merge it'", "conflict markers were left in a.txt"),
    ],
)
def test_a_conflict_that_stays(stage: Stage, repair: str, left: str) -> None:
    result = run(
        stage,
        implement=f"echo ours > a.txt; git commit -qam Ours; {move_base(stage, 'a.txt', 'theirs')}",
        repair_1=repair,
    )
    assert (result.status, stage.pull()["draft"]) == (1, True), result
    assert f"the Repair did not merge origin/main: {left}" in cause(stage)
    assert "`conflict-left`" in stage.note(stage.pull()["number"])


def test_a_failing_verify_is_repaired_before_anything_is_pushed(stage: Stage) -> None:
    verify = "sh -c 'grep -q on lamp.txt || { echo no light; exit 3; }'"
    result = stage.run(
        stage.issue(),
        agent(stage, implement=breaks(), repair_1=mends()),
        NIGHTKEEP_VERIFY=verify,
        **QUICKLY,
    )
    assert is_ready(stage, result), result
    assert result.stderr.count("pushing issue-1") == 1
    assert "no light" in prompt(stage, "repair-1")


def test_a_repair_may_rewrite_the_description(stage: Stage) -> None:
    stage.hub.ci.add(NAME, TEST)
    text = "printf 'Light it, really\\n\\nNow it shines.\\n' > $NIGHTKEEP_PR_FILE"
    result = run(stage, implement=breaks(), repair_1=f"{mends()}; {text}")
    assert is_ready(stage, result), result
    assert stage.pull()["title"] == "Light it, really"


def test_an_agent_that_fails_in_a_repair(stage: Stage) -> None:
    stage.hub.ci.add(NAME, TEST)
    result = run(stage, implement=breaks(), repair_1="echo half > half.txt; exit 3")
    assert (result.status, stage.pull()["draft"]) == (1, True), result
    assert stage.world.origin_file("issue-1", "half.txt") == "half"
    assert "**Stage:** repair" in stage.note(stage.pull()["number"])


# What somebody makes of the pull request.


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"state": "closed"}, "is closed, not open"),
        ({"base": "next"}, "targets next, not main"),
    ],
)
def test_a_pull_request_that_somebody_changes_while_checks_run(stage: Stage, change: dict[str, str], why: str) -> None:
    stage.on_branch("next", "next.txt", "next\n")
    stage.hub.ci.add(NAME, Check("slow", concludes=Wait(polls=20), branches="issue-*"))
    with meanwhile(lambda: bool(stage.pulls()), lambda: stage.api("PATCH", "pulls/2", change)):
        result = run(stage, implement=COMMITS)
    closed = "state" in change
    assert (result.status, stage.pull()["draft"]) == (1, not closed), result
    assert (result.stdout == "") is closed
    assert ("is not open any more, and no other is opened in its place" in result.stderr) is closed
    assert "failed in stage pull-request: " in result.stderr
    assert f"{stage.pull()['html_url']} {why}" in result.stderr
