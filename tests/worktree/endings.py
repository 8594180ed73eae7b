"""Every way in which a run can end, with the natural troubles that its work can meet."""

import shlex
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.worktree.conservation import MARK
from tests.worktree.repair_endings import (
    in_a_repair,
    merged,
    then_abandoned,
    then_failed,
    then_left,
    then_repaired,
)
from tests.worktree.scene import BRANCH, Abandoned, Act, Scene
from tests.world import git
from worktree import CommitRule, PreservationError, WorktreeError


@dataclass(frozen=True, slots=True)
class Finish:
    """One way to end. `bound` asks for permissions that root does not override, `resumes` for a Continuation."""

    act: Act
    bound: bool = False
    resumes: bool = False


def _left(scene: Scene) -> None:
    assert scene.wt.run_id


def _delivered(scene: Scene, rule: CommitRule = CommitRule.AUTO) -> None:
    try:
        scene.wt.settle("Do the work", rule)
        scene.wt.push()
    except (WorktreeError, OSError):
        _failed(scene)


def _failed(scene: Scene) -> None:
    with suppress(PreservationError):
        scene.wt.preserve_failed_run("main", "agent exited 3")


def _failed_twice(scene: Scene) -> None:
    _failed(scene)
    if scene.wt.path.exists():
        scene.write("late.txt", "a file written after preservation")
    _failed(scene)


def _failed_after_delivery(scene: Scene) -> None:
    _delivered(scene)
    _failed(scene)


def _interrupted(scene: Scene) -> None:
    scene.latch.record(signal.SIGTERM)
    _failed(scene)


def _interrupted_in_delivery(scene: Scene) -> None:
    scene.latch.record(signal.SIGTERM)
    _delivered(scene)


def _abandoned(scene: Scene) -> None:
    raise Abandoned


def _failed_and_abandoned(scene: Scene) -> None:
    _failed(scene)
    raise Abandoned


def _late(scene: Scene) -> None:
    """Deliver, and find a file that was written after the push."""
    _delivered(scene)
    scene.write("late.txt", "a file written after the push")


def _then_interrupted(scene: Scene, theirs: str) -> None:
    scene.latch.record(signal.SIGTERM)
    then_failed(scene, theirs)


# What stands in the way on this machine


