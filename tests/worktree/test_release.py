"""Releasing a retained worktree loses nothing, whatever is unfinished in it."""

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof import full, seed
from tests.worktree.left import (
    everything,
    forget_rescues,
    gone,
    has_all,
    holding,
    local_rescues,
    refused,
    released,
    unfinished,
)
from tests.worktree.runs import admin_of, contents, create, kept_locally, origin_refs, records, resume, store_of
from tests.world import World, commit, git
from worktree import DeferredError, GitError, sweep_records, sweep_temporary
from worktree.inventory import list_worktrees
from worktree.record import RecordDirectory

pytestmark = pytest.mark.drawn

# Before its n-th git command whoever releases is killed.
_SHIM = """\
#!/bin/sh
number=$(($(cat {place}/number) + 1)); echo $number > {place}/number
if [ $number = {wanted} ]; then kill -9 $PPID; exit 1; fi
exec {git} "$@"
"""
_RELEASE = """
import sys
from pathlib import Path
from worktree import Interruption, Launch, Worktree
with Worktree.reopen(Launch.open(Path(sys.argv[1]), interruption=Interruption()), sys.argv[2]):
    pass
"""
_MOST = 30  # git commands of one release, about
_KILLS = [*range(5, _MOST)] if full() else random.Random(seed()).sample(range(5, _MOST), 4)


def new_file(path: Path) -> None:
    (path / "new.txt").write_text("new\n")


def test_what_it_holds_is_told_and_nothing_is_changed(world: World) -> None:
    wt = unfinished(world)
    git(wt.path, "update-index", "--assume-unchanged", "b.txt")
    (wt.path / "b.txt").write_text("hidden edit\n")
    before = everything(world, wt)
    held = holding(world, wt)
    assert everything(world, wt) == before
    assert (held.unfinished, held.unmerged, held.branch) == ("merge", ("a.txt",), "issue-7")
    assert (held.changed, held.untracked, held.ignored) == (("b.txt", "staged.txt"), ("new.txt",), ("secret.env",))
    assert [subject for _, subject in held.commits] == ["unpushed"]
    assert held.obstacle is None


def test_an_unfinished_merge_is_kept_by_a_snapshot_here(world: World) -> None:
    wt, before = unfinished(world), origin_refs(world)
    ending = released(world, wt)
    assert not ending.kept, ending
    assert gone(world, wt)
    assert has_all(world, wt)
    assert origin_refs(world) == before, "nothing is pushed"
    snapshot = f"refs/nightkeep/rescue/{wt.run_id}/snapshot"
    assert any(where.startswith(snapshot) for what, where in ending.places if what == "snapshot")
    side = git(world.launch, "rev-parse", "side")
    assert side in git(world.launch, "rev-list", "--parents", "-1", snapshot)


def test_a_rebase_is_kept_with_how_far_it_had_come(world: World) -> None:
    with create(world) as wt:
        for number in (1, 2):
            (wt.path / "a.txt").write_text(f"{number}\n")
            commit(wt.path, f"step {number}")
        git(wt.path, "-c", "sequence.editor=sed -i 1s/^pick/edit/", "rebase", "-q", "-i", "HEAD~2", check=False)
        todo = (admin_of(wt) / "rebase-merge" / "git-rebase-todo").read_text()
    assert (wt.ending.why, "step 2" in todo) == ("a rebase is unfinished in it", True)
    tip = git(world.launch, "rev-parse", "issue-7")
    assert not released(world, wt).kept
    assert gone(world, wt)
    assert (store_of(world, wt) / "admin" / "rebase-merge" / "git-rebase-todo").read_text() == todo
    assert tip in local_rescues(world)


def test_what_the_index_alone_holds_is_kept_also_behind_hidden_flags(world: World) -> None:
    with create(world) as wt:
        (wt.path / "b.txt").write_text("staged only\n")
        git(wt.path, "add", "b.txt")
        git(wt.path, "update-index", "--assume-unchanged", "b.txt")
        (wt.path / "b.txt").write_text("edited\n")
    assert wt.ending.kept
    assert not released(world, wt).kept
    blob = git(world.launch, "rev-parse", f"refs/nightkeep/rescue/{wt.run_id}/snapshot^2:b.txt")
    assert git(world.launch, "cat-file", "blob", blob) == "staged only"
    assert (store_of(world, wt) / "tree" / "b.txt").read_text() == "edited\n"


