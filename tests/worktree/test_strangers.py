"""A worktree in which somebody is at work is left alone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.worktree.runs import contents, create, gone, kept, store_of
from tests.world import World
from worktree.processes import at_work_in

# A program that has a file mapped, and no descriptor of it.
_MAP = """
import mmap, os, sys
with open(sys.argv[1], "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
os.closerange(3, 256)
print("ready", flush=True)
sys.stdin.read()
"""

_CHANGE_ROOT = """
import os, sys
os.chroot(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def _running(command: Sequence[str | Path], directory: Path | str = "/") -> Iterator[subprocess.Popen[str]]:
    """Have a program run in the block that says when it is ready, and ends when its input does."""
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    ) as program:
        assert program.stdout is not None
        if program.stdout.readline() != "ready\n":
            _, error = program.communicate()
            if "not permitted" in error or "denied" in error.lower():
                pytest.skip(f"the kernel forbids it: {error}")
            pytest.fail(f"{command} did not start: {error}")
        yield program


def _container(mounted: Path, at: Path, script: str) -> list[str | Path]:
    """Return the command that runs `script` where `mounted` is at `at`, which nobody outside sees."""
    at.mkdir()
    unshare = ["unshare", "--mount", *(["--map-root-user"] if os.getuid() else [])]
    return [*unshare, "sh", "-ec", f'mount --bind "$0" "$1"; cd "$1"; {script}', mounted, at]


def _at_work_in(directory: Path) -> list[str]:
    """Return who is at work there, without their commands."""
    return [name.partition(" (")[0] for name in at_work_in(directory, datetime.now(UTC))]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    directory = tmp_path / "w \n"  # the kernel writes a line end in a name in more than one way
    (directory / "deep").mkdir(parents=True)
    (directory / "deep" / "file").write_text("text\n")
    return directory


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


def test_a_container_that_works_in_the_worktree_keeps_it(world: World, tmp_path: Path) -> None:
    script = "exec 5>>a.txt; echo ready; read _ || echo late >&5"
    with ExitStack() as stack, create(world) as wt:
        container = stack.enter_context(_running(_container(wt.path, tmp_path / "mnt", script)))
    assert kept(wt, world)
    assert f"process {container.pid} (sh)" in wt.ending.why
    assert (wt.path / "a.txt").read_text() == "a\nlate\n"


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


def test_a_mapped_file_counts_when_its_descriptor_is_closed(tree: Path) -> None:
    with _running([sys.executable, "-c", _MAP, tree / "deep" / "file"]) as program:
        assert not [link for link in Path(f"/proc/{program.pid}/fd").iterdir() if tree in link.readlink().parents]
        assert _at_work_in(tree) == [f"process {program.pid}"]


def test_a_program_that_was_started_from_the_directory_counts(tree: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    shutil.copy(sleep, tree / "deep" / "sleep")
    with subprocess.Popen([tree / "deep" / "sleep", "60"], cwd="/") as program:
        found = _at_work_in(tree)
        program.kill()
    assert found == [f"process {program.pid}"]


def test_who_has_its_root_in_the_directory_counts(tree: Path) -> None:
    with _running([sys.executable, "-c", _CHANGE_ROOT, tree / "deep"]) as program:
        assert _at_work_in(tree) == [f"process {program.pid}"]


@pytest.mark.parametrize(
    "script",
    [
        "cd deep; echo ready; read _",
        "exec 5>>deep/file; cd /; echo ready; read _",
        'cp /bin/sh deep; cd /; exec "$1/deep/sh" -c "echo ready; read _"',
        'cd /; exec {python} -c "$2" "$1/deep/file"',
    ],
    ids=["directory", "file", "program", "mapped"],
)
def test_who_is_in_a_container_counts(tree: Path, tmp_path: Path, script: str) -> None:
    command = _container(tree, tmp_path / "mnt", script.format(python=sys.executable))
    with _running([*command, _MAP]) as program:
        assert _at_work_in(tree) == [f"process {program.pid}"]
    assert _at_work_in(tree) == []


def test_a_container_next_door_does_not_count(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "wt-2").mkdir()
    with _running(_container(tmp_path / "wt-2", tmp_path / "mnt", "exec 5>>file; echo ready; read _")):
        assert _at_work_in(tree) == []
