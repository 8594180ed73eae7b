"""A worktree is taken away: what is proven to be elsewhere goes, the rest is kept in the rescue store and named."""

import hashlib
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.worktree.permissions import bound_by_permissions
from tests.worktree.runs import (
    admin_of,
    aside,
    contents,
    create,
    gone,
    kept,
    kept_locally,
    local_rescue_refs,
    manifest,
    origin_has,
    origin_refs,
    reasons,
    records,
    rescue_ref,
    store_of,
    stored,
)
from tests.world import World, commit, git, make_world
from worktree import Limits, Preserved, Worktree, WorktreeError
from worktree.proof import REPOSITORY

_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"


def test_a_run_that_pushed_all_its_work_leaves_nothing_behind(world: World) -> None:
    with create(world) as wt:
        (wt.path / "n.txt").write_text("new\n")
        (wt.path / "empty").mkdir()
        assert wt.settle("Add n") == ()
        assert wt.push() == wt.head()
    assert gone(wt, world)
    assert (wt.ending.preserved, git(world.origin, "log", "-1", "--format=%s", "issue-7")) == (
        Preserved.ORIGIN,
        "Add n",
    )
    assert not git(world.launch, "for-each-ref", "refs/nightkeep")


def _ignored_file(wt: Worktree) -> None:
    (wt.path / "secret.env").write_text("k\n")


def _ignored_directory(wt: Worktree) -> None:
    (wt.path / "scratch").mkdir()
    (wt.path / "scratch" / "handoff.md").write_text("note\n")


def _ignored_clone(wt: Worktree) -> None:
    (wt.path / "scratch" / "x").mkdir(parents=True)
    git(wt.path / "scratch" / "x", "init", "-q")


def _clone_in_a_cache(wt: Worktree) -> None:
    _ignored_clone(wt)
    (wt.path / "scratch" / "CACHEDIR.TAG").write_text(_TAG)


def _false_cache(wt: Worktree) -> None:
    (wt.path / "__pycache__").mkdir()
    (wt.path / "__pycache__" / "notes.txt").write_text("note\n")


def _link_to_a_cache(wt: Worktree) -> None:
    outside = wt.path.with_name("outside")
    outside.mkdir()
    (outside / "CACHEDIR.TAG").write_text(_TAG)
    (wt.path / "scratch").symlink_to(outside)
    (wt.path / ".gitignore").write_text("scratch\n")
    commit(wt.path, "ignore the link")
    wt.push()


def _untracked(wt: Worktree) -> None:
    (wt.path / "-n \n\udcff").write_text("new\n")


