"""What a hostile or clumsy agent does to git's own files, and to the places next to its worktree."""

import os
import shutil
import signal
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tests.worktree.runs import (
    admin_of,
    aside,
    contents,
    create,
    gone,
    kept,
    kept_locally,
    opened,
    origin_has,
    reasons,
    rescue_ref,
    store_of,
    stored,
)
from tests.world import World, commit, git
from worktree import (
    BranchTakenError,
    CheckpointRule,
    Interrupted,
    Interruption,
    Launch,
    PreservationError,
    Preserved,
    Worktree,
    WorktreeError,
)


def test_a_branch_that_somebody_makes_meanwhile_stays_theirs(world: World) -> None:
    launch = Launch.open(world.launch, interruption=Interruption())
    git(world.launch, "branch", "issue-7", "main")
    with pytest.raises(BranchTakenError, match="made by somebody else just now"):
        Worktree.create(launch, branch="issue-7", base="main", interruption=Interruption())
    assert git(world.launch, "branch", "--list", "issue-7")
    assert not list((world.launch / ".git" / "nightkeep" / "runs").iterdir())


@pytest.mark.parametrize("ending", ["settle", "preserve"])
def test_a_link_to_the_persons_checkout_in_our_place_is_not_followed(world: World, ending: str) -> None:
    (world.launch / "my-notes.txt").write_text("private\n")
    with create(world) as wt:
        (wt.path / "w.txt").write_text("work\n")
        wt.path.rename(wt.path.with_name("moved"))
        wt.path.symlink_to(world.launch)
        with pytest.raises(WorktreeError, match="replaced by something else"):
            wt.settle("x") if ending == "settle" else wt.preserve_failed_run("main", "x")
    assert wt.ending.kept
    assert git(world.launch, "status", "--porcelain") == "?? my-notes.txt"
    assert not world.on_origin("issue-7")
    assert not world.snapshot_refs()


def test_another_directory_in_our_place_is_not_staged(world: World) -> None:
    with create(world) as wt:
        wt.path.rename(wt.path.with_name("moved"))
        wt.path.mkdir()
        (wt.path / "theirs.txt").write_text("private\n")
        with pytest.raises(PreservationError, match="replaced by something else"):
            wt.preserve_failed_run("main", "x")
    assert (wt.path / "theirs.txt").exists()
    assert not world.on_origin("issue-7")


@pytest.mark.parametrize("recovered", [False, True], ids=["at the end", "recovered"])
def test_a_directory_of_the_name_that_ours_has_aside_is_not_taken_for_ours(world: World, *, recovered: bool) -> None:
    wt = create(world)
    wt.path.rename(wt.path.with_name("moved"))
    theirs = aside(wt)
    theirs.mkdir()
    (theirs / "theirs.txt").write_text("private\n")
    (theirs / "a.txt").write_text("a\n")
    if recovered:
        wt._checkout.directory.release()
        wt = Worktree.reclaim(opened(world), wt.run_id)
    with wt:
        pass
    assert set(contents(theirs)) == {"theirs.txt", "a.txt"}
    assert not wt.path.exists()


def test_a_graft_does_not_pass_for_history(world: World) -> None:
    with create(world) as wt:
        (wt.path / "lost.txt").write_text("lost\n")
        lost = commit(wt.path, "lost")
        git(wt.path, "reset", "-q", "--hard", "HEAD~1")
        (admin_of(wt) / "ORIG_HEAD").unlink()
        (wt.path / "kept.txt").write_text("kept\n")
        made = commit(wt.path, "kept")
        wt.push()
        grafts = world.launch / ".git" / "info" / "grafts"
        grafts.parent.mkdir(exist_ok=True)
        grafts.write_text(f"{made} {lost}\n")
    assert gone(wt, world)
    assert git(world.launch, "rev-parse", f"{rescue_ref(wt, 'made')}^@") == lost
    assert git(world.launch, "show", f"{rescue_ref(wt, 'made')}:lost.txt") == "lost"
    assert any(where.startswith(rescue_ref(wt, "made")) for what, where in wt.ending.places if what == "made")
    assert wt.ending.preserved is Preserved.MACHINE


def test_a_replaced_commit_does_not_pass_for_what_origin_has(world: World) -> None:
    with create(world) as wt:
        (wt.path / "w.txt").write_text("w\n")
        made = commit(wt.path, "w")
        wt.push()
        (wt.path / "p.txt").write_text("p\n")
        git(wt.path, "add", "p.txt")
        other = git(wt.path, "commit-tree", git(wt.path, "write-tree"), "-p", f"{made}~1", "-m", "other")
        git(wt.path, "replace", made, other)
    assert gone(wt, world)
    assert (stored(world, wt) / "p.txt").read_text() == "p\n"


