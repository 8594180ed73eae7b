"""A worktree is taken away after proof, and retained for whatever origin does not hold."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.worktree.runs import admin_of, create, gone, kept, origin_has, records
from tests.world import World, commit, git
from worktree import Limits, Preserved, Worktree

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
    git(wt.path, "update-ref", "refs/worktree/mine", "HEAD")


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


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (_ignored_file, "ignored files: secret.env"),
        (_ignored_directory, "ignored files: scratch/"),
        (_ignored_clone, "ignored files: scratch/"),
        (_clone_in_a_cache, "scratch/"),
        (_false_cache, "ignored files: __pycache__/"),
        (_link_to_a_cache, "ignored files: scratch"),
        (_untracked, r"changes in no commit on origin: -n \n\udcff"),
        (_edited, "changes in no commit on origin: a.txt"),
        (_deleted, "changes in no commit on origin: a.txt"),
        (_staged, "changes in no commit on origin: the index"),
        (_staged_then_reverted, "changes in no commit on origin: a.txt"),
        (_assume_unchanged, "told not to look at: a.txt"),
        (_skip_worktree, "told not to look at: a.txt"),
        (_same_size_and_time, "a.txt"),
        (_executable, "a.txt"),
        (_fifo, "files that git does not list: pipe"),
        (_fifo_deep, "files that git does not list: deep/pipe"),
        (_nested_repository, "app/"),
        (_pushed_gitlink, "files that git does not list: app/"),
        (_hidden_git_directory, "files that git does not list: deep/.git/notes"),
        (_worktree_inside, "scratch/"),
        (_on_another_branch, "HEAD is on other, not on issue-7"),
        (_detached, "HEAD is on no branch, not on issue-7"),
        (_amended, "was made in it and is not known to be on origin"),
        (_reset_away, "was made in it and is not known to be on origin"),
        (_reset_away_without_reflogs, "was made in it and is not known to be on origin"),
        (_detached_and_back, "was made in it and is not known to be on origin"),
        (_unpushed, "was made in it and is not known to be on origin"),
        (_own_ref, "it has refs of its own"),
        (_bisecting, "it has refs of its own"),
        (_relocked, "its lock is not ours: a person's"),
        (_unlocked, "its lock was taken away"),
        (_dot_git_link, "its .git was replaced or removed"),
        (_dot_git_elsewhere, "its .git was replaced or removed"),
        (_submodule_store, "submodule"),
        (_merging, "a merge is unfinished in it"),
        (_unreadable_index, "it could not be told"),
        (_no_head_log, "it could not be told"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_what_origin_does_not_hold_makes_the_worktree_stay(
    world: World, act: Callable[[Worktree], None], why: str
) -> None:
    with create(world) as wt:
        act(wt)
        before = _state(wt)
    assert kept(wt, world)
    assert why in wt.ending.why
    assert _state(wt) == before
    assert wt.ending.preserved is Preserved.MACHINE
    assert str(wt.path) in str(wt.ending)


def _state(wt: Worktree) -> dict[str, bytes]:
    return {str(p): p.read_bytes() if p.is_file() else b"" for p in wt.path.rglob("*") if not p.is_fifo()}


@pytest.mark.parametrize("act", [_assume_unchanged, _skip_worktree])
def test_edits_that_git_is_told_to_overlook_are_kept(world: World, act: Callable[[Worktree], None]) -> None:
    with create(world) as wt:
        act(wt)
        content = (wt.path / "a.txt").read_bytes()
        wt.preserve_failed_run("main", "x")
    assert kept(wt, world)
    assert (wt.path / "a.txt").read_bytes() == content


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


@pytest.mark.parametrize("signed", ["CACHEDIR.TAG", "pyvenv.cfg", "package.json", "bytecode"])
def test_caches_that_prove_themselves_go_with_the_worktree(world: World, signed: str) -> None:
    (world.launch / ".gitignore").write_text("node_modules/\n__pycache__/\ncache/\n")
    (world.launch / "package.json").write_text("{}\n")
    commit(world.launch, "ignore")
    git(world.launch, "push", "-q", "origin", "main")
    name = {"package.json": "node_modules", "bytecode": "__pycache__"}.get(signed, "cache")
    with create(world) as wt:
        (wt.path / name).mkdir()
        (wt.path / name / "x.pyc").write_text("x")
        if name == "cache":
            (wt.path / name / signed).write_text(_TAG)
    assert gone(wt, world)


def test_a_fake_cache_tag_proves_nothing(world: World) -> None:
    with create(world) as wt:
        (wt.path / "scratch").mkdir()
        (wt.path / "scratch" / "CACHEDIR.TAG").write_text("Signature: another\n")
        (wt.path / "scratch" / "note").write_text("n")
    assert kept(wt, world)


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
    assert kept(wt, world)
    assert (outside / "f.txt").read_text() == "same\n"


_LATE = """
import pathlib, sys, time
top = pathlib.Path(sys.argv[1])
print("ready", flush=True)
while (top / "many" / sys.argv[2]).exists():
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
        writer = subprocess.Popen([sys.executable, "-c", _LATE, str(wt.path), first], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    assert writer.wait(10) == 0
    writer.stdout.close()
    assert (wt.path / "many" / "late.txt").read_text() == "late"
    assert wt.ending.kept
    assert "late.txt" in wt.ending.why


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
    assert kept(wt, world)


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
    with create(world) as wt, pytest.raises(Exception, match="only after"):
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
    with create(world) as wt:
        (world.launch / ".git" / "refs" / "heads" / "issue-7.lock").touch()
    (world.launch / ".git" / "refs" / "heads" / "issue-7.lock").unlink()
    assert wt.ending.kept
    assert git(world.launch, "branch", "--list", "issue-7")


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
    assert wt.ending.kept is not (name == "crlf"), wt.ending
    if wt.ending.kept:
        assert "n.txt" in wt.ending.why
        assert (wt.path / path).read_bytes() == content
