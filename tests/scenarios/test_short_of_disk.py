"""A disk that runs full at any step: nothing is lost, nothing half-written is taken for whole, recovery finishes it."""

import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.hub import Exchange
from tests.proof import full, seed
from tests.scenarios.killing import Exchanges, Point, an_agent, killed, left_over, lost, recover
from tests.scenarios.killing import started as started_with
from tests.scenarios.repairing import QUICKLY
from tests.scenarios.stage import Stage, staged
from tests.world import World, git, make_world
from worktree import Journal, read_journal

pytestmark = pytest.mark.drawn

_SIZE = "128m"  # a Run does not begin with less than 100 MB
_STEPS = [(ending, number) for ending in ("delivered", "failed") for number in range(1, 33)]


def _steps(which: str) -> list[tuple[str, int]]:
    return _STEPS if full() else random.Random(f"{seed()} {which}").sample(_STEPS, 1)


@contextmanager
def _small_disk(place: Path) -> Iterator[None]:
    """Have a small file system of its own at `place`, where this user may mount one."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted: {mounted.stderr}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _stage(root: Path, small: Path, exchanges: list[Exchange]) -> Iterator[Stage]:
    """A stage on which all that Nightkeep writes here, what is temporary too, is in `small`."""
    world = make_world(root)
    clone = small / "place" / "widget"
    git(root, "clone", "-q", str(world.origin), str(clone))
    with staged(root, World(world.origin, clone), exchanges.append) as stage:
        stage.state = small / "state"
        (small / "tmp").mkdir()
        stage.environment = {"XDG_STATE_HOME": str(stage.state), "TMPDIR": str(small / "tmp"), **QUICKLY}
        yield stage


@pytest.fixture
def small_stage(tmp_path: Path, exchanges: list[Exchange]) -> Iterator[Stage]:
    with _small_disk(tmp_path / "small"):
        yield from _stage(tmp_path, tmp_path / "small", exchanges)


@pytest.fixture
def stage(tmp_path: Path, exchanges: list[Exchange]) -> Iterator[Stage]:
    (tmp_path / "small").mkdir()
    yield from _stage(tmp_path, tmp_path / "small", exchanges)


@pytest.mark.parametrize(("ending", "number"), _steps("full"), ids=str)
def test_a_disk_that_is_full_from_some_step_on(small_stage: Stage, ending: str, number: int) -> None:
    ballast = small_stage.root / "small" / "ballast"
    said = _run_short(small_stage, ending, number, f"cat /dev/zero > {ballast} 2> /dev/null")
    ballast.unlink(missing_ok=True)
    _finished_with_room(small_stage, said)
    if "is ready for review" in said:
        assert not small_stage.pull()["draft"], str(small_stage.last)


def test_a_full_disk_does_not_hide_how_a_run_went_on(tmp_path: Path) -> None:
    with _small_disk(tmp_path / "small"):
        journal = Journal(tmp_path / "small" / "journal.jsonl")
        journal.enter("claim")
        subprocess.run(f"cat /dev/zero > {tmp_path}/small/ballast", shell=True, stderr=subprocess.DEVNULL, check=False)
        for number in range(100):
            journal.enter("session", kind="x" * 100, number=number)
        journal.close()
        assert len(read_journal(tmp_path / "small" / "journal.jsonl")) == 101


@pytest.mark.parametrize("room", [0, 64])
@pytest.mark.parametrize(("ending", "number"), _steps("limit"), ids=str)
def test_files_that_are_cut_short_from_some_step_on(stage: Stage, ending: str, number: int, room: int) -> None:
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        pytest.skip("there is no prlimit")
    deed = "; ".join(f"{prlimit} --pid {pid} --fsize={room}:" for pid in ("$runner", "$$"))
    _finished_with_room(stage, _run_short(stage, ending, number, deed))


@pytest.mark.parametrize("number", range(1, 33) if full() else [random.Random(f"{seed()} again").randint(5, 20)])
def test_a_recovery_that_runs_out_of_room(small_stage: Stage, number: int) -> None:
    arguments = ["run", small_stage.url(small_stage.issue()), "--agent", an_agent(small_stage, "failed")]
    assert killed(small_stage, arguments, Point("git", 14, "after"), Exchanges())
    ballast = small_stage.root / "small" / "ballast"
    deed = f"cat /dev/zero > {ballast} 2> /dev/null"
    said, _ = _started(small_stage, ["recover"], number, deed).communicate(timeout=100)
    ballast.unlink(missing_ok=True)
    _finished_with_room(small_stage, said.decode())


def _started(stage: Stage, arguments: list[str], number: int, deed: str) -> "subprocess.Popen[bytes]":
    point = Point("git", number, "before")
    return started_with(stage, arguments, point, f'touch {_short(stage)}; {deed}; exec {shutil.which("git")} "$@"')


def _short(stage: Stage) -> Path:
    """The file that says that the step was reached."""
    return stage.root / "short"


def _run_short(stage: Stage, ending: str, number: int, deed: str) -> str:
    """Have a Run that does something to the disk before its n-th git command; return what it said."""
    issue = stage.issue()
    process = _started(stage, ["run", stage.url(issue), "--agent", an_agent(stage, ending)], number, deed)
    said = process.communicate(timeout=100)[0].decode()
    if not _short(stage).exists():
        pytest.skip("a Run has fewer steps")
    assert process.returncode not in (70, -signal.SIGKILL), said
    if process.returncode == 0:
        assert not stage.pull()["draft"]
    return said


def _finished_with_room(stage: Stage, said: str) -> None:
    """Recover, and assert that all there was is found where somebody said that it is."""
    stage.last = done = recover(stage)
    assert done.status in (0, 3), said + str(done)
    told = said + done.stderr
    kept = [path for path in stage.worktrees() if f"worktree: {path}" in told or f"worktree {path}" in told]
    missing = [one for one in (lost(stage) if _left_something(stage) else []) if not _is_in(one, kept)]
    assert missing == [], told
    assert set(stage.worktrees()) <= set(kept), told
    if not kept:
        assert left_over(stage) == [], told
    assert "there is nothing to recover" in recover(stage).stderr


def _left_something(stage: Stage) -> bool:
    """Whether the agent came as far as to leave what it leaves; without room it may not."""
    return (stage.root / "left").exists()


def _is_in(content: str, kept: list[Path]) -> bool:
    files = (file for path in kept for file in path.rglob("*") if file.is_file() and ".git" not in file.parts)
    index = [git(path, "show", ":three.txt", check=False) + "\n" for path in kept]
    return content in index or any(file.read_bytes() == content.encode() for file in files)
