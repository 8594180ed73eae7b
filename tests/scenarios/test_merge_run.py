"""Merge runs: from a green pull request to a merged one, or to a refusal that nothing can be done about."""

from dataclasses import replace

import pytest

from runner.hub import NEVER, Check, Wait, drills
from tests.scenarios.repairing import COMMITS, QUICKLY, agent, cause, meanwhile, move_base, prompt, pushes, run, shell
from tests.scenarios.stage import NAME, Result, Stage
from tests.scenarios.test_signals import INT, TERM, kept, running
from tests.waiting import wait_for
from tests.world import git

GREEN = Check("test", branches="issue-*")
MERGES = "PUT", "*/pulls/2/merge"


def is_merged(stage: Stage, result: Result) -> bool:
    """Whether the Run ended with its pull request merged, its branch gone and its issue closed."""
    pull, issue = stage.pull(), stage.api("GET", "issues/1")
    over = (issue["state"], stage.labels(1), stage.refs()) == ("closed", {"bug"}, {"refs/heads/main"})
    told = (result.status, result.stdout) == (0, f"{pull['html_url']}\n")
    return bool(over and told and pull["merged_at"]) and f"{pull['html_url']} is merged" in result.stderr


def merge_requests(stage: Stage) -> int:
    return sum(method == "PUT" and path.endswith("/pulls/2/merge") for method, path in stage.hub.requests)


def merged_run(stage: Stage, **sessions: str) -> Result:
    return run(stage, "--merge", **sessions)


@pytest.mark.parametrize(("method", "parents"), [("merge", 2), ("squash", 1), ("rebase", 1)])
def test_a_green_pull_request_is_merged_at_its_watched_head(stage: Stage, method: str, parents: int) -> None:
    stage.hub.ci.add(NAME, GREEN)
    before = stage.world.on_origin("main")
    result = stage.run(
        stage.issue(), agent(stage, implement=COMMITS), "--merge", NIGHTKEEP_MERGE_METHOD=method, **QUICKLY
    )
    assert is_merged(stage, result), result
    assert stage.world.origin_file("main", "lamp.txt") == "on"
    merged = git(stage.world.origin, "show", "-s", "--format=%P", "main").split()
    assert (len(merged), merged[0]) == (parents, before)
    assert parents == 1 or merged[1] == stage.pull()["head"]["sha"]
    assert merge_requests(stage) == 1
    assert stage.worktrees() == []
    closing = [path for method, path in stage.hub.requests if method == "PATCH" and path.endswith("/issues/1")]
    assert (closing, stage.comments(1)) == ([], []), "GitHub had closed it"


def test_the_setting_makes_a_merge_run_and_the_flag_takes_it_back(stage: Stage) -> None:
    first = stage.run(stage.issue(), agent(stage, implement=COMMITS), "--no-merge", NIGHTKEEP_MERGE="true", **QUICKLY)
    assert (first.status, stage.pull()["merged_at"]) == (0, None), first
    second = stage.run(1, agent(stage, implement="true"), NIGHTKEEP_MERGE="true", **QUICKLY)
    assert is_merged(stage, second), second


def test_what_verify_commits_is_watched_and_merged_with_the_rest(stage: Stage) -> None:
    stage.hub.ci.add(NAME, GREEN)
    tidies = "sh -c 'grep -q tidy lamp.txt || { echo tidy >> lamp.txt; git commit -qam Tidy; }'"
    result = stage.run(stage.issue(), agent(stage, implement=COMMITS), "--merge", NIGHTKEEP_VERIFY=tidies, **QUICKLY)
    assert is_merged(stage, result), result
    assert stage.world.origin_file("main", "lamp.txt") == "on\ntidy"


def test_json_says_that_it_is_merged_and_where(stage: Stage) -> None:
    result = run(stage, "--merge", "--json", implement=COMMITS)
    merged = stage.world.on_origin("main")
    assert (result.document["result"], result.document["merged"]) == ("delivered", True), result
    assert result.document["places"] == [{"what": "merged", "where": f"refs/heads/main at {merged} on origin"}]


