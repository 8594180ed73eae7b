"""What a maintainer is told of a Failed run, on the pull request or on the issue, beyond that it failed."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from runner.hub import drills
from tests.scenarios.stage import Result, Stage
from tests.scenarios.test_drills import GIVES_UP
from tests.waiting import wait_for
from tests.worktree.test_refused_content import SECRETS, WORKFLOWS, asked
from tests.worktree.test_screening import GITHUB
from tests.world import git

LIGHT = "echo on > lamp.txt && git add lamp.txt && git commit -qm 'Let there be light'"
WORKFLOW = "mkdir -p .github/workflows; echo 'on: push' > .github/workflows/ci.yml; echo on > lamp.txt"
SECRET = f"""
    echo "token = '{GITHUB}'" > settings.py && git add . && git commit -qm 'with it'
    echo 'token = None' > settings.py && git commit -qam 'without it'"""


def run(stage: Stage, script: str) -> Result:
    """Run where what holds after most Runs need not: the agent changes the clone's own configuration or branches."""
    arguments = ("run", stage.url(stage.issue()), "--agent", stage.agent(script), "--token-file", str(stage.token_file))
    return stage.command(*arguments, "--json")


def told(stage: Stage, result: Result) -> str:
    """Return the note, wherever it is, having seen that the same can be read where the command was run."""
    pulls = stage.pulls()
    return stage.note(pulls[0]["number"] if pulls else 1) + result.stderr


# What origin refuses


@pytest.mark.parametrize(("ending", "pushes"), [("exit 3", 1), ("exit 0", 2)])
def test_a_workflow_that_the_token_may_not_push_is_named_with_the_permission(
    stage: Stage, ending: str, pushes: int
) -> None:
    stage.world.hook("pre-receive", WORKFLOWS)
    result = stage.run(stage.issue(), stage.agent(f"{WORKFLOW}; {ending}"), "--json")
    note = stage.note(1)
    (kept,) = stage.worktrees()
    assert (result.status, result.document["preserved"]) == (3, "machine"), result
    for words in (".github/workflows/ci.yml", "without `workflow` scope", str(kept), "work.bundle"):
        assert words in note
    assert git(kept, "show", "HEAD:.github/workflows/ci.yml", "HEAD:lamp.txt") == "on: push\non"
    assert asked(stage.world) == pushes, "the push of a delivery is one, preservation another; neither is repeated"


@pytest.mark.parametrize("ending", ["exit 3", "exit 0"])
def test_a_secret_that_origin_found_is_told_by_its_place_and_shown_nowhere(stage: Stage, ending: str) -> None:
    stage.world.hook("pre-receive", SECRETS)
    result = stage.run(stage.issue(), stage.agent(f"{SECRET}; {ending}"), "--json")
    note = stage.note(1)
    (kept,) = stage.worktrees()
    assert (result.status, result.document["preserved"]) == (3, "machine"), result
    first = git(kept, "log", "--format=%H", "--grep=^with it", "HEAD")
    assert git(kept, "show", f"{first}:settings.py") == f"token = '{GITHUB}'"
    for words in ("origin refuses what is in it", f"commit: {first}", "path: settings.py:1", str(kept)):
        assert words in note
    assert stage.refs() == {"refs/heads/main"}
    logs = [path.read_text() for path in stage.state.rglob("*.log")]
    for text in (note, result.stdout, result.stderr, *logs):
        assert GITHUB not in text
        assert "unblock-secret" not in text


def test_an_origin_that_cannot_be_reached_is_another_cause_than_a_refusal(stage: Stage) -> None:
    there, go = stage.root / "there", stage.root / "go"
    agent = stage.agent(f"echo on > lamp.txt; touch {there}; until [ -e {go} ]; do sleep 0.01; done")
    with ThreadPoolExecutor() as threads:
        run = threads.submit(stage.run, stage.issue(), agent, "--json", NIGHTKEEP_LIMITS_PUSH="5s")
        wait_for(there.exists)
        with stage.hub.drill("POST", "*/git-receive-pack", drills.server_error(503), times=None) as pushes:
            go.touch()
            result = run.result()
    assert (result.status, result.document["stage"]) == (3, "push"), result
    assert "origin could not be reached, or failed" in result.document["cause"]
    assert "refuses" not in result.document["cause"]
    assert result.document["code"] == "origin-unavailable"
    assert pushes.hits > 2, "what may pass is tried again"


def test_an_outage_of_origin_that_passes_is_none_of_the_runs(stage: Stage) -> None:
    there, go = stage.root / "there", stage.root / "go"
    agent = stage.agent(f"echo on > lamp.txt; touch {there}; until [ -e {go} ]; do sleep 0.01; done")
    with ThreadPoolExecutor() as threads:
        run = threads.submit(stage.run, stage.issue(), agent)
        wait_for(there.exists)
        with stage.hub.drill("*", "/acme/*", drills.server_error(502), times=5):
            go.touch()
            result = run.result()
    assert result.status == 0, result
    assert "origin could not be reached, or failed; trying again in 8 s" in result.stderr


