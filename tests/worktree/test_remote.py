"""What is said to be on origin was read back from there, and nothing is forced."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worktree.runs import IMPATIENT, create, gone, kept, origin_refs
from tests.world import World, commit, git
from worktree import GitError, Interruption, Launch, Limits, Origin, RefUpdate, Worktree

TOKEN = "token-that-nobody-may-see"  # a sentinel, not a credential

_CLAIM = "refs/nightkeep/claims/7"


def work(wt: Worktree) -> str:
    (wt.path / "a.txt").write_text("edited\n")
    return commit(wt.path, "work")


def test_a_push_is_read_back(world: World) -> None:
    with create(world) as wt:
        made = work(wt)
        assert not wt.has_work_on_origin
        assert wt.push() == made
        assert (wt.on_origin, world.on_origin("issue-7")) == (made, made)
        assert wt.push() == made, "once more is no error"
    assert ("Issue branch", f"refs/heads/issue-7 at {made} on origin") in wt.ending.places


@pytest.mark.parametrize("lie", ["update-ref refs/heads/issue-7 main", "update-ref -d refs/heads/issue-7"])
def test_a_server_that_took_it_and_does_not_hold_it_is_an_error(world: World, lie: str) -> None:
    world.hook("post-receive", f"git {lie}")
    with create(world) as wt:
        work(wt)
        with pytest.raises(GitError, match="origin took refs/heads/issue-7 but does not hold it"):
            wt.push()
        assert wt.on_origin is None
    assert kept(wt, world)


def test_a_lost_answer_after_success_counts(world: World) -> None:
    world.hook("post-receive", "kill -9 $PPID; sleep 0.2")
    with create(world) as wt:
        made = work(wt)
        wt.push()
    assert world.on_origin("issue-7") == made
    assert gone(wt, world)


def test_an_answer_that_does_not_come_in_time_counts_when_origin_holds_it(world: World) -> None:
    world.hook("post-receive", "sleep 20")
    with create(world, limits=Limits(lock=0.3, push=1.5, stop=1)) as wt:
        made = work(wt)
        before = time.monotonic()
        wt.push()
        assert time.monotonic() - before < 8
    assert world.on_origin("issue-7") == made


def test_a_push_that_takes_too_long_is_given_up(world: World) -> None:
    world.hook("pre-receive", "sleep 20")
    with create(world, limits=Limits(lock=0.3, push=1, stop=1)) as wt:
        work(wt)
        before = time.monotonic()
        with pytest.raises(GitError, match="stopped at its deadline"):
            wt.push()
        assert time.monotonic() - before < 8
    assert not world.on_origin("issue-7")
    assert kept(wt, world)


def _somebody_else(world: World) -> None:
    git(world.origin, "update-ref", "refs/heads/issue-7", git(world.origin, "commit-tree", "main^{tree}", "-m", "x"))


def _hook_refuses(world: World) -> None:
    world.hook("pre-receive", "echo no >&2; exit 1")


def _update_hook_refuses(world: World) -> None:
    world.hook("update", "exit 1")


def _name_in_the_way(world: World) -> None:
    git(world.origin, "update-ref", "refs/heads/issue-7/part", "main")


def _away(world: World) -> None:
    world.origin.rename(world.origin.with_name("elsewhere.git"))


@pytest.mark.parametrize(
    "trouble", [_somebody_else, _hook_refuses, _update_hook_refuses, _name_in_the_way, _away], ids=lambda f: f.__name__
)
def test_a_refused_push_changes_nothing_on_origin(world: World, trouble: Callable[[World], None]) -> None:
    with create(world) as wt:
        made = work(wt)
        trouble(world)
        before = origin_refs(world) if world.origin.exists() else ""
        with pytest.raises(GitError, match="git push"):
            wt.push()
    assert kept(wt, world)
    assert (origin_refs(world) if world.origin.exists() else "") == before
    assert git(world.launch, "rev-parse", "issue-7") == made


def test_only_what_is_named_is_pushed(world: World) -> None:
    for key, value in {"push.followTags": "true", "remote.origin.mirror": "true", "push.default": "matching"}.items():
        git(world.launch, "config", "--global", key, value)
    git(world.launch, "branch", "private")
    with create(world) as wt:
        work(wt)
        git(wt.path, "tag", "-a", "v1", "-m", "v1")
        wt.push()
    assert origin_refs(world).count("\n") == 1
    assert world.on_origin("refs/heads/issue-7")


class Claim:
    """A fence as delivery makes it: each push moves the claim to a new record."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.held = ""
        self.moves = 0

    def __call__(self) -> RefUpdate:
        self.moves += 1
        parent = ["-p", self.held] if self.held else []
        record = git(self._world.launch, "commit-tree", "main^{tree}", *parent, "-m", f"record {self.moves}")
        before, self.held = self.held, record
        return RefUpdate(_CLAIM, record, before)


