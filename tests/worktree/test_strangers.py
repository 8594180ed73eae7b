"""A worktree in which somebody is at work is left alone."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

from tests.worktree.runs import contents, create, gone, kept, store_of
from tests.world import World
from worktree.processes import at_work_in


def test_a_shell_in_the_worktree_keeps_it_and_is_named(world: World) -> None:
    with create(world) as wt:
        (wt.path / "secret.env").write_text("k\n")
        before = contents(wt.path)
        shell = subprocess.Popen(["sleep", "60"], cwd=wt.path)
    where = Path(f"/proc/{shell.pid}/cwd").readlink()
    shell.kill()
    shell.wait()
    assert kept(wt, world)
    assert wt.ending.why == f"somebody is at work in it: process {shell.pid} (sleep)"
    assert contents(wt.path) == before
    assert where == wt.path, "it is where it was, under its old name"
    assert not store_of(world, wt).exists()


def test_an_open_file_in_the_worktree_keeps_it(world: World) -> None:
    with create(world) as wt, (wt.path / "a.txt").open() as read:
        writer = subprocess.Popen(["sleep", "60"], stdin=read, cwd="/")
    writer.kill()
    writer.wait()
    assert f"process {writer.pid} (sleep)" in wt.ending.why


def test_somebody_next_door_does_not_count(world: World) -> None:
    with create(world) as wt:
        neighbour = subprocess.Popen(["sleep", "60"], cwd=wt.path.parent)
    neighbour.kill()
    neighbour.wait()
    assert gone(wt, world)


def test_only_the_directory_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "wt").mkdir()
    (tmp_path / "wt-2").mkdir()
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path / "wt-2") as neighbour:
        assert at_work_in(tmp_path / "wt", datetime.now(UTC)) == []
        assert at_work_in(tmp_path / "wt-2", datetime.now(UTC)) == [f"process {neighbour.pid} (sleep)"]
        neighbour.kill()
