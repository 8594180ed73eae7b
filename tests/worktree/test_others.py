"""What is others' stays as it is, and no setting, link or repetition of theirs changes what is kept."""

import os
import shutil
from pathlib import Path

import pytest

from tests.worktree.runs import (
    contents,
    create,
    gone,
    kept,
    kept_locally,
    local_rescue_refs,
    opened,
    origin_has,
    reasons,
    store_of,
    stored,
)
from tests.world import World, commit, git
from worktree import PreservationError, Preserved, Worktree


def test_there_is_no_way_around_preservation() -> None:
    assert {name for name in dir(Worktree) if not name.startswith("_")} == {
        *("create", "resume", "reclaim", "reopen", "take_over", "watch", "settle", "push", "preserve_failed_run"),
        *("look_upstream", "merge", "finish_merge", "new_in", "changed_paths", "workflow_texts"),
        *("path", "branch", "launch", "run_id", "private", "head", "ending", "included", "filters_off", "on_origin"),
        *("has_work_on_origin", "head_beyond_base", "keep_fence", "is_fence_lost"),
    }


def test_no_configuration_is_written_to_name_a_committer(
    world: World, seal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    git(world.launch, "config", "user.useConfigOnly", "true")
    git(world.launch, "config", "extensions.worktreeConfig", "true")
    before = (world.launch / ".git" / "config").read_bytes()
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
        assert list((world.launch / ".git").rglob("config.worktree")) == []
    assert git(world.origin, "log", "-1", "--format=%an/%cn", "issue-7") == "Nightkeep/Nightkeep"
    assert (world.launch / ".git" / "config").read_bytes() == before
    assert list(seal.iterdir()) == []
    assert gone(wt, world)


def test_a_worktree_of_a_persons_beside_ours_stays_as_it_is(world: World) -> None:
    """On a branch that is named as ours are, with work that nothing else has."""
    theirs = world.launch.with_name("widget-issue-8")
    git(world.launch, "worktree", "add", "-q", "-b", "issue-8", str(theirs))
    (theirs / "a.txt").write_text("committed\n")
    made = commit(theirs, "theirs")
    git(theirs, "checkout", "-q", "--detach")
    (theirs / "b.txt").write_text("dirty\n")
    before = contents(theirs), git(theirs, "status", "--porcelain"), git(world.launch, "for-each-ref")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert not wt.ending.kept
    assert not wt.path.exists()
    assert (contents(theirs), git(theirs, "status", "--porcelain"), git(world.launch, "for-each-ref")) == before
    assert git(theirs, "rev-parse", "HEAD") == made


def test_what_another_run_makes_meanwhile_is_not_this_ones_whenever_it_ends(world: World) -> None:
    """Its branch is there at a look of this run's, and its record gone at the end."""
    with create(world) as wt:
        with create(world, branch="issue-8") as other:
            (other.path / "b.txt").write_text("theirs\n")
            other.settle("theirs")
            (wt.path / "a.txt").write_text("ours\n")
            wt.preserve_failed_run("main", "x")
            other.push()
        assert not other.ending.kept
    assert (wt.ending.preserved, [what for what, _ in wt.ending.places]) == (Preserved.ORIGIN, ["failure marker"])


def test_a_person_in_the_middle_of_a_merge_is_not_disturbed(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "side")
    (world.launch / "a.txt").write_text("theirs\n")
    commit(world.launch, "theirs")
    git(world.launch, "checkout", "-q", "main")
    (world.launch / "a.txt").write_text("ours\n")
    commit(world.launch, "ours")
    git(world.launch, "merge", "-q", "side", check=False)
    looks = ("status", "--porcelain=v2", "--branch"), ("rev-parse", "MERGE_HEAD"), ("diff",)
    before = [git(world.launch, *look) for look in looks]
    with create(world) as nothing_made:
        nothing_made.preserve_failed_run("main", "x")
    assert nothing_made.ending.preserved is Preserved.NOTHING_MADE
    assert gone(nothing_made, world)
    with create(world) as wt:
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert [git(world.launch, *look) for look in looks] == before


def test_untracked_files_that_git_is_told_not_to_show_are_kept(world: World) -> None:
    git(world.launch, "config", "status.showUntrackedFiles", "no")
    with create(world) as wt:
        (wt.path / "n.txt").write_text("new\n")
        (wt.path / "secret.env").write_text("k\n")
        before = contents(wt.path, "n.txt", "secret.env")
    assert gone(wt, world)
    assert contents(stored(world, wt)) == before
    assert reasons(world, wt) == {"n.txt": "untracked", "secret.env": "ignored"}


def _looks(top: Path) -> dict[str, tuple[int, int]]:
    paths = [top, *top.rglob("*")]
    return {str(path.relative_to(top)): (path.stat().st_mode, path.stat().st_mtime_ns) for path in paths}


def test_directories_keep_their_modes_and_times(world: World) -> None:
    with create(world) as wt:
        top = wt.path / "scratch"
        (top / "closed").mkdir(parents=True)
        (top / "closed" / "key").write_text("k\n")
        (top / "closed" / "key").chmod(0o600)
        (top / "closed").chmod(0o700)
        (top / "empty").mkdir(mode=0o750)
        for path in (top / "closed" / "key", top / "closed", top / "empty", top):
            os.utime(path, (1_000_000_000, 1_000_000_000))
        before = _looks(top)
    assert gone(wt, world)
    assert _looks(stored(world, wt) / "scratch") == before


@pytest.mark.parametrize("outside", ["../outside", ".git/hooks"])
def test_a_link_in_the_place_of_the_store_is_not_followed(world: World, outside: str) -> None:
    place = world.launch / outside
    place.mkdir(exist_ok=True)
    before = contents(place)
    with create(world) as wt:
        (wt.path / "secret.env").write_text("k\n")
        (world.launch / ".git" / "nightkeep" / "rescue").symlink_to(place)
    assert contents(place) == before
    assert kept(wt, world)
    assert (wt.path / "secret.env").read_text() == "k\n"


def test_what_is_refused_again_is_not_kept_twice(world: World) -> None:
    world.hook("pre-receive", "exit 1")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        for _ in range(3):
            with pytest.raises(PreservationError):
                wt.preserve_failed_run("main", "x")
    assert kept(wt, world)
    assert {path.name for path in store_of(world, wt).iterdir()} == {"manifest.json", "work.bundle"}
    assert len(local_rescue_refs(world)) == 1


def test_a_directory_that_vanished_is_not_said_to_be_kept(world: World) -> None:
    with create(world) as wt:
        shutil.rmtree(wt.path)
    assert ("worktree", str(wt.path)) not in wt.ending.places
    assert [what for what, _ in wt.ending.places] == ["lost with its directory"]
    assert wt.ending.why == "somebody took its directory away"


@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
def test_what_was_staged_in_a_directory_that_vanished_is_kept(world: World, *, fails: bool) -> None:
    with create(world) as wt:
        (wt.path / "n.txt").write_text("staged\n")
        git(wt.path, "add", "n.txt")
        shutil.rmtree(wt.path)
        if fails:
            wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert origin_has(world, "staged\n") if fails else kept_locally(world, "staged\n")
    assert [what for what, _ in wt.ending.places] == ["lost with its directory", "snapshot"]


def test_a_directory_that_was_moved_with_gits_knowledge_stays_there_and_is_named(world: World) -> None:
    with create(world) as wt:
        (wt.path / "n.txt").write_text("new\n")
        moved = wt.path.rename(wt.path.with_name("moved"))
        git(moved, "worktree", "repair")
        wt.preserve_failed_run("main", "x")
    assert (wt.ending.kept, wt.ending.preserved) == (True, Preserved.MACHINE)
    assert wt.ending.why == f"it was moved to {moved}; move it back to {wt.path}"
    assert ("worktree", str(moved)) in wt.ending.places
    assert "locked" in git(world.launch, "worktree", "list", "--porcelain")
    moved.rename(wt.path)
    git(wt.path, "worktree", "repair")
    with Worktree.reopen(opened(world), wt.run_id) as again:
        pass
    assert (stored(world, again) / "n.txt").read_text() == "new\n"


def test_a_directory_that_vanished_with_nothing_made_is_in_no_later_runs_way(world: World) -> None:
    with create(world) as first:
        shutil.rmtree(first.path)
    with create(world) as second:
        (second.path / "n.txt").write_text("new\n")
        second.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "n.txt") == "new"