def test_what_origin_has_by_now_is_just_removed(world: World) -> None:
    wt = refused(world, new_file)
    world.hook("pre-receive", "exit 0")
    git(wt.path, "push", "-q", "origin", "HEAD:refs/heads/issue-7")
    shutil.rmtree(store_of(world, wt))
    forget_rescues(world)
    ending = released(world, wt)
    assert (ending.kept, ending.places, gone(world, wt)) == (False, (), True)
    assert (store_of(world, wt).exists(), local_rescues(world)) == (False, "")


def test_what_origin_held_at_the_start_and_no_longer_has_is_kept(world: World) -> None:
    begun = git(world.origin, "commit-tree", "main^{tree}", "-p", "main", "-m", "begun before")
    git(world.origin, "update-ref", "refs/heads/issue-7", begun)
    with resume(world) as wt:
        shell = subprocess.Popen(["sleep", "60"], cwd=wt.path)
    shell.kill()
    shell.wait()
    assert wt.ending.kept
    git(world.origin, "update-ref", "-d", "refs/heads/issue-7")
    assert not released(world, wt).kept
    assert gone(world, wt)
    assert begun in local_rescues(world)


def test_when_origin_is_not_asked_nothing_counts_as_being_there(world: World) -> None:
    wt = refused(world, new_file)
    world.hook("pre-receive", "exit 0")
    git(wt.path, "push", "-q", "origin", "HEAD:refs/heads/issue-7")
    git(world.launch, "update-ref", "-d", "refs/remotes/origin/issue-7")
    forget_rescues(world)
    marker = git(wt.path, "rev-parse", "HEAD")
    world.origin.rename(world.origin.with_name("away"))
    with pytest.raises(GitError):
        released(world, wt)
    assert not released(world, wt, there={}).kept
    assert gone(world, wt)
    assert marker in local_rescues(world)


def test_nested_repositories_and_what_only_the_log_of_head_names_are_kept(world: World) -> None:
    made = {}

    def leave(path: Path) -> None:
        git(path, "init", "-q", "scratch/inner")
        (path / "scratch" / "inner" / "code.txt").write_text("code\n")
        made["inner"] = commit(path / "scratch" / "inner", "inner")
        git(path, "checkout", "-q", "--detach")
        (path / "a.txt").write_text("detached\n")
        made["detached"] = commit(path, "detached")

    wt = refused(world, leave)
    git(wt.path, "reset", "-q", "--hard", "HEAD~1")
    forget_rescues(world)
    assert made["detached"] in [oid for oid, _ in holding(world, wt).commits]
    assert not released(world, wt).kept
    assert gone(world, wt)
    assert made["detached"] in local_rescues(world)
    inner = store_of(world, wt) / "tree" / "scratch" / "inner"
    assert git(inner, "rev-parse", "HEAD") == made["inner"]


def test_a_persons_later_commits_on_the_branch_are_kept(world: World) -> None:
    wt = refused(world, new_file)
    (wt.path / "mine.txt").write_text("mine\n")
    mine = commit(wt.path, "a person's")
    assert "a person's" in [subject for _, subject in holding(world, wt).commits]
    assert not released(world, wt).kept
    assert mine in local_rescues(world)


def test_what_only_orig_head_named_and_git_has_pruned_is_in_nobodys_way(world: World) -> None:
    with create(world) as wt:
        (wt.path / "n.txt").write_text("new\n")
        commit(wt.path, "dropped")
        git(wt.path, "reset", "-q", "--hard", "HEAD~1")
        shell = subprocess.Popen(["sleep", "60"], cwd=wt.path)
    shell.kill()
    shell.wait()
    git(wt.path, "reflog", "expire", "--expire=all", "--all")
    forget_rescues(world)
    git(world.launch, "prune")
    assert git(wt.path, "cat-file", "-t", "ORIG_HEAD", check=False) == ""
    assert not released(world, wt).kept
    assert gone(world, wt)


