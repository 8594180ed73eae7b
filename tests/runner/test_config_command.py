"""`nightkeep config`: in a real clone, without a token and without a network."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.scenarios.stage import NIGHTKEEP, Result, nightkeep
from tests.world import World, commit, git

FILE = ".github/nightkeep.yml"
IGNORED = f"{FILE} on main is ignored, because this machine does not trust acme/widget"


@pytest.fixture
def clone(world: World) -> Path:
    """A clone of acme/widget on github.com, with a configuration on origin's main."""
    publish(world, "agent: work --fast\nlimits:\n  session: 90m\n")
    git(world.launch, "remote", "set-url", "origin", "git@github.com:acme/widget.git")
    return world.launch


def publish(world: World, text: str) -> None:
    (world.launch / ".github").mkdir(exist_ok=True)
    (world.launch / FILE).write_text(text)
    commit(world.launch, "configure")
    git(world.launch, "push", "-q", "origin", "main")


def user(text: str) -> None:
    file = Path.home() / ".config" / "nightkeep" / "config.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def config(cwd: Path, *arguments: str, **environment: str) -> Result:
    return nightkeep("config", *arguments, cwd=cwd, environment=environment)


def rows(result: Result) -> dict[str, tuple[str, str]]:
    assert result.status == 0, result
    cells = [line.rsplit("  ", 1) for line in result.stdout.splitlines()]
    found = [(first.split(None, 1), origin.strip()) for first, origin in cells]
    return {key: (value.strip(), origin) for (key, value), origin in found}


def test_each_value_and_where_it_came_from(clone: Path) -> None:
    user("trusted-repositories: [acme/widget]\nlimits: {idle: 5m}\nprompt: |\n  One.\n  Two.\n")
    result = config(clone, "show", NIGHTKEEP_SETUP="make ready")
    shown = rows(result)
    assert shown["key"] == ("value", "from")
    assert shown["agent"] == ("work --fast", f"{FILE} on main:1")
    assert shown["limits.session"] == ("90m", f"{FILE} on main:3")
    assert shown["limits.idle"] == ("5m", "~/.config/nightkeep/config.yml:2")
    assert shown["prompt"] == (r'"One.\nTwo.\n"', "~/.config/nightkeep/config.yml:3")
    assert shown["setup"] == ("make ready", "NIGHTKEEP_SETUP")
    assert shown["verify"] == ("null", "default")
    assert "\t" not in result.stdout
    assert result.stderr == f"nightkeep: {FILE} on main was read as last fetched from origin\n"


def test_what_is_not_trusted_is_ignored_and_said(clone: Path) -> None:
    result = config(clone, "show")
    assert rows(result)["agent"] == ("null", "default")
    assert IGNORED in result.stderr
    assert 'add "acme/widget" to trusted-repositories in ~/.config/nightkeep/config.yml' in result.stderr


def test_a_workflow_trusts_its_own_repository(clone: Path) -> None:
    result = config(clone, "show", GITHUB_ACTIONS="true", GITHUB_REPOSITORY="Acme/Widget")
    assert rows(result)["agent"][0] == "work --fast"


def test_uncommitted_and_unpushed_changes_do_not_count(clone: Path) -> None:
    user("trusted-repositories: [acme/widget]")
    (clone / FILE).write_text("agent: mine\n")
    commit(clone, "not pushed")
    assert rows(config(clone, "show"))["agent"][0] == "work --fast"


def test_outside_of_a_clone_the_machine_is_shown(tmp_path: Path) -> None:
    user("agent: mine\n")
    result = config(tmp_path, "show")
    assert rows(result)["agent"] == ("mine", "~/.config/nightkeep/config.yml:1")
    assert "not in a clone of a repository on a server" in result.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("checkout", "-q", "--detach"), "HEAD is on no branch"),
        (("checkout", "-q", "-b", "new"), "try: git fetch origin new"),
    ],
)
def test_no_base_branch_that_is_known(clone: Path, command: tuple[str, ...], said: str) -> None:
    git(clone, *command)
    result = config(clone, "show")
    assert rows(result)["agent"] == ("null", "default")
    assert said in result.stderr


def test_no_file_on_the_base_branch(world: World) -> None:
    git(world.launch, "remote", "set-url", "origin", "https://github.com/acme/widget")
    result = config(world.launch, "show")
    assert result.status == 0
    assert f"origin has no {FILE} on main" in result.stderr


def test_json(clone: Path) -> None:
    document = config(clone, "show", "--json").document
    assert document["settings"]["limits.session"] == {"value": "2h", "from": "default"}
    assert document["settings"]["agent"] == {"value": None, "from": "default"}
    assert document["notes"][0].startswith(IGNORED)


