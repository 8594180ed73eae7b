"""A token that dies while the agent works is read afresh from where it came from; without a new one nothing is lost."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.hub import Exchange, Permission
from tests.scenarios.stage import WRITER, Result, Stage, staged
from tests.scenarios.test_drills import meanwhile
from tests.world import World, git

DYING, NEXT = "dying-token-0001", "next-token-00002"
MAKES = "echo on > lamp.txt"


@pytest.fixture
def stage(tmp_path: Path, world: World, exchanges: list[Exchange]) -> Iterator[Stage]:
    """A stage on which Nightkeep has a token that may die, and another is there to follow it."""
    tokens = dict.fromkeys((WRITER, DYING, NEXT), Permission.WRITE)
    with staged(tmp_path, world, exchanges.append, tokens) as made:
        made.token_file.write_text(DYING)
        yield made


def dies(stage: Stage, followed_by: str | None) -> Callable[[], None]:
    """Return what revokes the token, and puts another in its place."""

    def change() -> None:
        stage.hub.revoke(DYING)
        stage.hub.requests.clear()
        if followed_by is not None:
            stage.token_file.write_text(followed_by)

    return change


def run(stage: Stage, script: str, *options: str, **environment: str) -> Result:
    """Run with nothing said about the token."""
    arguments = ("run", stage.url(stage.issue()), "--agent", stage.agent(script), *options)
    return stage.command(*arguments, **environment)


def kept_secret(stage: Stage, result: Result) -> None:
    """No token is to be read anywhere."""
    logs = [path.read_text() for path in stage.state.rglob("*.log")]
    assert logs, result
    for text in (result.stdout, result.stderr, *logs, str(stage.pulls()), str(stage.comments(1))):
        assert DYING not in text
        assert NEXT not in text


@pytest.mark.parametrize("ending", ["exit 0", "exit 3"])
def test_a_token_file_that_is_replaced_during_the_run(stage: Stage, ending: str) -> None:
    # The agent prints what it has found there: the new token is masked from the moment that it is used.
    with meanwhile(stage, dies(stage, NEXT)) as words:
        result = stage.run(stage.issue(), stage.agent(f"{words}; {MAKES}; {ending}"))
    assert result.status == int(ending[-1] == "3"), result
    assert stage.pull()["draft"] is (result.status == 1)
    assert stage.world.origin_file("issue-1", "lamp.txt") == "on"
    assert result.stderr.count("GitHub no longer takes the token; going on with the one that was read afresh") == 1
    kept_secret(stage, result)


def test_a_command_is_asked_again(stage: Stage) -> None:
    command = f"cat {shlex.quote(str(stage.token_file))}"
    with meanwhile(stage, dies(stage, NEXT)) as words:
        # What it printed counts for some seconds, for whoever asks often.
        result = run(stage, f"{words}; {MAKES}; sleep 6", NIGHTKEEP_TOKEN_COMMAND=command)
    assert result.status == 0, result
    kept_secret(stage, result)


def test_the_github_cli_is_asked_again(stage: Stage) -> None:
    programs = stage.root / "programs"
    programs.mkdir()
    (programs / "gh").write_text(f"#!/bin/sh\ncat {shlex.quote(str(stage.token_file))}\n")
    (programs / "gh").chmod(0o755)
    with meanwhile(stage, dies(stage, NEXT)) as words:
        result = run(stage, f"{words}; {MAKES}; sleep 6", PATH=f"{programs}:/usr/bin:/bin")
    assert result.status == 0, result
    kept_secret(stage, result)


@pytest.mark.parametrize("followed_by", [None, "a-token-nobody-knows", "", "two words"])
def test_no_new_token(stage: Stage, followed_by: str | None) -> None:
    with meanwhile(stage, dies(stage, followed_by)) as words:
        result = stage.run(stage.issue(), stage.agent(f"{words}; {MAKES}"), "--json")
    document = result.document
    assert (result.status, document["stage"], document["preserved"]) == (3, "push", "machine"), result
    assert document["code"] == "token-refused"
    (kept,) = stage.worktrees()
    assert git(kept, "show", "HEAD:lamp.txt") == "on"
    said = f"GitHub no longer takes the token of the token file {stage.token_file}: it has expired or was revoked"
    push = f"git -C {kept} push origin HEAD:refs/heads/issue-1"
    (told,) = [line for line in document["secondary"] if line.startswith(said)]
    assert told.endswith(f"; write a valid token into it, then bring the work to origin: {push}")
    assert result.stderr.count(told) == 1
    assert result.stderr.splitlines()[-3:-1] == [
        f"nightkeep: before you go on, if its commits may go to origin by now: {push}",
        f"nightkeep: and release the worktree: nightkeep worktrees release {kept}",
    ]
    assert told in Path(document["command_log"]).read_text()
    assert len(stage.hub.requests) <= 2, f"a storm: {stage.hub.requests}"
    kept_secret(stage, result)


def test_the_way_on_that_is_told_after_a_token_died(stage: Stage) -> None:
    with meanwhile(stage, dies(stage, None)) as words:
        result = stage.run(stage.issue(), stage.agent(f"{words}; {MAKES}; exit 3"))
    push, release, run_again = (line.split(": ", 2)[2] for line in result.stderr.splitlines()[-3:])
    stage.token_file.write_text(NEXT)
    recovered = stage.command("recover", "--token-file", str(stage.token_file))
    assert recovered.status == 3, recovered
    assert "**Cause:** `the agent exited 3`" in stage.note(1)
    (stage.root / "helper").write_text(f"#!/bin/sh\nprintf 'username=x\\npassword={NEXT}\\n'\n")
    (stage.root / "helper").chmod(0o755)
    git(stage.clone, "-c", f"credential.helper={stage.root / 'helper'}", *shlex.split(push)[1:])
    assert stage.command(*shlex.split(release)[1:], "--yes").status == 0, stage.last
    again = stage.command(*shlex.split(run_again)[1:])
    assert (again.status, stage.world.origin_file("issue-1", "lamp.txt")) == (1, "on"), again
    assert "going on from origin's issue-1" in again.stderr


def test_a_token_that_cannot_be_read_afresh_any_more(stage: Stage) -> None:
    def change() -> None:
        stage.token_file.unlink()
        (stage.root / "pipe").mkdir()

    with meanwhile(stage, change) as words:
        result = stage.run(stage.issue(), stage.agent(f"{words}; {MAKES}"))
    assert result.status == 0, result
    assert result.stderr.count("no token could be read afresh: the token file cannot be read") == 1


def test_the_environments_token_cannot_be_renewed(stage: Stage) -> None:
    with meanwhile(stage, dies(stage, None)) as words:
        result = run(stage, f"{words}; {MAKES}", NIGHTKEEP_TOKEN=DYING)
    assert result.status == 3, result
    assert "GitHub no longer takes the token of NIGHTKEEP_TOKEN: it has expired or was revoked" in result.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false", "token-command failed with status 1; see what it prints, and how it ends:"),
        ("true", "token-command printed nothing"),
        ("sh -c 'sleep 30 & sleep 30'", "token-command gave no answer within 1 seconds"),
        ("yes", "token-command gave no answer within 1 seconds"),
        ("echo two words", "what was given as the token is none"),
        ("no-such-program", "is not on PATH; install it, or name it by its path"),
    ],
)
def test_a_command_that_gives_no_token(stage: Stage, command: str, said: str) -> None:
    result = run(stage, MAKES, NIGHTKEEP_TOKEN_COMMAND=command, NIGHTKEEP_LIMITS_TOKEN_COMMAND="1s")
    assert (result.status, said in result.stderr) == (2, True), result


def test_a_token_file_wins_over_a_command(stage: Stage) -> None:
    environment = {"NIGHTKEEP_TOKEN_COMMAND": "false", "NIGHTKEEP_TOKEN_FILE": str(stage.token_file)}
    assert run(stage, MAKES, **environment).status == 0, stage.last
