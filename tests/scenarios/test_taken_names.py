"""A Run that finds its names or places taken leaves them alone, and says what is in the way before it begins."""

from pathlib import Path

import pytest

from tests.scenarios.stage import Result, Stage
from tests.world import git

LIGHT = "echo on > lamp.txt && git add lamp.txt && git commit -qm 'Let there be light'"


def run(stage: Stage, script: str = LIGHT) -> Result:
    """Run on the first issue, beside worktrees of a person's that nothing need name."""
    agent = stage.agent(f"touch {stage.root}/begun; {script}")
    return stage.command("run", stage.url(1), "--agent", agent, "--token-file", str(stage.token_file))


def begun(stage: Stage) -> bool:
    return (stage.root / "begun").exists()


def checked_out_elsewhere(stage: Stage, *options: str) -> Path:
    """Let a person have the Issue branch checked out in a worktree of their own, with an edit."""
    theirs = stage.root / "mine"
    git(stage.clone, "worktree", "add", "-q", *options, str(theirs), "main" if options else "issue-1")
    (theirs / "a.txt").write_text("dirty\n")
    return theirs


def test_a_directory_of_a_persons_stays_and_the_other_place_is_told(stage: Stage) -> None:
    theirs = stage.clone.with_name("widget-issue-1")
    theirs.mkdir()
    (theirs / "notes.txt").write_text("a person's\n")
    stage.issue()
    result = run(stage)
    assert (result.status, stage.worktrees()) == (0, [theirs]), result
    assert f"working in {theirs}-2 on issue-1" in result.stderr
    assert [path.name for path in theirs.iterdir()] == ["notes.txt"]


def test_a_branch_that_is_checked_out_elsewhere_is_told_before_anything_begins(stage: Stage) -> None:
    stage.issue()
    theirs = checked_out_elsewhere(stage, "-b", "issue-1")
    before = stage.everything()
    result = run(stage)
    assert (result.status, begun(stage), stage.everything()) == (2, False, before), result
    assert "the local branch issue-1 in " in result.stderr
    assert (theirs / "a.txt").read_text() == "dirty\n"


def continued_elsewhere(stage: Stage) -> Path:
    stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    git(stage.clone, "fetch", "-q", str(stage.world.origin), "issue-1:issue-1")
    return checked_out_elsewhere(stage)


def test_a_branch_to_go_on_from_that_is_checked_out_elsewhere_is_told_with_the_place(stage: Stage) -> None:
    theirs = continued_elsewhere(stage)
    result = run(stage)
    assert (result.status != 0, begun(stage), (theirs / "a.txt").read_text()) == (True, False, "dirty\n"), result
    assert f"'issue-1' is already checked out at '{theirs}'" in result.stderr


def test_a_branch_to_go_on_from_that_is_checked_out_elsewhere_is_told_before_anything_begins(stage: Stage) -> None:
    continued_elsewhere(stage)
    before = stage.everything()
    result = run(stage)
    assert (result.status, stage.everything()) == (2, before), result


@pytest.mark.parametrize("where", ["here", "on origin"])
def test_a_branch_below_the_name_of_ours_is_told_before_anything_begins(stage: Stage, where: str) -> None:
    stage.issue()
    if where == "here":
        git(stage.clone, "branch", "issue-1/part")
    else:
        stage.on_branch("issue-1/part", "part.txt", "part\n")
    before = stage.everything()
    result = run(stage)
    assert "issue-1/part" in result.stderr
    assert (result.status, begun(stage), stage.everything()) == (2, False, before), result


def test_a_place_whose_worktree_is_missing_is_in_no_runs_way(stage: Stage) -> None:
    stage.issue()
    theirs = stage.clone.with_name("widget-issue-1")
    git(stage.clone, "worktree", "add", "-q", "--detach", str(theirs))
    theirs.rename(stage.root / "unplugged")
    assert run(stage).status == 0, stage.last
    assert str(theirs) in git(stage.clone, "worktree", "list", "--porcelain")


def test_an_agent_that_deletes_its_own_directory_is_in_no_later_runs_way(stage: Stage) -> None:
    stage.issue()
    result = run(stage, 'rm -rf "$PWD"; exit 3')
    assert result.status in (1, 3), result
    assert run(stage).status == 0, stage.last


def test_neither_a_push_nor_a_deletion_is_forced_on_what_an_earlier_run_or_a_person_pushed(stage: Stage) -> None:
    stage.world.hook("update", 'echo "$1 $2 $3" >> "$GIT_DIR/updates"')
    number = stage.issue()
    stage.run(number, stage.agent("echo one > one.txt; exit 3"))
    stage.on_branch("issue-1", "hand.txt", "by hand\n", base="issue-1")
    result = stage.run(number, stage.agent("echo two > two.txt; exit 3"), "--json")
    tip = stage.world.on_origin("refs/heads/issue-1")
    assert {"what": "failure marker", "where": f"refs/heads/issue-1 at {tip} on origin"} in result.document["places"]
    assert f"refs/heads/issue-1 at {tip} on origin" in stage.note(stage.pull()["number"])
    told = [line.split() for line in (stage.world.origin / "updates").read_text().splitlines()]
    updates = [update for update in told if not update[0].startswith("refs/nightkeep/claims/")]
    assert [name for name, _, _ in updates] == ["refs/heads/issue-1"] * 3
    for _, old, new in updates[1:]:
        git(stage.world.origin, "merge-base", "--is-ancestor", old, new)
