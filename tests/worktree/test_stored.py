"""What runs left in the rescue store and in rescue refs: it is found, restored over nothing, and deleted when told."""

import inspect
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from tests.rescued import put, put_ref
from tests.worktree.permissions import bound_by_permissions
from tests.worktree.runs import create, opened
from tests.world import World, git
from worktree import WorktreeError
from worktree.bounds import Bounds, Choice, Collection, Entry, choose, is_only_copy
from worktree.dropping import Deleter, Deletion, RunFacts, drop, reason_to_spare
from worktree.restoring import Pair, Verdict, judge, restore
from worktree.store import Store
from worktree.stored import (
    Rescued,
    RescueError,
    branch_of,
    find_rescued,
    read_rescued,
    rescue_refs,
    runs_that_left,
    ways_back,
)

NOW = datetime(2026, 7, 31, 12, tzinfo=UTC)
OLD, YOUNG = "20260601T120000Z-0000000a", "20260730T120000Z-0000000b"


def left_by_a_run(world: World, leave: Callable[[Path], object]) -> str:
    """Run to an end that leaves in the store what `leave` made; return the run's id."""
    with create(world) as wt:
        leave(wt.path)
    assert not wt.ending.kept, wt.ending
    return wt.run_id


def only(world: World) -> Rescued:
    found = read_rescued(opened(world))
    assert len(found) == 1
    return found[0]