def private_branch(world: World) -> str:
    git(world.launch, "checkout", "-q", "-b", "private")
    (world.launch / "diary.txt").write_text("private\n")
    made = commit(world.launch, "private")
    git(world.launch, "checkout", "-q", "main")
    return made


def test_a_persons_branch_that_an_agent_merged_is_not_published(world: World) -> None:
    private = private_branch(world)
    with create(world) as wt:
        git(wt.path, "merge", "-q", "private")
        (wt.path / "w.txt").write_text("w\n")
        with pytest.raises(WorktreeError, match=private):
            wt.push()
        with pytest.raises(PreservationError, match=private):
            wt.preserve_failed_run("main", "x")
    assert kept(wt, world)
    assert not origin_has(world, "private\n")
    assert wt.ending.preserved is Preserved.MACHINE


def test_what_a_person_commits_during_the_run_is_not_published_either(world: World) -> None:
    with create(world) as wt:
        (world.launch / "diary.txt").write_text("private\n")
        private = commit(world.launch, "private")
        (wt.path / "w.txt").write_text("w\n")
        commit(wt.path, "w")
        git(wt.path, "rebase", "-q", "main")
        with pytest.raises(WorktreeError, match=private):
            wt.push()
    assert not origin_has(world, "private\n")


@pytest.mark.parametrize("linked", [False, True], ids=["launch", "linked"])
def test_what_only_a_persons_detached_head_names_is_not_published(
    world: World, tmp_path: Path, *, linked: bool
) -> None:
    theirs = world.launch
    if linked:
        theirs = tmp_path / "review"
        git(world.launch, "worktree", "add", "-q", "--detach", str(theirs))
    git(theirs, "checkout", "-q", "--detach")
    (theirs / "private.txt").write_text("private\n")
    private = commit(theirs, "private")
    with create(world) as wt:
        git(wt.path, "merge", "-q", private)
        (wt.path / "w.txt").write_text("work\n")
        (theirs / "more.txt").write_text("more\n")
        git(wt.path, "merge", "-q", commit(theirs, "more"))
        with pytest.raises(PreservationError, match="only on the person's own branches"):
            wt.preserve_failed_run("main", "x")
    assert kept(wt, world)
    assert not origin_has(world, "private\n")
    assert not origin_has(world, "more\n")


