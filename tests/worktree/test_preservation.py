"""A Failed run's work reaches origin, or stays here and is named."""

import contextlib
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worktree.runs import (
    admin_of,
    contents,
    create,
    gone,
    kept,
    kept_locally,
    local_rescue_refs,
    origin_has,
    origin_refs,
    reasons,
    rescue_ref,
    stored,
)
from tests.world import World, commit, git
from worktree import GitError, Interrupted, Interruption, Limits, PreservationError, Preserved, Worktree


def test_committed_and_uncommitted_work_is_pushed_under_a_marker_and_cleaned_up(world: World) -> None:
    with create(world) as wt:
        (wt.path / "committed.txt").write_text("one\n")
        first = commit(wt.path, "one")
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / "new.txt").write_text("new\n")
        wt.preserve_failed_run("main", "agent exited 3")
    message = git(world.origin, "log", "-1", "--format=%B", "issue-7")
    assert re.fullmatch(
        r"nightkeep: failed run \(agent exited 3\)\n\n\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, host \S+\. "
        r"Uncommitted work at the time of failure is included in this commit\.\n?",
        message,
    )
    assert git(world.origin, "rev-parse", "issue-7^") == first
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert world.origin_file("issue-7", "new.txt") == "new"
    assert gone(wt, world)
    assert (wt.ending.kept, wt.ending.preserved) == (False, Preserved.ORIGIN)
    assert git(world.origin, "log", "-1", "--format=%an %cn", "issue-7") == "Nightkeep Nightkeep"
    assert not list((world.launch / ".git" / "nightkeep" / "runs").iterdir())


def test_a_staging_error_retains_and_moves_nothing(world: World) -> None:
    with create(world) as wt:
        head = wt.head()
        (wt.path / "a.txt").write_text("edited\n")
        index = admin_of(wt) / "index"
        index.unlink()
        index.mkdir()
        with pytest.raises(PreservationError, match=r"git \w+ .*failed"):
            wt.preserve_failed_run("main", "x")
    assert kept(wt, world)
    assert git(world.launch, "rev-parse", "issue-7") == head
    assert (wt.path / "a.txt").read_text() == "edited\n"
    assert not world.on_origin("issue-7")


def test_unchanged_work_makes_no_commit_and_no_branch(world: World) -> None:
    before = origin_refs(world)
    with create(world) as wt:
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert origin_refs(world) == before
    assert (wt.ending.preserved, wt.ending.places) == (Preserved.NOTHING_MADE, ())


def test_only_committed_work_gets_an_empty_marker_despite_rejecting_hooks(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        made = commit(wt.path, "work")
        for hook in ("pre-commit", "commit-msg", "pre-push"):
            world.hook(hook, "exit 1", repository=world.launch / ".git")
        wt.preserve_failed_run("main", "x")
    assert git(world.origin, "rev-parse", "issue-7^") == made
    assert git(world.origin, "rev-parse", "issue-7^{tree}") == git(world.origin, "rev-parse", f"{made}^{{tree}}")
    assert gone(wt, world)


@pytest.mark.parametrize("hook", ["pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction"])
def test_no_hook_of_the_clone_has_a_say(world: World, hook: str) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / "n.txt").write_text("new\n")
        world.hook(hook, "echo formatted >>a.txt; exit 1", repository=world.launch / ".git")
        world.hook("pre-push", "exit 1", repository=world.launch / ".git")
        wt.preserve_failed_run("main", "x")
    assert (world.origin_file("issue-7", "a.txt"), world.origin_file("issue-7", "n.txt")) == ("edited", "new")
    assert gone(wt, world)