def snapshot(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return of each entry below a directory its mode, its time of modification, and what it holds."""
    found = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        held = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(directory))] = (status.st_mode, status.st_mtime_ns, held)
    return found


# Reading


def test_what_a_run_left_is_found_with_why_and_how_much(world: World) -> None:
    run_id = left_by_a_run(world, lambda top: (top / "secret.env").write_text("key=1\n"))
    found = only(world)
    assert (found.run_id, list(found.entries), found.local) == (run_id, ["secret.env"], {})
    assert found.entries["secret.env"].files == 1
    assert found.entries["secret.env"].size == 6
    assert found.manifest is not None
    assert [(row.entry, row.why) for row in found.manifest.rows] == [("secret.env", "ignored")]
    assert branch_of(opened(world).git, found) == "issue-7"


def test_a_directory_whose_manifest_was_never_written_or_was_spoilt_is_found(world: World) -> None:
    put(world, OLD).path.joinpath("manifest.json").unlink()
    spoilt = put(world, YOUNG).path / "manifest.json"
    spoilt.write_text(spoilt.read_text().replace('"ignored"', "7"))
    young, old = read_rescued(opened(world))
    assert (young.manifest, old.manifest) == (None, None)
    assert list(old.entries) == ["left"]
    assert old.moment == datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_what_is_no_directory_of_a_run_is_not_taken_for_one(world: World) -> None:
    rescue = put(world, OLD).path.parent
    (rescue / "mine").mkdir()
    (rescue / YOUNG).symlink_to(world.launch)
    git(world.launch, "update-ref", "refs/nightkeep/rescue/mine/head", "HEAD")
    git(world.launch, "update-ref", "refs/nightkeep/rescue/20269901T120000Z-0000000a/head", "HEAD")
    assert only(world).run_id == OLD


def test_rescue_refs_are_found_here_and_on_origin(world: World) -> None:
    here, there = put_ref(world, OLD), put_ref(world, YOUNG, on_origin=True)
    launch = opened(world)
    young, old = read_rescued(launch, rescue_refs(launch.remote()))
    assert (list(old.local), list(old.on_origin)) == ([here], [])
    assert (list(young.local), list(young.on_origin)) == ([], [there])
    assert [branch_of(launch.git, one) for one in (old, young)] == ["issue-7", "issue-7"]


def test_the_runs_are_found_that_left_commits_on_a_branch(world: World) -> None:
    put_ref(world, OLD)
    put(world, YOUNG)
    assert runs_that_left(opened(world), "issue-7") == [OLD]
    assert runs_that_left(opened(world), "issue-8") == []


def test_a_checkpoint_that_was_left_is_found_and_comes_back_as_a_rescue_ref_does(world: World) -> None:
    ref = f"refs/nightkeep/checkpoints/{OLD}"
    git(world.launch, "commit", "-q", "--allow-empty", "-m", "nightkeep: checkpoint of issue-7")
    git(world.launch, "push", "-q", "origin", f"HEAD:{ref}")
    git(world.launch, "reset", "-q", "--hard", "HEAD^")
    launch = opened(world)
    (found,) = read_rescued(launch, rescue_refs(launch.remote()))
    (way,) = ways_back(launch.git, found)
    subprocess.run(["sh", "-c", way.command], cwd=world.launch, check=True, capture_output=True)
    assert (way.what, branch_of(launch.git, found)) == ("checkpoint", "issue-7")
    assert git(world.launch, "rev-parse", f"rescued/{OLD}/checkpoint") == world.on_origin(ref)
    drop(Deleter(launch=launch, remote=launch.remote(), deleted=lambda _: None), found)
    assert world.on_origin(ref) == ""


def test_a_run_is_named_by_an_unambiguous_beginning(world: World) -> None:
    put(world, OLD)
    put(world, YOUNG)
    found = read_rescued(opened(world))
    assert find_rescued(found, "202606").run_id == OLD
    assert find_rescued(found, YOUNG).run_id == YOUNG
    for given in ("2026", "2027", ""):
        with pytest.raises(RescueError, match=f"{YOUNG}, {OLD}"):
            find_rescued(found, given)


def test_each_command_brings_its_commits_back(world: World) -> None:
    refs = [put_ref(world, OLD), put_ref(world, OLD, "made", on_origin=True)]
    store = put(world, OLD)
    git(world.launch, "bundle", "create", "-q", str(store.bundle), refs[0])
    git(world.launch.parent, "init", "-q", str(store.modules / "a lib"))
    shutil.copytree(store.modules / "a lib" / ".git", store.modules / "x", dirs_exist_ok=True)
    shutil.rmtree(store.modules / "a lib")
    (store.modules / "x").rename(store.modules / "a lib")
    git(store.modules / "a lib", "--git-dir=.", "config", "core.worktree", "../../../../gone")
    launch = opened(world)
    found = read_rescued(launch, rescue_refs(launch.remote()))[0]
    ways = {way.what: way for way in ways_back(launch.git, found)}
    assert set(ways) == {"snapshot", "made", "bundle", "submodule"}
    for what, way in ways.items():
        subprocess.run(["sh", "-c", way.command], cwd=world.launch, check=True, capture_output=True)
        if what in ("snapshot", "bundle"):
            assert git(world.launch, "rev-parse", f"rescued/{OLD}/snapshot") == git(world.launch, "rev-parse", refs[0])
            git(world.launch, "branch", "-D", f"rescued/{OLD}/snapshot")
    assert git(world.launch, "rev-parse", f"rescued/{OLD}/made") == world.on_origin(refs[1])
    assert (world.launch / "rescued-a lib" / ".git").is_dir()


# Restoring


@pytest.mark.parametrize(
    ("pair", "verdict"),
    [
        (Pair(stat.S_IFREG, None), Verdict.COPY),
        (Pair(stat.S_IFDIR, None), Verdict.COPY),
        (Pair(stat.S_IFREG, None, in_repository=True), Verdict.CONFLICT),
        (Pair(stat.S_IFDIR, stat.S_IFDIR), Verdict.ENTER),
        (Pair(stat.S_IFDIR, stat.S_IFLNK), Verdict.CONFLICT),
        (Pair(stat.S_IFREG, stat.S_IFREG, same=True), Verdict.THERE),
        (Pair(stat.S_IFREG, stat.S_IFREG, same=True, in_repository=True), Verdict.THERE),
        (Pair(stat.S_IFREG, stat.S_IFREG, same=False), Verdict.CONFLICT),
        (Pair(stat.S_IFREG, stat.S_IFDIR), Verdict.CONFLICT),
        (Pair(stat.S_IFLNK, stat.S_IFLNK, same=False), Verdict.CONFLICT),
        (Pair(stat.S_IFIFO, stat.S_IFIFO), Verdict.THERE),
        (Pair(stat.S_IFIFO, stat.S_IFSOCK), Verdict.CONFLICT),
    ],
)
def test_what_a_restoration_does_about_a_path(pair: Pair, verdict: Verdict) -> None:
    assert judge(pair) is verdict


def fill(top: Path) -> None:
    """Leave ignored files of each kind."""
    scratch = top / "scratch"
    (scratch / "deep" / "locked").mkdir(parents=True)
    (scratch / "run.sh").write_text("#!/bin/sh\n")
    (scratch / "run.sh").chmod(0o751)
    (scratch / "deep" / "twin").hardlink_to(scratch / "run.sh")
    (scratch / "link").symlink_to("/nowhere")
    (scratch / "na\nme\udcff").write_text("odd\n")
    (scratch / "deep" / "locked" / "file").write_text("locked\n")
    os.mkfifo(scratch / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        before = Path.cwd()
        os.chdir(scratch)
        try:
            made.bind("socket")
        finally:
            os.chdir(before)
    os.utime(scratch / "link", (1, 1), follow_symlinks=False)
    (scratch / "deep" / "locked").chmod(0o555)
    for path in ("run.sh", "deep/locked/file", "deep/locked", "deep", "."):
        os.utime(scratch / path, (1_000_000_000, 1_000_000_000))


def test_everything_comes_back_as_it_was_and_the_store_keeps_it(world: World) -> None:
    before: dict[str, tuple[int, int, bytes]] = {}

    def leave(top: Path) -> None:
        fill(top)
        before.update(snapshot(top / "scratch"))

    left_by_a_run(world, leave)
    kept = snapshot(only(world).store.tree)  # type: ignore[union-attr]
    done = bound_by_permissions(lambda: restore(only(world), [], world.launch))
    assert snapshot(world.launch / "scratch") == before
    assert (world.launch / "scratch" / "run.sh").samefile(world.launch / "scratch" / "deep" / "twin")
    assert (done.there, done.left_out) == ([], [])
    assert snapshot(only(world).store.tree) == kept  # type: ignore[union-attr]


def test_it_can_be_repeated_and_goes_on_where_it_was_stopped(world: World) -> None:
    left_by_a_run(world, fill)
    restore(only(world), [], world.launch)
    before = snapshot(world.launch / "scratch")
    (world.launch / "scratch" / "link").unlink()
    done = restore(only(world), [], world.launch)
    assert done.made == ["scratch/link"]
    assert snapshot(world.launch / "scratch").keys() == before.keys()
    assert restore(only(world), [], world.launch).made == []


def test_only_the_paths_that_are_named_come_back(world: World) -> None:
    left_by_a_run(world, fill)
    done = restore(only(world), ["./scratch/deep/locked/", "scratch/link"], world.launch)
    assert sorted(done.made) == ["scratch/deep/locked/file", "scratch/link"]
    assert done.directories == ["scratch", "scratch/deep", "scratch/deep/locked"]
    assert {path.name for path in (world.launch / "scratch").iterdir()} == {"deep", "link"}


@pytest.mark.parametrize("path", ["nothing", "scratch/nothing", "scratch/link/nothing", "../widget", "/etc", ".."])
def test_a_path_that_is_not_there_is_named_before_any_work(world: World, path: str) -> None:
    left_by_a_run(world, fill)
    with pytest.raises(RescueError, match=path.replace(".", "[.]")):
        restore(only(world), ["scratch", path], world.launch)
    assert not (world.launch / "scratch").exists()


def test_nothing_is_written_when_anything_is_in_the_way(world: World) -> None:
    left_by_a_run(world, fill)
    scratch = world.launch / "scratch"
    scratch.mkdir()
    (scratch / "run.sh").write_text("mine\n")
    (scratch / "link").symlink_to("/elsewhere")
    (scratch / "deep").symlink_to(world.origin)
    (scratch / "fifo").mkdir()
    before, outside = snapshot(world.launch), snapshot(world.origin)
    with pytest.raises(RescueError) as refused:
        restore(only(world), [], world.launch)
    for path in ("scratch/run.sh", "scratch/link", "scratch/deep", "scratch/fifo"):
        assert f"  {path}: something else is there" in str(refused.value)
    assert "--to DIRECTORY" in str(refused.value)
    assert (snapshot(world.launch), snapshot(world.origin)) == (before, outside)


def test_what_cannot_be_read_is_named_and_nothing_is_written(world: World) -> None:
    def leave(top: Path) -> None:
        fill(top)
        (top / "scratch" / "run.sh").chmod(0)

    left_by_a_run(world, leave)
    with pytest.raises(RescueError, match=r"scratch/run\.sh: it cannot be read"):
        bound_by_permissions(lambda: restore(only(world), [], world.launch))
    assert not (world.launch / "scratch").exists()


def test_a_repository_comes_back_but_not_into_another(world: World) -> None:
    left_by_a_run(world, lambda top: git(top, "init", "-q", "scratch/inner"))
    restore(only(world), [], world.launch)
    inner = world.launch / "scratch" / "inner" / ".git"
    assert git(inner.parent, "rev-parse", "--absolute-git-dir") == str(inner)
    (inner / "description").unlink()
    with pytest.raises(RescueError, match=r"inner/.git/description: another repository is there"):
        restore(only(world), [], world.launch)


def test_a_file_that_names_a_repository_elsewhere_is_left_out(world: World) -> None:
    store = put(world, OLD)
    (store.tree / "lib").mkdir()
    (store.tree / "lib" / ".git").write_text("gitdir: ../../.git/worktrees/widget-issue-7/modules/lib\n")
    (store.tree / ".git").write_text("gitdir: nowhere\n")
    done = restore(only(world), [], world.launch)
    assert sorted(done.left_out) == [".git", "lib/.git"]
    assert (world.launch / ".git").is_dir()
    assert (done.made, done.directories) == (["left"], ["lib"])


def test_another_directory_takes_it_but_not_the_store_itself(world: World) -> None:
    store = put(world, OLD)
    target = world.launch.parent / "new" / "place"
    restore(only(world), [], target)
    assert (target / "left").read_bytes() == b"x" * 100
    for inside in (store.tree, store.path / "new"):
        with pytest.raises(RescueError, match="in the rescue store itself"):
            restore(only(world), [], inside)
    assert not (store.path / "new").exists()


def test_where_no_files_are_kept_nothing_can_be_restored(world: World) -> None:
    put_ref(world, OLD)
    with pytest.raises(RescueError, match=f"nightkeep rescue show {OLD}"):
        restore(only(world), [], world.launch)


# Dropping


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (RunFacts(record=None), None),
        (RunFacts(record=Path("/r")), None),
        (RunFacts(record=Path("/r"), readable=False), "cannot be read, so nobody knows whether it is over; when it is"),
        (RunFacts(record=Path("/r"), readable=False), "; when it is, remove /r"),
        (RunFacts(record=Path("/r"), may_live=True), "may still be at work; wait for its end"),
        (
            RunFacts(record=Path("/r"), retained=Path("/place/widget-issue-7")),
            "release it first: nightkeep worktrees release /place/widget-issue-7",
        ),
    ],
)
def test_why_what_is_kept_of_a_run_may_not_be_deleted(facts: RunFacts, reason: str | None) -> None:
    said = reason_to_spare(facts)
    assert said is None if reason is None else reason in (said or "")


def deleter(world: World, deletions: list[Deletion], *, remote: bool = False, rehearsal: bool = False) -> Deleter:
    launch = opened(world)
    asked = launch.remote() if remote else None
    return Deleter(launch=launch, remote=asked, deleted=deletions.append, rehearsal=rehearsal)


def test_all_that_this_machine_keeps_of_a_run_is_deleted(world: World) -> None:
    def leave(top: Path) -> None:
        fill(top)
        (top / "scratch" / "out").symlink_to(world.origin)
        (top / "scratch" / "closed").mkdir(mode=0)

    run_id = left_by_a_run(world, leave)
    local, there = put_ref(world, run_id), put_ref(world, run_id, "made", on_origin=True)
    other, outside = put(world, OLD), snapshot(world.origin)
    one = find_rescued(read_rescued(opened(world)), run_id)
    deletions: list[Deletion] = []
    bound_by_permissions(lambda: drop(deleter(world, deletions), one))
    assert [(each.what, each.size) for each in deletions] == [
        (f"{local} in this clone", 0),
        (str(world.launch / ".git" / "nightkeep" / "rescue" / run_id), one.size),
    ]
    assert [kept.run_id for kept in read_rescued(opened(world))] == [OLD]
    assert (other.tree / "left").exists()
    assert snapshot(world.origin) == outside
    assert world.on_origin(there)


def test_a_ref_that_moved_meanwhile_stays(world: World) -> None:
    ref = put_ref(world, OLD)
    one = only(world)
    git(world.launch, "update-ref", ref, "HEAD")
    with pytest.raises(WorktreeError):
        drop(deleter(world, []), one)
    assert git(world.launch, "rev-parse", ref) == git(world.launch, "rev-parse", "HEAD")


def test_what_somebody_else_deletes_at_the_same_time_is_no_trouble(world: World) -> None:
    left_by_a_run(world, fill)
    put_ref(world, only(world).run_id)
    one = only(world)
    drop(deleter(world, []), one)
    drop(deleter(world, []), one)
    assert read_rescued(opened(world)) == []


def test_two_may_delete_the_same_at_once(world: World) -> None:
    store = put(world, OLD)
    for number in range(2000):
        place = store.tree / str(number % 40)
        place.mkdir(exist_ok=True)
        (place / str(number)).touch()
    one, both = only(world), [deleter(world, []), deleter(world, [])]
    together = Barrier(2)

    def delete(by: Deleter) -> None:
        together.wait()
        by.delete_store(one, "dropped")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(delete, both))
    assert not store.path.exists()


def test_a_tree_deeper_than_the_stack_is_measured_and_deleted(world: World, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(partial(sys.setrecursionlimit, sys.getrecursionlimit()))
    sys.setrecursionlimit(len(inspect.stack()) + 200)
    store = put(world, OLD)
    descriptor = os.open(store.tree, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("deeper", dir_fd=descriptor)
        above, descriptor = descriptor, os.open("deeper", os.O_RDONLY, dir_fd=descriptor)
        os.close(above)
    os.close(os.open("end", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)
    assert only(world).entries["deeper"].files == 1
    drop(deleter(world, []), only(world))
    assert not store.path.exists()


def test_a_rescue_ref_that_only_names_a_persons_branch_goes_and_the_branch_stays(world: World) -> None:
    before = git(world.launch, "rev-parse", "refs/heads/main")
    git(world.launch, "symbolic-ref", f"refs/nightkeep/rescue/{OLD}/made", "refs/heads/main")
    drop(deleter(world, []), only(world))
    assert git(world.launch, "for-each-ref", "refs/nightkeep") == ""
    assert git(world.launch, "rev-parse", "refs/heads/main") == before


def test_nothing_is_deleted_of_a_run_that_is_at_work_or_whose_worktree_is_there(world: World) -> None:
    with create(world) as wt:
        store = Store(world.launch / ".git", wt.run_id)
        put(world, wt.run_id)
        with pytest.raises(RescueError, match="may still be at work"):
            drop(deleter(world, []), only(world))
        assert (store.tree / "left").exists()


def test_nothing_is_deleted_of_a_run_that_was_killed_with_its_worktree(world: World) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom worktree import Interruption, Launch, Worktree\n"
        "launch = Launch.open(Path(sys.argv[1]), interruption=Interruption())\n"
        "with Worktree.create(launch, branch='issue-7', base='main', interruption=Interruption()) as wt:\n"
        "    print(wt.run_id, flush=True)\n    os._exit(9)\n"
    )
    # From here, because the packages are found in the working directory.
    killed = subprocess.run(
        [sys.executable, "-c", script, str(world.launch)], capture_output=True, text=True, check=False
    )
    put(world, killed.stdout.strip())
    with pytest.raises(RescueError, match=r"release it first: nightkeep worktrees release .*widget-issue-7"):
        drop(deleter(world, []), only(world))


def test_refs_on_origin_are_deleted_when_that_is_wanted(world: World) -> None:
    first, second = (put_ref(world, OLD, name, on_origin=True) for name in ("snapshot", "made"))
    other = put_ref(world, YOUNG, on_origin=True)
    launch = opened(world)
    one = read_rescued(launch, rescue_refs(launch.remote()))[1]
    deletions: list[Deletion] = []
    drop(deleter(world, deletions, remote=True), one)
    assert world.snapshot_refs() == [other]
    assert {each.what for each in deletions} == {f"{first} on origin", f"{second} on origin"}
    drop(deleter(world, [], remote=True), one)  # somebody else was quicker


def test_a_ref_on_origin_that_moved_meanwhile_stays(world: World) -> None:
    ref = put_ref(world, OLD, on_origin=True)
    put(world, OLD)
    launch = opened(world)
    one = read_rescued(launch, rescue_refs(launch.remote()))[0]
    git(world.origin, "update-ref", ref, "main")
    with pytest.raises(WorktreeError):
        drop(deleter(world, [], remote=True), one)
    assert world.on_origin(ref) == world.on_origin("main")
    assert only(world).store is not None


# The bounds


def entry(run_id: str, days: float, size: int, *, needed: str | None = None, only_copy: bool = False) -> Entry:
    return Entry(run_id=run_id, age=timedelta(days=days), size=size, needed=needed, only_copy=only_copy)


_ONLY = "it may hold work that is nowhere else, and is not older than 30 days"
_MUCH = "all that is kept is too large, and of what may go this is the oldest"


@pytest.mark.parametrize(
    ("entries", "go", "stay"),
    [
        ([], {}, {}),
        ([entry("a", 30, 10)], {}, {}),
        ([entry("a", 30.1, 10)], {"a": "older than 30 days"}, {}),
        ([entry("a", 31, 10, only_copy=True)], {"a": "older than 30 days"}, {}),
        ([entry("a", 31, 10, needed="at work")], {}, {"a": "at work"}),
        ([entry("a", 3, 60), entry("b", 2, 60), entry("c", 1, 60)], {"a": "much", "b": "much"}, {}),
        ([entry("c", 1, 40), entry("a", 3, 60), entry("b", 2, 60)], {"a": "much"}, {}),
        ([entry("a", 3, 60, only_copy=True), entry("b", 2, 60)], {"b": "much"}, {"a": _ONLY}),
        ([entry("a", 3, 60, needed="at work"), entry("b", 2, 60)], {"b": "much"}, {"a": "at work"}),
        ([entry("a", 3, 200, only_copy=True)], {}, {"a": _ONLY}),
        ([entry("a", 31, 60), entry("b", 2, 60)], {"a": "older than 30 days"}, {}),
        ([entry("a", 3, 10, only_copy=True), entry("b", 2, 10, needed="at work")], {}, {}),
    ],
)
def test_what_goes_of_the_store(entries: list[Entry], go: dict[str, str], stay: dict[str, str]) -> None:
    go = {run: _MUCH if why == "much" else why for run, why in go.items()}
    assert choose(entries, Bounds(days=30, size=100)) == Choice(go, stay)


@pytest.mark.parametrize(
    ("why", "bundled", "is_only"),
    [
        ("ignored", False, False),
        ("an empty directory", False, False),
        ("ignored, an empty directory", False, False),
        ("untracked", False, True),
        ("ignored, untracked", False, True),
        ("ignored", True, True),
    ],
)
def test_only_what_git_ignores_is_surely_no_work(world: World, why: str, bundled: bool, is_only: bool) -> None:  # noqa: FBT001
    store = put(world, OLD, why=why)
    if bundled:
        store.bundle.write_bytes(b"")
    assert is_only_copy(only(world)) is is_only
    put(world, YOUNG, why=why, failed=True)
    assert {one.run_id: is_only_copy(one) for one in read_rescued(opened(world), {})} == {OLD: is_only, YOUNG: True}
    (store.path / "manifest.json").unlink()
    assert {one.run_id: is_only_copy(one) for one in read_rescued(opened(world), {})} == {OLD: True, YOUNG: True}


def collect(
    world: World,
    bounds: Bounds,
    *,
    is_closed: Callable[[str], bool] | None = None,
    remote: bool = False,
    rehearsal: bool = False,
) -> tuple[list[str], dict[str, str]]:
    deletions: list[Deletion] = []
    kept: dict[str, str] = {}
    by = deleter(world, deletions, remote=remote, rehearsal=rehearsal)
    on_origin = rescue_refs(by.remote) if by.remote else {}
    collection = Collection(deleter=by, bounds=bounds, now=NOW, is_closed=is_closed, stayed=kept.__setitem__)
    assert collection.collect(read_rescued(by.launch, on_origin))
    return [each.what for each in deletions], kept


def test_what_is_old_goes_and_a_rehearsal_only_says_so(world: World) -> None:
    old, young = put(world, OLD), put(world, YOUNG)
    assert collect(world, Bounds(), rehearsal=True) == ([str(old.path)], {})
    assert old.path.exists()
    assert collect(world, Bounds()) == ([str(old.path)], {})
    assert (old.path.exists(), young.path.exists()) == (False, True)
    assert collect(world, Bounds()) == ([], {})


def test_too_much_goes_oldest_first_but_no_only_copy(world: World) -> None:
    reasons = {20: "untracked", 21: "ignored", 22: "ignored"}
    stores = [put(world, f"202607{day}T120000Z-0000000a", why=why, size=5000) for day, why in reasons.items()]
    gone, kept = collect(world, Bounds(size=11000))
    assert gone == [str(stores[1].path)]
    assert list(kept) == [stores[0].path.name]
    assert [one.path.exists() for one in stores] == [True, False, True]


def test_refs_go_when_they_are_old_and_their_pull_request_is_closed(world: World) -> None:
    old, there = put_ref(world, OLD), put_ref(world, OLD, "made", on_origin=True)
    young = put_ref(world, YOUNG, on_origin=True)
    asked: list[str] = []
    assert collect(world, Bounds(), remote=True) == ([], {})
    assert collect(world, Bounds(), remote=True, is_closed=lambda _: False) == ([], {})
    assert git(world.launch, "rev-parse", old)

    def is_closed(branch: str) -> bool:
        asked.append(branch)
        return True

    gone, _ = collect(world, Bounds(), remote=True, is_closed=is_closed)
    assert (gone, asked) == ([f"{there} on origin", f"{old} in this clone"], ["issue-7"])
    assert world.snapshot_refs() == [young]
    assert collect(world, Bounds(), remote=True, is_closed=is_closed) == ([], {})


def test_refs_of_a_branch_that_nothing_names_stay_and_are_said(world: World) -> None:
    git(world.launch, "update-ref", f"refs/nightkeep/rescue/{OLD}/head", "HEAD")
    assert collect(world, Bounds(), is_closed=lambda _: True) == (
        [],
        {
            OLD: "nothing here says of which branch its rescue refs are; once nobody needs them: "
            f"nightkeep rescue drop {OLD} --remote"
        },
    )


def test_an_interruption_stops_it_between_two_runs(world: World) -> None:
    store = put(world, OLD)
    by = deleter(world, [])
    by.launch.git.interruption.record(signal.SIGINT)
    collection = Collection(deleter=by, bounds=Bounds(), now=NOW, is_closed=None, stayed=lambda *_: None)
    collection.collect(read_rescued(by.launch))
    assert store.path.exists()


def test_one_runs_trouble_stops_no_other(world: World) -> None:
    moved, other = put_ref(world, OLD), put(world, "20260602T120000Z-0000000c")
    kept: dict[str, str] = {}
    by = deleter(world, [])
    found = read_rescued(by.launch)
    git(world.launch, "update-ref", moved, "HEAD")
    collection = Collection(deleter=by, bounds=Bounds(), now=NOW, is_closed=lambda _: True, stayed=kept.__setitem__)
    assert not collection.collect(found)
    assert list(kept) == [OLD]
    assert not other.path.exists()
