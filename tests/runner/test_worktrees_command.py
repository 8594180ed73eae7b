"""`nightkeep worktrees`, typed in a clone whose runs left worktrees behind."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from delivery.errors import PreflightError
from runner.worktrees_command import retained_at
from tests.scenarios.stage import NIGHTKEEP, Result, nightkeep
from tests.worktree.left import everything, gone, has_all, refused, unfinished
from tests.worktree.runs import create, local_rescue_refs, store_of
from tests.world import World
from worktree.inventory import list_worktrees


def worktrees(world: World, *arguments: str | Path) -> Result:
    return nightkeep("worktrees", *map(str, arguments), cwd=world.launch)


def test_each_worktree_is_listed_with_why_it_is_there_and_where_its_work_is(world: World) -> None:
    wt = refused(world, lambda path: (path / "new.txt").write_text("new\n"))
    result = worktrees(world)
    assert (result.status, result.stderr) == (0, ""), result
    heading, row, _, why, *places = result.stdout.splitlines()
    assert heading.split() == ["worktree", "state", "branch", "age", "size", "owner"]
    assert row.startswith(f"{wt.path}  retained  issue-7  now  ")
    assert row.endswith(f"  process {os.getpid()} on {os.uname().nodename}, gone")
    assert why.startswith(f"{wt.path} was retained on ")
    assert "origin did not take refs/heads/issue-7" in why
    assert any(line.startswith("  bundle: ") for line in places)
    assert places[-1].endswith(f"be rid of it: nightkeep worktrees release {wt.path}")
    (document,) = json.loads(worktrees(world, "--json").stdout)
    assert (document["path"], document["state"], document["owner"]["state"]) == (str(wt.path), "retained", "gone")


def test_where_there_is_none_the_list_says_so(world: World) -> None:
    result = worktrees(world)
    assert (result.status, result.stdout) == (0, ""), result
    assert result.stderr == f"nightkeep: no run of {world.launch} has a worktree\n"


def test_without_a_terminal_what_is_held_is_shown_and_nothing_is_done(world: World) -> None:
    wt = unfinished(world)
    before = everything(world, wt)
    result = worktrees(world, "release", wt.path)
    assert result.status == 2, result
    assert (
        result.stderr == "nightkeep: nothing was released: there is no terminal to ask on; give --yes to release it\n"
    )
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if line and line[0] != " ")
    held = [lines[what] for what in ("unfinished", "conflicts", "uncommitted", "untracked", "ignored")]
    assert held == ["a merge", "a.txt", "staged.txt", "new.txt", "secret.env"]
    assert "1 commit is nowhere else:" in result.stdout
    assert result.stdout.rstrip().endswith(" unpushed")
    assert everything(world, wt) == before
    document = worktrees(world, "release", wt.path, "--json").document
    assert (document["released"], document["holding"]["ignored"]) == (False, ["secret.env"])


def test_a_release_says_where_everything_is_and_the_second_that_nothing_is_there(world: World) -> None:
    wt = unfinished(world)
    result = worktrees(world, "release", wt.path, "--yes")
    assert (result.status, result.stderr) == (0, ""), result
    assert gone(world, wt)
    assert has_all(world, wt)
    assert f" in {store_of(world, wt)}\n" in result.stdout
    refs = local_rescue_refs(world)
    assert refs
    assert [ref for ref in refs if ref not in result.stdout] == []
    assert result.stdout.endswith(f": nightkeep rescue show {wt.run_id}\n")
    shown = nightkeep("rescue", "show", wt.run_id, cwd=world.launch)
    assert f"git branch rescued/{wt.run_id}/snapshot" in shown.stdout
    again = worktrees(world, "release", wt.path, "--yes")
    assert (again.status, again.stdout) == (2, ""), again
    assert f"no worktree of a run of this clone is retained at {wt.path}\n" in again.stderr


def test_without_origin_it_is_said_that_nothing_counts_as_being_there(world: World) -> None:
    wt = unfinished(world)
    world.origin.rename(world.origin.with_name("away"))
    result = worktrees(world, "release", wt.path, "--yes", "--json")
    assert (result.status, result.document["released"]) == (0, True), result
    assert "origin cannot be read, so everything counts as being only here" in result.stderr


@pytest.mark.parametrize("given", ["../{name}", "{path}/", "below/../../{name}/.", "../link", "../link/", "{path}"])
def test_a_path_may_be_written_in_any_way(world: World, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wt = unfinished(world)
    (world.launch / "below").mkdir()
    (world.launch.parent / "link").symlink_to(wt.path)
    monkeypatch.chdir(world.launch)
    found = retained_at(Path(given.format(name=wt.path.name, path=wt.path)), list_worktrees(world.launch / ".git"))
    assert found.run_id == wt.run_id


def test_what_is_not_retained_is_refused_with_what_to_do(world: World) -> None:
    retained = unfinished(world)
    listed = list_worktrees(world.launch / ".git")
    for path in (world.launch, retained.path / "below", Path("/")):
        with pytest.raises(PreflightError, match=f"is retained at {path}; retained are {retained.path}"):
            retained_at(path, listed)
    with create(world, branch="issue-8") as wt:
        (wt.path / "new.txt").write_text("new\n")
        before = everything(world, wt)
        result = worktrees(world, "release", wt.path, "--yes")
        assert (result.status, f"is at work in {wt.path}; wait for its end\n" in result.stderr) == (2, True), result
        assert everything(world, wt) == before
        wt._checkout.directory.release()
        with pytest.raises(PreflightError, match="finish that first: nightkeep recover"):
            retained_at(wt.path, list_worktrees(world.launch / ".git"))


def test_of_two_releases_at_once_one_does_it(world: World) -> None:
    wt = unfinished(world)
    command = [*NIGHTKEEP, "worktrees", "release", str(wt.path), "--yes"]
    both = [
        subprocess.Popen(command, cwd=world.launch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)
    ]
    ended = [(process.communicate(timeout=60)[0].decode(), process.returncode) for process in both]
    assert sorted(status for _, status in ended) == [0, 2], ended
    assert gone(world, wt)
    assert has_all(world, wt)


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", 2), ("\x03", 130)])
def test_on_a_terminal_a_person_is_asked(world: World, answer: str, status: int) -> None:
    wt = unfinished(world)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(world.launch)
        os.execv(sys.executable, [*NIGHTKEEP, "worktrees", "release", str(wt.path)])
    said = b""
    while b"[y/N]" not in said:
        said += os.read(terminal, 4096)
    os.write(terminal, answer.encode())
    with suppress(OSError):  # how Linux says that the other end is closed
        while more := os.read(terminal, 4096):
            said += more
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status, said
    assert gone(world, wt) == (status == 0)
    assert has_all(world, wt) if status == 0 else (wt.path / "new.txt").exists()