def _locked(scene: Scene, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    scene.undo.callback(path.unlink, missing_ok=True)
    _failed(scene)


def _index_locked(scene: Scene) -> None:
    _locked(scene, scene.admin / "index.lock")


def _head_locked(scene: Scene) -> None:
    _locked(scene, scene.admin / "HEAD.lock")


def _branch_locked(scene: Scene) -> None:
    _locked(scene, scene.common / "refs" / "heads" / f"{BRANCH}.lock")


def _refs_locked(scene: Scene) -> None:
    _locked(scene, scene.common / "packed-refs.lock")


def _obstructed(scene: Scene, path: Path) -> None:
    """Have a file where a directory is needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.touch()
        scene.undo.callback(_remove_file, path)
    _failed(scene)


def _remove_file(path: Path) -> None:
    if path.is_file():
        path.unlink()


def _store_obstructed(scene: Scene) -> None:
    _obstructed(scene, scene.common / "nightkeep" / "rescue")


def _rescue_refs_obstructed(scene: Scene) -> None:
    _obstructed(scene, scene.common / "refs" / "nightkeep")


def _private_index_obstructed(scene: Scene) -> None:
    place = scene.wt.private / "index"
    place.mkdir()
    scene.undo.callback(shutil.rmtree, place, ignore_errors=True)
    _failed(scene)


def _objects_unwritable(scene: Scene) -> None:
    objects = scene.common / "objects"
    for directory in (objects, *(path for path in objects.iterdir() if path.is_dir())):
        directory.chmod(0o555)
        scene.undo.callback(directory.chmod, 0o755)
    _failed(scene)


def _neighbourhood_unwritable(scene: Scene) -> None:
    """Let nobody rename the worktree."""
    scene.top.parent.chmod(0o555)
    scene.undo.callback(scene.top.parent.chmod, 0o755)
    _failed(scene)


# What origin does


def _origin_away(scene: Scene, act: Act) -> None:
    away = scene.world.origin.with_name("elsewhere.git")
    scene.world.origin.rename(away)
    scene.undo.callback(away.rename, scene.world.origin)
    act(scene)


def _somebody_pushed(scene: Scene, act: Act) -> None:
    tip = scene.world.on_origin(f"refs/heads/{BRANCH}") or scene.world.on_origin("refs/heads/main")
    theirs = git(scene.world.origin, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "somebody else's")
    git(scene.world.origin, "update-ref", f"refs/heads/{BRANCH}", theirs)
    scene.protected[f"refs/heads/{BRANCH}"] = theirs
    act(scene)


def _refused(scene: Scene, act: Act, *, refs: str, said: str, found: str = "true") -> None:
    """Let origin refuse pushes to `refs` (a shell pattern) of what the command `found` finds something in."""
    scene.world.hook(
        "pre-receive",
        f"""while read -r old new ref; do
case $ref in {refs}) ;; *) continue;; esac
if {found}; then printf '%s\\n' {shlex.quote(said)} >&2; exit 1; fi
done""",
    )
    act(scene)


_MARKED = f"git rev-list --objects --no-object-names $new --not --all | git cat-file --batch | grep -q -a {MARK}"
_WORKFLOW = "git log --format= --name-only $new --not --all | grep -q '^.github/workflows/'"
_ON_ANYTHING = partial(_refused, refs="*")

_NOT_FORWARD = partial(
    _refused,
    refs=f"refs/heads/{BRANCH}",
    said="error: GH003: Sorry, force-pushing to this branch is not allowed (non-fast-forward).",
)
_RULE = partial(
    _refused,
    refs=f"refs/heads/{BRANCH}",
    said=f"error: GH013: Repository rule violations found for refs/heads/{BRANCH}.\n- Cannot create ref due to "
    "creations being restricted.",
)
_SECRET = partial(
    _ON_ANYTHING,
    said="error: GH013: Repository rule violations found.\n- GITHUB PUSH PROTECTION\n- Push cannot contain secrets",
    found=_MARKED,
)
_SIZE = partial(
    _ON_ANYTHING,
    said="error: GH001: Large files detected. You may want to try Git Large File Storage.\nerror: File n.txt is "
    "120.00 MB; this exceeds GitHub's file size limit of 100.00 MB",
    found=_MARKED,
)
_UNKNOWN = partial(_ON_ANYTHING, said="the computer says no")


def _workflow_refused(scene: Scene, act: Act) -> None:
    scene.write(".github/workflows/ci.yml", "a workflow")
    _refused(
        scene,
        act,
        refs="*",
        said="refusing to allow an OAuth App to create or update workflow `.github/workflows/ci.yml` without "
        "`workflow` scope",
        found=_WORKFLOW,
    )


def _rescue_refused(scene: Scene, act: Act) -> None:
    scene.world.hook("update", "case $1 in refs/nightkeep/*) echo 'deny creating a hidden ref' >&2; exit 1;; esac")
    act(scene)


def _everything_but_main_refused(scene: Scene, act: Act) -> None:
    scene.world.hook("update", "case $1 in refs/heads/main) ;; *) exit 1;; esac")
    act(scene)


PLAIN: Mapping[str, Finish] = {
    "delivered": Finish(_delivered),
    "left": Finish(_left),
    "abandoned": Finish(_abandoned),
    "delivered-all": Finish(partial(_delivered, rule=CommitRule.ALL)),
    "delivered-as-committed": Finish(partial(_delivered, rule=CommitRule.NEVER)),
    "delivered-then-failed": Finish(_failed_after_delivery),
    "delivered-then-late": Finish(_late),
    "continued": Finish(_delivered, resumes=True),
}

FAILED: Mapping[str, Finish] = {
    "failed": Finish(_failed),
    "failed-twice": Finish(_failed_twice),
    "failed-and-abandoned": Finish(_failed_and_abandoned),
    "interrupted": Finish(_interrupted),
    "interrupted-in-delivery": Finish(_interrupted_in_delivery),
    "continued-and-failed": Finish(_failed, resumes=True),
}

_REFUSALS: Mapping[str, partial[None]] = {
    "origin-away": partial(_origin_away),
    "somebody-pushed": partial(_somebody_pushed),
    "not-forward": _NOT_FORWARD,
    "rule-on-the-branch": _RULE,
    "push-protection": _SECRET,
    "size": _SIZE,
    "workflow": partial(_workflow_refused),
    "rescue-refused": partial(_rescue_refused),
    "everything-refused": partial(_everything_but_main_refused),
    "unknown-refusal": _UNKNOWN,
}

TROUBLED: Mapping[str, Finish] = {
    "index-locked": Finish(_index_locked),
    "head-locked": Finish(_head_locked),
    "branch-locked": Finish(_branch_locked),
    "refs-locked": Finish(_refs_locked),
    "store-obstructed": Finish(_store_obstructed),
    "rescue-refs-obstructed": Finish(_rescue_refs_obstructed),
    "private-index-obstructed": Finish(_private_index_obstructed),
    "objects-unwritable": Finish(_objects_unwritable, bound=True),
    "neighbourhood-unwritable": Finish(_neighbourhood_unwritable, bound=True),
    **{
        f"{name}-{how}": Finish(partial(refusal, act=act))
        for name, refusal in _REFUSALS.items()
        for how, act in (("failed", _failed), ("delivered", _delivered))
    },
}

REPAIRED: Mapping[str, Finish] = {
    "repair-failed": Finish(partial(in_a_repair, then=then_failed)),
    "repair-left": Finish(partial(in_a_repair, then=then_left)),
    "repair-abandoned": Finish(partial(in_a_repair, then=then_abandoned)),
    "repair-interrupted": Finish(partial(in_a_repair, then=_then_interrupted)),
    "repaired": Finish(partial(in_a_repair, then=then_repaired)),
    "merged": Finish(merged),
}

ENDINGS: Mapping[str, Finish] = {**PLAIN, **FAILED, **REPAIRED, **TROUBLED}
