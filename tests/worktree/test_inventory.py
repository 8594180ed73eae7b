"""Which worktrees there are, and how it stands with each."""

import os
import shutil

import pytest

from tests.worktree.left import everything, unfinished
from tests.worktree.runs import create, records
from tests.world import World
from worktree.inventory import Standing, list_worktrees, standing
from worktree.record import Owner


def _listed(world: World) -> list[tuple[str, str]]:
    return [(str(one.path), one.standing) for one in list_worktrees(world.launch / ".git")]


def test_each_standing_is_told_from_the_others(world: World) -> None:
    with create(world) as wt:
        path = str(wt.path)
        assert _listed(world) == [(path, "at work")]
        wt._checkout.directory.release()  # as the kernel does for a runner that was killed
        assert _listed(world) == [(path, "orphaned")]
        file = records(world)[0] / "record.json"
        record = file.read_text()
        file.write_text(record.replace(f'"host": "{os.uname().nodename}"', '"host": "elsewhere"'))
        assert _listed(world) == [(path, "of another host")]
        for spoilt in ("{", "{}", record.replace(wt.run_id, "20200101T000000Z-00000000")):
            file.write_text(spoilt)
            assert _listed(world) == [(path, "unreadable")]
        away = file.parent.rename(world.origin / "away")
        assert _listed(world) == [(path, "without record")]
        away.rename(file.parent)
        file.write_text(record)


def test_in_a_copy_of_the_clone_nobody_can_tell(world: World) -> None:
    copy = World(world.origin, world.launch.with_name("copy"))
    with create(world) as wt:
        shutil.copytree(world.launch, copy.launch, symlinks=True)
        assert _listed(copy) == [(str(wt.path), "in doubt")]
        assert _listed(world) == [(str(wt.path), "at work")]


def test_size_branch_and_reason_are_told_and_nothing_is_changed(world: World) -> None:
    wt = unfinished(world)
    (wt.path / "link").symlink_to("/")
    before = everything(world, wt)
    (one,) = list_worktrees(world.launch / ".git")
    assert everything(world, wt) == before
    files = [file for file in wt.path.rglob("*") if file.is_file() and not file.is_symlink()]
    assert (one.size, one.branch, one.owner) == (sum(file.stat().st_size for file in files), "issue-7", "gone")
    assert one.retained is not None
    assert one.retained.why == "a merge is unfinished in it"
    shutil.rmtree(wt.path)
    assert [one.size for one in list_worktrees(world.launch / ".git")] == [None]


@pytest.mark.parametrize(
    ("owner", "is_here", "has_ended", "how"),
    [
        (Owner.ALIVE, True, False, Standing.AT_WORK),
        (Owner.ALIVE, True, True, Standing.AT_WORK),
        (Owner.GONE, True, False, Standing.ORPHANED),
        (Owner.GONE, True, True, Standing.RETAINED),
        (Owner.UNKNOWN, True, False, Standing.IN_DOUBT),
        (Owner.UNKNOWN, True, True, Standing.RETAINED),
        (Owner.UNKNOWN, False, False, Standing.ELSEWHERE),
        (Owner.UNKNOWN, False, True, Standing.ELSEWHERE),
    ],
)
def test_how_it_stands_with_a_run(owner: Owner, how: Standing, *, is_here: bool, has_ended: bool) -> None:
    assert standing(owner, is_here=is_here, has_ended=has_ended) is how
