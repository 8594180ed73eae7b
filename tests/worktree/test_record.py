"""The record of a run: whole or not there, owned by a lock, and nobody's who cannot prove it."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from tests.worktree.runs import create, gone, records
from tests.worktree.shortage import largest_file
from tests.world import World
from worktree import Interruption, Launch, Worktree, orphans, runs_at_work, sweep_records
from worktree.record import Before, Made, RecordDirectory, Retained, RunRecord

NOTHING = Before(refs={}, runs=(), stashes=(), filters=())


@pytest.fixture
def record(world: World) -> RunRecord:
    """The record of a run that is over."""
    with create(world) as wt:
        return wt._checkout.record


def test_another_recovery_at_work_keeps_no_run_from_beginning_or_ending(world: World, record: RunRecord) -> None:
    common, done = world.launch / ".git", threading.Event()

    def sweep() -> None:
        while not done.is_set():
            sweep_records(common)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for number in range(300):
            directory = RecordDirectory(common, f"{record.run_id}-{number}")
            directory.write(record, NOTHING)
            assert (directory.path / "record.json").exists()
            assert directory.remove()
    finally:
        done.set()
        sweeper.join()
    sweep_records(common)
    assert records(world) == []


@pytest.mark.parametrize("room", [0, 10, 200])
def test_without_room_a_record_is_whole_or_as_it_was(world: World, record: RunRecord, room: int) -> None:
    directory = RecordDirectory(world.launch / ".git", record.run_id)
    with largest_file(room), pytest.raises(OSError, match="too large"):
        directory.write(record, NOTHING)
    assert records(world) == []
    directory.write(record, NOTHING)
    with largest_file(room):
        with pytest.raises(OSError, match="too large"):
            directory.note(Made(identity=(1, 2), acquired=3, included=tuple(map(str, range(100)))))
        with pytest.raises(OSError, match="too large"):
            directory.retain(Retained(why="why " * 100, moment="", places=()))
    assert (directory.read()[2], directory.retained()) == (None, None)
    with largest_file(10), pytest.raises(OSError, match="too large"):
        directory.note_clearing("1" * 40)
    assert not directory.is_clearing()
    directory.note_clearing("1" * 40)
    assert directory.remove()
    assert records(world) == []


def _dead(world: World, **changes: object) -> Path:
    """Leave a run whose runner is gone, with changes to its record; return the record's directory."""
    wt = create(world)
    wt._checkout.directory.release()  # as the kernel does for a runner that was killed
    file = wt.private / "record.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return wt.private


def _orphans(world: World) -> list[str]:
    return [orphan.run_id for orphan in orphans(Launch.open(world.launch, interruption=Interruption()))]


@pytest.mark.parametrize(
    ("device", "inode", "place", "found"),
    [(0, 0, ".git", True), (1, 0, ".git", True), (0, 1, ".git", False), (1, 0, "elsewhere/.git", False)],
    ids=["as-before", "another-number-of-the-disk", "a-copy", "a-snapshot-of-the-disk"],
)
def test_after_a_start_of_the_machine_only_the_clone_itself_is_known_again(
    world: World, device: int, inode: int, place: str, *, found: bool
) -> None:
    directory = _dead(world, boot="another start", common=str(world.launch / place))
    file = directory / "record.json"
    before = json.loads(file.read_text())
    file.write_text(json.dumps({**before, "lock": [before["lock"][0] + device, before["lock"][1] + inode]}))
    assert _orphans(world) == ([directory.name] if found else [])
    assert [directory.name in line for line in runs_at_work(world.launch / ".git")] == ([] if found else [True])


def test_after_a_start_of_the_machine_a_worktree_is_taken_away_by_its_inode(world: World) -> None:
    directory = _dead(world, boot="another start")
    file = directory / "checkout.json"
    made = json.loads(file.read_text())
    file.write_text(json.dumps({**made, "identity": [made["identity"][0] + 1, made["identity"][1]]}))
    launch = Launch.open(world.launch, interruption=Interruption())
    with Worktree.reclaim(launch, directory.name) as wt:
        (wt.path / "a.txt").write_text("changed\n")
        wt.preserve_failed_run("main", "killed")
    assert gone(wt, world), wt.ending


@pytest.mark.parametrize("changes", [{"host": "another"}, {"host": "unknown"}])
def test_a_record_of_another_host_is_nobodys_to_take_and_is_named(world: World, changes: dict[str, object]) -> None:
    directory = _dead(world, **changes)
    assert _orphans(world) == []
    (line,) = runs_at_work(world.launch / ".git")
    assert directory.name in line
    assert str(changes["host"]) in line


@pytest.mark.parametrize("content", ["", "{", "{}", "null"])
def test_a_record_that_cannot_be_read_is_nobodys_to_take_and_is_named(world: World, content: str) -> None:
    directory = _dead(world)
    (directory / "record.json").write_text(content)
    assert _orphans(world) == []
    (line,) = runs_at_work(world.launch / ".git")
    assert str(directory) in line
    assert "cannot be read" in line


def test_a_copy_of_a_record_stands_for_no_run(world: World) -> None:
    directory = _dead(world)
    copy = directory.with_name("20260101T000000Z-00000000")
    shutil.copytree(directory, copy)
    assert _orphans(world) == [directory.name]
    shutil.rmtree(directory)
    assert _orphans(world) == []
    (line,) = runs_at_work(world.launch / ".git")
    assert str(copy) in line


@pytest.mark.parametrize("pid", [1, os.getpid()], ids=["first", "ours"])
def test_a_process_that_has_the_number_by_now_protects_no_dead_run(world: World, pid: int) -> None:
    directory = _dead(world, pid=pid)
    assert _orphans(world) == [directory.name]


def test_a_live_runs_lock_counts_whatever_its_record_says(world: World) -> None:
    with create(world) as wt:
        file = wt.private / "record.json"
        gone = {"pid": 4_194_303, "pid_started": 0.0, "pid_namespace": "pid:[1]", "boot": "another start"}
        file.write_text(json.dumps({**json.loads(file.read_text()), **gone}))
        assert _orphans(world) == []