def test_what_a_person_has_at_a_detached_head_is_nothing_that_a_run_made(world: World) -> None:
    git(world.launch, "checkout", "-q", "--detach")
    (world.launch / "private.txt").write_text("private\n")
    private = commit(world.launch, "private")
    with create(world) as wt:
        git(wt.path, "reset", "-q", "--hard", private)
        git(wt.path, "reset", "-q", "--hard", "HEAD~1")
        (wt.path / "w.txt").write_text("work\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert not origin_has(world, "private\n")


@pytest.mark.parametrize("what", ["branch", "stash entry"])
def test_what_a_person_deletes_and_git_prunes_during_the_run_hinders_nothing(world: World, what: str) -> None:
    if what == "branch":
        private_branch(world)
    else:
        (world.launch / "a.txt").write_text("private\n")
        git(world.launch, "stash")
    with create(world) as wt:
        (wt.path / "w.txt").write_text("work\n")
        commit(wt.path, "work")
        git(wt.path, "reset", "-q", "--hard", "HEAD~1")
        git(world.launch, *(("branch", "-q", "-D", "private") if what == "branch" else ("stash", "drop", "-q")))
        git(world.launch, "reflog", "expire", "--expire=now", "HEAD")
        git(world.launch, "prune")
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert origin_has(world, "work\n")


def test_an_agents_own_branches_hinder_nothing(world: World) -> None:
    private_branch(world)
    with create(world) as wt:
        (wt.path / "w.txt").write_text("w\n")
        commit(wt.path, "w")
        git(wt.path, "branch", "backup")
        wt.push()
    assert gone(wt, world)


FIFOS: dict[str, Callable[[Worktree, World], Path]] = {
    "ORIG_HEAD": lambda wt, _: admin_of(wt) / "ORIG_HEAD",
    "locked": lambda wt, _: admin_of(wt) / "locked",
    "log": lambda wt, _: admin_of(wt) / "logs" / "HEAD",
    "link": lambda wt, _: wt.path / ".git",
    "shallow": lambda _, world: world.launch / ".git" / "shallow",
}


@pytest.mark.parametrize("place", FIFOS)
def test_a_fifo_in_the_place_of_a_file_of_gits_is_not_waited_for(world: World, place: str) -> None:
    with create(world) as wt:
        (wt.path / "w.txt").write_text("w\n")
        path = FIFOS[place](wt, world)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        if place == "shallow":  # git itself would wait for it
            path.unlink()
            path.symlink_to("/dev/zero")
            with pytest.raises(PreservationError):
                wt.preserve_failed_run("main", "x")
            path.unlink()
    assert wt.ending.kept


def test_a_fifo_in_the_place_of_a_committed_file_is_not_waited_for(world: World) -> None:
    with create(world) as wt:
        (wt.path / "w.txt").write_text("w\n")
        commit(wt.path, "w")
        wt.push()
        (wt.path / "w.txt").unlink()
        os.mkfifo(wt.path / "w.txt")
    assert gone(wt, world)
    assert stat.S_ISFIFO((stored(world, wt) / "w.txt").lstat().st_mode)


@pytest.mark.parametrize("garbage", [b"\xff\xfe", b"[]", b""])
def test_a_record_that_cannot_be_read_stops_nobody(world: World, garbage: bytes) -> None:
    record = world.launch / ".git" / "nightkeep" / "runs" / "other" / "record.json"
    record.parent.mkdir(parents=True)
    record.write_bytes(garbage)
    with create(world) as wt:
        pass
    assert not wt.ending.kept
    assert record.read_bytes() == garbage


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_what_is_mounted_in_the_worktree_is_not_touched(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious\n")
    with create(world) as wt:
        (wt.path / "package.json").write_text("{}\n")
        (wt.path / ".gitignore").write_text("node_modules\n")
        commit(wt.path, "w")
        wt.push()
        inside = wt.path / "node_modules" / "data"
        inside.mkdir(parents=True)
        mounted = subprocess.run(["mount", "--bind", outside, inside], check=False).returncode == 0
    try:
        assert mounted
        assert wt.ending.kept
        assert (outside / "precious").read_text() == "precious\n"
    finally:
        subprocess.run(["umount", inside], check=True)


def test_work_that_is_only_in_a_stash_is_named_and_counts(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("stashed\n")
        git(wt.path, "stash", "-q")
    assert gone(wt, world)
    stash = git(world.launch, "rev-parse", "refs/stash")
    assert ("made during the run", f"refs/stash at {stash} in {world.launch / '.git'}") in wt.ending.places
    assert wt.ending.preserved is Preserved.MACHINE


def test_a_branch_at_what_origin_holds_is_not_worth_a_word(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "branch", "backup")
    assert (wt.ending.places, wt.ending.preserved) == ((), Preserved.NOTHING_MADE)


def test_what_somebody_pushed_meanwhile_is_no_private_commit(world: World) -> None:
    with create(world) as wt:
        (world.launch / "news.txt").write_text("news\n")
        commit(world.launch, "news")
        git(world.launch, "push", "-q", "origin", "main")
        git(wt.path, "merge", "-q", "main")
        (wt.path / "w.txt").write_text("w\n")
        commit(wt.path, "w")
        wt.push()
    assert gone(wt, world)


def test_a_fast_forward_by_cherry_pick_is_no_commit_of_the_runs(world: World) -> None:
    with create(world) as wt:
        (world.launch / "diary.txt").write_text("private\n")
        private = commit(world.launch, "private")
        git(wt.path, "cherry-pick", "--ff", "main")
        with pytest.raises(WorktreeError, match=private):
            wt.push()
    assert not origin_has(world, "private\n")


def test_a_branch_that_a_person_looks_at_is_left_to_them(world: World) -> None:
    with create(world) as wt:
        (wt.path / "w.txt").write_text("w\n")
        commit(wt.path, "w")
        wt.push()
        git(world.launch, "checkout", "-q", "--ignore-other-worktrees", "issue-7")
    assert not wt.ending.kept
    assert git(world.launch, "status", "--porcelain") == ""
    assert git(world.launch, "rev-parse", "issue-7") == world.on_origin("issue-7")


def test_an_edit_that_git_normalises_away_is_kept(world: World) -> None:
    (world.launch / ".gitattributes").write_text("*.txt ident\n")
    commit(world.launch, "attributes")
    git(world.launch, "push", "-q", "origin", "main")
    (world.launch / "k.txt").write_text("$Id$\n")
    commit(world.launch, "keyword")
    git(world.launch, "push", "-q", "origin", "main")
    with create(world) as wt:
        (wt.path / "k.txt").write_text("$Id: only here $\n")
    assert gone(wt, world)
    assert (stored(world, wt) / "k.txt").read_text() == "$Id: only here $\n"
    assert reasons(world, wt) == {"k.txt": "changes in no commit on origin"}


def test_a_dangling_branch_of_the_persons_hinders_nobody(world: World) -> None:
    (world.launch / ".git" / "refs" / "heads" / "broken").write_text("1" * 40 + "\n")
    with create(world) as wt:
        (wt.path / "w.txt").write_text("w\n")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "w.txt") == "w"
    assert gone(wt, world)


def test_a_branch_of_origins_that_is_not_here_hinders_nobody(world: World, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(world.origin), "other")
    with create(world) as wt:
        (world.launch / "news.txt").write_text("news\n")
        commit(world.launch, "news")
        git(world.launch, "push", "-q", "origin", "main")
        git(wt.path, "merge", "-q", "main")
        (tmp_path / "other" / "else.txt").write_text("else\n")
        commit(tmp_path / "other", "else")
        git(tmp_path / "other", "push", "-q", "origin", "HEAD:refs/heads/elsewhere")
        wt.push()
    assert gone(wt, world)


# What only the worktree's own git directory, or a ref that moves, still names


def test_a_commit_that_only_a_mirror_of_origin_names_is_kept(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "--detach")
        (wt.path / "n.txt").write_text("elsewhere\n")
        made = commit(wt.path, "elsewhere")
        git(wt.path, "update-ref", "refs/remotes/origin/main", made)
        git(wt.path, "checkout", "-q", "issue-7")
    assert kept_locally(world, "elsewhere\n")
    assert wt.ending.preserved is Preserved.MACHINE


def test_a_commit_on_a_persons_branch_is_kept_and_named(world: World) -> None:
    git(world.launch, "branch", "draft")
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "draft")
        (wt.path / "n.txt").write_text("on draft\n")
        commit(wt.path, "on draft")
        git(wt.path, "checkout", "-q", "issue-7")
    assert kept_locally(world, "on draft\n")
    assert any("/made at " in where for _, where in wt.ending.places)


def test_what_was_put_into_gits_own_directory_is_kept(world: World) -> None:
    with create(world) as wt:
        notes = ("PLAN.md", "AGENT_LOG", "plan.lock", "hooks/plan", "info/plan", "logs/agent.log")
        for name in notes:
            (admin_of(wt) / name).parent.mkdir(exist_ok=True)
            (admin_of(wt) / name).write_text(f"{name}\n")
        (wt.path / "n.txt").write_text("wip\n")
        git(wt.path, "add", "n.txt")
        made = git(wt.path, "commit-tree", git(wt.path, "write-tree"), "-p", "HEAD", "-m", "wip")
        git(wt.path, "rm", "-q", "--force", "n.txt")
        git(wt.path, "update-ref", "WIP", made)
    assert gone(wt, world)
    assert [(store_of(world, wt) / "admin" / name).read_text() for name in notes] == [f"{name}\n" for name in notes]
    assert reasons(world, wt).keys() == {"PLAN.md", "AGENT_LOG", "plan.lock", "hooks", "info/plan", "logs/agent.log"}
    assert kept_locally(world, "wip\n")


def test_another_worktree_inside_keeps_it_whatever_its_path_is_like(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "worktree", "add", "-q", "--detach", "scratch/two  blanks")
    assert kept(wt, world)


def test_configuration_that_the_agent_changed_is_named(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "config", "core.hooksPath", "/elsewhere")
        git(wt.path, "config", "branch.issue-7.merge", "refs/heads/issue-7")
    assert ("configuration changed", "core.hookspath; see git config --list --show-origin") in wt.ending.places


def test_a_path_that_somebody_made_again_is_not_said_to_be_the_worktree(world: World) -> None:
    with create(world) as wt:
        aside = f"{wt.path}.removing"
        script = f"until [ -e {aside} ]; do :; done; mkdir -p {wt.path}/logs; exec sleep 60"
        process = subprocess.Popen(["sh", "-c", script], cwd=wt.path)
    process.kill()
    process.wait()
    assert wt.ending.kept
    assert (Path(aside) / "a.txt").exists()
    assert ("worktree", aside) in wt.ending.places
    assert aside in wt.ending.why


@pytest.mark.parametrize("where", ["worktree", "clone", "attributes"])
def test_bytes_that_only_an_agents_own_rules_give_back_are_kept(world: World, where: str) -> None:
    with create(world) as wt:
        if where == "attributes":
            (world.launch / ".git" / "info").mkdir(exist_ok=True)
            (world.launch / ".git" / "info" / "attributes").write_text("*.txt text eol=crlf\n")
        else:
            git(wt.path, "config", "extensions.worktreeConfig", "true")
            git(wt.path, "config", f"--{'worktree' if where == 'worktree' else 'local'}", "core.autocrlf", "true")
        (wt.path / "n.txt").write_bytes(b"one\r\ntwo\r\n")
        git(wt.path, "add", "n.txt")
        commit(wt.path, "n")
        wt.push()
    assert (stored(world, wt) / "n.txt").read_bytes() == b"one\r\ntwo\r\n"


def _name_of_main(wt: Worktree, ref: str) -> None:
    """Make a ref a second name of the person's branch."""
    git(wt.path, "symbolic-ref", ref, "refs/heads/main")


def test_an_issue_branch_that_only_names_a_persons_leaves_that_where_it_is(world: World) -> None:
    before = git(world.launch, "rev-parse", "refs/heads/main")
    with create(world) as wt:
        _name_of_main(wt, "refs/heads/issue-7")
    assert gone(wt, world)
    assert git(world.launch, "rev-parse", "refs/heads/main") == before


def test_a_rebase_of_a_branch_that_only_names_a_persons_is_not_aborted(world: World) -> None:
    before = git(world.launch, "rev-parse", "refs/heads/main")
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "-b", "side")
        (wt.path / "a.txt").write_text("theirs\n")
        commit(wt.path, "theirs")
        git(wt.path, "checkout", "-q", "issue-7")
        (wt.path / "a.txt").write_text("mine\n")
        commit(wt.path, "mine")
        git(wt.path, "rebase", "side", check=False)
        _name_of_main(wt, "refs/heads/issue-7")
        wt.preserve_failed_run("main", "x")
    assert git(world.launch, "rev-parse", "refs/heads/main") == before
    assert origin_has(world, "mine\n")


