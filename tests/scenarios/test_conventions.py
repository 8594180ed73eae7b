"""What `.github/nightkeep.yml`, the user's file, the environment and flags make of a Run."""

import os
import shlex
from pathlib import Path

import pytest

from tests.scenarios.stage import NAME, Result, Stage
from tests.world import commit, git

MAKES = "echo on > lamp.txt"
WORKFLOW = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": NAME}


def convene(stage: Stage, text: str, *, trusted: bool = True) -> None:
    """Put the repository's file on main at origin; `trusted` has this machine's user trust it."""
    other = stage.root / "conventions"
    git(stage.root, "clone", "-q", str(stage.world.origin), str(other))
    (other / ".github").mkdir()
    (other / ".github" / "nightkeep.yml").write_text(text)
    commit(other, "agree on conventions")
    git(other, "push", "-q", "origin", "main")
    if trusted:
        host = stage.hub.url.removeprefix("http://")
        mine(f"trusted-repositories: ['{host}/{NAME}']\n")


def mine(text: str) -> None:
    file = Path(os.environ["HOME"], ".config", "nightkeep", "config.yml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def run(stage: Stage, issue: int, *options: str, **environment: str) -> Result:
    """Run with nothing said about the agent."""
    return stage.command("run", stage.url(issue), "--token-file", str(stage.token_file), *options, **environment)


def test_the_file_of_a_repository_that_the_user_trusts_is_used(stage: Stage) -> None:
    convene(stage, f"agent: {stage.agent(MAKES)}\nlabels:\n  ready: todo\n  in-progress: doing\n")
    number = stage.issue(labels=("todo",))
    result = run(stage, number)
    assert result.status == 0, result
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"
    assert stage.labels(number) == {"ready-for-agent", "doing"}


def test_a_workflow_uses_its_own_repositorys_file(stage: Stage) -> None:
    convene(stage, f"agent: {stage.agent(MAKES)}\n", trusted=False)
    assert run(stage, stage.issue(), **WORKFLOW).status == 0, stage.last


@pytest.mark.parametrize(
    "environment", [{}, {**WORKFLOW, "GITHUB_REPOSITORY": "acme/other"}, {"GITHUB_REPOSITORY": NAME}]
)
def test_the_file_of_others_is_ignored_with_a_notice(stage: Stage, environment: dict[str, str]) -> None:
    convene(stage, f"agent: {stage.agent(MAKES)}\n", trusted=False)
    number, before = stage.issue(), stage.everything
    was = before()
    result = run(stage, number, **environment)
    assert result.status == 2, result
    assert ".github/nightkeep.yml on main is ignored, because this machine does not trust" in result.stderr
    assert f'add "{stage.hub.url.removeprefix("http://")}/{NAME}" to trusted-repositories' in result.stderr
    assert before() == was


def test_a_file_on_another_branch_says_nothing(stage: Stage) -> None:
    convene(stage, f"agent: {stage.agent(MAKES)}\n")
    git(stage.root / "conventions", "push", "-q", "origin", "main:conventions", "+HEAD~1:main")
    assert run(stage, stage.issue()).status == 2, stage.last
    assert "no agent is named" in str(stage.last)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("limits:\n  sesion: 5m\n", 'on main:2: unknown key "limits.sesion"; did you mean "limits.session"?'),
        ("\nagnet: x\n", 'on main:2: unknown key "agnet"; did you mean "agent"?'),
        ("agent: x\ntoken-file: /t\n", "on main:2: "),
        ("agent: [\n", "on main:"),
    ],
)
def test_nothing_begins_with_a_wrong_file(stage: Stage, text: str, said: str) -> None:
    convene(stage, text)
    number = stage.issue()
    before = stage.everything()
    result = stage.run(number, stage.agent(MAKES))
    assert result.status == 2, result
    assert f".github/nightkeep.yml {said}" in result.stderr
    assert "nothing was begun or claimed" in result.stderr
    assert stage.everything() == before


@pytest.mark.parametrize("winner", ["file", "environment", "flag"])
def test_which_agent_works(stage: Stage, winner: str) -> None:
    agents = {source: stage.agent(f"echo {source} > made.txt") for source in ("file", "environment", "flag")}
    convene(stage, f"agent: {agents['file']}\n")
    environment = {} if winner == "file" else {"NIGHTKEEP_AGENT": agents["environment"]}
    options = ["--agent", agents["flag"]] if winner == "flag" else []
    assert run(stage, stage.issue(), *options, **environment).status == 0, stage.last
    assert stage.world.origin_file("issue-1", "made.txt") == winner


