"""`nightkeep rescue` and `nightkeep gc`, typed in a clone whose runs left things behind."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runner.hub import Exchange
from tests.rescued import put, put_ref
from tests.scenarios.stage import NIGHTKEEP, Result, Stage, nightkeep, staged
from tests.world import World, git

_NOW = datetime.now(UTC)
OLD = f"{_NOW - timedelta(days=40):%Y%m%dT%H%M%SZ}-0000000a"
YOUNG = f"{_NOW - timedelta(days=1):%Y%m%dT%H%M%SZ}-0000000b"


def rescue(world: World, *arguments: str) -> Result:
    return nightkeep("rescue", *arguments, cwd=world.launch)


def gc(world: World, *arguments: str, **environment: str) -> Result:
    return nightkeep("gc", *arguments, cwd=world.launch, environment=environment)


# What there is


def test_the_list_says_what_is_kept_of_each_run_and_where(world: World) -> None:
    put(world, OLD, "a", "b", "c", "d", "e")
    put_ref(world, OLD, "made")
    put(world, YOUNG, "notes").path.joinpath("manifest.json").unlink()
    put_ref(world, YOUNG, on_origin=True)
    lines = rescue(world, "list").stdout.splitlines()
    assert lines[0].split() == ["ID", "when", "branch", "what", "size", "where"]
    assert lines[1].startswith(YOUNG)
    assert lines[1].endswith("store, ref on origin")
    assert "issue-7  notes, snapshot (no manifest)" in lines[1]
    assert "issue-7  a, b, c, 2 more, made" in lines[2]
    assert lines[2].endswith("store, ref here")


def test_the_list_as_json(world: World) -> None:
    store, ref = put(world, OLD, "a"), put_ref(world, OLD, on_origin=True)
    (document,) = json.loads(rescue(world, "list", "--json").stdout)
    assert (document["id"], document["branch"], document["store"]) == (OLD, "issue-7", str(store.path))
    assert document["entries"] == [{"entry": "a"}]
    assert document["refs"] == {"local": {}, "origin": {ref: world.on_origin(ref)}}
    (document,) = json.loads(rescue(world, "list", "--json", "--offline").stdout)
    assert document["refs"] == {"local": {}, "origin": None}


def test_where_nothing_is_kept_the_list_says_so(world: World) -> None:
    result = rescue(world, "list")
    assert (result.status, result.stdout) == (0, "")
    assert result.stderr == f"nightkeep: nothing is kept of any run of {world.launch}\n"


def test_a_run_is_shown_with_the_commands_that_bring_it_back(world: World) -> None:
    store = put(world, OLD, "notes", why="untracked")
    here, there = put_ref(world, OLD), put_ref(world, OLD, "made", on_origin=True)
    git(world.launch, "bundle", "create", "-q", str(store.bundle), here)
    shown = rescue(world, "show", OLD[:10])
    assert (shown.status, shown.stderr) == (0, "")
    assert "/gone" in shown.stdout
    assert ["notes", "untracked", "6", "B", "1"] in [line.split() for line in shown.stdout.splitlines()]
    commands = [line.strip() for line in shown.stdout.splitlines() if line.startswith("  ")]
    assert commands == [
        f"git branch rescued/{OLD}/snapshot {here}",
        f"git fetch origin {there}:refs/heads/rescued/{OLD}/made",
        f"git fetch {shlex.quote(str(store.bundle))} {here}:refs/heads/rescued/{OLD}/snapshot",
        f"nightkeep rescue restore {OLD}",
    ]
    document = json.loads(rescue(world, "show", OLD, "--json").stdout)
    assert document["entries"] == [{"entry": "notes", "why": "untracked", "size": 6, "files": 1}]
    assert [way["command"] for way in document["ways_back"]] == commands[:3]


def test_what_origin_holds_is_not_shown_when_it_is_not_asked_or_cannot_be_reached(world: World) -> None:
    put(world, OLD, "a")
    offline = rescue(world, "show", OLD, "--offline")
    assert "origin was not asked" in offline.stderr
    world.origin.rename(world.origin.with_name("away"))
    away = rescue(world, "show", OLD)
    assert (away.status, "rescue refs there are not shown" in away.stderr) == (0, True)
    assert "does not appear to be a git repository" in away.stderr


def test_names_do_nothing_to_a_terminal(world: World) -> None:
    put(world, OLD, "a\x1b[2Jb", "\udcff", why="\x1b]0;title\x07")
    for arguments in (("list",), ("show", OLD)):
        result = rescue(world, *arguments)
        assert result.status == 0, result
        assert "\x1b" not in result.stdout
        assert r"a\x1b[2Jb" in result.stdout
    assert json.loads(rescue(world, "show", OLD, "--json").stdout)["entries"][1]["entry"] == "\udcff"


@pytest.mark.parametrize("command", ["show", "restore", "drop"])
def test_an_id_that_is_none_is_answered_with_those_that_are(world: World, command: str) -> None:
    put(world, OLD, "a")
    put(world, YOUNG, "a")
    for given in ("1999", "2"):
        result = rescue(world, command, given)
        assert (result.status, result.stdout) == (2, ""), result
        assert f"{YOUNG}, {OLD}" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "next_step"),
    [
        (("show", "1999"), f"give one of which something is: {YOUNG}, {OLD}"),
        (("drop", "2"), "give more of the ID"),
        (("restore", OLD, "nothing"), "give a path of what it has at the top: a.txt"),
        (("restore", OLD, "/a.txt"), "give one as `nightkeep rescue show` has it"),
        (("restore", OLD), "or an empty directory to put them in: --to DIRECTORY"),
        (("restore", OLD, "--to", f".git/nightkeep/rescue/{OLD}"), "name another directory"),
        (("restore", OLD, "--to", "b.txt"), "nightkeep rescue list"),
        (("restore", YOUNG), f"see what is: nightkeep rescue show {YOUNG}"),
        (("drop", YOUNG), f"when it is, remove {{launch}}/.git/nightkeep/runs/{YOUNG}"),
        (("drop", OLD, "--remote"), "try again when origin can be read, or leave --remote out"),
    ],
)
def test_whatever_cannot_be_done_ends_with_what_to_do_next(
    world: World, arguments: tuple[str, ...], next_step: str
) -> None:
    put(world, OLD, "a.txt")
    put_ref(world, YOUNG)
    record = world.launch / ".git" / "nightkeep" / "runs" / YOUNG
    record.mkdir(parents=True)
    (record / "record.json").write_text("{")
    world.origin.rename(world.origin.with_name("away"))
    result = rescue(world, *arguments)
    assert (result.stdout, result.status in (1, 2)) == ("", True), result
    assert result.stderr.endswith(f"{next_step.format(launch=world.launch)}\n"), result


def test_where_nothing_is_kept_of_any_run_the_list_is_what_is_left(world: World) -> None:
    assert rescue(world, "show", "2").stderr.endswith("nor of any other here; see: nightkeep rescue list\n")


def test_outside_of_a_clone_nothing_is_begun(tmp_path: Path) -> None:
    result = nightkeep("rescue", "list", cwd=tmp_path)
    assert (result.status, result.stdout) == (2, ""), result
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"nightkeep: {tmp_path} is not a checkout of a git repository: fatal: ")
    assert line.endswith("; run this in a clone of the repository: the one that its runs were started from")
    assert "Stopping at" not in line


# Bringing it back


def test_files_come_back_into_the_checkout_wherever_it_was_typed(world: World) -> None:
    put(world, OLD, "notes", "other")
    (world.launch / "below").mkdir()
    result = nightkeep("rescue", "restore", OLD, "notes", cwd=world.launch / "below")
    assert (result.status, (world.launch / "notes").read_text()) == (0, "notes\n"), result
    assert not (world.launch / "other").exists()
    assert f"nightkeep rescue drop {OLD}" in result.stderr
    again = rescue(world, "restore", OLD, "notes")
    assert (again.status, "1 file was there already" in again.stderr) == (0, True)


def test_files_come_back_into_a_directory_that_is_named_from_here(world: World) -> None:
    put(world, OLD, "a.txt")
    (world.launch / "link").symlink_to(world.launch.parent)
    result = rescue(world, "restore", OLD, "--to", "link/../new")
    new = world.launch.parent.parent / "new"
    assert (result.status, result.stdout) == (0, f"restored 1 file of {OLD} into {new}\n"), result
    assert (new / "a.txt").read_text() == "a.txt\n"


def test_files_are_counted_and_directories_only_where_there_is_nothing_else(world: World) -> None:
    tree = put(world, OLD, "build").tree
    (tree / "build").unlink()
    (tree / "build" / "deep").mkdir(parents=True)
    assert rescue(world, "restore", OLD, "--to", "one").stdout.startswith(f"restored 2 directories of {OLD} into ")
    for name in ("a", "deep/b"):
        (tree / "build" / name).touch()
    assert rescue(world, "restore", OLD, "--to", "two").stdout.startswith(f"restored 2 files of {OLD} into ")
    again = rescue(world, "restore", OLD, "--to", "two")
    assert again.stdout.startswith(f"restored 0 files of {OLD} into ")
    assert again.stderr.startswith("nightkeep: 2 files were there already\n")


def test_through_one_pipe_the_lines_come_in_their_order(world: World) -> None:
    put(world, OLD, "a")
    command = [sys.executable, "-P", "-m", "runner", "rescue", "restore", OLD, "--to", "new"]
    done = subprocess.run(command, cwd=world.launch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    first, second = done.stdout.decode().splitlines()
    assert first.startswith("restored 1 file")
    assert second.startswith("nightkeep: the store still has them")


def test_what_is_in_the_way_is_named_and_left(world: World) -> None:
    put(world, OLD, "a.txt", "b.txt", "c.txt")
    result = rescue(world, "restore", OLD)
    assert (result.status, result.stdout) == (2, ""), result
    assert "a.txt: something else is there" in result.stderr
    assert "b.txt: something else is there" in result.stderr
    assert ((world.launch / "a.txt").read_text(), (world.launch / "c.txt").exists()) == ("a\n", False)


# Being rid of it


def test_what_was_dropped_is_named(world: World) -> None:
    store, here, there = put(world, OLD, "a"), put_ref(world, OLD), put_ref(world, OLD, "made", on_origin=True)
    result = rescue(world, "drop", OLD)
    assert (result.status, result.stderr) == (0, ""), result
    assert result.stdout.splitlines() == [
        f"deleted {here} in this clone",
        f"deleted {store.path}, {result.stdout.split(', ')[1].strip()}",
    ]
    assert not store.path.exists()
    assert world.on_origin(there)


def test_what_is_on_origin_goes_when_that_is_said(world: World) -> None:
    ref = put_ref(world, OLD, on_origin=True)
    result = rescue(world, "drop", OLD, "--remote")
    assert (result.status, result.stdout) == (0, f"deleted {ref} on origin\n"), result
    assert not world.on_origin(ref)


def test_nothing_is_dropped_while_origin_cannot_be_read_but_must_be(world: World) -> None:
    store = put(world, OLD, "a")
    world.origin.rename(world.origin.with_name("away"))
    result = rescue(world, "drop", OLD, "--remote")
    assert (result.status, result.stdout) == (2, ""), result
    assert "nothing was deleted" in result.stderr
    assert store.path.exists()


# The bounds


def test_what_is_too_old_goes_unless_it_is_a_rehearsal(world: World) -> None:
    old, young = put(world, OLD, "a"), put(world, YOUNG, "a")
    rehearsal = gc(world, "--dry-run")
    assert (rehearsal.status, rehearsal.stdout.count("\n")) == (0, 1), rehearsal
    assert rehearsal.stdout.startswith(f"would delete {old.path}, ")
    assert old.path.exists()
    document = json.loads(gc(world, "--json").stdout)
    assert [(one["run_id"], one["why"]) for one in document["deleted"]] == [(OLD, "older than 30 days")]
    assert (old.path.exists(), young.path.exists()) == (False, True)
    done = gc(world)
    assert (done.status, done.stdout) == (0, "")
    assert "nothing is older than 30 days, nor is all more than 10.0 GB\n" in done.stderr
    assert "no token for GitHub, so rescue refs are left alone" in done.stderr


@pytest.fixture
def stage(tmp_path: Path, world: World, exchanges: list[Exchange]) -> Iterator[Stage]:
    """A hub that serves the world's origin as acme/widget, and the clone with the hub as its origin."""
    with staged(tmp_path, world, exchanges.append) as made:
        yield made


