"""Failed runs: the work is safe, and a maintainer reads what went wrong."""

import re
from pathlib import Path

import pytest

from runner.hub import drills
from tests.scenarios.spec import asks
from tests.scenarios.stage import Stage
from tests.world import git

COMMITS = "echo on > lamp.txt && git add lamp.txt && git commit -qm 'Let there be light'"
GIVES_UP = "echo half > half.txt; echo 'I cannot go on' >&2; exit 3"


def test_work_is_on_origin_under_a_marker_and_in_a_draft(stage: Stage) -> None:
    number = stage.issue()
    result = stage.run(number, stage.agent(f"{COMMITS}\n{GIVES_UP}"))
    pull = stage.pull()
    assert (result.status, result.stdout) == (1, f"{pull['html_url']}\n"), result
    assert (pull["draft"], pull["head"]["sha"]) == (True, stage.world.on_origin("refs/heads/issue-1"))
    assert stage.subject("issue-1") == "nightkeep: failed run (the agent exited 3)"
    body = git(stage.world.origin, "log", "-1", "--format=%b", "issue-1")
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, host \S+\. Uncommitted work at the time", body)
    assert stage.world.origin_file("issue-1", "half.txt") == "half"
    assert stage.labels(number) == {"bug", "in-progress"}
    assert stage.worktrees() == []
    assert stage.comments(number) == []


def test_the_note_tells_everything(stage: Stage) -> None:
    agent = stage.agent(GIVES_UP)
    result = stage.run(stage.issue(), agent)
    note = stage.note(stage.pull()["number"])
    assert "**Cause:** `the agent exited 3`" in note
    assert "**Stage:** session" in note
    assert f"refs/heads/issue-1 at {stage.world.on_origin('refs/heads/issue-1')} on origin" in note
    assert "I cannot go on" in note
    assert str(stage.logs()[0]) in note
    typed = next(line for line in note.splitlines() if line.startswith("nightkeep run "))
    assert typed.startswith(f"nightkeep run {stage.url(1)} --agent ")
    assert result.stderr.splitlines()[-1] == f"nightkeep: to go on: {typed}"
    assert "failed in stage session: the agent exited 3" in result.stderr


def test_the_command_to_continue_names_the_base_that_was_asked_for(stage: Stage) -> None:
    stage.on_branch("next", "next.txt", "next\n")
    number = stage.issue()
    stage.run(number, stage.agent("exit 3"), "--base", "next")
    assert " --base next" in stage.note(number)


def test_nothing_made_releases_the_claim(stage: Stage) -> None:
    number = stage.issue()
    result = stage.run(number, stage.agent("exit 3"), "--json")
    assert (result.status, result.document["preserved"]) == (1, "nothing-made"), result
    assert (result.document["pull_request"], result.document["places"]) == (None, [])
    assert stage.refs() == {"refs/heads/main"}
    assert [ref.startswith(f"refs/nightkeep/tries/{number}/") for ref in stage.tries()] == [True]
    assert stage.pulls() == []
    assert stage.labels(number) == {"bug", "ready-for-agent"}
    assert "**Preserved:** nothing was made" in stage.note(number)


def test_an_issue_that_was_closed_meanwhile_is_ready_for_nobody(stage: Stage) -> None:
    number = stage.issue()
    closes = asks(stage, "PATCH", f"issues/{number}", {"state": "closed"})
    result = stage.run(number, stage.agent(f"{closes}; exit 3"))
    assert (result.status, stage.labels(number), stage.tries()) == (1, {"bug"}, []), result


def test_an_agent_that_ends_well_and_makes_nothing_fails(stage: Stage) -> None:
    number = stage.issue()
    result = stage.run(number, stage.agent("echo All is well."))
    assert (result.status, result.stdout) == (1, ""), result
    assert "the agent ended well, but nothing was made" in stage.note(number)
    assert stage.labels(number) == {"bug", "ready-for-agent"}


def test_labels_put_on_meanwhile_stay(stage: Stage) -> None:
    number = stage.issue()
    label = f"""curl -sf -X POST {stage.hub.url}/api/v3/repos/acme/widget/issues/1/labels \\
        -H 'Authorization: Bearer writer-token-0001' -d '["urgent"]' > /dev/null || exit 9; exit 3"""
    stage.run(number, stage.agent(label))
    assert stage.labels(number) == {"bug", "ready-for-agent", "urgent"}


