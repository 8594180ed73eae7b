"""A ref that one run alone holds: who takes it, what keeps it, and that nothing lands once it is lost."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.hub import Hub, Permission
from tests.worktree.fences import IMPATIENT, REF, a_fence, opened
from tests.worktree.runs import gone
from tests.world import World, commit, git
from worktree import (
    ABSENT,
    CheckpointRule,
    Fence,
    FenceLostError,
    Interruption,
    Launch,
    Origin,
    Pace,
    PushRefused,
    RefUpdate,
    TransferError,
    Worktree,
)

QUICK = Pace(lease=0.4, beat=0.1)
ZERO = "0" * 40


@pytest.fixture(params=["a path", "the hub"])
def origin(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Iterator[Origin | None]:
    """Where pushes go: by git to a path, or from within this process over HTTP, with a token."""
    if request.param == "a path":
        yield None
        return
    tokens = {"writer-token-0001": Permission.WRITE}
    with Hub(tmp_path / "hub", repositories={"acme/widget": world.origin}, tokens=tokens) as hub:
        yield Origin(f"{hub.url}/acme/widget.git", "writer-token-0001")


def messages(world: World) -> list[str]:
    """Return what the records of the ref say, the first one first."""
    return git(world.origin, "log", "--reverse", "--format=%s", REF).splitlines()


def overtaken(world: World) -> str:
    """Let another run have the ref; return its record."""
    other = a_fence(world, "other")
    other.take(replaces=world.on_origin(REF) or ABSENT)
    return world.on_origin(REF)


def fenced(world: World, fence: Fence, origin: Origin | None = None) -> Worktree:
    latch = Interruption()
    launch = Launch.open(world.launch, interruption=latch, limits=IMPATIENT)
    return Worktree.create(launch, branch="issue-7", base="main", interruption=latch, origin=origin, fence=fence)


def work(wt: Worktree, text: str = "edited\n") -> str:
    (wt.path / "a.txt").write_text(text)
    return commit(wt.path, "work")


def rescued(world: World, name: str) -> str:
    """Return the commit of the only rescue ref of that name on origin."""
    rows = git(world.origin, "for-each-ref", "--format=%(objectname) %(refname)", "refs/nightkeep/rescue").splitlines()
    (found,) = [row.split(" ")[0] for row in rows if row.endswith(f"/{name}")]
    return found


def test_one_of_two_gets_it(world: World, origin: Origin | None) -> None:
    first, second = (a_fence(world, who, origin=origin) for who in ("first", "second"))
    first.take()
    with pytest.raises(FenceLostError, match="another run"):
        second.take()
    assert messages(world) == ["first 1"]
    git(world.origin, "fsck", "--strict")


def test_it_is_taken_over_from_the_record_that_is_named_and_from_no_other(world: World, origin: Origin | None) -> None:
    dead = a_fence(world, "dead", origin=origin)
    dead.take()
    seen = world.on_origin(REF)
    git(world.launch, "fetch", "-q", str(world.origin), REF)
    first, second = (a_fence(world, who, origin=origin) for who in ("first", "second"))
    first.take(replaces=seen)
    with pytest.raises(FenceLostError):
        second.take(replaces=seen)
    assert messages(world) == ["dead 1", "first 1"]
    with pytest.raises(FenceLostError):
        dead.push(opened(world).remote(origin), RefUpdate("refs/heads/x", seen, ABSENT))
    assert not world.on_origin("refs/heads/x")


def test_signs_of_life_are_given_at_their_pace_and_the_end_takes_it_away(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, pace=QUICK, origin=origin)
    fence.take()
    until = time.monotonic() + 20
    while len(messages(world)) < 4 and time.monotonic() < until:
        fence.tick()
        time.sleep(0.01)
    assert messages(world)[:4] == ["one 1", "one 2", "one 3", "one 4"]
    assert fence.lost is None
    fence.end()
    assert not world.on_origin(REF)


def test_a_sign_of_life_tells_that_it_is_lost(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, pace=QUICK, origin=origin)
    fence.take()
    theirs = overtaken(world)
    until = time.monotonic() + 20
    while fence.lost is None and time.monotonic() < until:
        fence.tick()
        time.sleep(0.01)
    assert fence.lost == f"{REF} is lost: on origin it is at {theirs[:12]}, which another run made"
    fence.end()
    assert world.on_origin(REF) == theirs


def test_one_that_somebody_deleted_is_lost(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, pace=Pace(lease=0.1, beat=0.1), origin=origin)
    fence.take()
    git(world.origin, "update-ref", "-d", REF)
    with pytest.raises(FenceLostError, match="is gone"):
        fence.confirm()


def test_it_is_known_without_asking_while_the_last_record_is_young(world: World) -> None:
    young, old = a_fence(world), a_fence(world, pace=Pace(lease=0.1, beat=0.1))
    young.take()
    overtaken(world)
    young.confirm()
    git(world.origin, "update-ref", "-d", REF)
    old.take()
    old.confirm()
    assert messages(world) == ["one 1", "one 2"]


def test_each_push_moves_it(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, origin=origin)
    fence.take()
    with fenced(world, fence, origin) as wt:
        work(wt)
        wt.push()
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("edited again\n")
        wt.preserve_failed_run("main", "x")
    assert messages(world) == ["one 1", "one 2", "one 3", "one 4"]
    assert gone(wt, world)


def test_nothing_lands_on_the_branch_once_it_is_lost_and_the_work_is_on_rescue_refs(
    world: World, origin: Origin | None
) -> None:
    fence = a_fence(world, origin=origin)
    fence.take()
    with fenced(world, fence, origin) as wt:
        made = work(wt)
        theirs = overtaken(world)
        with pytest.raises(FenceLostError):
            wt.push()
        (wt.path / "left.txt").write_text("left\n")
        wt.preserve_failed_run("main", "x")
    assert not world.on_origin("refs/heads/issue-7")
    assert world.on_origin(REF) == theirs
    kept = rescued(world, "head")
    assert git(world.origin, "rev-parse", f"{kept}~") == made
    assert world.origin_file(kept, "left.txt") == "left"
    assert wt.is_fence_lost
    assert gone(wt, world)


def test_a_loss_that_only_preserving_finds_ends_the_same(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, origin=origin)
    fence.take()
    with fenced(world, fence, origin) as wt:
        made = work(wt)
        overtaken(world)
        wt.preserve_failed_run("main", "x")
    assert not world.on_origin("refs/heads/issue-7")
    assert git(world.origin, "rev-parse", f"{rescued(world, 'head')}~") == made
    assert gone(wt, world)


def test_checkpoints_move_it_too_and_land_no_more_once_it_is_lost(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, origin=origin)
    fence.take()
    with fenced(world, fence, origin) as wt:
        ref = f"refs/nightkeep/checkpoints/{wt.run_id}"
        watch = wt.watch(CheckpointRule(every=0), lambda _: None)
        work(wt)
        until = time.monotonic() + 20
        while not world.on_origin(ref) and time.monotonic() < until:
            watch.tick()
            time.sleep(0.01)
        assert len(messages(world)) > 1
        assert messages(world)[-1].startswith("one ")
        before = world.on_origin(ref)
        overtaken(world)
        work(wt, "more\n")
        while not watch.why_stop and time.monotonic() < until:
            watch.tick()
            time.sleep(0.01)
        assert watch.why_stop
        assert world.on_origin(ref) == before
        wt.preserve_failed_run("main", "x")
    assert wt.is_fence_lost


def test_a_move_that_was_late_is_known_again(world: World, origin: Origin | None) -> None:
    """An answer was lost, and what it answered came only after somebody looked."""
    fence = a_fence(world, origin=origin)
    fence.take()
    late = fence._next()
    git(world.origin, "fetch", "-q", str(world.launch), late.new)
    git(world.origin, "update-ref", REF, late.new)
    with fenced(world, fence, origin) as wt:
        made = work(wt)
        assert wt.push() == made
    assert world.on_origin("refs/heads/issue-7") == made
    assert messages(world)[:2] == ["one 1", "one 2"]


def test_one_that_was_put_back_to_an_earlier_record_is_moved_from_there(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, origin=origin)
    fence.take()
    first = world.on_origin(REF)
    with fenced(world, fence, origin) as wt:
        work(wt)
        wt.push()
        git(world.origin, "update-ref", REF, first)
        made = work(wt, "more\n")
        assert wt.push() == made
    assert messages(world)[0] == "one 1"
    assert len(messages(world)) == 2
    fence.end()
    assert not world.on_origin(REF)


def test_what_origin_refuses_for_another_reason_is_not_taken_for_a_loss(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, origin=origin)
    fence.take()
    with fenced(world, fence, origin) as wt:
        work(wt)
        world.hook("update", 'case "$1" in refs/heads/*) echo no >&2; exit 1;; esac')
        with pytest.raises(PushRefused) as caught:
            wt.push()
        assert str(caught.value) == "origin did not take refs/heads/issue-7: no (hook declined)"
        assert fence.lost is None
        world.hook("update", "exit 0")
        wt.push()
    assert messages(world)[0] == "one 1"


def test_origin_that_takes_no_such_ref_says_so(world: World, origin: Origin | None) -> None:
    world.hook("update", 'case "$1" in refs/nightkeep/*) echo no >&2; exit 1;; esac')
    with pytest.raises((PushRefused, TransferError)) as caught:
        a_fence(world, origin=origin).take()
    assert not isinstance(caught.value, TransferError) or caught.value.is_refusal


def test_origin_that_takes_no_refs_together_still_lets_one_alone_have_it(world: World, origin: Origin | None) -> None:
    git(world.origin, "config", "receive.advertiseAtomic", "false")
    fence = a_fence(world, origin=origin, is_atomic=False)
    fence.take()
    with pytest.raises(FenceLostError):
        a_fence(world, "two", origin=origin, is_atomic=False).take()
    with fenced(world, fence, origin) as wt:
        made = work(wt)
        assert wt.push() == made
    fence.end()
    assert not world.on_origin(REF)


def test_records_that_an_agent_threw_away_are_no_obstacle(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, origin=origin)
    fence.take()
    with fenced(world, fence, origin) as wt:
        work(wt)
        wt.push()
        subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=world.launch, check=True)
        more = work(wt, "more\n")
        subprocess.run(["git", "prune", "--expire=now"], cwd=world.launch, check=True)
        assert wt.push() == more
    assert messages(world) == ["one 1", "one 2", "one 3"]


def test_the_run_goes_on_with_its_own_after_a_kill(world: World, origin: Origin | None) -> None:
    fence = a_fence(world, origin=origin)
    fence.take()
    git(world.launch, "fetch", "-q", str(world.origin), REF)
    again = a_fence(world, "again", origin=origin)
    again.adopt(world.on_origin(REF))
    again.confirm()
    assert messages(world) == ["one 1", "again 1"]
    again.end()
    assert not world.on_origin(REF)
