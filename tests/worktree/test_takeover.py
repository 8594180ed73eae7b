"""Going on from a run that vanished with its machine: what it made is named in every case, and never nobody's."""

import os
import subprocess

import pytest

from tests.worktree.runs import create
from tests.world import World, commit, git
from worktree import (
    Checkpoint,
    CheckpointRule,
    Interruption,
    Launch,
    Preserved,
    PushRefused,
    Worktree,
    WorktreeError,
    prepare,
    read_checkpoints,
)

_REFS = "refs/nightkeep/checkpoints/"


def vanished(world: World, *commands: tuple[str, ...]) -> Worktree:
    """A run of which origin has a commit and an uncommitted file, and this machine nothing but objects."""
    wt = create(world)
    (wt.path / "one.txt").write_text("one\n")
    commit(wt.path, "one")
    for command in commands:
        git(wt.path, *command, check=False)
    (wt.path / "left.txt").write_text("left\n")
    wt.watch(CheckpointRule(every=0), pytest.fail).tick()
    wt._checkout.directory.release()  # as the kernel does for a runner that was killed
    git(world.launch, "worktree", "remove", "--force", "--force", str(wt.path))
    git(world.launch, "branch", "-q", "-D", "issue-7")
    subprocess.run(["rm", "-r", str(world.launch / ".git" / "nightkeep")], check=True)
    git(world.launch, "update-ref", "-d", f"{_REFS}{wt.run_id}")
    return wt


def there(world: World) -> dict[str, str]:
    rows = git(world.origin, "for-each-ref", "--format=%(refname) %(objectname)", _REFS).splitlines()
    return dict(row.split(" ") for row in rows)


def launched(world: World) -> Launch:
    return Launch.open(world.launch, interruption=Interruption())


def take_over(world: World, wt: Worktree, checkpoint: Checkpoint) -> bool:
    """Take it over on origin, then in the worktree, as a Run does."""
    launch = launched(world)
    ready = prepare(launch, checkpoint, run_id=wt.run_id, branch="issue-7", base="main", start=None, is_fenced=False)
    launch.remote().push(*ready.updates)
    return wt.take_over(ready)


def test_what_it_made_is_in_the_new_worktree_and_is_a_checkpoint_of_the_new_run_at_once(world: World) -> None:
    dead = vanished(world)
    (checkpoint,) = read_checkpoints(launched(world), None, there(world))
    with create(world) as wt:
        assert take_over(world, wt, checkpoint)
        assert git(wt.path, "log", "-1", "--format=%s") == "one"
        assert git(wt.path, "status", "--porcelain") == "?? left.txt"
        (own,) = read_checkpoints(launched(world), None, there(world))
        assert (own.run_id, own.branch) == (wt.run_id, "issue-7")
        assert own.moment >= checkpoint.moment
        assert world.origin_file(own.commit, "left.txt") == "left"
        assert world.on_origin(f"refs/nightkeep/rescue/{dead.run_id}/checkpoint") == checkpoint.commit
        wt.settle("made")
        wt.push()
    assert there(world) == {}
    assert {"one.txt", "left.txt"} <= set(git(world.origin, "ls-tree", "--name-only", "issue-7").splitlines())


def test_a_failure_in_between_names_it_and_does_not_say_that_nothing_was_made(world: World) -> None:
    dead = vanished(world)
    (checkpoint,) = read_checkpoints(launched(world), None, there(world))
    world.hook("post-receive", f"rm -rf {world.launch.with_name('widget-issue-7')}")  # nothing can be restored there
    with create(world) as wt, pytest.raises(WorktreeError, match="issue-7"):
        take_over(world, wt, checkpoint)
    assert any(f"refs/nightkeep/rescue/{dead.run_id}/checkpoint" in where for _, where in wt.ending.places)
    assert wt.ending.preserved is not Preserved.NOTHING_MADE


@pytest.mark.parametrize(
    ("commands", "why"),
    [
        ([("checkout", "-q", "--detach", "main")], "its session left a detached HEAD checked out"),
        (
            [("checkout", "-q", "-b", "side", "main"), ("rm", "-q", "a.txt"), ("commit", "-qm", "side"),
             ("checkout", "-q", "issue-7"), ("mv", "a.txt", "c.txt"), ("commit", "-qm", "moved"), ("merge", "side")],
            "its session left a merge unfinished",
        ),
    ],
    ids=["HEAD elsewhere", "a merge in progress"],
)  # fmt: skip
def test_what_nobody_can_simply_go_on_from_is_kept_and_named(
    world: World, commands: list[tuple[str, ...]], why: str
) -> None:
    dead = vanished(world, *commands)
    (checkpoint,) = read_checkpoints(launched(world), None, there(world))
    with create(world) as wt:
        assert not take_over(world, wt, checkpoint)
        assert git(wt.path, "status", "--porcelain") == ""
    kept = f"refs/nightkeep/rescue/{dead.run_id}/checkpoint"
    assert world.on_origin(kept) == checkpoint.commit
    assert any(kept in where and why in where for _, where in wt.ending.places), wt.ending.places
    assert git(world.origin, "log", "--format=%s", kept).count("one") == 1


def test_only_one_run_takes_it_over(world: World) -> None:
    vanished(world)
    (checkpoint,) = read_checkpoints(launched(world), None, there(world))
    with create(world) as first:
        assert take_over(world, first, checkpoint)
        latch = Interruption()
        with Worktree.create(world.launch, branch="issue-8", base="main", interruption=latch) as second:
            with pytest.raises(PushRefused):
                take_over(world, second, checkpoint)
            assert git(second.path, "status", "--porcelain") == ""


def test_what_is_gone_by_now_or_from_no_time_is_passed_over(world: World) -> None:
    vanished(world)
    seen = there(world)
    words = "\n".join(f"Nightkeep-{name}: x" for name in ("Run", "Branch", "Base", "Host"))
    made = subprocess.run(
        ["git", "commit-tree", "main^{tree}", "-m", f"x\n\n{words}"],
        cwd=world.origin,
        env={**os.environ, **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "x"),
             **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "x@x"),
             "GIT_COMMITTER_DATE": "@4102444800000 +0000"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()  # fmt: skip
    git(world.origin, "update-ref", f"{_REFS}x", made)
    found = read_checkpoints(launched(world), None, {**there(world), f"{_REFS}gone": "0" * 40})
    assert {f"{_REFS}{one.run_id}": one.commit for one in found} == seen
