"""Runs that go on from what is there, and Runs that do not touch what is finished."""

import pytest

from tests.scenarios.stage import Stage
from tests.world import git

COMMITS = "echo on > lamp.txt && git add lamp.txt && git commit -qm 'Let there be light'"
GIVES_UP = "echo half > half.txt; exit 3"


def test_the_next_run_goes_on_from_a_failed_one_and_makes_its_draft_ready(stage: Stage) -> None:
    number = stage.issue()
    stage.run(number, stage.agent(GIVES_UP))
    draft, marker = stage.pull(), stage.world.on_origin("refs/heads/issue-1")
    result = stage.run(number, stage.agent(f"cat half.txt > whole.txt; {COMMITS}; git add -A; git commit -qm whole"))
    ready = stage.pull()
    assert (result.status, draft["draft"], ready["draft"]) == (0, True, False), result
    assert ready["number"] == draft["number"]
    assert git(stage.world.origin, "merge-base", marker, "issue-1") == marker
    assert stage.world.origin_file("issue-1", "whole.txt") == "half"
    assert stage.labels(number) == {"bug", "in-progress"}


def test_the_description_of_a_failed_run_gives_way_to_the_agents(stage: Stage) -> None:
    number = stage.issue("Add a lamp")
    stage.run(number, stage.agent(GIVES_UP))
    stage.run(number, stage.agent(f"{COMMITS}; printf 'Light it\\n\\nAt last.\\n' > $NIGHTKEEP_PR_FILE"))
    pull = stage.pull()
    assert pull["title"] == "Light it"
    assert pull["body"].startswith("At last.")


def test_failing_again_keeps_both_runs_work(stage: Stage) -> None:
    """Case 11: the second run's push is a fast-forward of the first's, because it goes on from it."""
    number = stage.issue()
    stage.run(number, stage.agent("echo one > one.txt; exit 3"))
    first = stage.world.on_origin("refs/heads/issue-1")
    result = stage.run(number, stage.agent("echo two > two.txt; exit 4"))
    assert result.status == 1, result
    assert git(stage.world.origin, "rev-parse", "issue-1~1") == first
    assert {"one.txt", "two.txt"} <= stage.files("issue-1")
    assert stage.refs() == {"refs/heads/main", "refs/heads/issue-1"}


def test_a_person_who_pushes_between_two_runs_loses_nothing(stage: Stage) -> None:
    number = stage.issue()
    stage.run(number, stage.agent("echo one > one.txt; exit 3"))
    by_hand = stage.on_branch("issue-1", "hand.txt", "by hand\n", base="issue-1")
    result = stage.run(number, stage.agent("echo two > two.txt; exit 4"))
    assert result.status == 1, result
    assert git(stage.world.origin, "rev-parse", "issue-1~1") == by_hand
    assert {"one.txt", "hand.txt", "two.txt"} <= stage.files("issue-1")


@pytest.mark.parametrize("end", ["exit 0", "exit 3"])
def test_a_person_who_pushes_during_a_run_loses_nothing(stage: Stage, end: str) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    other = stage.root / "other"
    by_hand = "git -c user.name=P -c user.email=p@x commit -q --allow-empty -m hand && git push -q origin HEAD:issue-1"
    push = f"(cd {other} && {by_hand})"
    result = stage.run(number, stage.agent(f"{push}\n{COMMITS}\n{end}"), "--json")
    (kept,) = stage.worktrees()
    assert (result.status, result.document["preserved"]) == (3, "machine"), result
    assert stage.world.on_origin("refs/heads/issue-1") == git(other, "rev-parse", "HEAD")
    assert (kept / "lamp.txt").exists()
    assert stage.labels(number) == {"bug", "in-progress"}


def test_a_branch_without_a_pull_request_is_gone_on_from(stage: Stage) -> None:
    number = stage.issue()
    before = stage.on_branch("issue-1", "begun.txt", "begun\n")
    result = stage.run(
        number, stage.agent(f"grep -q 'There is work on it already' $NIGHTKEEP_PROMPT_FILE && {COMMITS}")
    )
    assert result.status == 0, result
    assert git(stage.world.origin, "rev-parse", "issue-1~1") == before
    assert stage.pull()["head"]["ref"] == "issue-1"


def test_a_continuation_that_adds_nothing_is_delivered_as_it_is(stage: Stage) -> None:
    number = stage.issue()
    before = stage.on_branch("issue-1", "begun.txt", "begun\n")
    result = stage.run(number, stage.agent("echo 'It is all done already.'"))
    assert result.status == 0, result
    assert stage.pull()["head"]["sha"] == stage.world.on_origin("refs/heads/issue-1") == before


