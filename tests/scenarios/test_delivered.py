"""Runs that deliver."""

import stat

import pytest

from tests.scenarios.stage import Stage
from tests.world import git

COMMITS = "echo on > lamp.txt && git add lamp.txt && git commit -qm 'Let there be light'"


def test_an_agent_that_commits(stage: Stage) -> None:
    number = stage.issue()
    result = stage.run(number, stage.agent(f"{COMMITS}\necho Done."))
    pull = stage.pull()
    assert (result.status, result.stdout) == (0, f"{pull['html_url']}\n"), result
    assert pull["head"]["sha"] == stage.world.on_origin("refs/heads/issue-1")
    assert (pull["draft"], pull["base"]["ref"], pull["head"]["ref"]) == (False, "main", "issue-1")
    assert stage.subject("issue-1") == "Let there be light"
    assert stage.labels(number) == {"bug", "in-progress"}
    assert stage.refs() == {"refs/heads/main", "refs/heads/issue-1"}
    assert stage.worktrees() == []
    assert stage.comments(number) == stage.comments(pull["number"]) == []


def test_the_session_log_is_private(stage: Stage) -> None:
    stage.run(stage.issue(), stage.agent(f"{COMMITS}\necho Done."))
    (log,) = stage.logs()
    assert "Done." in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("script", "subject"),
    [
        ("echo on > lamp.txt; echo 'The lamp is on.'", "The lamp is on."),
        ("echo on > lamp.txt; printf 'Light it\\n\\nAt last.\\n' > $NIGHTKEEP_PR_FILE; echo Bye.", "Light it"),
        ("echo on > lamp.txt", "Add a lamp"),
        ("echo on > lamp.txt; echo 'On, with [skip ci] obeyed'", "On, with (skip ci) obeyed"),
    ],
)
def test_an_agent_that_leaves_everything_uncommitted(stage: Stage, script: str, subject: str) -> None:
    result = stage.run(stage.issue(), stage.agent(script))
    assert result.status == 0, result
    assert stage.subject("issue-1") == subject
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"
    assert git(stage.world.origin, "log", "-1", "--format=%an", "issue-1") == "Nightkeep"


def test_what_an_agent_that_committed_leaves_over_is_no_part_of_the_pull_request(stage: Stage) -> None:
    result = stage.run(stage.issue(), stage.agent(f"{COMMITS}\necho half > later.txt; echo b2 > b.txt"))
    (snapshot,) = stage.world.snapshot_refs()
    assert result.status == 0, result
    assert "left out of the pull request: b.txt, later.txt" in result.stderr
    assert f"snapshot: {snapshot} at " in result.stderr
    assert stage.files("issue-1") == {".gitignore", "a.txt", "b.txt", "lamp.txt"}
    assert stage.world.origin_file("issue-1", "b.txt") == "b"
    assert stage.world.origin_file(snapshot, "later.txt") == "half"
    assert stage.world.origin_file(snapshot, "b.txt") == "b2"


def test_title_and_body_come_from_the_pull_request_file(stage: Stage) -> None:
    text = "printf 'Light the lamp\\n\\nIt was dark.\\n\\nFixes #1\\n' > $NIGHTKEEP_PR_FILE"
    stage.run(stage.issue(), stage.agent(f"{COMMITS}\n{text}\necho Said last."))
    pull = stage.pull()
    assert pull["title"] == "Light the lamp"
    assert "It was dark." in pull["body"]
    assert "Said last." not in pull["body"]
    assert "Fixes #1" in pull["body"]
    assert "Closes #1" not in pull["body"]


def test_title_and_body_come_from_the_issue_and_the_final_text_otherwise(stage: Stage) -> None:
    stage.run(stage.issue("Add a lamp"), stage.agent(f"{COMMITS}\necho First.\necho\necho Said last."))
    pull = stage.pull()
    assert pull["title"] == "Add a lamp"
    assert pull["body"].startswith("Said last.")
    assert pull["body"].count("Closes #1") == 1


def test_a_pull_request_text_as_long_as_can_be_read_is_delivered(stage: Stage) -> None:
    text = "(echo Long; echo; head -c 65520 /dev/zero | tr '\\0' x; echo) > $NIGHTKEEP_PR_FILE"
    result = stage.run(stage.issue(), stage.agent(f"{COMMITS}\n{text}"))
    assert result.status == 0, result
    assert "Closes #1" in stage.pull()["body"]