def test_another_base_branch_has_the_issue_closed_with_a_comment(stage: Stage) -> None:
    stage.on_branch("next", "next.txt", "next\n")
    git(stage.clone, "fetch", "-q", str(stage.world.origin), "next")
    result = run(stage, "--merge", "--base", "next", implement=COMMITS)
    assert result.status == 0, result
    assert stage.api("GET", "issues/1")["state"] == "closed"
    assert "Closed by #2, merged into next by a Merge run of Nightkeep." in stage.comments(1)[0]
    assert stage.refs() == {"refs/heads/main", "refs/heads/next"}


def test_no_check_where_a_workflow_applies_is_not_merged(stage: Stage) -> None:
    workflow = "mkdir -p .github/workflows; echo 'on: pull_request' > .github/workflows/ci.yml; git add -A"
    result = merged_run(stage, implement=f"{workflow}; {COMMITS}")
    assert (result.status, merge_requests(stage)) == (1, 0), result
    assert "a check was to be expected, but none has started" in cause(stage)
    assert "`checks-missing`" in stage.note(2)


def test_a_workflow_that_is_late_to_start_is_waited_for(stage: Stage) -> None:
    """Two apply, and the check of one is green before that of the other appears."""
    workflows = [f".github/workflows/{name}.yml" for name in "ab"]
    write = "; ".join(f"echo 'on: pull_request' > {path}" for path in workflows)
    stage.hub.ci.add(NAME, Check("fast", branches="issue-*", workflow=workflows[0]))
    late = Check("late", conclusions=("failure",), appears=Wait(seconds=3), branches="issue-*", workflow=workflows[1])
    stage.hub.ci.add(NAME, late)
    implement = f"mkdir -p .github/workflows; {write}; git add -A; {COMMITS}"
    slowly = {**QUICKLY, "NIGHTKEEP_CHECKS_GRACE": "30s", "NIGHTKEEP_REPAIR_LIMIT": "0"}
    result = stage.run(stage.issue(), agent(stage, implement=implement), "--merge", **slowly)
    assert (result.status, merge_requests(stage)) == (1, 0), result
    assert "checks fail on " in cause(stage)


def test_a_pending_check_that_vanishes_beside_a_green_one(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("fast", branches="issue-*"))
    stage.hub.ci.add(NAME, Check("test", conclusions=(None,), vanishes=Wait(polls=3), branches="issue-*"))
    result = merged_run(stage, implement=COMMITS)
    assert (result.status, merge_requests(stage)) == (1, 0), result
    assert "disappeared, so nobody can tell whether it is green: test" in cause(stage)


@pytest.mark.parametrize("merge", [(), ("--merge",)])
@pytest.mark.parametrize("appears", [Wait(seconds=3), NEVER])
def test_a_required_check_is_waited_for(stage: Stage, appears: Wait, merge: tuple[str, ...]) -> None:
    stage.hub.admin.add_rule(NAME, "main", "required_status_checks", required_status_checks=[{"context": "late"}])
    stage.hub.ci.add(NAME, Check("fast", branches="issue-*"))
    stage.hub.ci.add(NAME, Check("late", appears=appears, branches="issue-*"))
    slowly = QUICKLY if appears is NEVER else {**QUICKLY, "NIGHTKEEP_CHECKS_GRACE": "30s"}
    result = stage.run(stage.issue(), agent(stage, implement=COMMITS), *merge, **slowly)
    assert result.status == int(appears is NEVER), result
    assert "waiting for required checks to start, until " in result.stderr
    if appears is NEVER:
        assert "checks that main requires did not start on " in cause(stage)
        assert "`checks-missing`" in stage.note(2)


# A merge whose answer is no, or none.


@pytest.mark.parametrize("trouble", [drills.lost_answer(), drills.dropped_connection()])
def test_a_merge_that_seems_to_fail_but_happened_counts(stage: Stage, trouble: drills.Trouble) -> None:
    stage.hub.drill(*MERGES, trouble)
    result = merged_run(stage, implement=COMMITS)
    assert is_merged(stage, result), result
    assert merge_requests(stage) == 1


