"""Runs that cannot begin: a clear sentence with the remedy, exit 2, and nothing created or claimed."""

import socket
import subprocess
from pathlib import Path

import pytest

from runner.hub import drills
from tests.scenarios.stage import NIGHTKEEP, READER, WRITER, Result, Stage, nightkeep
from tests.world import commit, git

AGENT = "true"


def run(stage: Stage, url: str, *options: str, **environment: str) -> Result:
    """Run with a good token and agent, and see that all is as it was."""
    before = stage.everything()
    result = stage.command("run", url, "--agent", AGENT, "--token-file", str(stage.token_file), *options, **environment)
    assert stage.everything() == before, result
    return result


def refused(result: Result, *said: str) -> None:
    """The run did not begin and said why, each in a sentence without a traceback."""
    assert (result.status, result.stdout) == (2, ""), result
    assert "Traceback" not in result.stderr, result
    assert result.stderr.endswith("nightkeep: nothing was begun or claimed\n"), result
    for words in said:
        assert words in result.stderr, result


@pytest.mark.parametrize("text", ["acme/widget#7", ""])
def test_no_url_of_an_issue(tmp_path: Path, text: str) -> None:
    refused(nightkeep("run", text, "--agent", AGENT, cwd=tmp_path), "https://github.com/OWNER/NAME/issues/7")


def test_a_pull_requests_number(stage: Stage) -> None:
    stage.on_branch("mine", "mine.txt", "mine\n")
    number = stage.pull_request("mine")
    refused(run(stage, stage.url(number)), f"#{number} is a pull request, not an issue")


def test_an_unknown_issue(stage: Stage) -> None:
    refused(run(stage, stage.url(99)), "issue #99 does not exist in acme/widget, or the token may not read it")


def test_a_closed_issue(stage: Stage) -> None:
    number = stage.issue()
    stage.api("PATCH", f"issues/{number}", {"state": "closed"})
    refused(run(stage, stage.url(number)), "issue #1 is closed; reopen it")


def test_another_repository(stage: Stage) -> None:
    url = f"{stage.hub.url}/acme/gadget/issues/1"
    refused(run(stage, url), "is not an issue of the repository", f"git clone {stage.hub.url}/acme/gadget.git")


def test_a_repository_that_does_not_exist(stage: Stage) -> None:
    git(stage.clone, "remote", "set-url", "origin", f"{stage.hub.url}/acme/gadget.git")
    refused(run(stage, f"{stage.hub.url}/acme/gadget/issues/1"), "acme/gadget does not exist, or the token may not")


def test_no_remote(stage: Stage) -> None:
    git(stage.clone, "remote", "remove", "origin")
    refused(run(stage, stage.url(stage.issue())), 'no remote "origin"', "run this in a clone of acme/widget")


@pytest.mark.parametrize("command", ["pickup", "status"])
def test_a_remote_with_an_address_that_is_none(stage: Stage, command: str) -> None:
    git(stage.clone, "remote", "set-url", "origin", "http://127.0.0.1:65536/acme/widget.git")
    result = stage.command(command, "--token-file", str(stage.token_file))
    assert (result.status, "is no clone of a repository on GitHub" in result.stderr) == (2, True), result


@pytest.mark.parametrize("address", ["http://[x", "http://127.0.0.1:65536", "localhost"])
def test_an_api_with_an_address_that_is_none(stage: Stage, address: str) -> None:
    result = run(stage, stage.url(stage.issue()), GITHUB_API_URL=address)
    refused(result, f"GITHUB_API_URL is no address: {address!r}")
    result = stage.command("pickup", "--token-file", str(stage.token_file), GITHUB_SERVER_URL=address)
    assert (result.status, "skipped: " in result.stderr) == (0, True), result


def test_no_git_directory(stage: Stage) -> None:
    (stage.root / "empty").mkdir()
    result = stage.run_in(stage.root / "empty", 1, AGENT)
    refused(result, "empty is not a checkout of a git repository")


def test_a_bare_repository(stage: Stage) -> None:
    result = stage.run_in(stage.world.origin, 1, AGENT)
    refused(result, "origin.git is not a checkout of a git repository")


