"""Repositories, submodules, links and special files inside a worktree: each is found again whole, and told of."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worktree.runs import (
    contents,
    create,
    gone,
    kept,
    names_on_origin,
    reasons,
    store_of,
    stored,
)
from tests.world import World, commit, git
from worktree import Preserved, Worktree


def _unborn(top: Path) -> None:
    git(top, "init", "-q")
    (top / "code.txt").write_text("code\n")


def _committed(top: Path) -> None:
    _unborn(top)
    commit(top, "inside")


def _edited(top: Path) -> None:
    _committed(top)
    (top / "code.txt").write_text("edited\n")
    (top / "new.txt").write_text("new\n")


def _named(value: object) -> str:
    return str(getattr(value, "__name__", value)).strip("_")


@pytest.mark.parametrize("place", ["app", "deep/er/app"])
@pytest.mark.parametrize("fill", [_unborn, _committed, _edited], ids=_named)
def test_a_repository_in_a_worktree_is_kept_whole_and_told_of(
    world: World, fill: Callable[[Path], None], place: str
) -> None:
    top = place.partition("/")[0]
    with create(world) as wt:
        (wt.path / place).mkdir(parents=True)
        fill(wt.path / place)
        (wt.path / "n.txt").write_text("new\n")
        before = contents(wt.path, top)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert world.origin_file("issue-7", "n.txt") == "new"
    assert contents(stored(world, wt)) == before
    ((_, where),) = [place for place in wt.ending.places if place[0] == "kept on this machine"]
    assert where.startswith(f"{top} (")


@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
def test_a_repository_does_not_come_to_origin_as_a_mere_pointer(world: World, *, fails: bool) -> None:
    with create(world) as wt:
        (wt.path / "app").mkdir()
        _committed(wt.path / "app")
        (wt.path / "n.txt").write_text("new\n")
        if fails:
            wt.preserve_failed_run("main", "x")
        else:
            wt.settle("x")
            wt.push()
    assert "commit app" not in git(world.origin, "ls-tree", "-r", "--format=%(objecttype) %(path)", "issue-7")


@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
def test_a_repository_is_told_of_as_one(world: World, *, fails: bool) -> None:
    with create(world) as wt:
        (wt.path / "deep" / "app").mkdir(parents=True)
        _committed(wt.path / "deep" / "app")
        if fails:
            wt.preserve_failed_run("main", "x")
    assert "repository" in reasons(world, wt)["deep"]


def _with_another_inside(world: World) -> Worktree:
    with create(world) as wt:
        git(wt.path, "worktree", "add", "-q", "--detach", "inner")
        (wt.path / "inner" / "a.txt").write_text("inner\n")
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "n.txt") == "new"
    return wt


def test_another_worktree_inside_makes_ours_stay_and_is_named(world: World) -> None:
    wt = _with_another_inside(world)
    assert kept(wt, world)
    assert f"another worktree is in it: {wt.path / 'inner'}" in wt.ending.why
    assert (wt.path / "inner" / "a.txt").read_text() == "inner\n"


def test_another_worktree_inside_is_not_staged(world: World) -> None:
    _with_another_inside(world)
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "b.txt", "n.txt"}


@pytest.fixture
def with_library(world: World) -> World:
    """A world whose main has a submodule."""
    library = world.launch.with_name("library")
    git(library.parent, "init", "-q", str(library))
    (library / "lib.txt").write_text("library\n")
    (library / ".gitignore").write_text("*.local\n")
    commit(library, "library")
    git(world.launch, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    commit(world.launch, "submodule")
    git(world.launch, "push", "-q", "origin", "main")
    return world


def _commits(top: Path) -> None:
    git(top, "checkout", "-q", "--detach")
    (top / "lib.txt").write_text("only here\n")
    commit(top, "only here")


def _edits(top: Path) -> None:
    (top / "lib.txt").write_text("edited\n")


def _ignores(top: Path) -> None:
    (top / "settings.local").write_text("ignored\n")


def _use(wt: Worktree, act: Callable[[Path], None]) -> None:
    git(wt.path, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
    act(wt.path / "lib")


@pytest.mark.parametrize("recorded", [False, True], ids=["alone", "recorded"])
@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
def test_a_commit_in_a_submodule_can_be_cloned_from_the_store(
    with_library: World, tmp_path: Path, *, fails: bool, recorded: bool
) -> None:
    with create(with_library) as wt:
        _use(wt, _commits)
        made = git(wt.path / "lib", "rev-parse", "HEAD")
        if recorded:
            commit(wt.path, "the submodule's new commit")
        before = contents(wt.path, "lib")
        if fails:
            wt.preserve_failed_run("main", "x")
    assert not wt.ending.kept
    assert contents(stored(with_library, wt)) == before
    git(tmp_path, "clone", "-q", str(store_of(with_library, wt) / "modules" / "lib"), "rescued")
    assert git(tmp_path / "rescued", "show", f"{made}:lib.txt") == "only here"
    assert wt.ending.preserved is Preserved.MACHINE


@pytest.mark.parametrize("act", [_edits, _ignores], ids=_named)
@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
def test_a_file_in_a_submodule_is_kept_with_it(
    with_library: World, act: Callable[[Path], None], *, fails: bool
) -> None:
    world = with_library
    with create(world) as wt:
        _use(wt, act)
        before = contents(wt.path, "lib")
        if fails:
            wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert contents(stored(world, wt)) == before


def test_what_is_kept_of_a_submodule_is_told_not_to_be_in_the_commit(with_library: World) -> None:
    with create(with_library) as wt:
        _use(wt, _commits)
        wt.preserve_failed_run("main", "x")
    assert "submodule" in reasons(with_library, wt)["lib"]


def test_a_submodule_that_nothing_was_done_in_does_not_make_the_worktree_stay(with_library: World) -> None:
    with create(with_library) as wt:
        _use(wt, lambda top: None)
    assert gone(wt, with_library)


_SPARSE = 3_000_000_000


@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
def test_everything_odd_at_once_in_an_ignored_directory_is_moved_as_it_is(world: World, *, fails: bool) -> None:
    outside = world.launch.with_name("outside")
    outside.mkdir()
    (outside / "precious.txt").write_text("precious\n")
    with create(world) as wt:
        scratch = wt.path / "scratch"
        (scratch / "x").mkdir(parents=True)
        _committed(scratch / "x")
        made = git(scratch / "x", "rev-parse", "HEAD")
        (scratch / "data").symlink_to(outside)
        (scratch / "parent").symlink_to("..")
        (scratch / "broken").symlink_to("nowhere")
        os.mkfifo(scratch / "pipe")
        os.mknod(scratch / "socket", stat.S_IFSOCK | 0o600)
        (scratch / "one").write_text("linked\n")
        os.link(scratch / "one", scratch / "two")
        with (scratch / "holes").open("wb") as holes:
            holes.truncate(_SPARSE)
        before = {path.name: path.lstat() for path in scratch.iterdir()}
        if fails:
            (wt.path / "n.txt").write_text("new\n")
            wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    kept_there = stored(world, wt) / "scratch"
    after = {path.name: path.lstat() for path in kept_there.iterdir()}
    assert {name: (it.st_mode, it.st_ino, it.st_size) for name, it in after.items()} == {
        name: (it.st_mode, it.st_ino, it.st_size) for name, it in before.items()
    }
    assert git(kept_there / "x", "--git-dir=.git", "show", f"{made}:code.txt") == "code"
    links = {name: str((kept_there / name).readlink()) for name in ("data", "parent", "broken")}
    assert links == {"data": str(outside), "parent": "..", "broken": "nowhere"}
    assert (after["one"].st_ino, after["one"].st_nlink) == (after["two"].st_ino, 2)
    assert after["holes"].st_blocks < 1000
    assert contents(outside) == {"precious.txt": (0o100644, b"precious\n")}