def test_a_policy_refusal_leaves_everything_as_it_was_checked(stage: Stage) -> None:
    stage.hub.admin.add_rule(NAME, "main", "pull_request", required_approving_review_count=1)
    stage.hub.ci.add(NAME, GREEN)
    result = merged_run(stage, implement=COMMITS)
    pull = stage.pull()
    assert (result.status, result.stdout) == (4, f"{pull['html_url']}\n"), result
    assert (pull["draft"], pull["state"], pull["labels"]) == (False, "open", [])
    assert pull["head"]["sha"] == stage.world.on_origin("issue-1")
    assert stage.subject("issue-1") == "Let there be light"
    assert stage.refs() == {"refs/heads/main", "refs/heads/issue-1"}
    assert merge_requests(stage) == 1
    assert "approving review" in cause(stage)
    note = stage.note(2)
    assert "`policy-refusal`" in note
    assert "the pull request stays ready as it is" in note
    assert stage.labels(1) == {"bug", "in-progress"}


def test_a_refused_merge_is_tried_again_when_the_base_branch_has_moved(stage: Stage) -> None:
    slowly = replace(drills.answer(405, {"message": "Base branch was modified."}), delay=4.0)
    stage.hub.drill(*MERGES, slowly)
    with meanwhile(lambda: bool(merge_requests(stage)), shell(move_base(stage))):
        result = merged_run(stage, implement=COMMITS)
    assert is_merged(stage, result), result
    assert "the merge was refused: GitHub answered 405: Base branch was modified." in result.stderr
    assert (merge_requests(stage), "moved.txt" in stage.files("main")) == (2, True)


def test_a_merge_that_is_refused_may_need_repairs_on_the_new_head(stage: Stage) -> None:
    """The Base branch moves while GitHub merges: into a conflict, and then the merged head is red."""
    slowly = replace(drills.answer(405, {"message": "Base branch was modified."}), delay=4.0)
    stage.hub.drill(*MERGES, slowly)
    bright = "! grep -q both lamp.txt || test -e bright.txt"
    stage.hub.ci.add(NAME, Check("test", command=bright, branches="issue-*"))
    with meanwhile(lambda: bool(merge_requests(stage)), shell(move_base(stage, "lamp.txt", "theirs"))):
        result = merged_run(
            stage,
            implement=COMMITS,
            repair_1="echo both > lamp.txt; git add lamp.txt; git commit -q --no-edit",
            repair_2="echo bright > bright.txt",
        )
    assert is_merged(stage, result), result
    assert (merge_requests(stage), stage.world.origin_file("main", "lamp.txt")) == (2, "both")
    assert "stopped at conflicts" in prompt(stage, "repair-1")
    assert "- test: " in prompt(stage, "repair-2")


# Others' commits.


def test_others_commits_are_taken_in_and_reviewed_before_they_are_merged(stage: Stage) -> None:
    other = pushes(stage, "issue-1", "theirs.txt", "theirs")
    once = f"test -e {stage.root}/pushed || {{ touch {stage.root}/pushed; {other}; }}"
    stage.hub.ci.add(NAME, Check("test", command=once, branches="issue-*"))
    result = merged_run(stage, implement=COMMITS, repair_1="echo mine > mine.txt")
    assert is_merged(stage, result), result
    assert stage.files("main") >= {"lamp.txt", "theirs.txt", "mine.txt"}
    assert "taking in a new commit from origin/issue-1: " in result.stderr
    assert "Others pushed commits to `issue-1`" in prompt(stage, "repair-1")
    assert "write theirs.txt" in prompt(stage, "repair-1")