@pytest.mark.parametrize(
    "settings",
    [
        {"gpg.program": "/nonexistent"},
        {"gpg.program": "SLEEPER"},
        {"gpg.format": "ssh", "user.signingKey": "/nonexistent/key.pub"},
    ],
    ids=["missing", "hanging", "ssh-without-key"],
)
def test_signing_that_cannot_work_unattended_is_not_asked_for(
    world: World, tmp_path: Path, settings: dict[str, str]
) -> None:
    sleeper = tmp_path / "gpg"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o755)
    for key, value in {"commit.gpgSign": "true", "push.gpgSign": "true", **settings}.items():
        git(world.launch, "config", key, value.replace("SLEEPER", str(sleeper)))
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert "gpgsig" not in git(world.origin, "cat-file", "commit", "issue-7")
    assert gone(wt, world)


def test_nobody_needs_to_have_told_git_who_commits(world: World) -> None:
    git(world.launch, "config", "user.useConfigOnly", "true")
    configuration = (world.launch / ".git" / "config").read_bytes()
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert git(world.origin, "log", "-1", "--format=%an/%cn", "issue-7") == "Nightkeep/Nightkeep"
    assert (world.launch / ".git" / "config").read_bytes() == configuration
    assert gone(wt, world)


def test_an_empty_or_a_persons_identity_is_not_borrowed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    git(world.launch, "config", "user.name", "")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Person")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "person@example.com")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    author = git(world.origin, "log", "-1", "--format=%an %ce", "issue-7")
    assert author == "Nightkeep nightkeep@localhost"
    assert not git(world.origin, "log", "-1", "--format=%ad", "issue-7").startswith("Mon Jan 1")


