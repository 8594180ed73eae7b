"""Going on with a run whose runner is gone touches nothing that is somebody else's by now."""

from tests.worktree.runs import create, origin_refs, records
from tests.world import World, commit, git
from worktree import Interruption, Launch, Worktree


def test_a_branch_that_is_a_persons_by_now_is_neither_pushed_nor_deleted(world: World) -> None:
    wt = create(world)
    wt._checkout.directory.release()  # as the kernel does for a runner that was killed
    git(world.launch, "worktree", "remove", "--force", "--force", str(wt.path))
    git(world.launch, "checkout", "-q", "issue-7")
    (world.launch / "mine.txt").write_text("private\n")
    mine = commit(world.launch, "a person's")
    git(world.launch, "checkout", "-q", "main")
    before = origin_refs(world)
    launch = Launch.open(world.launch, interruption=Interruption())
    with Worktree.reclaim(launch, wt.run_id) as again:
        again.preserve_failed_run("main", "killed")
    assert (git(world.launch, "rev-parse", "issue-7"), origin_refs(world)) == (mine, before)
    assert records(world) == []
