"""What would stop a Run is found before anything is claimed; `nightkeep doctor` lists it and makes nothing."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.hub import Check, Permission, Token, TokenKind, drills
from runner.hub.access import Area
from tests.scenarios.killing import Exchanges, Point, an_agent, killed
from tests.scenarios.stage import NAME, WRITER, Result, Stage, nightkeep, staged
from tests.world import World, commit, git

COMMITS = "echo on > lamp.txt && git add lamp.txt && git commit -qm 'Let there be light'"
NO_PUSH = drills.answer(403, "Permission to acme/widget.git denied.")
PUSHES = "*/info/refs?service=git-receive-pack"


def doctor(stage: Stage, *options: str, **environment: str) -> Result:
    """Run it, and see that all is as it was."""
    before, labels = stage.everything(), stage.api("GET", "labels")
    result = stage.command("doctor", "--token-file", str(stage.token_file), *options, **environment)
    assert stage.everything() == before, result
    assert stage.api("GET", "labels") == labels
    return result


def findings(stage: Stage, **environment: str) -> dict[str, Any]:
    """Return what it found, by name."""
    result = doctor(stage, "--json", **environment)
    assert result.status == result.document["exit_code"], result
    return {finding["name"]: finding for finding in result.document["findings"]}


def push(stage: Stage, path: str, text: str) -> None:
    """Put a file on origin's main."""
    (stage.clone / path).write_text(text)
    commit(stage.clone, f"write {path}")
    git(stage.clone, "push", "-q", str(stage.world.origin), "main")


def run(stage: Stage, *options: str, **environment: str) -> Result:
    return stage.run(stage.issue(), stage.agent(COMMITS), *options, **environment)


def refused(stage: Stage, result: Result, said: str) -> None:
    """The Run did not begin, and nothing is claimed."""
    assert (result.status, result.stdout) == (2, ""), result
    assert said in result.stderr, result
    assert stage.labels(1) == {"bug", "ready-for-agent"}
    assert stage.refs() == {"refs/heads/main"}


