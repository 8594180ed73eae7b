"""Logs: the Command log as a file, and `nightkeep logs`."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from runner.logs import CommandLog, LogPlace, create_log, default_directory, find_logs
from tests.scenarios.stage import Result, nightkeep
from tests.world import World, git
from worktree import Redactor

SECRET = "canary-0123456789"
EARLY, LATE = "20261130T010000+0000", "20261130T013000+0200"  # the later hour of the clock is the earlier moment
PLAIN = Redactor()


def place(root: Path) -> LogPlace:
    return LogPlace(root / "logs" / "acme" / "widget", f"7-{EARLY}")


def text(log: CommandLog) -> list[str]:
    assert log.path is not None
    return [line.split(" ", 1)[1] for line in log.path.read_text().splitlines()]


# The Command log


def test_what_was_said_before_the_work_comes_first(tmp_path: Path) -> None:
    log = CommandLog()
    log.add("looking")
    assert list(tmp_path.iterdir()) == []
    log.begin(place(tmp_path), PLAIN)
    log.add("working")
    log.end("delivered, exit status 0")
    assert log.path == tmp_path / "logs" / "acme" / "widget" / f"7-{EARLY}-command.log"
    assert text(log) == ["nightkeep: looking", "nightkeep: working", "ended: delivered, exit status 0"]


def test_it_is_private_and_each_line_is_there_at_once(tmp_path: Path) -> None:
    log = CommandLog()
    log.begin(place(tmp_path), PLAIN)
    log.add("working")
    assert text(log) == ["nightkeep: working"]
    assert log.path is not None
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (log.path, log.path.parent)]
    assert modes == [0o600, 0o700]
    log.end("failed, exit status 1")


def test_it_is_redacted_and_safe_to_print(tmp_path: Path) -> None:
    log = CommandLog()
    log.add(f"before {SECRET}")
    log.begin(place(tmp_path), Redactor([SECRET]))
    log.add(f"after {SECRET} \x1b[2J")
    log.end(f"failed {SECRET}")
    assert text(log) == ["nightkeep: before ***", "nightkeep: after *** \\u001b[2J", "ended: failed ***"]


def test_a_log_is_never_overwritten(tmp_path: Path) -> None:
    first, second = CommandLog(), CommandLog()
    for log in (first, second):
        log.begin(place(tmp_path), PLAIN)
        log.end("x")
    assert first.path != second.path
    assert {log.is_command for log in find_logs(tmp_path / "logs")} == {True}


def test_nothing_begun_leaves_nothing(tmp_path: Path) -> None:
    log = CommandLog()
    log.begin(place(tmp_path), PLAIN)
    log.discard()
    log.add("more")
    log.end("x")
    assert (log.path, list(tmp_path.iterdir())) == (None, [])


def test_discarding_leaves_what_was_there(tmp_path: Path) -> None:
    other, file = create_log(place(tmp_path).file("implement"))
    file.close()
    log = CommandLog()
    log.begin(place(tmp_path), PLAIN)
    log.discard()
    assert list(other.parent.iterdir()) == [other]


def test_a_place_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    log = CommandLog()
    said = [log.begin(place(tmp_path), PLAIN), log.add("working"), log.end("x")]
    assert said[0] is not None
    assert "the Command log cannot be written" in said[0]
    assert "logs.directory" in said[0]
    assert said[1:] == [None, None]
    assert log.path is None


def test_a_disk_that_is_full_is_said_once(tmp_path: Path) -> None:
    log = CommandLog()
    log.begin(place(tmp_path), PLAIN)
    full = os.open("/dev/full", os.O_WRONLY)
    assert log._file is not None
    os.dup2(full, log._file.fileno())
    os.close(full)
    said = [log.add("working"), log.add("more"), log.end("x")]
    assert said[0] is not None
    assert "No space left on device" in said[0]
    assert said[1:] == [None, None]


# nightkeep logs


def write(repository: str, name: str, content: str, root: Path | None = None) -> Path:
    path = (root or default_directory()) / repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.fixture
def some() -> list[Path]:
    """Logs of four commands, newest first."""
    return [
        write("acme/widget", f"7-{EARLY}-command.log", "T nightkeep: a\nT ended: failed, exit status 1\n"),
        write("acme/widget", f"7-{EARLY}-implement.log", "trying\nno line end"),
        write("acme/widget", f"8-{EARLY}-command.log", "T nightkeep: ended: delivered\n"),
        write("acme/widget", f"7-{LATE}-command.log", "T ended: delivered, exit status 0\n"),
        write("other/thing", f"7-{LATE}-command.log", "T ended: delivered, exit status 0\n"),
    ]


def logs(cwd: Path, *arguments: str, **environment: str) -> Result:
    return nightkeep("logs", *arguments, cwd=cwd, environment=environment)


def listed(result: Result) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def test_all_of_them_newest_first(tmp_path: Path, some: list[Path]) -> None:
    write("acme/widget", "notes.log", "not ours")
    write("acme/widget", "7-20261399T990000+0000-command.log", "no such moment")
    result = logs(tmp_path, TZ="UTC")
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "issue began log size how it ended",
        "acme/widget#7 2026-11-30 01:00:00 command 46 B failed, exit status 1",
        "acme/widget#7 2026-11-30 01:00:00 implement 18 B",
        "acme/widget#8 2026-11-30 01:00:00 command 30 B still running, or killed",
        "acme/widget#7 2026-11-29 23:30:00 command 34 B delivered, exit status 0",
        "other/thing#7 2026-11-29 23:30:00 command 34 B delivered, exit status 0",
    ]
    assert [row["path"] for row in listed(logs(tmp_path, "--json"))] == [str(path) for path in some]


def test_in_a_clone_only_its_own(world: World, some: list[Path]) -> None:
    git(world.launch, "remote", "set-url", "origin", "https://github.com/Other/Thing.git")
    assert [row["path"] for row in listed(logs(world.launch, "--json"))] == [str(some[-1])]
    named = listed(logs(world.launch, "--json", "--repository", "acme/widget"))
    assert len(named) == len(some) - 1


def test_the_newest_of_an_issue(tmp_path: Path, some: list[Path]) -> None:
    result = logs(tmp_path, "7")
    command, session = some[:2]
    assert result.stdout == (
        f"==> {command} <==\n{command.read_text()}\n==> {session} <==\n{session.read_text()}\n\n"
    ), result
    rows = listed(logs(tmp_path, "7", "--json"))
    assert [(row["issue"], row["log"], row["ended"]) for row in rows] == [
        (7, "command", "failed, exit status 1"),
        (7, "implement", None),
    ]


def test_a_directory_of_the_users(tmp_path: Path) -> None:
    path = write("acme/widget", f"7-{EARLY}-command.log", "x", tmp_path / "mine")
    result = logs(tmp_path, "--json", NIGHTKEEP_LOGS_DIRECTORY=str(tmp_path / "mine"))
    assert [row["path"] for row in listed(result)] == [str(path)]


def test_none_at_all(tmp_path: Path) -> None:
    result = logs(tmp_path)
    assert (result.status, result.stdout) == (0, "")
    assert "there are no logs in" in result.stderr
    assert listed(logs(tmp_path, "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("9",), "there are no logs of issue 9"),
        (("--repository", "../.."), "--repository takes OWNER/NAME"),
        (("--repository", "widget"), "--repository takes OWNER/NAME"),
    ],
)
def test_what_is_not_there(tmp_path: Path, some: list[Path], arguments: tuple[str, ...], said: str) -> None:
    assert some
    result = logs(tmp_path, *arguments)
    assert (result.status, result.stdout) == (2, ""), result
    assert said in result.stderr