def test_a_conflict_with_them_is_resolved_and_then_they_are_reviewed(stage: Stage) -> None:
    other = pushes(stage, "issue-1", "lamp.txt", "theirs")
    once = f"test -e {stage.root}/pushed || {{ touch {stage.root}/pushed; {other}; exit 1; }}"
    stage.hub.ci.add(NAME, Check("test", command=once, branches="issue-*"))
    result = merged_run(
        stage,
        implement=COMMITS,
        repair_1="echo bright > lamp.txt; git commit -qam Mend",
        repair_2="echo both > lamp.txt; git add lamp.txt; git commit -q --no-edit",
        repair_3="echo Fine.",
    )
    assert is_merged(stage, result), result
    assert stage.world.origin_file("main", "lamp.txt") == "both"
    assert "stopped at conflicts" in prompt(stage, "repair-2")
    assert "Others pushed commits" in prompt(stage, "repair-3")


def test_commits_that_come_while_github_merges_are_reviewed_before_the_next_try(stage: Stage) -> None:
    stage.hub.drill(*MERGES, drills.delay(4.0))
    with meanwhile(lambda: bool(merge_requests(stage)), shell(pushes(stage, "issue-1", "theirs.txt", "theirs"))):
        result = merged_run(stage, implement=COMMITS, repair_1="echo Fine.")
    assert is_merged(stage, result), result
    assert "the merge was refused: GitHub answered 409: Head branch was modified." in result.stderr
    assert (merge_requests(stage), "theirs.txt" in stage.files("main")) == (2, True)
    assert "write theirs.txt" in prompt(stage, "repair-1")


def test_more_commits_may_come_during_a_repair(stage: Stage) -> None:
    once = (
        f"test -e {stage.root}/pushed || {{ touch {stage.root}/pushed; {pushes(stage, 'issue-1', 'one.txt', '1')}; }}"
    )
    stage.hub.ci.add(NAME, Check("test", command=once, branches="issue-*"))
    result = merged_run(
        stage, implement=COMMITS, repair_1=pushes(stage, "issue-1", "two.txt", "2"), repair_2="echo Fine."
    )
    assert is_merged(stage, result), result
    assert stage.files("main") >= {"one.txt", "two.txt"}
    assert "write one.txt" in prompt(stage, "repair-1")
    assert "write two.txt" in prompt(stage, "repair-2")


def test_a_pull_request_that_somebody_merged_at_another_head_is_no_success(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("slow", concludes=Wait(polls=30), branches="issue-*"))

    def merge_it() -> None:
        shell(pushes(stage, "issue-1", "theirs.txt", "theirs"))()
        stage.api("PUT", "pulls/2/merge", {})

    with meanwhile(lambda: bool(stage.pulls()), merge_it):
        result = merged_run(stage, implement=COMMITS, repair_1="echo Fine.")
    assert (result.status, result.stdout, merge_requests(stage)) == (3, "", 1), result
    assert len(stage.pulls()) == 1
    assert "`merged-elsewhere`" in stage.note(1)


def test_a_plain_run_leaves_others_commits_alone(stage: Stage) -> None:
    other = pushes(stage, "issue-1", "theirs.txt", "theirs")
    once = f"test -e {stage.root}/pushed || {{ touch {stage.root}/pushed; {other}; }}"
    stage.hub.ci.add(NAME, Check("test", command=once, branches="issue-*"))
    result = run(stage, implement=COMMITS)
    assert (result.status, stage.pull()["draft"]) == (0, False), result
    assert "shows commits of others, whose checks were not watched" in result.stderr


def test_others_who_push_for_ever_spend_the_budget(stage: Stage) -> None:
    other = pushes(stage, "issue-1", "theirs.txt", "$(date +%s%N)")
    stage.hub.ci.add(NAME, Check("test", command=other, branches="issue-*"))
    result = stage.run(
        stage.issue(),
        agent(stage, implement=COMMITS, repair_1="true", repair_2="true"),
        "--merge",
        NIGHTKEEP_REPAIR_MOVES="1",
        **QUICKLY,
    )
    assert (result.status, merge_requests(stage)) in ((1, 0), (3, 0)), result
    assert "others' commits on issue-1 kept coming; upstream was merged again 1 time" in cause(stage)


