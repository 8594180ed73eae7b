"""The command line by itself."""

from pathlib import Path

import pytest

from tests.scenarios.stage import nightkeep


def test_the_version(tmp_path: Path) -> None:
    result = nightkeep("--version", cwd=tmp_path)
    assert (result.status, result.stdout) == (0, "nightkeep 0.1.0\n"), result


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--help",), ("run", "hub", "demo", "never lose their work")),
        (("run", "--help"), ("--agent", "--base", "--token-file", "--json", "Exit status", "NIGHTKEEP_TOKEN")),
        (("run", "-h"), ("--agent",)),
        (("hub", "--help"), ("--root", "--port", "--repository", "--token", "--check", "10 minutes", "/api/v3")),
        (("demo", "--help"), ("Needs no account",)),
        (("pickup", "--help"), ("--loop", "--every", "--merge", "--json", "Exit status")),
        (("explain", "--help"), ("--base", "--json", "Changes nothing")),
        (("status", "--help"), ("--once", "--json", "Changes nothing")),
        (("prompt", "--help"), ("--base", "--token-file", "Claims nothing")),
        (("logs", "-h"), ("--repository", "--json", "Command log")),
        (("config", "--help"), ("show", "check")),
        (("config", "show", "-h"), ("--json",)),
    ],
)
def test_the_help(tmp_path: Path, arguments: tuple[str, ...], said: tuple[str, ...]) -> None:
    result = nightkeep(*arguments, cwd=tmp_path, environment={"COLUMNS": "200"})
    assert (result.status, result.stderr) == (0, ""), result
    for words in said:
        assert words in result.stdout, result


def test_the_commands_stand_in_the_order_of_their_use(tmp_path: Path) -> None:
    lines = nightkeep("--help", cwd=tmp_path, environment={"COLUMNS": "200"}).stdout.splitlines()
    names = [line.split()[1] for line in lines if line.startswith("│ ") and line[2:3].isalpha()]
    assert names == [
        "run",
        "pickup",
        "explain",
        "status",
        "prompt",
        "doctor",
        "config",
        "logs",
        "recover",
        "worktrees",
        "rescue",
        "gc",
        "hub",
        "demo",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("fly",),
        ("hub",),
        ("hub", "--root", "x", "--port", "70000"),
        ("hub", "--root", "x", "--check", "x"),
        ("demo", "now"),
        ("pickup", "--loop", "--every", "soon"),
        ("pickup", "--every", "5m"),
    ],
)
def test_a_wrong_command_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = nightkeep(*arguments, cwd=tmp_path)
    assert (result.status, result.stdout) == (2, ""), result
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []
