"""A worktree is acquired beside the clone, or nothing at all is made."""

import os
from pathlib import Path

import pytest

from tests.worktree.runs import IMPATIENT, create, gone, records, rescue_ref, resume, stored
from tests.world import World, commit, git
from worktree import AcquisitionError, GitError, Interrupted, Interruption, Launch, LaunchError, Origin, Worktree


def refused(world: World, launch: Path | None = None, *, branch: str = "issue-7", base: str = "main") -> str:
    """Try to create; return the error's text, having seen that nothing at all was made."""
    before = _everything(world)
    with pytest.raises(LaunchError) as caught:
        Worktree.create(launch or world.launch, branch=branch, base=base, interruption=Interruption())
    assert _everything(world) == before
    return str(caught.value)


def _everything(world: World) -> tuple[str, list[str], int]:
    refs = git(world.launch, "for-each-ref") if (world.launch / ".git").exists() else ""
    return refs, sorted(os.listdir(world.launch.parent)), len(records(world))  # noqa: PTH208 - names are all we need


def test_the_branch_starts_at_what_origin_holds_now(world: World) -> None:
    newer = git(world.origin, "commit-tree", "main^{tree}", "-p", "main", "-m", "newer")
    git(world.origin, "update-ref", "refs/heads/main", newer)
    head = git(world.launch, "rev-parse", "main")
    with create(world) as wt:
        assert (wt.head(), wt.branch, wt.launch, wt.head_beyond_base()) == (newer, "issue-7", world.launch, None)
        assert wt.path == world.launch.with_name("widget-issue-7")
        assert git(wt.path, "symbolic-ref", "HEAD") == "refs/heads/issue-7"
        assert git(world.launch, "rev-parse", "origin/main", "main").split() == [newer, head]
        assert not git(world.launch, "config", "--get-regexp", r"branch\.issue-7\.", check=False)
        assert f"locked nightkeep {wt.run_id}" in git(world.launch, "worktree", "list", "--porcelain")
    assert gone(wt, world)


def test_the_record_is_private_and_there_from_the_start(world: World) -> None:
    with create(world) as wt:
        (record,) = records(world)
        assert record == wt.private
        assert record.stat().st_mode & 0o077 == 0
        assert wt.run_id in (record / "record.json").read_text()


def test_a_continuation_goes_on_from_origin(world: World) -> None:
    with create(world) as first:
        (first.path / "a.txt").write_text("one\n")
        first.preserve_failed_run("main", "x")
    with resume(world) as wt:
        assert wt.head() == world.on_origin("issue-7")
        (wt.path / "b.txt").write_text("two\n")
        wt.preserve_failed_run("main", "y")
    subjects = git(world.origin, "log", "-2", "--format=%s", "issue-7")
    assert subjects == "nightkeep: failed run (y)\nnightkeep: failed run (x)"
    assert gone(wt, world)


def test_a_continuation_that_makes_nothing_adds_nothing(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "issue-7")
    (world.launch / "a.txt").write_text("one\n")
    made = commit(world.launch, "one")
    git(world.launch, "push", "-q", "origin", "issue-7")
    git(world.launch, "checkout", "-q", "main")
    with resume(world) as wt:
        assert wt.head() == made
        assert wt.on_origin == made
    assert not wt.path.exists()
    assert git(world.launch, "rev-parse", "issue-7") == made, "an equal branch of the person's stays"
    assert world.on_origin("issue-7") == made


def test_an_equal_branch_of_a_persons_that_is_checked_out_is_refused(world: World) -> None:
    git(world.launch, "push", "-q", "origin", "main:refs/heads/issue-7")
    git(world.launch, "checkout", "-q", "-b", "issue-7")
    before = _everything(world)
    with pytest.raises(LaunchError, match="already checked out"):
        resume(world)
    assert git(world.launch, "for-each-ref", "refs/heads") in before[0]
    assert records(world) == []


@pytest.mark.parametrize("how", ["create", "resume"])
def test_a_local_branch_in_the_way_is_left_alone_and_the_remedy_named(world: World, how: str) -> None:
    git(world.launch, "push", "-q", "origin", "main:refs/heads/issue-7")
    mine = git(world.launch, "commit-tree", "main^{tree}", "-p", "main", "-m", "mine")
    git(world.launch, "branch", "issue-7", mine)
    acquire = create if how == "create" else resume
    with pytest.raises(LaunchError, match=r"git branch -m issue-7"):
        acquire(world)
    assert git(world.launch, "rev-parse", "issue-7") == mine
    assert records(world) == []
    assert not world.launch.with_name("widget-issue-7").exists()


def test_a_base_branch_that_origin_lacks_is_refused(world: World) -> None:
    git(world.launch, "branch", "only-here")
    assert "branch only-here does not exist on origin" in refused(world, base="only-here")


def test_a_continuation_of_a_branch_that_origin_lacks_is_refused(world: World) -> None:
    with pytest.raises(LaunchError, match="branch issue-7 does not exist on origin"):
        resume(world)
    assert records(world) == []


@pytest.mark.parametrize("what", ["file", "directory", "full", "link"])
def test_an_occupied_path_is_left_alone_and_another_taken(world: World, what: str) -> None:
    wanted = world.launch.with_name("widget-issue-7")
    if what == "file":
        wanted.write_text("a person's\n")
    elif what == "link":
        wanted.symlink_to("nowhere")
    else:
        wanted.mkdir()
        if what == "full":
            (wanted / "n.txt").write_text("a person's\n")
    before = wanted.lstat()
    with create(world) as wt:
        assert wt.path == world.launch.with_name("widget-issue-7-2")
    assert gone(wt, world)
    assert (wanted.lstat().st_ino, wanted.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_two_runs_of_one_clone_do_not_meet(world: World) -> None:
    latch = Interruption()
    with (
        Worktree.create(world.launch, branch="issue-7", base="main", interruption=latch) as one,
        Worktree.create(world.launch, branch="issue-8", base="main", interruption=latch) as two,
    ):
        (one.path / "a.txt").write_text("seven\n")
        (two.path / "a.txt").write_text("eight\n")
        one.preserve_failed_run("main", "x")
        two.preserve_failed_run("main", "x")
    assert [world.origin_file(f"issue-{number}", "a.txt") for number in (7, 8)] == ["seven", "eight"]
    assert not one.path.exists()
    assert not two.path.exists()


@pytest.mark.parametrize("branch", ["feature/issue-7", "a/b/c", "ünï", "issue-7.x", "#7", "7"])
def test_branch_names_of_all_kinds(world: World, branch: str) -> None:
    with Worktree.create(world.launch, branch=branch, base="main", interruption=Interruption()) as wt:
        assert wt.path.parent == world.launch.parent
        (wt.path / "n.txt").write_text("n\n")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file(f"refs/heads/{branch}", "n.txt") == "n"
    assert gone(wt, world)


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "", "x.lock", "@{-1}", "refs/../x"])
def test_a_name_that_is_no_branch_name_makes_nothing(world: World, branch: str) -> None:
    before = _everything(world)
    with pytest.raises((GitError, LaunchError)):
        Worktree.create(world.launch, branch=branch, base="main", interruption=Interruption())
    assert _everything(world) == before


def test_a_branch_whose_name_is_a_folder_of_branches_makes_nothing(world: World) -> None:
    git(world.launch, "branch", "issue-7/part")
    with pytest.raises(LaunchError, match="git branch -m issue-7/part NAME"):
        create(world)
    assert records(world) == []
    assert not world.launch.with_name("widget-issue-7").exists()


def test_a_clone_whose_head_has_no_commit_yet(world: World) -> None:
    git(world.launch, "checkout", "-q", "--orphan", "nothing-yet")
    with create(world) as wt:
        assert wt.head() == world.on_origin("main")
    assert gone(wt, world)


def test_places_that_are_no_checkout_are_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert "is not a checkout" in refused(world, tmp_path / "plain")
    assert "is not a checkout" in refused(world, world.origin)
    assert "is not a checkout" in refused(world, world.launch / ".git")
    assert "is not a directory" in refused(world, tmp_path / "missing")
    broken = world.launch.rename(tmp_path / "in two\nlines")
    assert "has a line end in its path" in refused(world, broken)
    broken.rename(world.launch)
    assert "is not a directory" in refused(world, world.launch / "a.txt")


def test_a_clone_without_origin_is_refused_with_the_remedy(world: World) -> None:
    git(world.launch, "remote", "rename", "origin", "upstream")
    assert "git remote add origin" in refused(world)


def test_an_origin_that_cannot_be_reached_is_an_error_and_makes_nothing(world: World) -> None:
    world.take_origin_away()
    with pytest.raises(GitError, match=r"origin\.git"):
        create(world)
    assert records(world) == []


@pytest.mark.parametrize("url", ["../origin.git", "./../origin.git", "file"])
def test_ways_to_write_a_local_origin(world: World, url: str) -> None:
    shown = f"file://{world.origin}" if url == "file" else url
    git(world.launch, "remote", "set-url", "origin", shown)
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "a.txt") == "edited"


def test_a_url_that_is_rewritten_by_the_persons_configuration(world: World) -> None:
    git(world.launch, "config", "--global", f"url.{world.origin.parent}/.insteadOf", "work:")
    git(world.launch, "remote", "set-url", "origin", "work:origin.git")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)


def test_a_given_origin_is_used_in_place_of_the_clones(world: World) -> None:
    git(world.launch, "remote", "set-url", "origin", "/nonexistent")
    origin = Origin(str(world.origin))
    with Worktree.create(world.launch, branch="issue-7", base="main", interruption=Interruption(), origin=origin) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)


def test_a_run_may_start_in_a_subdirectory_or_a_linked_worktree(world: World, tmp_path: Path) -> None:
    (world.launch / "sub").mkdir()
    linked = tmp_path / "deep" / "linked"
    git(world.launch, "worktree", "add", "-q", "--detach", str(linked))
    for launch, sibling in ((world.launch / "sub", "widget-issue-7"), (linked, "deep/linked-issue-7")):
        with Worktree.create(launch, branch="issue-7", base="main", interruption=Interruption()) as wt:
            assert wt.path == tmp_path / sibling
            (wt.path / "a.txt").write_text("edited\n")
            git(wt.path, "add", ".")
        assert not wt.ending.kept
        assert not wt.path.exists()
        assert not git(world.launch, "branch", "--list", "issue-7")
        assert (stored(world, wt) / "a.txt").read_text() == "edited\n"


def test_a_shallow_clone(world: World, tmp_path: Path) -> None:
    for number in range(3):
        (world.launch / "a.txt").write_text(f"{number}\n")
        commit(world.launch, "more")
    git(world.launch, "push", "-q", "origin", "main")
    shallow = World(world.origin, tmp_path / "shallow")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{world.origin}", str(shallow.launch))
    with create(shallow) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert git(world.origin, "rev-list", "--count", "issue-7") == "5"
    assert gone(wt, shallow)
    assert git(shallow.launch, "rev-list", "--count", "HEAD") == "1"


def test_a_sparse_clone_keeps_what_is_outside_the_cone(world: World) -> None:
    for name in ("in", "out"):
        (world.launch / name).mkdir()
        (world.launch / name / "f.txt").write_text(f"{name}\n")
    commit(world.launch, "folders")
    git(world.launch, "push", "-q", "origin", "main")
    git(world.launch, "sparse-checkout", "set", "in")
    with create(world) as wt:
        git(wt.path, "sparse-checkout", "set", "in")
        (wt.path / "in" / "f.txt").write_text("edited\n")
        (wt.path / "out").mkdir(exist_ok=True)
        (wt.path / "out" / "new.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert [world.origin_file("issue-7", name) for name in ("in/f.txt", "out/f.txt", "out/new.txt")] == [
        "edited",
        "out",
        "new",
    ]
    assert gone(wt, world)


@pytest.mark.parametrize(
    ("in_the_way", "command"), [("refs/heads/issue-7.lock", "git update-ref"), ("worktrees", "git worktree add")]
)
def test_a_worktree_that_cannot_be_made_leaves_nothing(world: World, in_the_way: str, command: str) -> None:
    obstacle = world.launch / ".git" / in_the_way
    obstacle.touch()
    with pytest.raises(GitError, match=command):
        create(world)
    obstacle.unlink()
    assert not world.launch.with_name("widget-issue-7").exists()
    assert not list((world.launch / ".git" / "worktrees").glob("*"))
    assert records(world) == []
    assert git(world.launch, "for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/main"


def test_a_record_that_cannot_be_written_leaves_nothing(world: World) -> None:
    (world.launch / ".git" / "nightkeep").write_text("in the way\n")
    before = git(world.launch, "for-each-ref", "refs/heads")
    with pytest.raises(AcquisitionError, match="could not be made") as caught:
        create(world)
    assert caught.value.left is None
    assert git(world.launch, "for-each-ref", "refs/heads") == before
    assert not world.launch.with_name("widget-issue-7").exists()
    assert (world.launch / ".git" / "nightkeep").read_text() == "in the way\n"


def test_a_worktree_that_breaks_while_it_is_made_is_kept_and_named(world: World) -> None:
    git(world.launch, "config", "filter.eat.smudge", "rm -f .git; cat")
    (world.launch / ".gitattributes").write_text("a.txt filter=eat\n")
    commit(world.launch, "attributes")
    git(world.launch, "push", "-q", "origin", "main")
    with pytest.raises(AcquisitionError, match="could not be made") as caught:
        create(world)
    path = world.launch.with_name("widget-issue-7")
    assert caught.value.left == f"the worktree {path} and its local branch issue-7 are left"
    assert caught.value.left in str(caught.value)
    assert (path / "a.txt").exists()
    assert len(records(world)) == 1


def test_after_an_interruption_nothing_is_acquired(world: World) -> None:
    latch = Interruption()
    launch = Launch.open(world.launch, interruption=latch, limits=IMPATIENT)
    latch.record(15)
    before = _everything(world)
    for there in (launch, world.launch):
        with pytest.raises(Interrupted):
            Worktree.create(there, branch="issue-7", base="main", interruption=latch)
    assert _everything(world) == before


def test_the_persons_checkout_is_never_touched(world: World) -> None:
    (world.launch / "a.txt").write_text("a person's edit\n")
    (world.launch / "mine.txt").write_text("untracked\n")
    git(world.launch, "stash", "push", "-q", "b.txt", check=False)
    before = git(world.launch, "status", "--porcelain=v2", "--branch"), git(world.launch, "stash", "list")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert (git(world.launch, "status", "--porcelain=v2", "--branch"), git(world.launch, "stash", "list")) == before
    assert (world.launch / "a.txt").read_text() == "a person's edit\n"


def test_the_objects_format_of_the_clone_is_followed(tmp_path: Path) -> None:
    world = World(tmp_path / "origin.git", tmp_path / "widget")
    git(tmp_path, "init", "-q", "--bare", "--object-format=sha256", "-b", "main", str(world.origin))
    git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main", str(world.launch))
    git(world.launch, "remote", "add", "origin", str(world.origin))
    (world.launch / "a.txt").write_text("a\n")
    commit(world.launch, "base")
    git(world.launch, "push", "-q", "origin", "main")
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "-b", "other")
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
        (wt.path / "secret.env").write_text("k\n")
    for name in ("snapshot", "head"):
        assert world.origin_file(rescue_ref(wt, name), "a.txt") == "edited"
    assert gone(wt, world)
    assert {path.name for path in stored(world, wt).iterdir()} == {"secret.env"}