def test_secrets_are_masked(clone: Path) -> None:
    environment = {"NIGHTKEEP_TOKEN": "canary-in-token", "MY_API_KEY": "canary-in-key"}
    user("agent: work canary-in-token canary-in-key --password canary-by-name\n")
    for arguments in (("show",), ("show", "--json"), ("check",)):
        result = config(clone, *arguments, **environment)
        assert result.status == 0, result
        assert "canary" not in result.stdout + result.stderr


def test_a_table_on_a_terminal(clone: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm"}
    with subprocess.Popen(
        [*NIGHTKEEP, "config", "show"], cwd=clone, stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # how a terminal says that nobody writes any more
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"trusted-repositories" in seen
    assert all(len(re.sub(r"\x1b\[\d+m", "", line)) <= 60 for line in seen.decode().splitlines())


def test_no_problems(clone: Path, tmp_path: Path) -> None:
    for cwd in (clone, tmp_path):
        result = config(cwd, "check")
        assert (result.status, result.stdout) == (0, "no problems\n"), result


def test_a_check_says_that_the_file_does_not_count(clone: Path) -> None:
    result = config(clone, "check")
    assert (result.status, result.stdout) == (0, "no problems\n"), result
    assert IGNORED in result.stderr
    assert "as in: trusted-repositories: [acme/widget]" in result.stderr
    user("trusted-repositories: [acme/widget]")
    assert IGNORED not in config(clone, "check").stderr


def test_a_check_of_a_wrong_file_says_that_it_does_not_count(world: World) -> None:
    publish(world, "setup: npm ci && npm test\n")
    git(world.launch, "remote", "set-url", "origin", "https://github.com/acme/widget")
    result = config(world.launch, "check")
    assert (result.status, IGNORED in result.stderr) == (2, True), result
    assert result.stdout.startswith(f"{FILE} on main:1: setup is run without a shell; for && write sh -c '…'"), result


def test_every_problem_of_both_files_and_the_environment(world: World) -> None:
    publish(world, "agnet: work\ntoken-file: /x\n")
    git(world.launch, "remote", "set-url", "origin", "https://github.com/acme/widget")
    user("limits:\n  idle: soon\n")
    result = config(world.launch, "check", NIGHTKEEP_AGNET="x")
    assert result.status == 2, result
    first, second, third, fourth = sorted(result.stdout.splitlines())
    assert first == f'{FILE} on main:1: unknown key "agnet"; did you mean "agent"?'
    assert second.startswith(f"{FILE} on main:2: token-file belongs to the machine")
    assert third.startswith('NIGHTKEEP_AGNET: unknown environment variable; did you mean "NIGHTKEEP_AGENT"?')
    assert fourth.startswith("~/.config/nightkeep/config.yml:2: limits.idle must be a duration")
    shown = config(world.launch, "show", NIGHTKEEP_AGNET="x")
    assert (shown.status, shown.stdout) == (2, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"agent: work\n", None),
        (b"", None),
        (b"\nagent: [a]\n", "new.yml:2: agent must be text, not a list"),
        (b"logs: {directory: /x}\n", "new.yml:1: logs.directory belongs to the machine"),
        (b"labels: {ready: A, in-progress: a}\n", "new.yml:1: labels.ready and labels.in-progress must differ"),
        (b"agent: \xff\n", "new.yml: is not UTF-8"),
        (b"a: b: c\n", "new.yml:1: not YAML"),
        (None, "new.yml: does not exist"),
    ],
)
def test_a_file_before_it_is_committed(tmp_path: Path, text: bytes | None, said: str | None) -> None:
    user("nonsense: 1\n")  # only the named file is looked at
    if text is not None:
        (tmp_path / "new.yml").write_bytes(text)
    result = config(tmp_path, "check", "new.yml")
    assert (result.status, result.stderr) == (2 if said else 0, ""), result
    assert result.stdout.startswith(said or "no problems\n"), result


def test_a_repositorys_file_that_is_not_utf_8(world: World) -> None:
    (world.launch / ".github").mkdir()
    (world.launch / FILE).write_bytes(b"agent: \xff\n")
    commit(world.launch, "configure")
    git(world.launch, "push", "-q", "origin", "main")
    git(world.launch, "remote", "set-url", "origin", "https://github.com/acme/widget")
    result = config(world.launch, "check")
    assert (result.status, result.stdout) == (2, f"{FILE} on main: is not UTF-8\n"), result


def test_the_help_names_the_schema(tmp_path: Path) -> None:
    assert "docs/nightkeep.schema.json" in config(tmp_path, "check", "--help", COLUMNS="200").stdout
