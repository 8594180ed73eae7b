"""Ways to end while what was delivered is being repaired, or after it was merged."""

import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.worktree.scene import BRANCH, Abandoned, Scene
from tests.world import git
from worktree import PreservationError, WorktreeError

Then = Callable[[Scene, str], None]
_MAIN = "refs/heads/main"
_FILE = "meeting.txt"


def in_a_repair(scene: Scene, then: Then) -> None:
    """Deliver, and let the Base branch conflict with that; `then` happens while the runner's merge is in progress."""
    scene.write(_FILE, "this side of a conflict with the Base branch")
    scene.attempt("add", _FILE)
    scene.attempt("commit", "-q", "-m", "Meet the Base branch", "--", _FILE)
    try:
        scene.wt.settle("Do the work")
        scene.wt.push()
        theirs = _move_base(scene)
        scene.wt.look_upstream(scene.wt.head(), "main", foreign=False)
        conflicts = scene.wt.merge(theirs, "origin/main")
    except (WorktreeError, OSError):
        fail(scene)
        return
    assert _FILE in conflicts or _FILE not in git(scene.top, "ls-tree", "--name-only", "HEAD").splitlines()
    then(scene, theirs)


def half_resolved(scene: Scene) -> None:
    """Do a part of what a Repair does: one state is staged, another one is in the files."""
    scene.write(_FILE, "a resolution that was staged")
    scene.attempt("add", _FILE)
    scene.write(_FILE, "a resolution after that")
    scene.write("repaired.txt", "a file that a Repair made")


def then_failed(scene: Scene, _theirs: str) -> None:
    half_resolved(scene)
    fail(scene)


def then_left(scene: Scene, _theirs: str) -> None:
    half_resolved(scene)


def then_abandoned(scene: Scene, _theirs: str) -> None:
    half_resolved(scene)
    raise Abandoned


def then_repaired(scene: Scene, theirs: str) -> None:
    scene.write(_FILE, "a resolution")
    scene.attempt("add", _FILE)
    scene.write("repaired.txt", "a file that a Repair made")
    try:
        undone = scene.wt.finish_merge(theirs)
        scene.wt.settle("Repair it")
        scene.wt.push()
    except (WorktreeError, OSError):
        fail(scene)
        return
    assert undone is None


def merged(scene: Scene) -> None:
    """Deliver, and have GitHub merge that; the branch is deleted only after the block."""
    try:
        scene.wt.settle("Do the work")
        scene.wt.push()
    except (WorktreeError, OSError):
        fail(scene)
        return
    origin, head = scene.world.origin, scene.world.on_origin(f"refs/heads/{BRANCH}")
    made = _commit(scene, f"{head}^{{tree}}", ["main", head], "Merge pull request #8")
    git(origin, "update-ref", _MAIN, made)
    scene.protected[_MAIN] = made


def fail(scene: Scene) -> None:
    """Preserve a Failed run."""
    with suppress(PreservationError):
        scene.wt.preserve_failed_run("main", "agent exited 3")


def _move_base(scene: Scene) -> str:
    """Let another person's commit on the Base branch add the same file."""
    origin = scene.world.origin
    there = origin.with_name("theirs.txt")
    there.write_text("the other side\n")
    blob = git(origin, "hash-object", "-w", str(there))
    rows = f"{git(origin, 'ls-tree', 'main')}\n100644 blob {blob}\t{_FILE}\n"
    tree = subprocess.run(["git", "mktree"], cwd=origin, input=rows, capture_output=True, text=True, check=True)
    made = _commit(scene, tree.stdout.strip(), ["main"], "somebody else's")
    git(origin, "update-ref", _MAIN, made)
    scene.protected[_MAIN] = made
    return made


def _commit(scene: Scene, tree: str, parents: Sequence[str], message: str) -> str:
    options = [option for parent in parents for option in ("-p", parent)]
    return git(scene.world.origin, "commit-tree", tree, *options, "-m", message)