def test_a_continuation_that_fails_and_adds_nothing_keeps_the_claim(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    result = stage.run(number, stage.agent("exit 3"))
    assert result.status == 1, result
    assert stage.pull()["draft"] is True
    assert stage.labels(number) == {"bug", "in-progress"}


def test_the_pull_requests_base_wins_over_the_branch_that_is_checked_out(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("next", "next.txt", "next\n")
    stage.on_branch("issue-1", "begun.txt", "begun\n", base="next")
    stage.pull_request("issue-1", base="next")
    result = stage.run(number, stage.agent(f"echo $NIGHTKEEP_BASE; {COMMITS}"))
    assert result.status == 0, result
    assert "so the Base branch is next, not main" in result.stderr
    assert "| next\n" in result.stderr
    assert stage.pull()["base"]["ref"] == "next"


def test_a_detached_head_is_fine_with_an_open_pull_request(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    stage.pull_request("issue-1")
    git(stage.clone, "checkout", "-q", "--detach")
    assert stage.run(number, stage.agent(COMMITS)).status == 0


@pytest.mark.parametrize("how", ["merged", "closed", "closed, branch deleted"])
def test_finished_work_is_not_reopened(stage: Stage, how: str) -> None:
    number = stage.issue()
    before = stage.on_branch("issue-1", "begun.txt", "begun\n")
    pull = stage.pull_request("issue-1")
    if how == "merged":
        stage.api("PUT", f"pulls/{pull}/merge", {})
    else:
        stage.api("PATCH", f"pulls/{pull}", {"state": "closed"})
    if "deleted" in how:
        git(stage.world.origin, "update-ref", "-d", "refs/heads/issue-1", before)
    result = stage.run(number, stage.agent(COMMITS))
    assert result.status == 0, result
    assert [one["head"]["ref"] for one in stage.pulls()] == ["issue-1", "issue-1-branch-2"]
    assert stage.world.on_origin("refs/heads/issue-1") == ("" if "deleted" in how else before)


def test_branches_of_other_issues_do_not_matter(stage: Stage) -> None:
    number = stage.issue()
    for branch in ("issue-10", "issue-1-branch-1", "issue-1-branch-02", "issue-1-branch-x", "issue-1-branch-2-old"):
        stage.on_branch(branch, "begun.txt", "begun\n")
    assert stage.run(number, stage.agent(COMMITS)).status == 0
    assert stage.pull()["head"]["ref"] == "issue-1"


def test_a_local_branch_that_equals_origins_is_used_and_stays(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    git(stage.clone, "fetch", "-q", str(stage.world.origin), "issue-1:issue-1")
    result = stage.run(number, stage.agent("exit 3"))
    assert result.status == 1, result
    assert git(stage.clone, "rev-parse", "issue-1") == stage.world.on_origin("refs/heads/issue-1")


def test_a_base_branch_that_is_asked_for(stage: Stage) -> None:
    stage.on_branch("next", "next.txt", "next\n")
    result = stage.run(stage.issue(), stage.agent(COMMITS), "--base", "next")
    assert result.status == 0, result
    assert stage.pull()["base"]["ref"] == "next"
    assert "next.txt" in stage.files("issue-1")


def test_a_clone_that_is_behind_and_dirty_is_fine(stage: Stage) -> None:
    stage.on_branch("main", "newer.txt", "newer\n")
    (stage.clone / "a.txt").write_text("a person's edit\n")
    (stage.clone / "draft.txt").write_text("a person's file\n")
    (stage.clone / "b.txt").write_text("staged\n")
    git(stage.clone, "add", "b.txt")
    result = stage.run(stage.issue(), stage.agent(COMMITS))
    assert result.status == 0, result
    assert stage.files("issue-1") == {".gitignore", "a.txt", "b.txt", "lamp.txt", "newer.txt"}
    assert stage.world.origin_file("issue-1", "a.txt") == "a"


def test_a_run_from_a_directory_of_the_clone_and_from_a_worktree_of_it(stage: Stage) -> None:
    (stage.clone / "deep").mkdir()
    result = stage.run_in(stage.clone / "deep", stage.issue(), stage.agent(COMMITS))
    assert result.status == 0, result
    linked = stage.root / "linked"
    git(stage.clone, "worktree", "add", "-q", "-b", "mine", str(linked))
    result = stage.run_in(linked, stage.issue(), stage.agent(COMMITS), "--base", "main")
    assert result.status == 0, result
    assert (stage.worktrees(), linked.exists()) == ([], True)