def test_a_healthy_clone(stage: Stage) -> None:
    stage.issue()
    result = doctor(stage)
    assert result.status == 0, result
    assert result.stderr == ""
    names = [line.split()[1] for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert names == [
        *("repository", "base-branch", "agent", "git-version", "push", "claim-namespace", "claims", "token", "drafts"),
        *("checks", "labels", "lfs", "disk-space", "submodules", "shallow-clone", "partial-clone", "credential"),
        "worktrees",
    ]


def test_what_earlier_runs_have_left(stage: Stage) -> None:
    arguments = ["run", stage.url(stage.issue()), "--agent", an_agent(stage, "failed")]
    assert killed(stage, arguments, Point("git", 14, "after"), Exchanges())
    dead = findings(stage)["killed-runs"]
    assert (dead["level"], stage.worktrees()[0].name in dead["sentence"]) == ("notice", True)
    assert "nightkeep recover" in dead["remedy"]
    (stage.worktrees()[0] / ".git").unlink()
    stage.command("recover", "--token-file", str(stage.token_file))
    kept = findings(stage)
    assert stage.worktrees()[0].name in kept["kept-worktrees"]["sentence"]
    assert "killed-runs" not in kept


def test_missing_labels_are_made_by_a_run_alone(stage: Stage) -> None:
    push(stage, "c.txt", "c\n")
    assert "in-progress" in findings(stage)["labels"]["sentence"]
    result = run(stage)
    assert result.status == 0, result
    assert "made the label in-progress" in result.stderr
    (made,) = [label for label in stage.api("GET", "labels") if label["name"] == "in-progress"]
    assert (made["color"], bool(made["description"])) == ("fbca04", True)
    assert "made the label" not in run(stage).stderr


@pytest.mark.parametrize(
    ("agent", "level", "said"),
    [
        ("no-such-agent -p", "error", "the agent 'no-such-agent' is not on PATH"),
        ("./nowhere.sh", "error", "the agent './nowhere.sh' was not found, or cannot be executed"),
        ("git -p", "ok", "the agent is /"),
    ],
)
def test_the_agent(stage: Stage, agent: str, level: str, said: str) -> None:
    found = findings(stage, NIGHTKEEP_AGENT=agent)["agent"]
    assert (found["level"], said in found["sentence"]) == (level, True), found


def test_a_helper_that_agents_could_ask(stage: Stage) -> None:
    git(stage.clone, "config", "credential.helper", "store")
    assert findings(stage)["agent-push"]["level"] == "notice"
    assert "credential.helper" not in run(stage).stderr


def test_labels_that_cannot_be_made_do_not_stop_a_run(stage: Stage) -> None:
    with stage.hub.drill("POST", f"/api/v3/repos/{NAME}/labels", drills.answer(403, {"message": "No."}), times=None):
        result = run(stage)
    assert result.status == 0, result
    assert "could not be made: GitHub answered 403: No." in result.stderr


def test_a_push_that_git_refuses(stage: Stage) -> None:
    with stage.hub.drill("GET", PUSHES, NO_PUSH, times=None):
        found = findings(stage)
        result = run(stage)
    assert found["push"]["level"] == "error"
    assert "403" in found["push"]["sentence"]
    refused(stage, result, "origin refuses a push of a branch, tried as a dry run")


def test_lfs_without_its_program(stage: Stage) -> None:
    push(stage, ".gitattributes", "*.png filter=lfs\n")
    programs = stage.root / "programs"
    programs.mkdir()
    for directory in os.environ["PATH"].split(":"):
        for program in Path(directory).glob("*"):
            link = programs / program.name
            if program.name != "git-lfs" and not link.is_symlink():
                link.symlink_to(program)
    environment = {"PATH": str(programs)}
    assert findings(stage, **environment)["lfs"]["level"] == "error"
    refused(stage, run(stage, **environment), "git-lfs was not found; install it")


def test_what_is_said_once_and_stops_nothing(stage: Stage) -> None:
    url = git(stage.clone, "remote", "get-url", "origin")
    secret = "hunter2-hunter2"
    git(stage.clone, "remote", "set-url", "origin", url.replace("//", f"//me:{secret}@"))
    stage.hub.admin.make_private_on_free_plan(NAME)
    found = findings(stage)
    assert found["credential"]["level"] == "warning"
    assert found["drafts"]["level"] == "notice"
    result = run(stage)
    assert result.status == 0, result
    assert result.stderr.count("warning: the clone's configuration holds a credential") == 1
    assert result.stderr.count("notice: whether there are draft pull requests is unknown until tried") == 1
    assert secret not in str(result)
    assert secret not in str(found)


def test_a_checked_out_branch_that_is_not_on_origin(stage: Stage) -> None:
    git(stage.clone, "checkout", "-q", "-b", "mine")
    found = findings(stage)["base-branch"]
    assert (found["level"], found["remedy"]) == ("warning", "use --base main")


def test_everything_that_can_be_seen_is_said_without_github(stage: Stage) -> None:
    stage.token_file.write_text("a-token-nobody-knows")
    found = findings(stage)
    assert "401" in found["repository"]["sentence"]
    assert found["disk-space"]["level"] == found["credential"]["level"] == "ok"


@pytest.mark.parametrize("as_json", [False, True])
def test_no_clone(stage: Stage, *, as_json: bool) -> None:
    git(stage.clone, "remote", "remove", "origin")
    result = doctor(stage, *(["--json"] if as_json else []))
    assert result.status == 2, result
    assert "Traceback" not in result.stderr
    assert ('"preflight"' in result.stdout) == as_json
    assert "has no remote" in result.stdout


def test_each_error_and_warning_has_its_remedy(stage: Stage) -> None:
    results = [doctor(stage, "--json", GITHUB_API_URL="nonsense"), doctor(stage, "--json", NIGHTKEEP_AGNET="x")]
    (stage.root / "empty").mkdir()
    results.append(nightkeep("doctor", "--json", cwd=stage.root / "empty", environment=stage.environment))
    results.append(stage.command("doctor", "--json"))  # without a token
    stage.token_file.write_text("a-token-nobody-knows")
    results.append(doctor(stage, "--json"))
    for result in results:
        found = [one for one in result.document["findings"] if one["level"] in ("error", "warning")]
        assert found, result
        assert all(one["remedy"] for one in found), result
    assert "remedy: " in doctor(stage).stdout


def test_a_wrong_configuration_on_origin(stage: Stage) -> None:
    push(stage, "README", "x\n")
    (stage.clone / ".github").mkdir()
    push(stage, ".github/nightkeep.yml", "lables: {}\n")
    ignored = findings(stage)["configuration"]
    assert (ignored["level"], "is ignored" in ignored["sentence"]) == ("notice", True)
    assert "as in: trusted-repositories: [" in ignored["remedy"]
    found = findings(stage, NIGHTKEEP_TRUSTED_REPOSITORIES=f"{stage.hub.url.split('//')[1]}/{NAME}")["configuration"]
    assert found["sentence"].startswith('.github/nightkeep.yml on main:1: unknown key "lables"')
    assert found["remedy"] == "correct it, and look again: nightkeep config check .github/nightkeep.yml"


@pytest.mark.parametrize(("path", "agrees"), [("/api/graphql", True), ("/api/graphql/", True), ("/graphql", False)])
def test_the_address_of_graphql_must_agree(stage: Stage, path: str, *, agrees: bool) -> None:
    address = f"{stage.hub.url}{path}"
    assert (doctor(stage, GITHUB_GRAPHQL_URL=address).status == 0) == agrees
    result = run(stage, GITHUB_GRAPHQL_URL=address)
    if not agrees:
        refused(stage, result, f"GITHUB_GRAPHQL_URL is {address}, but the API at {stage.hub.url}/api/v3 has its")
    else:
        assert result.status == 0, result


# The GitHub CLI's token


def gh(stage: Stage, script: str) -> dict[str, str]:
    """Put a program of that name on PATH; return the environment that finds it."""
    programs = stage.root / "programs"
    programs.mkdir()
    (programs / "gh").write_text(f'#!/bin/sh\necho "$*" > {stage.root}/asked\n{script}\n')
    (programs / "gh").chmod(0o755)
    return {"PATH": f"{programs}:/usr/bin:/bin"}


def without_token(stage: Stage, **environment: str) -> Result:
    return stage.command("run", stage.url(stage.issue()), "--agent", stage.agent(COMMITS), **environment)


def test_the_last_source_of_a_token(stage: Stage) -> None:
    result = without_token(stage, **gh(stage, f"echo {WRITER}"))
    host = stage.hub.url.split("//")[1]
    assert result.status == 0, result
    assert (stage.root / "asked").read_text() == f"auth token --hostname {host}\n"
    assert f"using the token that the GitHub CLI has for {host} (gh auth token)" in result.stderr
    assert WRITER not in result.stderr


@pytest.mark.parametrize("script", ["exit 1", f"echo {WRITER}; exit 1", "echo"])
def test_a_github_cli_that_has_none(stage: Stage, script: str) -> None:
    result = without_token(stage, **gh(stage, script))
    assert (result.status, "there is no token" in result.stderr) == (2, True), result


def test_a_github_cli_that_hangs(stage: Stage) -> None:
    began = time.monotonic()
    result = without_token(stage, **gh(stage, "sleep 30 & sleep 30"))
    assert (result.status, "there is no token" in result.stderr) == (2, True), result
    assert time.monotonic() - began < 15


def test_the_github_cli_is_not_asked_on_actions_or_where_there_is_a_token(stage: Stage) -> None:
    environment = gh(stage, f"echo {WRITER}")
    assert "there is no token" in without_token(stage, GITHUB_ACTIONS="true", **environment).stderr
    assert stage.command("doctor", NIGHTKEEP_TOKEN=WRITER, **environment).status == 0
    assert not (stage.root / "asked").exists()


def test_the_built_in_token_of_a_workflow(tmp_path: Path, world: World) -> None:
    """Case 30."""
    builtin = "ghs_built0in0token0of0a0workflow"
    tokens: dict[str, Permission | Token] = {
        WRITER: Permission.WRITE,
        builtin: Token(Permission.WRITE, TokenKind.ACTIONS),
    }
    with staged(tmp_path, world, tokens=tokens) as stage:
        stage.token_file.write_text(builtin)
        found = findings(stage)
        assert (found["token"]["level"], found["drafts"]["level"]) == ("warning", "warning")
        result = run(stage)
    assert result.stderr.count("pull requests that it opens start no workflows") == 1


@pytest.fixture
def blind(tmp_path: Path, world: World) -> Iterator[Stage]:
    """A stage whose token may read no checks, no statuses and no Actions."""
    without = frozenset({Area.CHECKS, Area.STATUSES, Area.ACTIONS})
    tokens: dict[str, Permission | Token] = {
        WRITER: Token(Permission.WRITE, without=without),
    }
    with staged(tmp_path, world, tokens=tokens) as stage:
        yield stage


def test_a_token_that_may_not_read_checks(blind: Stage) -> None:
    blind.hub.ci.add(NAME, Check("test", conclusions=("failure",)))
    found = findings(blind)
    assert (found["checks"]["level"], found["actions"]["level"]) == ("warning", "notice")
    assert "give it checks: read, statuses: read" in found["checks"]["remedy"]
    for merging in (["--merge"], ["--no-merge"]):
        result = run(blind, *merging, NIGHTKEEP_CHECKS_REQUIRED="always" if merging == ["--no-merge"] else "auto")
        refused(blind, result, "the token may not read checks and statuses: ")
        blind.api("PATCH", "issues/1", {"labels": ["bug", "ready-for-agent"]})
    result = run(blind, "--no-merge")
    assert result.status == 0, result
    assert "cannot be read: GitHub answered 403: Resource not accessible by personal access token" in result.stderr
    assert ": the token may not read checks\n" in result.stderr
