"""What it costs to own a run, to write its journal, and to reclaim runs whose owner is gone."""

import os
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.benchmarks.ground import DELIVERED, Ground
from tests.benchmarks.measure import Row, Times, count, ratio, timed
from tests.world import World, commit, git, make_world
from worktree import Interruption, Journal, Launch, Worktree, host_name, orphans, read_journal
from worktree.acquisition import before
from worktree.journal import Entry
from worktree.machine import boot_id, pid_namespace, pid_started
from worktree.record import Made, RecordDirectory, RunRecord, new_run_id

_ORPHANS = 20
_FILES = 200


def reclaim_rows(root: Path, rounds: int) -> list[Row]:
    """The rows of twenty orphans with a commit each, against what a person would type for each."""
    world = make_world(root)
    for number in range(_FILES):
        (world.launch / f"{number}.txt").write_text(f"{number}\n" * 50)
    commit(world.launch, "files")
    git(world.launch, "push", "-q", "origin", "main")
    turns = [(_ours(world, turn), _bare(world, turn)) for turn in range(rounds + 1)][1:]
    ours, bare = (Times(tuple(turn[side] for turn in turns)) for side in (0, 1))
    what = f"reclaim of {_ORPHANS} orphans; `status`, `add`, `commit`, `push`, `worktree remove` for each"
    return [ratio(what, ours, bare, at_most=1.5), _started(world)]


def _ours(world: World, turn: int) -> float:
    _orphans(world, turn)
    return timed(lambda: _reclaim(world))()


def _orphans(world: World, turn: int) -> None:
    for number in range(_ORPHANS):
        launch = Launch.open(world.launch, interruption=Interruption())
        wt = Worktree.create(launch, branch=f"ours-{turn}-{number}", base="main", interruption=Interruption())
        (wt.path / "made.txt").write_text(f"{turn} {number}\n")
        commit(wt.path, "made")
        wt._checkout.directory.release()  # as the kernel does for a runner that was killed


def _reclaim(world: World) -> None:
    launch = Launch.open(world.launch, interruption=Interruption())
    for orphan in orphans(launch):
        with Worktree.reclaim(launch.reopened(), orphan.run_id) as wt:
            wt.preserve_failed_run("main", "runner died")
        assert not wt.ending.kept, wt.ending


def _bare(world: World, turn: int) -> float:
    paths = [world.launch.with_name(f"bare-{turn}-{number}") for number in range(_ORPHANS)]
    for path in paths:
        git(world.launch, "worktree", "add", "-q", "--no-track", "-b", path.name, str(path), "origin/main")
        (path / "made.txt").write_text(f"{path.name}\n")
        commit(path, "made")
    return timed(lambda: list(map(partial(_take_away, world), paths)))()


def _take_away(world: World, path: Path) -> None:
    git(path, "status", "--porcelain")
    git(path, "add", "-A")
    git(path, "commit", "-q", "--allow-empty", "-m", "failed run")
    git(path, "push", "-q", "origin", path.name)
    git(world.launch, "worktree", "remove", "--force", str(path))


def _started(world: World) -> Row:
    """Count the git commands of a reclaim, by a program that stands before git on PATH."""
    told, shim = world.launch.parent / "told", world.launch.parent / "shim"
    shim.mkdir()
    real, path = shutil.which("git"), os.environ["PATH"]
    (shim / "git").write_text(f'#!/bin/sh\necho >> {told}\nexec {real} "$@"\n')
    (shim / "git").chmod(0o755)
    _orphans(world, -1)
    os.environ["PATH"] = f"{shim}{os.pathsep}{path}"
    try:
        _reclaim(world)
    finally:
        os.environ["PATH"] = path
    started = len(told.read_text().splitlines())
    return count("reclaim of an orphan: git commands that we start", round(started / _ORPHANS), at_most=8)


def owning_row(ground: Ground, rounds: int) -> Row:
    """The row of what the record and the journal of a delivered Run take of it."""
    whole, share = [], []
    for _ in range(rounds + 1):
        with ground.renewed():
            whole.append(ground.run(DELIVERED))
            (written,) = (ground.now / "state").rglob("*.jsonl")
            entries = read_journal(written)
            share.append(timed(partial(_own, ground, entries))())
    what = "owning and the journal, of a delivered Run"
    return ratio(what, Times(tuple(share[1:])), Times(tuple(whole[1:])), at_most=0.05)


def _own(ground: Ground, entries: list[Entry]) -> None:
    """Write a record and a journal as that Run did, and take the record away."""
    launch = Launch.open(ground.clone, interruption=Interruption())
    pinned = launch.refs["refs/heads/main"]
    record = RunRecord(
        run_id=new_run_id(),
        pid=os.getpid(),
        pid_started=pid_started(),
        pid_namespace=pid_namespace(),
        boot=boot_id(),
        host=host_name(),
        started=datetime.now(UTC),
        base="main",
        branch="issue-1",
        made_branch=True,
        resumed=False,
        path=ground.clone.with_name("owned"),
        pinned=pinned,
        pinned_base=pinned,
        common=launch.common,
    )
    directory = RecordDirectory(launch.common, record.run_id)
    directory.write(record, before(launch))
    directory.note(Made(identity=(1, 1), acquired=1, included=()))
    journal = Journal(ground.now / "state" / "journal.jsonl")
    for entry in entries:
        facts = {name: fact for name, fact in entry.items() if name not in ("at", "step")}
        journal.enter(str(entry["step"]), **facts)
    journal.close()
    directory.remove()