def _edited(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("edited\n")


def _deleted(wt: Worktree) -> None:
    (wt.path / "a.txt").unlink()


def _staged(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("edited\n")
    git(wt.path, "add", "a.txt")


def _staged_then_reverted(wt: Worktree) -> None:
    _staged(wt)
    (wt.path / "a.txt").write_text("a\n")


def _assume_unchanged(wt: Worktree) -> None:
    git(wt.path, "update-index", "--assume-unchanged", "a.txt")
    (wt.path / "a.txt").write_text("edited\n")


def _skip_worktree(wt: Worktree) -> None:
    git(wt.path, "update-index", "--skip-worktree", "a.txt")
    (wt.path / "a.txt").write_text("edited\n")


def _same_size_and_time(wt: Worktree) -> None:
    for key, value in {"core.trustctime": "false", "core.checkStat": "minimal"}.items():
        git(wt.path, "config", key, value)
    file = wt.path / "a.txt"
    old = file.stat().st_mtime - 100
    os.utime(file, (old, old))
    git(wt.path, "update-index", "--refresh")
    time.sleep(1.1)  # git compares the time of the change in whole seconds
    file.write_text("z\n")
    os.utime(file, (old, old))


def _same_in_every_way(wt: Worktree) -> None:
    """An edit of the same size in the same moment in which git looked."""
    old = (wt.path / "a.txt").stat()
    (wt.path / "a.txt").write_text("z\n")
    _give_index_the_times(wt, old, (wt.path / "a.txt").stat())


def _give_index_the_times(wt: Worktree, old: os.stat_result, new: os.stat_result) -> None:
    index = admin_of(wt) / "index"
    content = index.read_bytes()[:-20].replace(_first_fields(old), _first_fields(new))
    assert _first_fields(new) in content
    index.write_bytes(content + hashlib.sha1(content, usedforsecurity=False).digest())
    os.utime(index, ns=(new.st_mtime_ns, new.st_mtime_ns))


def _first_fields(status: os.stat_result) -> bytes:
    """Return what an index entry begins with."""
    times = (*divmod(status.st_ctime_ns, 10**9), *divmod(status.st_mtime_ns, 10**9))
    return struct.pack(">6I", *times, status.st_dev & 0xFFFFFFFF, status.st_ino & 0xFFFFFFFF)


def _link_with_the_times_of_another(wt: Worktree) -> None:
    (wt.path / "a.txt").unlink()
    (wt.path / "a.txt").symlink_to("one")
    commit(wt.path, "link")
    old = (wt.path / "a.txt").lstat()
    (wt.path / "a.txt").unlink()
    (wt.path / "a.txt").symlink_to("two")
    _give_index_the_times(wt, old, (wt.path / "a.txt").lstat())


def _to_be_added(wt: Worktree) -> None:
    (wt.path / "empty.txt").touch()
    git(wt.path, "add", "--intent-to-add", "empty.txt")


def _executable(wt: Worktree) -> None:
    (wt.path / "a.txt").chmod(0o755)


def _fifo(wt: Worktree) -> None:
    os.mkfifo(wt.path / "pipe")


def _fifo_deep(wt: Worktree) -> None:
    (wt.path / "deep").mkdir()
    os.mkfifo(wt.path / "deep" / "pipe")


def _nested_repository(wt: Worktree) -> None:
    git(wt.path, "init", "-q", "app")


def _pushed_gitlink(wt: Worktree) -> None:
    git(wt.path, "init", "-q", "app")
    (wt.path / "app" / "code.txt").write_text("code\n")
    commit(wt.path / "app", "inside")
    commit(wt.path, "gitlink")
    wt.push()


def _hidden_git_directory(wt: Worktree) -> None:
    (wt.path / "deep" / ".git").mkdir(parents=True)
    (wt.path / "deep" / ".git" / "notes").write_text("git never lists this\n")


def _worktree_inside(wt: Worktree) -> None:
    git(wt.path, "worktree", "add", "-q", "--detach", "scratch/inner")


def _on_another_branch(wt: Worktree) -> None:
    git(wt.path, "checkout", "-q", "-b", "other")


def _detached(wt: Worktree) -> None:
    git(wt.path, "checkout", "-q", "--detach")


def _amended(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("first\n")
    commit(wt.path, "first")
    (wt.path / "a.txt").write_text("second\n")
    git(wt.path, "commit", "-q", "-a", "--amend", "-m", "second")
    wt.push()


def _reset_away(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("first\n")
    commit(wt.path, "first")
    git(wt.path, "reset", "-q", "--hard", "HEAD^")


def _reset_away_without_reflogs(wt: Worktree) -> None:
    git(wt.path, "config", "core.logAllRefUpdates", "false")
    _reset_away(wt)


def _detached_and_back(wt: Worktree) -> None:
    _detached(wt)
    (wt.path / "n.txt").write_text("elsewhere\n")
    commit(wt.path, "elsewhere")
    git(wt.path, "checkout", "-q", "issue-7")


def _unpushed(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("first\n")
    commit(wt.path, "first")


def _own_ref(wt: Worktree) -> None:
    """A commit that HEAD never named."""
    (wt.path / "a.txt").write_text("first\n")
    git(wt.path, "add", "a.txt")
    made = git(wt.path, "commit-tree", git(wt.path, "write-tree"), "-p", "HEAD", "-m", "first")
    git(wt.path, "update-ref", "refs/worktree/mine", made)
    git(wt.path, "reset", "-q", "--hard")


def _own_ref_to_a_blob(wt: Worktree) -> None:
    (wt.path / "secret.env").write_text("only here\n")
    git(wt.path, "update-ref", "refs/worktree/mine", git(wt.path, "hash-object", "-w", "secret.env"))


def _bisecting(wt: Worktree) -> None:
    git(wt.path, "bisect", "start")
    git(wt.path, "bisect", "bad")


def _relocked(wt: Worktree) -> None:
    git(wt.path, "worktree", "unlock", str(wt.path))
    git(wt.path, "worktree", "lock", "--reason", "a person's", str(wt.path))


def _unlocked(wt: Worktree) -> None:
    git(wt.path, "worktree", "unlock", str(wt.path))


def _dot_git_link(wt: Worktree) -> None:
    (wt.path / ".git").rename(wt.path.with_name("link"))
    (wt.path / ".git").symlink_to(wt.path.with_name("link"))


def _dot_git_elsewhere(wt: Worktree) -> None:
    (wt.path / ".git").write_text(f"gitdir: {wt.launch / '.git'}\n")


def _submodule_store(wt: Worktree) -> None:
    """A submodule that is not in the tree any more, with a commit that nobody else has."""
    git(wt.path, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(wt.launch), "lib")
    (wt.path / "lib" / "a.txt").write_text("only here\n")
    commit(wt.path / "lib", "only here")
    commit(wt.path, "submodule")
    git(wt.path, "submodule", "deinit", "-q", "--force", "lib")
    git(wt.path, "rm", "-q", "lib")
    commit(wt.path, "no submodule")
    wt.push()


def _conflict_without_an_operation(wt: Worktree) -> None:
    git(wt.path, "checkout", "-q", "-b", "side")
    (wt.path / "a.txt").write_text("theirs\n")
    commit(wt.path, "theirs")
    git(wt.path, "checkout", "-q", "issue-7")
    (wt.path / "a.txt").write_text("ours\n")
    commit(wt.path, "ours")
    git(wt.path, "merge", "--squash", "side", check=False)


def _merging(wt: Worktree) -> None:
    git(wt.path, "checkout", "-q", "-b", "side")
    (wt.path / "n.txt").write_text("n\n")
    commit(wt.path, "side")
    git(wt.path, "checkout", "-q", "issue-7")
    git(wt.path, "merge", "-q", "--no-ff", "--no-commit", "side")


def _unreadable_index(wt: Worktree) -> None:
    (admin_of(wt) / "index").write_bytes(b"garbage")


def _no_head_log(wt: Worktree) -> None:
    (admin_of(wt) / "logs" / "HEAD").unlink()


def _named(value: object) -> str:
    return str(getattr(value, "__name__", "")).strip("_")


_CHANGED = "changes in no commit on origin"
_DELETED = "deleted, in no commit on origin"
_UNLISTED = "git does not list it, or it appeared or changed at the last moment"


@pytest.mark.parametrize(
    ("act", "entry", "why"),
    [
        (_ignored_file, "secret.env", "ignored"),
        (_ignored_directory, "scratch", "ignored"),
        (_ignored_clone, "scratch", "ignored"),
        (_clone_in_a_cache, "scratch", "ignored"),
        (_false_cache, "__pycache__", "ignored"),
        (_link_to_a_cache, "scratch", "ignored"),
        (_untracked, "-n \n\udcff", "untracked"),
        (_edited, "a.txt", _CHANGED),
        (_staged, "a.txt", _CHANGED),
        (_assume_unchanged, "a.txt", _CHANGED),
        (_skip_worktree, "a.txt", _CHANGED),
        (_same_size_and_time, "a.txt", _CHANGED),
        (_same_in_every_way, "a.txt", _CHANGED),
        (_link_with_the_times_of_another, "a.txt", _CHANGED),
        (_to_be_added, "empty.txt", _CHANGED),
        (_executable, "a.txt", _CHANGED),
        (_fifo, "pipe", _UNLISTED),
        (_fifo_deep, "deep", _UNLISTED),
        (_nested_repository, "app", f"untracked, {REPOSITORY}"),
        (_pushed_gitlink, "app", "a submodule, whose work no commit here carries"),
        (_hidden_git_directory, "deep", _UNLISTED),
    ],
    ids=_named,
)
def test_what_nothing_else_holds_is_kept_whole_in_the_store(
    world: World, act: Callable[[Worktree], None], entry: str, why: str
) -> None:
    with create(world) as wt:
        act(wt)
        before = contents(wt.path, entry)
    assert gone(wt, world)
    assert before
    assert contents(stored(world, wt)) == before
    assert reasons(world, wt) == {entry: why}
    assert ("kept on this machine", f"{ascii(entry)[1:-1]} ({why}) in {store_of(world, wt)}") in wt.ending.places
    assert wt.ending.preserved is Preserved.MACHINE
    assert wt.ending.why == "everything in it is on origin or kept on this machine"


@pytest.mark.parametrize("staged", [False, True])
def test_a_deletion_is_named(world: World, *, staged: bool) -> None:
    with create(world) as wt:
        _deleted(wt)
        if staged:
            git(wt.path, "add", "-A")
    assert gone(wt, world)
    assert contents(stored(world, wt)) == {}
    assert reasons(world, wt) == {"a.txt": _DELETED}


@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
@pytest.mark.parametrize(
    ("act", "content"),
    [
        (_amended, "first\n"),
        (_reset_away, "first\n"),
        (_reset_away_without_reflogs, "first\n"),
        (_detached_and_back, "elsewhere\n"),
        (_unpushed, "first\n"),
        (_own_ref, "first\n"),
    ],
    ids=_named,
)
def test_commits_that_only_the_worktree_named_get_a_ref(
    world: World, act: Callable[[Worktree], None], content: str, *, fails: bool
) -> None:
    with create(world) as wt:
        act(wt)
        if fails:
            wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert (origin_has(world, content), kept_locally(world, content)) == (fails, not fails)
    assert wt.ending.preserved is (Preserved.ORIGIN if fails else Preserved.MACHINE)
    if fails:
        assert not local_rescue_refs(world)
    else:
        made = git(world.launch, "rev-parse", rescue_ref(wt, "made"))
        assert ("made", f"{rescue_ref(wt, 'made')} at {made} in {world.launch / '.git'}") in wt.ending.places


@pytest.mark.parametrize("act", [_amended, _unpushed], ids=_named)
def test_commits_that_only_this_machine_holds_are_in_a_pack(world: World, act: Callable[[Worktree], None]) -> None:
    packs = world.launch / ".git" / "objects" / "pack"
    with create(world) as wt:
        act(wt)
    made = git(world.launch, "rev-parse", f"{rescue_ref(wt, 'made')}:a.txt")
    assert made in git(world.launch, "verify-pack", "-v", *map(str, packs.glob("*.idx")))


@pytest.mark.parametrize("act", [_on_another_branch, _detached, _bisecting], ids=_named)
def test_where_head_is_does_not_matter_when_nothing_was_made(world: World, act: Callable[[Worktree], None]) -> None:
    before = origin_refs(world)
    with create(world) as wt:
        act(wt)
    assert gone(wt, world)
    assert not local_rescue_refs(world)
    assert (origin_refs(world), wt.ending.preserved) == (before, Preserved.NOTHING_MADE)


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (_staged_then_reverted, "its index holds what no commit on origin has"),
        (_conflict_without_an_operation, "it has unresolved conflicts: a.txt"),
        (_merging, "a merge is unfinished in it"),
        (_worktree_inside, "another worktree is in it: "),
        (_relocked, "its lock is not ours: a person's"),
        (_unlocked, "its lock was taken away"),
        (_dot_git_link, "its .git was replaced or removed"),
        (_dot_git_elsewhere, "its .git was replaced or removed"),
        (_own_ref_to_a_blob, "its own ref refs/worktree/mine names no commit"),
        (_unreadable_index, "it could not be told"),
        (_no_head_log, "it could not be told"),
    ],
    ids=_named,
)
def test_what_cannot_be_told_or_taken_apart_makes_the_worktree_stay(
    world: World, act: Callable[[Worktree], None], why: str
) -> None:
    with create(world) as wt:
        act(wt)
        before = contents(wt.path)
    assert kept(wt, world)
    assert why in wt.ending.why
    assert contents(wt.path) == before
    assert wt.ending.preserved is Preserved.MACHINE
    assert str(wt.path) in str(wt.ending)
    assert not store_of(world, wt).exists()


def test_the_object_store_of_a_submodule_is_kept(world: World) -> None:
    with create(world) as wt:
        _submodule_store(wt)
        only = git(admin_of(wt) / "modules" / "lib", "rev-parse", "HEAD")
    assert gone(wt, world)
    store = store_of(world, wt)
    assert git(store / "modules" / "lib", "--git-dir=.", "show", f"{only}:a.txt") == "only here"
    ((_, where),) = [place for place in wt.ending.places if place[0] == "kept on this machine"]
    assert "object stores of submodules" in where
    assert where.endswith(f" in {store}")


def test_the_object_store_of_a_submodule_counts(world: World) -> None:
    with create(world) as wt:
        _submodule_store(wt)
    assert wt.ending.preserved is Preserved.MACHINE
    assert wt.ending.why == "everything in it is on origin or kept on this machine"


@pytest.mark.parametrize("act", [_assume_unchanged, _skip_worktree])
def test_edits_that_git_is_told_to_overlook_are_kept(world: World, act: Callable[[Worktree], None]) -> None:
    with create(world) as wt:
        act(wt)
        before = contents(wt.path, "a.txt")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert contents(stored(world, wt)) == before


@pytest.mark.parametrize(("act", "mode"), [(_executable, "100755"), (_same_size_and_time, "100644")])
def test_edits_that_are_easily_overlooked_are_on_origin(
    world: World, act: Callable[[Worktree], None], mode: str
) -> None:
    with create(world) as wt:
        act(wt)
        content = (wt.path / "a.txt").read_bytes()
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert origin_has(world, content)
    assert git(world.origin, "ls-tree", "issue-7", "a.txt").startswith(mode)


def test_a_fake_cache_tag_proves_nothing(world: World) -> None:
    with create(world) as wt:
        (wt.path / "scratch").mkdir()
        (wt.path / "scratch" / "CACHEDIR.TAG").write_text("Signature: another\n")
        (wt.path / "scratch" / "note").write_text("n")
        before = contents(wt.path, "scratch")
    assert gone(wt, world)
    assert contents(stored(world, wt)) == before


@pytest.fixture
def world_in_memory() -> Iterator[World]:
    """A world on a file system that lists the newest entries of a directory first."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:
        yield make_world(Path(root))


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no file system in memory")
def test_what_makes_a_directory_a_cache_may_be_listed_before_it(world_in_memory: World) -> None:
    world = world_in_memory
    (world.launch / ".gitignore").write_text("node_modules/\n")
    (world.launch / "package.json").write_text("{}\n")
    commit(world.launch, "package")
    git(world.launch, "push", "-q", "origin", "main")
    with create(world) as wt:
        (wt.path / "node_modules" / "x").mkdir(parents=True)
        (wt.path / "node_modules" / "x" / "package.json").write_text("{}\n")
        (wt.path / "new.json").write_text("{}\n")
        (wt.path / "new.json").rename(wt.path / "package.json")
    assert gone(wt, world)
    assert not store_of(world, wt).exists()


def test_what_git_has_an_older_version_of_is_no_cache(world: World) -> None:
    (world.launch / ".gitignore").unlink()
    (world.launch / "__pycache__").mkdir()
    for name in ("a", "b"):
        (world.launch / "__pycache__" / f"{name}.pyc").write_text(name)
    commit(world.launch, "bytecode")
    git(world.launch, "push", "-q", "origin", "main")
    with create(world) as wt:
        (wt.path / "__pycache__" / "a.pyc").write_text("edited")
    assert gone(wt, world)
    assert contents(stored(world, wt)).keys() == {"__pycache__", "__pycache__/a.pyc"}


@pytest.mark.parametrize("tracked", [True, False])
def test_a_directory_of_any_depth_is_taken_apart_or_kept(world: World, *, tracked: bool) -> None:
    with create(world) as wt:
        deep = wt.path
        for _ in range(600):
            deep /= "d"
            deep.mkdir()
        (deep / "f.txt").write_text("f\n")
        if tracked:
            commit(wt.path, "deep")
            wt.push()
    assert gone(wt, world)
    assert store_of(world, wt).exists() is not tracked
    if not tracked:
        assert (stored(world, wt) / deep.relative_to(wt.path) / "f.txt").read_text() == "f\n"


def test_what_was_copied_in_goes_and_what_was_changed_of_it_stays(world: World) -> None:
    (world.launch / ".worktreeinclude").write_text("scratch/\n")
    (world.launch / "scratch" / "deep").mkdir(parents=True)
    (world.launch / "scratch" / "deep" / "same").write_text("same\n")
    (world.launch / "scratch" / "link").symlink_to("deep")
    for name in ("edited", "executable"):
        (world.launch / "scratch" / name).write_text("a person's\n")
    with create(world) as wt:
        (wt.path / "scratch" / "edited").write_text("an agent's\n")
        (wt.path / "scratch" / "executable").chmod(0o755)
        (wt.path / "scratch" / "new").write_text("new\n")
        before = contents(wt.path, "scratch")
    assert gone(wt, world)
    left = ["scratch", "scratch/edited", "scratch/executable", "scratch/new"]
    assert contents(stored(world, wt)) == {name: before[name] for name in left}
    assert (world.launch / "scratch" / "deep" / "same").read_text() == "same\n"
    assert (world.launch / "scratch" / "link").readlink() == Path("deep")


def test_only_what_was_copied_in_leaves_no_trace(world: World) -> None:
    (world.launch / ".worktreeinclude").write_text("*.env\n")
    (world.launch / "secret.env").write_text("k\n")
    with create(world) as wt:
        assert (wt.path / "secret.env").read_text() == "k\n"
    assert gone(wt, world)
    assert not store_of(world, wt).exists()
    assert (wt.ending.places, wt.ending.preserved) == ((), Preserved.NOTHING_MADE)


def test_a_clone_of_what_the_launch_directory_has_stays_whole(world: World) -> None:
    theirs = world.launch / "scratch" / "x"
    theirs.mkdir(parents=True)
    git(theirs, "init", "-q")
    (theirs / "code.txt").write_text("code\n")
    commit(theirs, "inside")
    with create(world) as wt:
        (wt.path / "scratch").mkdir()
        git(wt.path / "scratch", "clone", "-q", str(theirs), "x")
        made = git(wt.path / "scratch" / "x", "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "an agent's")
        git(wt.path / "scratch" / "x", "update-ref", "HEAD", made)
    assert gone(wt, world)
    nested = stored(world, wt) / "scratch" / "x"
    assert git(nested, "--git-dir=.git", "rev-parse", "HEAD") == made


def _with_submodule(world: World) -> None:
    library = world.launch.with_name("library")
    git(library.parent, "init", "-q", str(library))
    (library / "lib.txt").write_text("library\n")
    commit(library, "library")
    git(world.launch, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    commit(world.launch, "submodule")
    git(world.launch, "push", "-q", "origin", "main")


def test_the_directory_of_a_submodule_that_nobody_wanted_goes(world: World) -> None:
    _with_submodule(world)
    with create(world) as wt:
        assert (wt.path / "lib").is_dir()
    assert gone(wt, world)
    assert not store_of(world, wt).exists()


@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
def test_a_submodule_in_use_is_kept_with_its_object_store(world: World, *, fails: bool) -> None:
    _with_submodule(world)
    with create(world) as wt:
        git(wt.path, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
        (wt.path / "lib" / "lib.txt").write_text("edited\n")
        before = contents(wt.path, "lib")
        if fails:
            wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert contents(stored(world, wt)) == before
    assert (store_of(world, wt) / "modules" / "lib" / "HEAD").exists()


def test_links_are_unlinked_and_never_followed(world: World) -> None:
    outside = world.launch.with_name("outside")
    outside.mkdir()
    (outside / "precious.txt").write_text("precious\n")
    with create(world) as wt:
        (wt.path / "to-directory").symlink_to(outside)
        (wt.path / "broken").symlink_to("nowhere")
        (wt.path / "loop").symlink_to(".")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert (outside / "precious.txt").read_text() == "precious\n"
    assert git(world.origin, "ls-tree", "issue-7", "to-directory").startswith("120000")


def test_a_tracked_directory_replaced_by_a_link_is_not_followed(world: World) -> None:
    outside = world.launch.with_name("outside")
    outside.mkdir()
    (outside / "f.txt").write_text("same\n")
    with create(world) as wt:
        (wt.path / "d").mkdir()
        (wt.path / "d" / "f.txt").write_text("same\n")
        wt.settle("Add d")
        wt.push()
        (wt.path / "d" / "f.txt").unlink()
        (wt.path / "d").rmdir()
        (wt.path / "d").symlink_to(outside)
    assert gone(wt, world)
    assert contents(stored(world, wt)).keys() == {"d"}
    assert (stored(world, wt) / "d").readlink() == outside
    assert reasons(world, wt) == {"d": f"{_CHANGED}, untracked", "d/f.txt": _DELETED}
    assert (outside / "f.txt").read_text() == "same\n"


_LATE = """
import pathlib, sys
top = pathlib.Path(sys.argv[1])
print("ready", flush=True)
while not top.exists() or (top / "many" / sys.argv[2]).exists():
    pass
(top / "many" / "late.txt").write_text("late")
"""


def test_a_file_that_appears_during_the_removal_survives_it(world: World) -> None:
    with create(world) as wt:
        (wt.path / "many").mkdir()
        for number in range(3000):
            (wt.path / "many" / f"{number:04}").write_text("x")
        wt.settle("Add many")
        wt.push()
        first = os.listdir(wt.path / "many")[0]  # noqa: PTH208 - the order of the removal
        command = [sys.executable, "-c", _LATE, str(aside(wt)), first]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    assert writer.wait(10) == 0
    writer.stdout.close()
    assert gone(wt, world)
    assert (stored(world, wt) / "many" / "late.txt").read_text() == "late"
    assert contents(stored(world, wt)).keys() == {"many", "many/late.txt"}
    assert reasons(world, wt) == {"many": "untracked"}


# Git turns a file's stored text back into its own by this, which is asked for after everything was looked at.
_SMUDGE = """#!/bin/sh
case $(pwd) in *.removing)
    printf 'late\\n' >late.txt
    printf 'b again\\n' >b.txt
    printf 'more\\n' >>shout.txt
esac
tr A-Z a-z
"""


def test_what_changes_between_the_proof_and_the_removal_survives(world: World, tmp_path: Path) -> None:
    smudge = tmp_path / "smudge"
    smudge.write_text(_SMUDGE)
    smudge.chmod(0o755)
    git(world.launch, "config", "filter.shout.clean", "tr a-z A-Z")
    git(world.launch, "config", "filter.shout.smudge", str(smudge))
    with create(world) as wt:
        (wt.path / ".gitattributes").write_text("shout.txt filter=shout\n")
        (wt.path / "shout.txt").write_text("loud\n")
        wt.settle("Shout")
        wt.push()
    assert gone(wt, world)
    tree = stored(world, wt)
    assert {path.name: path.read_text() for path in tree.iterdir()} == {
        "late.txt": "late\n",
        "b.txt": "b again\n",
        "shout.txt": "loud\nmore\n",
    }
    assert reasons(world, wt)["late.txt"] == "untracked"


@pytest.mark.parametrize("what", ["directory", "file", "link"])
def test_what_is_in_the_way_of_the_removal_is_left_alone(world: World, what: str) -> None:
    with create(world) as wt:
        match what:
            case "directory":
                aside(wt).mkdir()
            case "file":
                aside(wt).write_text("a person's\n")
            case _:
                aside(wt).symlink_to("nowhere")
        before = aside(wt).lstat()
    assert wt.ending.kept
    assert f"{aside(wt)} is in the way" in wt.ending.why
    assert (wt.path / "a.txt").exists()
    assert (aside(wt).lstat().st_ino, aside(wt).lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_directory_that_cannot_be_renamed_stays(world: World) -> None:
    parent = world.launch.parent

    def run() -> Worktree:
        with create(world) as wt:
            (wt.path / "secret.env").write_text("k\n")
            parent.chmod(0o555)
        return wt

    wt = bound_by_permissions(run)
    parent.chmod(0o755)
    assert kept(wt, world)
    assert "Permission denied" in wt.ending.why
    assert (wt.path / "secret.env").read_text() == "k\n"


def test_a_store_that_takes_nothing_makes_the_worktree_stay(world: World) -> None:
    with create(world) as wt:
        (wt.path / "secret.env").write_text("k\n")
        (world.launch / ".git" / "nightkeep" / "rescue").write_text("in the way\n")
    assert kept(wt, world)
    assert (wt.path / "secret.env").read_text() == "k\n"
    assert git(wt.path, "status", "--porcelain") == ""
    assert wt.ending.preserved is Preserved.MACHINE


def test_a_file_that_cannot_be_unlinked_is_kept_with_the_rest(world: World) -> None:
    def run() -> Worktree:
        with create(world) as wt:
            (wt.path / "closed").mkdir()
            (wt.path / "closed" / "f.txt").write_text("f\n")
            commit(wt.path, "closed")
            wt.push()
            (wt.path / "closed").chmod(0o555)
        return wt

    wt = bound_by_permissions(run)
    assert gone(wt, world)
    assert (stored(world, wt) / "closed" / "f.txt").read_text() == "f\n"
    (stored(world, wt) / "closed").chmod(0o755)


def test_an_empty_directory_is_kept_and_counts_for_nothing(world: World) -> None:
    with create(world) as wt:
        (wt.path / "empty" / "deep").mkdir(parents=True)
    assert gone(wt, world)
    assert contents(stored(world, wt)).keys() == {"empty", "empty/deep"}
    assert reasons(world, wt) == {"empty": "an empty directory"}
    assert wt.ending.preserved is Preserved.NOTHING_MADE


def test_the_manifest_says_whose_it_was(world: World) -> None:
    with create(world) as wt:
        (wt.path / "secret.env").write_text("k\n")
        head = wt.head()
    said = manifest(world, wt)
    assert (said.run_id, said.branch, said.path, said.head) == (wt.run_id, "issue-7", str(wt.path), head)


def test_a_clone_that_keeps_no_reflogs_is_cleaned_up_as_well(world: World) -> None:
    git(world.launch, "config", "core.logAllRefUpdates", "false")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)


def test_a_stash_of_the_agents_survives_in_the_clone(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("stashed\n")
        git(wt.path, "stash")
    assert git(world.launch, "show", "stash@{0}:a.txt") == "stashed"


def test_left_overs_of_a_session_that_committed_are_in_a_snapshot(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("done\n")
        commit(wt.path, "done")
        (wt.path / "left.txt").write_text("left over\n")
        assert wt.settle("x") == ("left.txt",)
        wt.push()
    (ref,) = world.snapshot_refs()
    assert world.origin_file(ref, "left.txt") == "left over"
    assert "left.txt" not in git(world.origin, "ls-tree", "--name-only", "issue-7")
    assert gone(wt, world)


def test_left_overs_that_changed_after_the_snapshot_are_kept(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("done\n")
        commit(wt.path, "done")
        (wt.path / "left.txt").write_text("left over\n")
        wt.settle("x")
        wt.push()
        (wt.path / "left.txt").write_text("left later\n")
    assert gone(wt, world)
    assert origin_has(world, "left over\n")
    assert contents(stored(world, wt)).keys() == {"left.txt"}
    assert (stored(world, wt) / "left.txt").read_text() == "left later\n"


def test_a_second_session_settles_against_the_first(world: World) -> None:
    with create(world) as wt:
        for number in ("1", "2"):
            (wt.path / "a.txt").write_text(number)
            assert wt.settle(f"Session {number}") == ()
            wt.push()
    assert git(world.origin, "log", "-2", "--format=%s", "issue-7") == "Session 2\nSession 1"
    assert gone(wt, world)


def test_what_the_private_directory_holds_is_kept_and_named(world: World) -> None:
    with create(world) as wt:
        (wt.private / "session-1").write_text("raw\n")
    assert not wt.path.exists()
    assert [(wt.private / "session-1").read_text()] == ["raw\n"]
    assert any(str(wt.private) in where for _, where in wt.ending.places)
    assert len(records(world)) == 1


def test_an_ending_is_there_only_afterwards(world: World) -> None:
    with create(world) as wt, pytest.raises(WorktreeError, match="only after"):
        _ = wt.ending
    assert str(wt.ending).startswith("cleaned up the worktree")


def test_leaving_raises_nothing_when_the_clone_is_gone(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        world.launch.rename(world.launch.with_name("moved"))
    assert (wt.ending.kept, wt.ending.head) == (True, None)
    assert (wt.path / "a.txt").read_text() == "edited\n"


def test_removal_waits_for_a_lock_that_vanishes(world: World) -> None:
    patient = Limits(lock=5)
    with create(world, limits=patient) as wt:
        lock = world.launch / ".git" / "refs" / "heads" / "issue-7.lock"
        lock.touch()
        releaser = subprocess.Popen(["sh", "-c", 'sleep 0.5; rm "$1"', "sh", str(lock)])
    assert releaser.wait(5) == 0
    assert gone(wt, world)


def test_a_branch_whose_lock_stays_is_not_deleted(world: World) -> None:
    with create(world):
        (world.launch / ".git" / "refs" / "heads" / "issue-7.lock").touch()
    (world.launch / ".git" / "refs" / "heads" / "issue-7.lock").unlink()
    assert git(world.launch, "branch", "--list", "issue-7")


def test_a_worktree_that_is_gone_is_not_said_to_be_there(world: World) -> None:
    lock = world.launch / ".git" / "refs" / "heads" / "issue-7.lock"
    with create(world) as wt:
        lock.touch()
    lock.unlink()
    assert not wt.path.exists()
    assert ("worktree", str(wt.path)) not in wt.ending.places
    assert any("issue-7" in where for _, where in wt.ending.places), "the branch that is left is named"


CONVERSIONS = {
    "mixed line ends": ("*.txt text=auto\n", "n.txt", b"one\r\ntwo\n"),
    "mixed crlf": ("*.txt eol=crlf\n", "n.txt", b"one\r\ntwo\n"),
    "crlf": ("*.txt eol=crlf\n", "n.txt", b"one\r\ntwo\r\n"),
    "keyword": ("*.txt ident\n", "n.txt", b"$Id: precious $\n"),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_bytes_that_git_converted_are_not_taken_for_safe(world: World, name: str) -> None:
    attributes, path, content = CONVERSIONS[name]
    with create(world) as wt:
        (wt.path / ".gitattributes").write_text(attributes)
        (wt.path / path).write_bytes(content)
        commit(wt.path, "n")
        wt.push()
    assert gone(wt, world)
    assert store_of(world, wt).exists() is not (name == "crlf"), wt.ending
    if name != "crlf":
        assert reasons(world, wt) == {path: "bytes that git has in another form only"}
        assert (stored(world, wt) / path).read_bytes() == content