def test_a_checkpoint_that_only_names_a_persons_branch_is_taken_back(world: World) -> None:
    before = git(world.launch, "rev-parse", "refs/heads/main")
    with create(world) as wt:
        checkpoints = wt.watch(CheckpointRule(every=0, to_origin=False), str)
        ref = f"refs/nightkeep/checkpoints/{wt.run_id}"
        _name_of_main(wt, ref)
        (wt.path / "a.txt").write_text("edited\n")
        checkpoints.tick()
        assert git(world.launch, "show", f"{ref}:a.txt") == "edited"
        _name_of_main(wt, ref)
        wt.preserve_failed_run("main", "x")
    assert git(world.launch, "rev-parse", "refs/heads/main") == before


def test_a_rescue_ref_that_only_names_a_branch_to_be_makes_no_branch(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "symbolic-ref", rescue_ref(wt, "snapshot"), "refs/heads/next")
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("edited\n")
        world.hook("update", "case $1 in refs/nightkeep/*) exit 1 ;; esac")
        with pytest.raises(PreservationError):
            wt.preserve_failed_run("main", "x")
    assert kept_locally(world, "staged\n")
    assert not git(world.launch, "branch", "--list", "next")


def test_rescue_refs_that_an_agent_made_beforehand_are_passed_over(world: World) -> None:
    with create(world) as wt:
        for name in ("snapshot", "snapshot-2"):
            git(wt.path, "update-ref", rescue_ref(wt, name), "HEAD")
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert origin_has(world, "staged\n")
    assert world.on_origin(rescue_ref(wt, "snapshot-3"))


def test_a_signal_while_a_rescue_ref_is_made_does_not_keep_the_work_here(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, program = tmp_path / "made", tmp_path / "programs" / "git"
    program.parent.mkdir()
    late = f"*update-ref*/snapshot*) touch {made}; sleep 1;;"
    program.write_text(f'#!/bin/sh\n{shutil.which("git")} "$@" || exit\ncase "$*" in {late} esac\n')
    program.chmod(0o755)
    latch = Interruption()

    def interrupt() -> None:
        wait_for(made.exists)
        latch.record(signal.SIGINT)

    with create(world, interruption=latch) as wt:
        (wt.path / "a.txt").write_text("committed\n")
        commit(wt.path, "work")
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("left over\n")
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        threading.Thread(target=interrupt).start()
        wt.settle("x")
        with pytest.raises(Interrupted):
            wt.push()
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert origin_has(world, "staged\n")
    assert origin_has(world, "left over\n")