def test_the_directory_may_be_gone(world: World) -> None:
    wt = refused(world, new_file)
    forget_rescues(world)
    marker = git(wt.path, "rev-parse", "HEAD")
    shutil.rmtree(wt.path)
    assert (holding(world, wt).head, holding(world, wt).obstacle) == (marker, None)
    assert not released(world, wt).kept
    assert gone(world, wt)
    assert marker in local_rescues(world)


def test_what_the_index_alone_holds_is_kept_when_the_directory_is_gone(world: World) -> None:
    wt = unfinished(world)
    shutil.rmtree(wt.path)
    assert not released(world, wt).kept
    assert gone(world, wt)
    assert kept_locally(world, "staged only\n")
    assert kept_locally(world, "ours\n")
    assert kept_locally(world, "theirs\n")


# What is refused


def test_a_persons_shell_in_it_keeps_it_and_the_first_reason_stays(world: World) -> None:
    wt = unfinished(world)
    before = RecordDirectory(world.launch / ".git", wt.run_id).retained()
    with subprocess.Popen(["sleep", "60"], cwd=wt.path) as shell:
        with pytest.raises(DeferredError, match=rf"at work in {wt.path}: process {shell.pid} \(sleep\); close it"):
            released(world, wt)
        shell.kill()
    assert wt.path.is_dir()
    (wt.path.with_name(f"{wt.path.name}.removing")).mkdir()  # keeps clean-up itself from its end
    assert released(world, wt).kept
    assert RecordDirectory(world.launch / ".git", wt.run_id).retained() == before


def test_a_live_owner_and_an_orphan_are_left_alone(world: World) -> None:
    with create(world) as wt:
        new_file(wt.path)
        with pytest.raises(DeferredError, match="owned by somebody else"):
            released(world, wt)
        wt._checkout.directory.release()
        with pytest.raises(DeferredError, match="nightkeep recover"):
            released(world, wt)
        assert (wt.path / "new.txt").exists()


@pytest.mark.parametrize("lock", [None, "mine"])
def test_a_lock_that_is_not_ours_keeps_it_until_it_is_given_back(world: World, lock: str | None) -> None:
    wt = unfinished(world)
    git(world.launch, "worktree", "unlock", str(wt.path))
    if lock:
        git(world.launch, "worktree", "lock", "--reason", lock, str(wt.path))
    said = holding(world, wt).obstacle or ""
    assert released(world, wt).kept
    assert wt.path.is_dir()
    remedy = said.partition("give it its own lock again: ")[2]
    subprocess.run(["sh", "-ec", remedy], cwd=world.launch, check=True)
    assert holding(world, wt).obstacle is None
    assert not released(world, wt).kept
    assert gone(world, wt)


@pytest.mark.parametrize("what", ["link", "other", "file", "dot-git"])
def test_what_stands_in_its_place_is_not_touched(world: World, what: str) -> None:
    wt = unfinished(world)
    if what != "dot-git":
        wt.path.rename(wt.path.with_name("away"))
    match what:
        case "link":
            wt.path.symlink_to(world.launch)
        case "other":
            shutil.copytree(world.launch, wt.path)
        case "file":
            wt.path.write_text("a file\n")
        case "dot-git":
            (wt.path / ".git").write_text(f"gitdir: {world.launch / '.git'}\n")
    assert holding(world, wt).obstacle
    before = contents(wt.path)
    ending = released(world, wt)
    assert ending.kept, ending
    assert (contents(wt.path), wt.path.is_symlink()) == (before, what == "link")


# Kills


@pytest.mark.parametrize("number", _KILLS)
def test_a_release_that_is_killed_is_finished_by_the_next_one(world: World, number: int, tmp_path: Path) -> None:
    wt = unfinished(world)
    shim = tmp_path / "shim"
    shim.mkdir()
    (shim / "number").write_text("0")
    (shim / "git").write_text(_SHIM.format(place=shim, git=shutil.which("git"), wanted=number))
    (shim / "git").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(shim), prepend=":")
        command = [sys.executable, "-P", "-c", _RELEASE, str(world.launch), wt.run_id]
        status = subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode
    assert status in (0, -signal.SIGKILL)
    sweep_records(world.launch / ".git")
    sweep_temporary()
    if status:
        assert [one.standing for one in list_worktrees(world.launch / ".git")] == ["retained"]
        assert not released(world, wt).kept
    assert (gone(world, wt), records(world)) == (True, [])
    assert has_all(world, wt)