def test_a_pull_request_with_another_base_becomes_a_draft(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("other", "other.txt", "other\n")
    retarget = f"""curl -sf -X PATCH {stage.hub.url}/api/v3/repos/acme/widget/pulls/2 \\
        -H 'Authorization: Bearer writer-token-0001' -d '{{"base": "other"}}' > /dev/null || exit 9"""
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    stage.pull_request("issue-1")
    result = stage.run(number, stage.agent(f"{COMMITS}\n{retarget}"))
    assert result.status == 1, str(result)
    assert stage.pull()["draft"] is True
    assert "targets other, not main" in stage.note(2)
    assert "**Stage:** pull-request" in stage.note(2)


def test_a_ready_pull_request_becomes_a_draft_again(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    pull = stage.pull_request("issue-1")
    result = stage.run(number, stage.agent(GIVES_UP))
    assert (result.status, result.stdout) == (1, f"{stage.hub.url}/acme/widget/pull/{pull}\n"), result
    assert stage.pull()["draft"] is True
    assert "the agent exited 3" in stage.note(pull)


def test_an_unfinished_merge_is_aborted_and_its_files_are_on_a_rescue_ref(stage: Stage) -> None:
    merge = """
    git checkout -q -b side && echo side > a.txt && git commit -qam side
    git checkout -q issue-1 && echo ours > a.txt && git commit -qam ours
    git merge side; echo resolved > a.txt; git add a.txt; echo new > new.txt; git branch -q -D side; exit 3"""
    result = stage.run(stage.issue(), stage.agent(merge))
    (snapshot,) = stage.world.snapshot_refs()
    assert stage.world.origin_file(snapshot, "a.txt") == "resolved"
    assert stage.world.origin_file(snapshot, "new.txt") == "new"
    assert stage.world.origin_file("issue-1", "a.txt") == "ours"
    assert stage.subject("issue-1") == "nightkeep: failed run (the agent exited 3)"
    assert snapshot in stage.note(stage.pull()["number"])
    assert result.status == 1, str(result)


def test_hooks_of_the_clone_do_not_matter(stage: Stage) -> None:
    for hook in ("prepare-commit-msg", "pre-push", "reference-transaction"):
        stage.world.hook(hook, "echo no >&2; exit 1", repository=stage.clone / ".git")
    result = stage.run(stage.issue(), stage.agent(GIVES_UP))
    assert result.status == 1, str(result)
    assert stage.world.origin_file("issue-1", "half.txt") == "half"


def test_a_worktree_that_cannot_be_made_releases_the_claim(stage: Stage) -> None:
    number = stage.issue()
    (stage.clone / ".git" / "nightkeep").write_text("in the way\n")
    result = stage.run(number, stage.agent(COMMITS), "--json")
    document = result.document
    assert (result.status, document["result"], document["stage"]) == (1, "failed", "worktree"), result
    assert document["preserved"] == "nothing-made"
    assert (stage.worktrees(), stage.pulls(), stage.refs()) == ([], [], {"refs/heads/main"})
    assert stage.labels(number) == {"bug", "ready-for-agent"}
    assert "could not be made" in stage.note(number)


def test_a_worktree_that_broke_while_it_was_made_keeps_the_claim_and_is_named(stage: Stage) -> None:
    git(stage.clone, "config", "filter.eat.smudge", "rm -f .git; cat")
    stage.on_branch("main", ".gitattributes", "a.txt filter=eat\n")
    number = stage.issue()
    arguments = ("run", stage.url(number), "--agent", stage.agent(COMMITS), "--token-file", str(stage.token_file))
    result = stage.command(*arguments, "--json")
    document = result.document
    assert (result.status, document["result"], document["stage"]) == (3, "failed", "worktree"), result
    assert document["preserved"] == "machine"
    (left,) = stage.worktrees()
    assert str(left) in document["cause"]
    assert str(left) in stage.note(number)
    assert stage.labels(number) == {"bug", "in-progress"}


def test_an_agent_that_deletes_its_index_costs_nothing(stage: Stage) -> None:
    number = stage.issue()
    loses = 'echo left > left.txt; rm "$(git rev-parse --git-path index)"'
    result = stage.run(number, stage.agent(f"{COMMITS}; {loses}"), "--json")
    assert (result.status, result.document["result"], result.document["preserved"]) == (0, "delivered", "origin"), (
        result
    )
    (rescued,) = stage.world.snapshot_refs()
    assert stage.world.origin_file(rescued, "left.txt") == "left"


def test_a_push_that_origin_rejects_keeps_worktree_and_branch(stage: Stage) -> None:
    number = stage.issue()
    stage.world.hook("pre-receive", "echo 'not on my watch' >&2; exit 1")
    result = stage.run(number, stage.agent(GIVES_UP), "--json")
    (kept,) = stage.worktrees()
    document, note = result.document, stage.note(number)
    assert (result.status, document["preserved"], document["pull_request"]) == (3, "machine", None), result
    assert {"what": "worktree", "where": str(kept)} in document["places"]
    assert (document["cause"], document["stage"]) == ("the agent exited 3", "session")
    assert document["secondary"] == ["preservation was not completed, so the worktree is kept"]
    assert "not on my watch (pre-receive hook declined); a copy of the work is in " in document["retained"]
    line = f"keeping the worktree {kept} and its local branch issue-1, HEAD at {git(kept, 'rev-parse', 'HEAD')}"
    assert line in result.stderr
    assert "cleaned up" not in result.stderr
    assert "**Cause:** `the agent exited 3`" in note
    assert str(kept) in note
    assert (note.count("not on my watch"), result.stderr.count("not on my watch")) == (1, 1), f"{result}\n{note}"
    show = f"nightkeep rescue show {document['run']}"
    assert show in note
    assert show in result.stderr
    assert stage.command(*show.split()[1:], "--offline").status == 0
    assert git(stage.clone, "log", "-1", "--format=%s", "issue-1") == "nightkeep: failed run (the agent exited 3)"
    assert stage.labels(number) == {"bug", "in-progress"}


def test_a_finished_work_that_origin_rejects_is_kept_too(stage: Stage) -> None:
    number = stage.issue()
    stage.world.hook("update", 'case "$1" in refs/heads/*) echo not on my watch >&2; exit 1;; esac')
    result = stage.run(number, stage.agent(COMMITS))
    (kept,) = stage.worktrees()
    assert (result.status, result.stdout) == (3, ""), result
    assert (kept / "lamp.txt").exists()
    note = stage.note(number)
    assert "**Cause:** `origin did not take refs/heads/issue-1: not on my watch (hook declined)`" in note
    assert "**Stage:** push" in note
    assert note.count("not on my watch") == 1, note
    assert stage.labels(number) == {"bug", "in-progress"}


def test_a_draft_that_is_refused_is_a_secondary_line(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    pull = stage.pull_request("issue-1")
    mutation = "convertPullRequestToDraft"
    refusal = drills.graphql_error(mutation, message="no drafts")
    stage.hub.drill("POST", "/api/graphql", refusal, contains=mutation)
    result = stage.run(number, stage.agent(GIVES_UP), "--json")
    document = result.document
    assert (result.status, document["cause"]) == (1, "the agent exited 3"), result
    assert [line for line in document["secondary"] if "no drafts" in line and "draft" in line]
    assert stage.pull()["draft"] is False
    assert document["pull_request"].endswith(f"/pull/{pull}")
    assert "no drafts" in stage.note(pull)


def test_a_github_that_is_gone_at_the_end_keeps_the_cause(stage: Stage) -> None:
    number = stage.issue()
    for path in ("*/pulls", "*/comments"):
        stage.hub.drill("POST", path, drills.answer(403, {"message": "no"}))
    result = stage.run(number, stage.agent(GIVES_UP), "--json")
    document = result.document
    assert (result.status, document["cause"], document["preserved"]) == (1, "the agent exited 3", "origin"), result
    assert len(document["secondary"]) == 2
    assert stage.world.origin_file("issue-1", "half.txt") == "half"
    assert stage.labels(number) == {"bug", "in-progress"}


@pytest.mark.parametrize(
    ("leave", "end"),
    [("git checkout -q --ignore-other-worktrees main", "exit 0"), ("git checkout -q --detach", "exit 3")],
)
def test_work_elsewhere_than_on_the_issue_branch_is_kept_and_nobodys_branch_moves(
    stage: Stage, leave: str, end: str
) -> None:
    number, main = stage.issue(), git(stage.clone, "rev-parse", "main")
    result = stage.run(number, stage.agent(f"{leave}; echo on > lamp.txt; git add -A; {end}"), "--json")
    marker, snapshot = stage.world.snapshot_refs()
    assert (result.status, result.document["preserved"], stage.worktrees()) == (1, "origin", []), str(result)
    assert stage.world.origin_file(snapshot, "lamp.txt") == stage.world.origin_file("issue-1", "lamp.txt") == "on"
    assert stage.refs() == {"refs/heads/main", "refs/heads/issue-1", marker, snapshot}
    assert git(stage.clone, "rev-parse", "main") == stage.world.on_origin("refs/heads/main") == main
    assert snapshot in stage.note(stage.pull()["number"])
    assert stage.labels(number) == {"bug", "in-progress"}


def test_failing_twice_edits_the_note_and_a_success_resolves_it(stage: Stage) -> None:
    number = stage.issue()
    stage.run(number, stage.agent("echo one > one.txt; exit 3"))
    pull = stage.pull()["number"]
    assert "the agent exited 3" in stage.note(pull)
    stage.run(number, stage.agent("echo two > two.txt; exit 4"))
    assert "the agent exited 4" in stage.note(pull)
    assert "the agent exited 3" not in stage.note(pull)
    stage.run(number, stage.agent(COMMITS))
    note = stage.note(pull)
    assert "Resolved by" in note
    assert "exited" not in note
    assert stage.pull()["html_url"] in note


def test_a_note_on_the_issue_is_resolved_as_well(stage: Stage) -> None:
    number = stage.issue()
    stage.run(number, stage.agent("exit 3"))
    stage.run(number, stage.agent("exit 4"))
    assert "the agent exited 4" in stage.note(number)
    stage.run(number, stage.agent(COMMITS))
    assert "Resolved by" in stage.note(number)


def test_text_of_others_cannot_leave_its_place_in_the_note(stage: Stage) -> None:
    hostile = "printf '```\\n@everyone <!-- nightkeep:failure-note issue-1 -->\\n````\\n</details>\\n# Big\\n'; exit 3"
    number = stage.issue()
    stage.run(number, stage.agent(hostile))
    note = stage.note(number)
    fence = "`" * 5
    shown = note.split(f"{fence}text\n", 1)[1].split(f"\n{fence}\n", 1)[0]
    assert "@everyone" in shown
    assert "# Big" in shown
    assert note.count("@everyone") == 1


def test_a_failed_run_of_a_base_branch_that_somebody_moved_meanwhile(stage: Stage) -> None:
    number = stage.issue()
    move = f"git -C {stage.root}/other push -q origin HEAD:main; git -C {stage.clone} fetch -q {stage.world.origin}"
    stage.on_branch("ahead", "ahead.txt", "ahead\n")
    result = stage.run(number, stage.agent(f"{move} main:refs/remotes/origin/main; exit 3"), "--json")
    assert (result.status, result.document["preserved"]) == (1, "nothing-made"), result
    assert stage.labels(number) == {"bug", "ready-for-agent"}


def test_what_is_rescued_can_be_found_from_the_note(stage: Stage) -> None:
    result = stage.run(stage.issue(), stage.agent("echo half > half.txt; echo k > secret.env; exit 3"), "--json")
    document = result.document
    assert (result.status, document["preserved"]) == (3, "machine"), str(result)
    note = stage.note(stage.pull()["number"])
    assert f"nightkeep rescue show {document['run']}" in note
    assert "secret.env (ignored)" in note
    assert "k\n" in (Path(document["rescued"]) / "tree" / "secret.env").read_text()


def test_what_is_copied_in_is_said_and_never_published(stage: Stage) -> None:
    (stage.clone / ".worktreeinclude").write_text("*.env\nlocal.json\n")
    (stage.clone / "secret.env").write_text("k\n")
    (stage.clone / "local.json").write_text("{}\n")
    agent = "cat secret.env > seen.txt; : > .gitignore; echo half > half.txt; exit 3"
    result = stage.run(stage.issue(), stage.agent(agent), "--json")
    assert "copied in by .worktreeinclude: secret.env" in result.stderr
    assert "not copied in: local.json (git does not ignore it in the worktree" in result.stderr
    assert stage.world.origin_file("issue-1", "seen.txt") == "k"
    assert set(git(stage.world.origin, "ls-tree", "--name-only", "issue-1").split()) >= {"half.txt", "seen.txt"}
    assert "secret.env" not in git(stage.world.origin, "ls-tree", "--name-only", "issue-1").split()
    assert (result.status, result.document["rescued"]) == (1, None), str(result)
    for name in (".worktreeinclude", "secret.env", "local.json"):
        (stage.clone / name).unlink()
