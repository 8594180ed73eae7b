"""What a relative path means: in the repository's file a file of the repository, elsewhere where it was typed."""

import shlex
from pathlib import Path

import pytest

from tests.scenarios.stage import NAME, Result, Stage, nightkeep
from tests.world import git
from worktree import host_name

FAILS = "#!/bin/sh\necho half > half.txt; exit 3\n"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def run_in(stage: Stage, directory: Path, *options: str, **environment: str) -> Result:
    arguments = ("run", stage.url(stage.issue()), "--token-file", str(stage.token_file), *options)
    return nightkeep(*arguments, cwd=directory, environment={**stage.environment, **environment})


@pytest.fixture
def below(stage: Stage) -> Path:
    """A directory of the clone in which a program lies that is not the repository's."""
    program(stage.clone / "below" / "agents" / "work", "#!/bin/sh\necho typed > made.txt\n")
    return stage.clone / "below"


@pytest.mark.parametrize("setup", [None, "sh -c 'mkdir agents; cp later agents/work'"])
def test_the_repositorys_agent_is_the_one_in_the_repository(stage: Stage, below: Path, setup: str | None) -> None:
    place = "agents/work" if setup is None else "later"
    program(stage.clone / place, "#!/bin/sh\necho repository > made.txt\n")
    (stage.clone / ".github").mkdir()
    says = "agent: ./agents/work\n" + (f"setup: {setup}\n" if setup else "")
    (stage.clone / ".github" / "nightkeep.yml").write_text(says)
    git(stage.clone, "add", place, ".github")
    git(stage.clone, "commit", "-q", "-m", "agree")
    git(stage.clone, "push", "-q", str(stage.world.origin), "main")
    trusted = f"{stage.hub.url.removeprefix('http://')}/{NAME}"
    result = run_in(stage, below, NIGHTKEEP_TRUSTED_REPOSITORIES=trusted)
    assert result.status == 0, result
    assert stage.world.origin_file("issue-1", "made.txt") == "repository"


@pytest.mark.parametrize("by", ["flag", "environment", "file"])
def test_elsewhere_it_is_the_one_where_the_command_was_typed(stage: Stage, below: Path, by: str) -> None:
    own = Path.home() / ".config" / "nightkeep" / "config.yml"
    own.parent.mkdir(parents=True)
    own.write_text("agent: ./agents/work\n" if by == "file" else "")
    environment = {"NIGHTKEEP_AGENT": "./agents/work"} if by == "environment" else {}
    result = run_in(stage, below, *(["--agent", "./agents/work"] if by == "flag" else []), **environment)
    assert result.status == 0, result
    assert stage.world.origin_file("issue-1", "made.txt") == "typed"


def test_the_command_to_go_on_works_from_anywhere(stage: Stage, below: Path) -> None:
    program(below / "my agents" / "work", FAILS)
    agent = "'../below/./my agents/work' --file ./in-the-worktree"
    number = stage.issue()
    options = ("--agent", agent, "--token-file", "../../../token")
    result = nightkeep("run", stage.url(number), *options, cwd=below, environment=stage.environment)
    assert result.status == 1, result
    note = stage.note(stage.pull()["number"])
    assert f"in a clone of this repository on {host_name()} (elsewhere change the paths):" in note
    command = note.split("```sh\n")[1].split("\n```")[0]
    again = [
        *("nightkeep", "run", stage.url(number), "--agent"),
        shlex.join([f"{below}/my agents/work", "--file", "./in-the-worktree"]),
        *("--token-file", str(stage.token_file)),
    ]
    assert shlex.split(command) == again
    done = nightkeep(*again[1:], cwd=stage.clone, environment=stage.environment)
    assert "the agent exited 3" in done.stderr, done


def test_a_name_without_a_path_stays_as_it_was_typed(stage: Stage) -> None:
    result = stage.run(stage.issue(), "sh -c 'echo half > half.txt; exit 3'")
    assert result.status == 1, result
    assert "--agent 'sh -c '\"'\"'echo half" in stage.note(stage.pull()["number"])