def test_refs_of_an_open_pull_request_stay(stage: Stage) -> None:
    ref = put_ref(stage.world, OLD, on_origin=True)
    stage.on_branch("issue-7", "n", "n\n")
    stage.pull_request("issue-7")
    put(stage.world, OLD, "a")
    result = gc(stage.world, "--token-file", str(stage.token_file))
    assert (result.status, result.stdout.count("\n")) == (0, 1), result
    assert stage.world.on_origin(ref)


def test_old_refs_of_closed_pull_requests_go_on_origin_too(stage: Stage) -> None:
    ref, young = (put_ref(stage.world, run, on_origin=True) for run in (OLD, YOUNG))
    stage.on_branch("issue-7", "n", "n\n")
    number = stage.pull_request("issue-7")
    stage.api("PATCH", f"pulls/{number}", {"state": "closed"})
    rehearsal = gc(stage.world, "--token-file", str(stage.token_file), "--dry-run")
    line = f"{ref} on origin (older than 30 days, and the pull request of issue-7 is closed)\n"
    assert rehearsal.stdout == f"would delete {line}", rehearsal
    result = gc(stage.world, "--token-file", str(stage.token_file))
    assert (result.status, result.stdout) == (0, f"deleted {line}"), result
    assert stage.world.snapshot_refs() == [young]