# What comes after a merge.


def test_a_branch_that_cannot_be_deleted_is_a_warning(stage: Stage) -> None:
    stage.world.hook("update", 'case "$1$3" in refs/heads/issue-1*0000000000) exit 1;; esac')
    result = merged_run(stage, implement=COMMITS)
    assert result.status == 0, result
    assert "warning: the branch issue-1 could not be deleted on origin: " in result.stderr
    assert "by hand: git push origin --delete issue-1" in result.stderr
    assert "refs/heads/issue-1" in stage.refs()
    assert stage.api("GET", "issues/1")["state"] == "closed"


def test_an_issue_that_cannot_be_closed_is_a_warning(stage: Stage) -> None:
    stage.on_branch("next", "next.txt", "next\n")
    stage.hub.drill("PATCH", "*/issues/1", drills.answer(403, {"message": "no"}), times=None)
    result = run(stage, "--merge", "--base", "next", implement=COMMITS)
    assert result.status == 0, result
    assert f"by hand: gh issue close {stage.url(1)}" in result.stderr
    assert stage.refs() == {"refs/heads/main", "refs/heads/next"}


def test_a_branch_that_is_gone_already_is_no_warning(stage: Stage) -> None:
    stage.hub.admin.set(NAME, delete_branch_on_merge=True)
    result = merged_run(stage, implement=COMMITS)
    assert is_merged(stage, result), result
    assert "warning" not in result.stderr


# A merge queue.


def test_where_the_base_branch_has_a_queue_the_queue_merges(stage: Stage) -> None:
    stage.hub.admin.add_rule(NAME, "main", "merge_queue")
    stage.hub.admin.add_rule(NAME, "main", "required_status_checks", required_status_checks=[{"context": "test"}])
    stage.hub.ci.add(NAME, Check("test", concludes=Wait(polls=2)))
    result = merged_run(stage, implement=COMMITS)
    assert is_merged(stage, result), result
    assert (merge_requests(stage), "by the merge queue" in result.stderr) == (0, True)


def test_a_queue_that_throws_it_out_is_a_refusal(stage: Stage) -> None:
    stage.hub.admin.add_rule(NAME, "main", "merge_queue")
    stage.hub.admin.add_rule(NAME, "main", "required_status_checks", required_status_checks=[{"context": "test"}])
    stage.hub.ci.add(NAME, Check("test", branches="issue-*"))
    stage.hub.ci.add(NAME, Check("test", branches="gh-readonly-queue/*", conclusions=("failure",)))
    result = merged_run(stage, implement=COMMITS)
    assert (result.status, stage.pull()["draft"]) == (4, False), result
    assert "the merge queue took the pull request out without merging it" in cause(stage)


# Signals.


def test_a_signal_while_github_merges_stops_nothing_that_comes_after(stage: Stage) -> None:
    merging = stage.hub.drill(*MERGES, drills.delay(30))
    with running(stage, COMMITS, group=False, NIGHTKEEP_MERGE="true", **QUICKLY) as under_way:
        wait_for(lambda: merging.hits)
        under_way.send(TERM)
        under_way.say(TERM.name)
        merging.remove()
        document = under_way.end()
    assert (under_way.status, document["result"], document["merged"]) == (0, "delivered", True), under_way.stderr
    assert (stage.api("GET", "issues/1")["state"], stage.refs()) == ("closed", {"refs/heads/main"})
    assert stage.labels(1) == {"bug"}


def test_a_signal_before_the_merge_ends_the_run(stage: Stage) -> None:
    stage.hub.ci.add(NAME, Check("stuck", conclusions=(None,), branches="issue-*"))
    with running(stage, COMMITS, group=False, NIGHTKEEP_MERGE="true", **QUICKLY) as under_way:
        under_way.say("waiting for 1 check, until ")
        under_way.send(INT)
        document = under_way.end()
        kept(under_way, document, INT, "lamp.txt")
    assert (document["stage"], document["code"], merge_requests(stage)) == ("checks", "interrupted", 0)