def test_an_unborn_head(stage: Stage) -> None:
    git(stage.clone, "checkout", "-q", "--orphan", "fresh")
    refused(run(stage, stage.url(stage.issue())), "--base main")


def test_a_clone_without_any_commit(stage: Stage) -> None:
    new = stage.root / "new"
    git(stage.root, "init", "-q", "-b", "main", str(new))
    git(new, "remote", "add", "origin", f"{stage.hub.url}/acme/widget.git")
    number = stage.issue()
    refused(stage.run_in(new, number, AGENT), "--base main")
    assert git(new, "for-each-ref") == ""


@pytest.mark.parametrize("options", [(), ("--base", "main")])
def test_a_clone_of_an_origin_without_a_commit(stage: Stage, options: tuple[str, ...]) -> None:
    number = stage.issue()
    git(stage.world.origin, "update-ref", "-d", "refs/heads/main")
    new = stage.root / "new"
    git(stage.root, "clone", "-q", str(stage.world.origin), str(new))
    git(new, "remote", "set-url", "origin", f"{stage.hub.url}/acme/widget.git")
    remedy = "make a first commit and push it: git commit --allow-empty -m 'First commit' && git push origin HEAD"
    refused(stage.run_in(new, number, AGENT, *options), "origin has no branch to start from", remedy)
    found = nightkeep("doctor", "--json", "--token-file", str(stage.token_file), cwd=new).document["findings"]
    assert [one["remedy"] for one in found if one["name"] == "base-branch"] == [remedy]
    # It is what helps.
    git(new, "commit", "--allow-empty", "-m", "First commit")
    git(new, "push", "-q", str(stage.world.origin), "HEAD")
    assert "origin has no branch" not in stage.run_in(new, number, "no-such-agent").stderr


def test_an_origin_without_a_branch_and_a_clone_with_one(stage: Stage) -> None:
    git(stage.world.origin, "update-ref", "-d", "refs/heads/main")
    result = run(stage, stage.url(stage.issue()))
    refused(result, "origin has no branch to start from; push the one to start from: git push origin HEAD")


def test_a_detached_head_without_base(stage: Stage) -> None:
    git(stage.clone, "checkout", "-q", "--detach")
    refused(run(stage, stage.url(stage.issue())), "HEAD is on no branch", "--base main")


def test_a_base_branch_ahead_of_origin(stage: Stage) -> None:
    (stage.clone / "a.txt").write_text("more\n")
    commit(stage.clone, "not pushed")
    refused(run(stage, stage.url(stage.issue())), "main has 1 commit(s) that origin/main lacks", "git push origin main")


def test_a_base_branch_that_is_not_on_origin(stage: Stage) -> None:
    result = run(stage, stage.url(stage.issue()), "--base", "nowhere")
    refused(result, "Base branch nowhere is not on origin", "git push origin nowhere")


def test_a_checked_out_branch_that_is_not_on_origin(stage: Stage) -> None:
    git(stage.clone, "checkout", "-q", "-b", "mine")
    refused(
        run(stage, stage.url(stage.issue())),
        "Base branch mine is not on origin; push it (git push origin mine)",
        "--base BRANCH",
    )


def without_token(stage: Stage, **environment: str) -> Result:
    return stage.command("run", stage.url(1), "--agent", AGENT, **environment)


def test_no_token(stage: Stage) -> None:
    refused(
        without_token(stage),
        "there is no token",
        "give one by --token-file FILE, token-file or token-command",
    )
    refused(without_token(stage, NIGHTKEEP_TOKEN=" ", GITHUB_TOKEN=""), "there is no token")


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_token_file(stage: Stage, text: str) -> None:
    stage.token_file.write_text(text)
    refused(run_with(stage, stage.token_file), f"the token file {stage.token_file} is empty")


def run_with(stage: Stage, token_file: Path) -> Result:
    stage.issue()
    before = stage.everything()
    result = stage.command("run", stage.url(1), "--agent", AGENT, "--token-file", str(token_file))
    assert stage.everything() == before
    return result