def test_a_setup_that_fails(stage: Stage) -> None:
    convene(stage, "setup: sh -c 'echo no network; exit 7'\n")
    number = stage.issue()
    result = stage.run(number, stage.agent(MAKES), "--json")
    assert (result.status, result.document["stage"], result.document["preserved"]) == (1, "setup", "nothing-made")
    note = stage.note(number)
    assert "**Stage:** setup" in note
    assert "exited 7" in note
    assert "no network" in note
    assert list((stage.root / "made").iterdir()) == [], "the agent was run"


def test_a_verification_that_fails_leaves_the_work_in_a_draft(stage: Stage) -> None:
    # It sees the work committed.
    check = 'git diff --quiet HEAD && test -z "$(git status --porcelain)" && cat lamp.txt && echo too dim; exit 4'
    convene(stage, f"verify: sh -c {shlex.quote(check)}\nrepair: {{limit: 0}}\n")
    result = stage.run(stage.issue(), stage.agent(MAKES), "--json")
    assert (result.status, result.document["stage"], result.document["preserved"]) == (1, "verify", "origin"), result
    pull = stage.pull()
    assert pull["draft"] is True
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"
    note = stage.note(pull["number"])
    assert "**Stage:** verify" in note
    assert "exited 4" in note
    assert "on\ntoo dim" in note.replace("| ", "")


def test_setup_and_verify_that_pass(stage: Stage) -> None:
    convene(stage, "setup: sh -c 'echo made > setup.tmp'\nverify: grep -q on lamp.txt\n")
    result = stage.run(stage.issue(), stage.agent(f"cat setup.tmp && rm setup.tmp && {MAKES}"))
    assert result.status == 0, result
    assert result.stderr.index("running setup") < result.stderr.index("starting the agent")
    assert result.stderr.index("starting the agent") < result.stderr.index("running verify")


def test_a_step_has_a_limit(stage: Stage) -> None:
    convene(stage, "setup: sleep 60\nlimits: {step: 1s, stop-grace: 1s}\n")
    number = stage.issue()
    result = stage.run(number, stage.agent(MAKES), "--json")
    assert (result.status, result.document["stage"]) == (1, "setup"), result
    assert "setup ran longer than 1 second" in result.document["cause"]
    assert "**Stage:** setup" in stage.note(number)


@pytest.mark.parametrize(("rule", "files"), [("all", {"one.txt", "two.txt"}), ("never", {"one.txt"})])
def test_what_becomes_of_uncommitted_work(stage: Stage, rule: str, files: set[str]) -> None:
    convene(stage, f"session: {{commit: {rule}}}\n")
    result = stage.run(stage.issue(), stage.agent("echo 1 > one.txt; git add -A; git commit -qm one; echo 2 > two.txt"))
    assert result.status == 0, result
    assert {"one.txt", "two.txt"} & stage.files("issue-1") == files
    if rule == "never":
        (snapshot,) = stage.world.snapshot_refs()
        assert stage.world.origin_file(snapshot, "two.txt") == "2"
        assert "left out of the pull request: two.txt" in result.stderr


def test_a_failed_run_that_opens_no_pull_request(stage: Stage) -> None:
    convene(stage, "failed-run: {pull-request: none}\n")
    number = stage.issue()
    result = stage.run(number, stage.agent(f"{MAKES}; exit 3"), "--json")
    assert (result.status, result.document["preserved"], result.document["pull_request"]) == (1, "origin", None), result
    assert stage.pulls() == []
    assert "refs/heads/issue-1 at" in stage.note(number)


@pytest.mark.parametrize("replace", [False, True])
def test_the_prompt_that_an_agent_reads(stage: Stage, *, replace: bool) -> None:
    convene(stage, "prompt:\n  replace: Speak French.\n" if replace else "prompt: Speak French.\n")
    number = stage.issue(title="Add a lamp", body="It is ${branch} dark.\n```\nNot for you.\n")
    assert stage.run(number, stage.agent("cat > prompt.txt")).status == 0, stage.last
    prompt = stage.world.origin_file("issue-1", "prompt.txt")
    assert "Speak French." in prompt
    assert ("Do not push" in prompt) is not replace
    assert "Title: Add a lamp" in prompt
    assert "````text\nIt is ${branch} dark.\n```\nNot for you.\n````" in prompt