def fenced(world: World, claim: Claim) -> Worktree:
    latch = Interruption()
    launch = Launch.open(world.launch, interruption=latch, limits=IMPATIENT)
    return Worktree.create(launch, branch="issue-7", base="main", interruption=latch, fence=claim)


def test_the_claim_travels_with_each_push(world: World) -> None:
    claim = Claim(world)
    with fenced(world, claim) as wt:
        work(wt)
        wt.push()
        assert world.on_origin(_CLAIM) == claim.held
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("edited again\n")
        wt.preserve_failed_run("main", "x")
    assert (world.on_origin(_CLAIM), claim.moves) == (claim.held, 3)
    assert git(world.origin, "rev-list", "--count", _CLAIM) == "3"
    assert gone(wt, world)


def test_a_lost_claim_refuses_the_whole_push(world: World) -> None:
    with fenced(world, Claim(world)) as wt:
        work(wt)
        git(world.origin, "update-ref", _CLAIM, "main")
        before = origin_refs(world)
        with pytest.raises(GitError, match="stale info"):
            wt.push()
        with pytest.raises(Exception, match="stale info"):
            wt.preserve_failed_run("main", "x")
    assert origin_refs(world) == before
    assert kept(wt, world)


_SPY = """#!/bin/sh
{{ tr '\\0' '\\n' </proc/$$/environ; tr '\\0' '\\n' </proc/$$/cmdline; }} >>{log}
exec {git} "$@"
"""


def test_a_token_is_in_no_argument_and_no_environment(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = git(tmp_path, "--exec-path") + "/git"
    spy = tmp_path / "bin" / "git"
    spy.parent.mkdir()
    spy.write_text(_SPY.format(log=tmp_path / "seen", git=real))
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")
    origin = Origin(str(world.origin), TOKEN)
    assert TOKEN not in repr(origin)
    with Worktree.create(world.launch, branch="issue-7", base="main", interruption=Interruption(), origin=origin) as wt:
        work(wt)
        wt.push()
    seen = (tmp_path / "seen").read_text()
    assert "push" in seen
    assert TOKEN not in seen
    assert TOKEN not in "".join(
        p.read_text(errors="replace") for p in (world.launch / ".git").rglob("*") if p.is_file()
    )
    assert not wt.ending.kept


def test_with_a_token_no_configuration_of_the_clone_or_the_user_redirects_it(world: World) -> None:
    trap = world.origin.with_name("trap.git")
    git(world.launch, "clone", "-q", "--bare", str(world.origin), str(trap))
    origin = Origin(f"file://{world.origin}", TOKEN)
    with Worktree.create(world.launch, branch="issue-7", base="main", interruption=Interruption(), origin=origin) as wt:
        made = work(wt)
        for scope in ("--local", "--global"):
            git(wt.path, "config", scope, f"url.file://{trap}.insteadOf", f"file://{world.origin}")
            git(wt.path, "config", scope, f"url.file://{trap}.pushInsteadOf", f"file://{world.origin}")
        wt.push()
        wt.preserve_failed_run("main", "x")
    assert made in git(world.origin, "rev-list", "issue-7")
    assert "issue-7" not in git(trap, "for-each-ref")


def test_pushes_of_two_runs_at_once_both_arrive(world: World) -> None:
    latch = Interruption()
    runs = [
        Worktree.create(world.launch, branch=f"issue-{number}", base="main", interruption=latch) for number in (7, 8)
    ]
    for wt in runs:
        work(wt)
    threads = [threading.Thread(target=wt.push) for wt in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for wt in runs:
        with wt:
            assert world.on_origin(wt.branch) == wt.head()
        assert not wt.ending.kept