def test_a_token_file_that_cannot_be_read(stage: Stage) -> None:
    refused(run_with(stage, stage.root / "missing"), "the token file cannot be read", "missing")
    refused(run_with(stage, stage.root), "the token file cannot be read")


@pytest.mark.parametrize("text", ["first\nsecond\n", "pass→word", "two words", "\x00\x01"])
def test_a_token_file_that_holds_something_else(stage: Stage, text: str) -> None:
    stage.token_file.write_text(text)
    result = run_with(stage, stage.token_file)
    refused(result, "what was given as the token is none: it must be one word of ASCII characters")
    assert text not in result.stderr


def test_a_wrong_token(stage: Stage) -> None:
    stage.token_file.write_text("not-a-token-anybody-knows")
    result = run_with(stage, stage.token_file)
    refused(result, "401", "the token is not valid, or has expired", "the first of --token-file")
    assert "not-a-token-anybody-knows" not in result.stderr


def test_a_token_without_push_permission(stage: Stage) -> None:
    stage.token_file.write_text(READER)
    refused(run_with(stage, stage.token_file), "the token may not push to acme/widget", "give it write access")


def test_the_token_file_wins_over_the_environment(stage: Stage) -> None:
    result = run(stage, stage.url(99), NIGHTKEEP_TOKEN="wrong-token-0001", GITHUB_TOKEN="wrong-token-0002")
    refused(result, "issue #99 does not exist")


def test_the_order_of_the_tokens_in_the_environment(stage: Stage) -> None:
    for environment in (
        {"NIGHTKEEP_TOKEN": WRITER, "GITHUB_TOKEN": "wrong-token-0002"},
        {"NIGHTKEEP_TOKEN": "", "GITHUB_TOKEN": WRITER},
    ):
        result = stage.command("run", stage.url(99), "--agent", AGENT, **environment)
        refused(result, "issue #99 does not exist")


def with_agent(stage: Stage, agent: str) -> Result:
    return stage.command("run", stage.url(1), "--agent", agent, "--token-file", str(stage.token_file))


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("no-such-agent --fast", "the agent 'no-such-agent' is not on PATH"),
        ("./no-such-agent", "the agent './no-such-agent' was not found"),
        (".", "the agent '.' is not on PATH"),
        ("./a.txt", "or cannot be executed"),
        ("", "--agent: is empty; leave the flag out, or give it a value"),
        ("  ", "--agent: is empty"),
        ("claude -p && echo done", "--agent: is run without a shell; for && write sh -c '…'"),
        ("claude 'never closed", "cannot be split into words"),
    ],
)
def test_an_agent_that_cannot_be_run(stage: Stage, agent: str, said: str) -> None:
    refused(with_agent(stage, agent), said)


def test_a_hub_that_does_not_answer(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    server = f"http://127.0.0.1:{port}"
    git(stage.clone, "remote", "set-url", "origin", f"{server}/acme/widget.git")
    refused(
        run(stage, f"{server}/acme/widget/issues/1"),
        f"GitHub at 127.0.0.1:{port} cannot be reached: Connection refused",
    )


def test_an_api_address_that_is_none(stage: Stage) -> None:
    refused(run(stage, stage.url(stage.issue()), GITHUB_API_URL="nonsense"), "GITHUB_API_URL", "nonsense")


def test_labels_that_cannot_be_changed(stage: Stage) -> None:
    number = stage.issue()
    stage.hub.drill("DELETE", "*/labels/ready-for-agent", drills.answer(403, {"message": "no"}))
    result = run(stage, stage.url(number))
    refused(result, "issue #1 could not be labelled")
    # A label that the repository lacked stays: everybody may use it by now.
    assert "made the label in-progress, which the repository lacked" in result.stderr
    assert "in-progress" in {label["name"] for label in stage.api("GET", "labels")}


def test_a_local_issue_branch_in_the_way(stage: Stage) -> None:
    git(stage.clone, "branch", "issue-1")
    result = run(stage, stage.url(stage.issue()))
    refused(result, "the local branch issue-1", "is not on origin", "git branch -m issue-1 NAME")


def test_a_local_branch_that_differs_from_the_one_to_continue(stage: Stage) -> None:
    git(stage.clone, "branch", "issue-1")
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    refused(run(stage, stage.url(number)), "the local branch issue-1", "differs from origin's", "git branch -D issue-1")


def test_another_server_than_the_environment_names(stage: Stage) -> None:
    result = run(stage, stage.url(stage.issue()), GITHUB_SERVER_URL="https://github.com")
    refused(result, "is not on the server that GITHUB_SERVER_URL names (https://github.com)")


def test_no_agent_is_named(stage: Stage) -> None:
    number = stage.issue()
    before = stage.everything()
    result = stage.command("run", stage.url(number), "--token-file", str(stage.token_file))
    refused(result, "no agent is named; give one by --agent 'COMMAND', NIGHTKEEP_AGENT, or `agent:` in")
    assert stage.everything() == before, result


def test_no_agent_is_named_but_by_a_file_that_is_not_trusted(stage: Stage) -> None:
    configure(stage, "agent: work\n")
    result = stage.command("run", stage.url(stage.issue()), "--token-file", str(stage.token_file))
    place = f"{stage.hub.url.removeprefix('http://')}/acme/widget"
    refused(
        result,
        "no agent is named",
        "or trust this repository, whose file names one: add",
        f'in ~/.config/nightkeep/config.yml, as in: trusted-repositories: ["{place}"]',
    )


def configure(stage: Stage, text: str) -> None:
    """Put the repository's file on origin's main."""
    stage.on_branch("main", "README", "x\n")
    (stage.root / "other" / ".github").mkdir()
    stage.on_branch("main", ".github/nightkeep.yml", text)
    git(stage.clone, "pull", "-q", str(stage.world.origin), "main")


def trusted(stage: Stage) -> dict[str, str]:
    """Return the environment in which the repository is trusted."""
    return {"NIGHTKEEP_TRUSTED_REPOSITORIES": f"{stage.hub.url.removeprefix('http://')}/acme/widget"}


def test_a_shells_words_in_the_repositorys_file(stage: Stage) -> None:
    configure(stage, "setup: npm ci && npm test\n")
    result = run(stage, stage.url(stage.issue()), **trusted(stage))
    refused(result, ".github/nightkeep.yml on main:1: setup is run without a shell; for && write sh -c '…'")


def test_a_relative_agent_of_the_repository_that_is_not_there(stage: Stage) -> None:
    configure(stage, "agent: ./agent.sh\n")
    # One that lies where the command is typed is not meant.
    (stage.clone / "agent.sh").write_text("#!/bin/sh\n")
    (stage.clone / "agent.sh").chmod(0o755)
    command = ("run", stage.url(stage.issue()), "--token-file", str(stage.token_file))
    refused(stage.command(*command, **trusted(stage)), "the agent './agent.sh' is no file of the repository on main")


@pytest.mark.parametrize("arguments", [("--agnet", "true"), ("--agent",)])
def test_options_that_are_wrong(stage: Stage, arguments: tuple[str, ...]) -> None:
    result = stage.command("run", stage.url(1), *arguments)
    assert (result.status, result.stdout) == (2, ""), result
    assert "--agent" in result.stderr


def test_json_says_that_nothing_was_begun(stage: Stage) -> None:
    result = run(stage, stage.url(99), "--json")
    assert (result.status, result.document["result"], result.document["exit_code"]) == (2, "not-begun", 2), result
    assert result.document["cause"] == "issue #99 does not exist in acme/widget, or the token may not read it"


def test_a_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = [
        "sh",
        "-c",
        'rmdir "$PWD"; exec "$@"',
        "sh",
        *NIGHTKEEP,
        "run",
        "https://x/a/b/issues/1",
        "--agent",
        AGENT,
    ]
    done = subprocess.run(command, cwd=gone, capture_output=True, text=True, check=False)
    refused(Result(done.returncode, done.stdout, done.stderr), "the current directory is gone")


def test_a_machine_without_git(stage: Stage) -> None:
    result = stage.command(
        "run", stage.url(1), "--agent", "/bin/true", "--token-file", str(stage.token_file), PATH=str(stage.root)
    )
    refused(result, "git was not found on PATH; install it")