def test_a_commit_that_fails_retains_the_staged_work(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        lock = world.launch / ".git" / "refs" / "heads" / "issue-7.lock"
        lock.touch()
        with pytest.raises(PreservationError, match="git commit"):
            wt.preserve_failed_run("main", "x")
    lock.unlink()
    assert kept(wt, world)
    assert git(wt.path, "show", ":a.txt") == "edited"
    assert not world.on_origin("issue-7")


def test_a_stale_index_lock_is_left_alone_and_the_work_is_in_a_snapshot(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / "n.txt").write_text("new\n")
        (admin_of(wt) / "index.lock").touch()
        with pytest.raises(PreservationError, match=r"index\.lock"):
            wt.preserve_failed_run("main", "x")
        assert (admin_of(wt) / "index.lock").exists()
    assert [world.origin_file(world.snapshot_refs()[0], name) for name in ("a.txt", "n.txt")] == ["edited", "new"]
    assert kept(wt, world)


def test_what_origin_refuses_is_not_pushed_by_another_name(world: World) -> None:
    world.hook("update", "case $1 in refs/heads/*) exit 1;; esac")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("edited\n")
        with pytest.raises(PreservationError):
            wt.preserve_failed_run("main", "x")
    assert not world.snapshot_refs()
    ((_, where),) = [place for place in wt.ending.places if place[0] == "snapshot"]
    assert git(world.launch, "show", f"{where.split()[0]}^2:a.txt") == "staged"
    assert kept(wt, world)


def _reject(world: World) -> None:
    world.hook("pre-receive", "echo not today >&2; exit 1")


@pytest.mark.parametrize("trouble", [_reject, World.take_origin_away])
def test_a_push_that_fails_leaves_the_marker_here(world: World, trouble: object) -> None:
    assert callable(trouble)
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        trouble(world)
        with pytest.raises(PreservationError, match=re.escape(str(wt.path))):
            wt.preserve_failed_run("main", "agent died")
    assert kept(wt, world)
    assert git(world.launch, "log", "-1", "--format=%s", "issue-7") == "nightkeep: failed run (agent died)"
    assert git(world.launch, "show", "issue-7:a.txt") == "edited"
    assert wt.ending.head == git(world.launch, "rev-parse", "issue-7")
    assert wt.ending.preserved is Preserved.MACHINE
    assert not (world.origin.exists() and world.on_origin("issue-7"))


def test_the_error_carries_what_the_remote_said(world: World) -> None:
    world.hook("pre-receive", "echo 'rule GH013: no force, ghp_0123456789abcdefghijABCDEFGHIJ' >&2; exit 1")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        with pytest.raises(PreservationError, match="rule GH013") as caught:
            wt.preserve_failed_run("main", "x")
    assert "ghp_" not in str(caught.value)
    said = caught.value.__cause__
    assert said is not None
    assert isinstance(said.__cause__, GitError)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_recorded_interruption_preservation_and_clean_up_still_work(world: World, signum: int) -> None:
    latch = Interruption()
    with create(world, latch) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        latch.record(signum)
        wt.preserve_failed_run("main", "interrupted")
        for refused in (wt.head, wt.push, lambda: wt.settle("x"), wt.head_beyond_base):
            with pytest.raises(Interrupted, match=r"^interrupted$"):
                refused()
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert gone(wt, world)
    assert latch.recorded == signum
    with pytest.raises(Interrupted):
        create(world, latch)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_preservation_stops_nothing(world: World, signum: int) -> None:
    latch = Interruption()
    world.hook("pre-receive", "sleep 0.6")
    with create(world, latch) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        threading.Timer(0.4, latch.record, (signum,)).start()
        wt.preserve_failed_run("main", "x")
        assert latch.recorded == signum
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert gone(wt, world)


def test_a_signal_during_an_ordinary_push_stops_it_and_the_work_is_still_preserved(world: World) -> None:
    latch = Interruption()
    world.hook("pre-receive", "sleep 30")
    with create(world, latch) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        commit(wt.path, "work")
        threading.Timer(0.5, latch.record, (signal.SIGTERM,)).start()
        before = time.monotonic()
        with pytest.raises(Interrupted):
            wt.push()
        assert time.monotonic() - before < 10
        (world.origin / "hooks" / "pre-receive").unlink()
        wt.preserve_failed_run("main", "interrupted")
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert gone(wt, world)


@pytest.mark.parametrize("edit", [False, True], ids=["unchanged", "changed"])
def test_success_after_an_error_lets_clean_up_happen_again(world: World, *, edit: bool) -> None:
    with create(world) as wt:
        if edit:
            (wt.path / "a.txt").write_text("edited\n")
        index = admin_of(wt) / "index"
        index.rename(index.with_name("index.saved"))
        index.mkdir()
        with pytest.raises(PreservationError):
            wt.preserve_failed_run("main", "x")
        index.rmdir()
        index.with_name("index.saved").rename(index)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert bool(world.on_origin("issue-7")) is edit


def test_an_error_after_success_arms_retention_again(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
        _reject(world)
        (wt.path / "a.txt").write_text("edited again\n")
        with pytest.raises(PreservationError):
            wt.preserve_failed_run("main", "x")
    assert kept(wt, world)


def _advance_origin(world: World, path: Path) -> str:
    git(world.origin, "worktree", "add", "-q", str(path), "main")
    (path / "a.txt").write_text("moved on\n")
    made = commit(path, "moved on")
    git(world.origin, "worktree", "remove", "--force", str(path))
    return made


def test_the_last_fetched_base_is_compared_without_fetching(world: World, tmp_path: Path) -> None:
    with create(world) as wt:
        fetched = git(world.launch, "rev-parse", "origin/main")
        _advance_origin(world, tmp_path / "other")
        wt.preserve_failed_run("main", "x")
        assert git(world.launch, "rev-parse", "origin/main") == fetched
    assert gone(wt, world)
    assert not world.on_origin("issue-7")


def test_a_siblings_fetch_does_not_make_an_untouched_worktree_look_changed(world: World, tmp_path: Path) -> None:
    with create(world) as wt:
        _advance_origin(world, tmp_path / "other")
        git(world.launch, "fetch", "-q", "origin")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert not world.on_origin("issue-7")


def test_a_missing_comparison_ref_means_changes(world: World) -> None:
    with create(world) as wt:
        git(world.launch, "update-ref", "-d", "refs/remotes/origin/main")
        wt.preserve_failed_run("main", "x")
    assert git(world.origin, "log", "-1", "--format=%s", "issue-7") == "nightkeep: failed run (x)"
    assert gone(wt, world)


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_unwinding_while_the_error_is_handled_keeps_the_work(world: World, kind: type[BaseException]) -> None:
    _reject(world)
    with contextlib.suppress(kind), create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        try:
            wt.preserve_failed_run("main", "x")
        except PreservationError as error:
            raise kind from error
    assert kept(wt, world)
    assert (wt.path / "a.txt").read_text() == "edited\n"


def test_unwinding_without_any_preservation_keeps_the_work(world: World) -> None:
    with contextlib.suppress(RuntimeError), create(world) as wt:
        (wt.path / "n.txt").write_text("untracked\n")
        raise RuntimeError
    assert gone(wt, world)
    assert (stored(world, wt) / "n.txt").read_text() == "untracked\n"
    assert not world.on_origin("issue-7")


def test_commits_whose_sum_is_nothing_are_not_lost(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("tried\n")
        made = commit(wt.path, "try")
        git(wt.path, "revert", "--no-edit", made)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert not world.on_origin("issue-7")
    assert origin_has(world, "tried\n")
    assert made in git(world.origin, "rev-list", rescue_ref(wt, "made"))


def test_a_tag_named_like_the_branch_is_not_in_the_way(world: World) -> None:
    git(world.launch, "tag", "issue-7")
    git(world.launch, "push", "-q", "origin", "refs/tags/issue-7")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("refs/heads/issue-7", "a.txt") == "edited"
    assert gone(wt, world)


def test_a_branch_that_moved_on_at_origin_is_never_forced(world: World, tmp_path: Path) -> None:
    git(world.launch, "push", "-q", "origin", "main:refs/heads/issue-7")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        theirs = git(world.origin, "commit-tree", "main^{tree}", "-p", "main", "-m", "a person's")
        git(world.origin, "update-ref", "refs/heads/issue-7", theirs)
        with pytest.raises(PreservationError, match="origin holds commits there that are not here"):
            wt.preserve_failed_run("main", "x")
    assert world.on_origin("issue-7") == theirs
    assert world.on_origin(rescue_ref(wt, "head")) == git(world.launch, "rev-parse", "issue-7")
    assert world.origin_file(rescue_ref(wt, "head"), "a.txt") == "edited"
    assert kept(wt, world)


@pytest.mark.parametrize(
    ("reason", "subject"),
    [
        ("#12 is bad", "nightkeep: failed run (#12 is bad)"),
        ("one\ntwo", "nightkeep: failed run (one)"),
        ("", "nightkeep: failed run (unknown)"),
        ("token ghp_0123456789abcdefghijABCDEFGHIJ", "nightkeep: failed run (token ***)"),
        ("ü" * 200, "nightkeep: failed run (" + "ü" * 95 + "…)"),
        ("odd \udcff byte", None),
    ],
)
def test_the_reason_is_one_redacted_line(world: World, reason: str, subject: str | None) -> None:
    for key, value in {"commit.cleanup": "strip", "core.commentChar": "#", "commit.verbose": "true"}.items():
        git(world.launch, "config", key, value)
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", reason)
    if subject is not None:
        assert git(world.origin, "log", "-1", "--format=%s", "issue-7") == subject
    assert gone(wt, world)


def test_a_file_over_the_limit_stays_and_is_named_and_the_rest_goes(world: World) -> None:
    limits = Limits(lock=0.3, file=1000)
    with create(world, limits=limits) as wt:
        (wt.path / ":(top)big").write_bytes(b"x" * 1001)
        (wt.path / "big2").write_bytes(b"y" * 1000)
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    left = ":(top)big: too large to be screened"
    assert ("left out of the commit", left) in wt.ending.places
    assert git(world.origin, "ls-tree", "--name-only", "issue-7").split() == [
        ".gitignore",
        "a.txt",
        "b.txt",
        "big2",
        "n.txt",
    ]
    assert reasons(world, wt) == {":(top)big": "untracked"}
    assert (stored(world, wt) / ":(top)big").read_bytes() == b"x" * 1001


@pytest.mark.parametrize("commits", [0, 1], ids=["without-commit", "with-commit"])
def test_a_nested_repository_stays_and_the_rest_goes(world: World, commits: int) -> None:
    with create(world) as wt:
        nested = wt.path / "deep" / "app"
        nested.mkdir(parents=True)
        git(nested, "init", "-q")
        (nested / "code.txt").write_text("code\n")
        if commits:
            commit(nested, "inside")
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
        before = contents(wt.path, "deep")
    assert gone(wt, world)
    assert world.origin_file("issue-7", "n.txt") == "new"
    assert contents(stored(world, wt)) == before
    assert "code.txt" in {path.rpartition("/")[2] for path in before}


def test_a_lost_index_costs_nothing(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        (admin_of(wt) / "index").unlink()
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert world.origin_file("issue-7", "b.txt") == "b"
    assert gone(wt, world)


@pytest.mark.parametrize("how", ["removed", "file", "directory"])
def test_work_is_preserved_when_the_dot_git_was_tampered_with(world: World, how: str) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / ".git").unlink()
        if how == "file":
            (wt.path / ".git").write_text(f"gitdir: {world.launch / '.git'}\n")
        if how == "directory":
            git(wt.path, "init", "-q")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert wt.ending.kept
    assert (wt.path / "a.txt").read_text() == "edited\n"
    assert "replaced or removed" in wt.ending.why
    assert git(world.launch, "rev-parse", "main") == world.on_origin("main")


def test_of_a_directory_that_vanished_the_commits_are_pushed_and_no_deletion(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        made = commit(wt.path, "work")
        shutil.rmtree(wt.path)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert world.on_origin("issue-7") == made


def _amend(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("left behind\n")
    commit(wt.path, "first")
    (wt.path / "a.txt").write_text("second\n")
    git(wt.path, "commit", "-q", "-a", "--amend", "-m", "second")


def _reset(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("left behind\n")
    commit(wt.path, "first")
    git(wt.path, "reset", "-q", "--hard", "HEAD^")
    (wt.path / "n.txt").write_text("new\n")


def _detach_and_return(wt: Worktree) -> None:
    git(wt.path, "checkout", "-q", "--detach")
    (wt.path / "a.txt").write_text("left behind\n")
    commit(wt.path, "elsewhere")
    git(wt.path, "checkout", "-q", "issue-7")
    (wt.path / "n.txt").write_text("new\n")


def _visit_another_branch(wt: Worktree) -> None:
    git(wt.path, "checkout", "-q", "-b", "other")
    (wt.path / "a.txt").write_text("left behind\n")
    commit(wt.path, "elsewhere")
    git(wt.path, "checkout", "-q", "issue-7")
    (wt.path / "n.txt").write_text("new\n")


def _stash(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("left behind\n")
    git(wt.path, "stash", "-q")
    (wt.path / "n.txt").write_text("new\n")


def _stash_on_a_detached_head(wt: Worktree) -> None:
    """Its subject names no branch; that it was the run's is told by the commit it was made on."""
    git(wt.path, "checkout", "-q", "--detach")
    (wt.path / "n.txt").write_text("new\n")
    commit(wt.path, "elsewhere")
    _stash(wt)


@pytest.mark.parametrize(
    "act",
    [_amend, _reset, _detach_and_return, _visit_another_branch, _stash, _stash_on_a_detached_head],
    ids=lambda act: act.__name__.strip("_"),
)
def test_what_the_run_made_and_no_branch_carries_goes_to_a_ref_of_its_own(
    world: World, act: Callable[[Worktree], None]
) -> None:
    with create(world) as wt:
        act(wt)
        others = _others(world)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert _others(world) == others
    assert not local_rescue_refs(world)
    made = world.on_origin(rescue_ref(wt, "made"))
    assert ("made", f"{rescue_ref(wt, 'made')} at {made} on origin") in wt.ending.places
    assert "left behind" in git(world.origin, "log", "-m", "-p", "--format=", made)
    assert git(world.origin, "log", "-1", "--format=%an %s", made).startswith("Nightkeep nightkeep: made on issue-7")


def _others(world: World) -> str:
    """Every ref of the clone but the Issue branch, and every entry of the stash."""
    refs = git(world.launch, "for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    return "\n".join([*(ref for ref in refs if "issue-7" not in ref), git(world.launch, "stash", "list")])


def test_a_persons_stash_and_branch_stay_theirs(world: World) -> None:
    with create(world) as wt:
        (world.launch / "a.txt").write_text("a person's stash\n")
        git(world.launch, "stash", "-q")
        git(world.launch, "checkout", "-q", "-b", "mine")
        (world.launch / "a.txt").write_text("a person's branch\n")
        commit(world.launch, "mine")
        _stash(wt)
        others = _others(world)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert _others(world) == others
    assert origin_has(world, "left behind\n")
    for theirs in ("stash", "branch"):
        assert not origin_has(world, f"a person's {theirs}\n")
    named = [where for what, where in wt.ending.places if what == "made during the run"]
    assert any(where.startswith("refs/heads/mine at ") for where in named)


def _with_a_stash(world: World) -> None:
    (world.launch / "a.txt").write_text("a person's old stash\n")
    git(world.launch, "stash", "-q")


def test_beside_a_persons_old_stash_the_runs_own_is_at_least_kept(world: World) -> None:
    _with_a_stash(world)
    with create(world) as wt:
        _stash(wt)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert not origin_has(world, "a person's old stash\n")
    assert origin_has(world, "left behind\n") or kept_locally(world, "left behind\n")


def test_beside_a_persons_old_stash_the_runs_own_goes_to_origin(world: World) -> None:
    _with_a_stash(world)
    with create(world) as wt:
        _stash(wt)
        wt.preserve_failed_run("main", "x")
    assert origin_has(world, "left behind\n")
    assert wt.ending.preserved is Preserved.ORIGIN


def test_commits_of_a_persons_that_head_only_visited_are_not_the_runs(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "draft")
    (world.launch / "a.txt").write_text("a person's\n")
    commit(world.launch, "draft")
    git(world.launch, "checkout", "-q", "main")
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "draft")
        git(wt.path, "checkout", "-q", "issue-7")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert not world.snapshot_refs()
    assert not local_rescue_refs(world)
    assert (wt.ending.places, wt.ending.preserved) == ((), Preserved.NOTHING_MADE)


def test_what_was_made_on_a_persons_commit_stays_here_and_is_named(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "draft")
    (world.launch / "b.txt").write_text("a person's\n")
    private = commit(world.launch, "draft")
    git(world.launch, "checkout", "-q", "main")
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "--detach", "draft")
        (wt.path / "a.txt").write_text("left behind\n")
        commit(wt.path, "on a draft")
        git(wt.path, "checkout", "-q", "issue-7")
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert world.origin_file("issue-7", "n.txt") == "new"
    assert not origin_has(world, "a person's\n")
    assert kept_locally(world, "left behind\n")
    (reason,) = [where for what, where in wt.ending.places if what == "not pushed"]
    assert private in reason
    assert any(where.startswith(rescue_ref(wt, "made")) for what, where in wt.ending.places if what == "made")
    assert wt.ending.preserved is Preserved.MACHINE


def test_a_branch_that_a_session_made_and_left_head_on_is_named_with_the_way_to_be_rid_of_it(world: World) -> None:
    git(world.launch, "branch", "theirs")
    left: dict[str, str] = {}
    for branch, flags in {"its own": ["-b"], "theirs": []}.items():
        with create(world, branch=f"issue-{len(left)}") as wt:
            name = branch.replace(" ", "-")
            git(wt.path, "checkout", "-q", *flags, name)
            (wt.path / "a.txt").write_text(f"on {name}\n")
            wt.preserve_failed_run("main", "x")
        left[name] = dict(wt.ending.places)["HEAD was left on"]
    assert left == {
        "its-own": "its-own (new, and still in the clone; be rid of it: git branch -D its-own)",
        "theirs": "theirs",
    }