def test_a_private_origin_is_read_with_the_token(stage: Stage) -> None:
    put_ref(stage.world, OLD, on_origin=True)
    arguments = ("rescue", "show", OLD, "--token-file", str(stage.token_file))
    shown = nightkeep(*arguments, cwd=stage.clone)
    assert (shown.status, f"git fetch origin refs/nightkeep/rescue/{OLD}/snapshot:" in shown.stdout) == (0, True), shown


def test_two_at_once_do_not_get_in_each_others_way(world: World) -> None:
    store = put(world, OLD, *(f"file-{number}" for number in range(3000)))
    command = [sys.executable, "-P", "-m", "runner"]
    both = [
        subprocess.Popen([*command, *words], cwd=world.launch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for words in (("gc",), ("rescue", "drop", OLD))
    ]
    ended = [(process.communicate(timeout=60)[0].decode(), process.returncode) for process in both]
    assert ended[0][1] == 0, ended
    # Whoever comes when all is gone is told that there is no such run.
    assert ended[1][1] in (0, 2), ended
    assert not store.path.exists()


def test_a_reader_that_has_read_enough_is_no_error(world: World) -> None:
    put(world, YOUNG, "build")
    command = f"{shlex.join(NIGHTKEEP)} rescue list --offline | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=world.launch, capture_output=True, text=True, check=True)
    assert (done.stdout, "Broken pipe" in done.stderr) == ("0\n", False), done