# What was found in the worktree


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ('GIT_DIR="$(git rev-parse --absolute-git-dir)" git init -q', "core.bare"),
        ("git config core.worktree /tmp", "core.worktree"),
        ("git remote set-url origin /nowhere", "remote.origin.url"),
        pytest.param(
            "git config --global core.hooksPath /tmp/hooks",
            "core.hooksPath",
        ),
    ],
)
def test_a_setting_that_an_agent_changed_for_everybody_is_named(stage: Stage, changes: str, key: str) -> None:
    result = run(stage, f"{changes}; echo half > half.txt; exit 3")
    assert key.lower() in told(stage, result).lower()


def test_a_setting_that_an_agent_changed_for_everybody_stops_nothing_and_is_not_rewritten(stage: Stage) -> None:
    changes = """
        GIT_DIR="$(git rev-parse --absolute-git-dir)" git init -q
        git config --global core.hooksPath /tmp/hooks; git config core.worktree /tmp"""
    result = run(stage, f"{changes}; echo half > half.txt; exit 3")
    assert (result.status, result.document["preserved"], stage.worktrees()) == (1, "origin", []), result
    assert stage.world.origin_file("issue-1", "half.txt") == "half"
    clone = stage.clone / ".git" / "config"
    settings = [git(stage.root, "config", "--file", str(clone), f"core.{key}") for key in ("bare", "worktree")]
    assert settings == ["true", "/tmp"]
    assert git(stage.root, "config", "--global", "core.hooksPath") == "/tmp/hooks"


def test_the_branch_that_an_agent_left_is_named(stage: Stage) -> None:
    result = run(stage, f"git checkout -q -b their-way; {LIGHT}; exit 3")
    assert "their-way" in told(stage, result)


def test_a_session_that_ended_well_elsewhere_names_the_branch(stage: Stage) -> None:
    result = run(stage, f"git checkout -q -b their-way; {LIGHT}")
    assert "the branch their-way checked out, and not issue-1" in told(stage, result)
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"


def test_conflict_markers_that_were_staged_are_named(stage: Stage) -> None:
    merge = """
    git checkout -q -b side && echo side > a.txt && git commit -qam side
    git checkout -q issue-1 && echo ours > a.txt && git commit -qam ours
    git merge side; git add -A; git branch -q -D side; exit 3"""
    run(stage, merge)
    (snapshot,) = stage.world.snapshot_refs()
    assert "<<<<<<<" in stage.world.origin_file(snapshot, "a.txt")
    message = git(stage.world.origin, "log", "-1", "--format=%B", snapshot)
    assert "Unfinished operation: merge." in message
    assert "a.txt" in message


# Signatures


def demand_signatures(stage: Stage) -> None:
    """Let the clone have every commit signed, by a program that waits for a person."""
    program = stage.root / "gpg"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    for key, value in {"commit.gpgSign": "true", "gpg.program": str(program)}.items():
        git(stage.clone, "config", key, value)


@pytest.mark.parametrize("ending", ["exit 3", "exit 0"])
def test_a_signature_that_nobody_gives_is_not_waited_for(stage: Stage, ending: str) -> None:
    demand_signatures(stage)
    result = stage.run(stage.issue(), stage.agent(f"echo half > half.txt; {ending}"))
    assert result.status == int(ending == "exit 3"), result
    assert "gpgsig" not in git(stage.world.origin, "cat-file", "commit", "issue-1")
    assert stage.world.origin_file("issue-1", "half.txt") == "half"


def test_a_marker_without_the_signature_that_was_asked_for_is_said_to_have_none(stage: Stage) -> None:
    demand_signatures(stage)
    result = stage.run(stage.issue(), stage.agent(GIVES_UP), "--json")
    assert "unsigned" in told(stage, result)


# A note that GitHub does not take


def test_a_note_that_is_refused_is_not_said_to_be_there(stage: Stage) -> None:
    refusal = drills.answer(422, {"message": "Body is too long (maximum is 65536 characters)"})
    with stage.hub.drill("POST", "*/comments", refusal, times=None) as comments:
        result = stage.run(stage.issue(), stage.agent(GIVES_UP), "--json")
    assert (result.status, result.document["cause"]) == (1, "the agent exited 3"), result
    assert "the Failure note could not be written: GitHub answered 422: Body is too long" in result.stderr
    assert "the Failure note is at" not in result.stderr
    assert comments.hits == 1
    assert stage.comments(stage.pull()["number"]) == []
    assert str(stage.logs()[0]) in result.stderr