@pytest.mark.parametrize("draft", [False, True])
def test_the_open_pull_request_of_a_continuation_is_used_and_made_ready(stage: Stage, *, draft: bool) -> None:
    number = stage.issue()
    before = stage.on_branch("issue-1", "begun.txt", "begun\n")
    pull = stage.pull_request("issue-1", draft=draft)
    result = stage.run(number, stage.agent(COMMITS))
    seen = stage.pull()
    assert (result.status, result.stdout) == (0, f"{seen['html_url']}\n"), result
    assert (seen["number"], seen["draft"], seen["title"], seen["body"]) == (pull, False, "Mine", "By hand.")
    assert git(stage.world.origin, "rev-parse", "issue-1~1") == before


def test_labels_in_other_letters_are_known(stage: Stage) -> None:
    number = stage.issue(labels=("Good First Issue",))
    stage.api("PUT", f"issues/{number}/labels", ["READY-FOR-AGENT", "Good First Issue"])
    assert stage.run(number, stage.agent(COMMITS)).status == 0
    assert stage.labels(number) == {"Good First Issue", "in-progress"}


def test_an_issue_that_nobody_labelled_is_labelled_as_being_worked_on_all_the_same(stage: Stage) -> None:
    number = stage.issue()
    stage.api("PUT", f"issues/{number}/labels", ["bug"])
    assert stage.run(number, stage.agent(COMMITS)).status == 0
    assert stage.labels(number) == {"bug", "in-progress"}


def test_an_issue_in_progress_goes_on_and_says_so(stage: Stage) -> None:
    number = stage.issue(labels=("in-progress",))
    result = stage.run(number, stage.agent(COMMITS))
    assert result.status == 0, result
    assert "#1 is labelled in-progress already; going on" in result.stderr


def test_json_is_one_document(stage: Stage) -> None:
    result = stage.run(stage.issue(), stage.agent(COMMITS), "--json")
    pull, document = stage.pull(), result.document
    assert result.status == document["exit_code"] == 0
    assert (document["result"], document["preserved"]) == ("delivered", "origin")
    assert document["pull_request"] == pull["html_url"]
    assert (document["issue"], document["base"], document["branch"]) == (stage.url(1), "main", "issue-1")
    assert document["places"] == [
        {"what": "Issue branch", "where": f"refs/heads/issue-1 at {pull['head']['sha']} on origin"}
    ]
    assert document["session_log"] == str(stage.logs()[0])
    assert (document["cause"], document["stage"], document["secondary"]) == (None, None, [])


def test_an_ignored_file_is_in_the_rescue_store_and_named(stage: Stage) -> None:
    result = stage.run(stage.issue(), stage.agent(f"{COMMITS}\necho k > secret.env"), "--json")
    (kept,) = (stage.clone / ".git" / "nightkeep" / "rescue").iterdir()
    assert (result.status, result.document["preserved"], stage.worktrees()) == (0, "machine", []), str(result)
    assert (kept / "tree" / "secret.env").read_text() == "k\n"
    place = {"what": "kept on this machine", "where": f"secret.env (ignored) in {kept}"}
    assert place in result.document["places"]


def test_the_agents_contract(stage: Stage) -> None:
    names = "PROMPT_FILE ISSUE_URL BASE BRANCH SESSION PR_FILE RUN TOKEN"
    show = f'for name in {names}; do eval "echo $name=\\$NIGHTKEEP_$name"; done >> lamp.txt; cat >> lamp.txt'
    result = stage.run(stage.issue(body="Make it ```bright```."), stage.agent(show))
    seen = stage.world.origin_file("issue-1", "lamp.txt")
    assert result.status == 0, result
    assert f"ISSUE_URL={stage.url(1)}\nBASE=main\nBRANCH=issue-1\nSESSION=implement\n" in seen
    assert seen.count("TOKEN=\n") == 1
    assert "Make it ```bright```." in seen


def test_programs_of_ours_are_not_taken_from_the_repository(stage: Stage) -> None:
    trap = "raise SystemExit('taken from the repository')\n"
    for name in ("runner/__init__.py", "runner/__main__.py", "runner/supervisor.py", "git.py", "github.py", "json.py"):
        path = stage.clone / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(trap)
    git(stage.clone, "add", "-A")
    git(stage.clone, "commit", "-qm", "traps")
    git(stage.clone, "push", "-q", str(stage.world.origin), "main")
    result = stage.run(stage.issue(), stage.agent(COMMITS))
    assert result.status == 0, result
