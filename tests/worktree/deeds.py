"""What an agent may do next, whatever it did before. Each may come to nothing, as commands of an agent do."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from tests.worktree.scene import BRANCH, Scene
from tests.world import git
from worktree import WorktreeError

# A deed in a scene; the number chooses among its objects.
Deed = Callable[[Scene, int], None]

_PATHS = ("a.txt", "docs/d.txt", "new.txt")
_IGNORED = ("secret.env", "scratch/note", "scratch/deep/note")
_ODD = ("-{}", "{}\n", "{}\udcff")
_REPOSITORIES = ("app", "scratch/clone", "docs/clone")


def _branch(number: int) -> str:
    return (BRANCH, "side", "other")[number]


def _write(scene: Scene, path: str, what: str) -> None:
    """Write a mark, unless the agent itself put something else in its way."""
    with suppress(FileExistsError, IsADirectoryError, NotADirectoryError):
        scene.write(path, what)


def _edit(scene: Scene, number: int) -> None:
    _write(scene, _PATHS[number], "an edit")


def _append(scene: Scene, number: int) -> None:
    file = scene.top / _PATHS[number]
    if file.is_file():
        with file.open("a") as opened:
            opened.write(scene.marks.new("an appended line") + "\n")


def _delete(scene: Scene, number: int) -> None:
    file = scene.top / _PATHS[number]
    if file.is_file():
        file.unlink()


def _ignored(scene: Scene, number: int) -> None:
    _write(scene, _IGNORED[number], "an ignored file")


def _odd(scene: Scene, number: int) -> None:
    name = scene.marks.new("an odd name")
    _write(scene, _ODD[number].format(name), "a file of an odd name")


def _rule(scene: Scene, number: int) -> None:
    with (scene.top / ".gitignore").open("a") as file:
        file.write(("new.txt", "docs/", "*.local")[number] + "\n")


def _link(scene: Scene, number: int) -> None:
    path = scene.top / scene.marks.new("a link")
    path.symlink_to((scene.outside, "nowhere", ".")[number])


def _mode(scene: Scene, number: int) -> None:
    file = scene.top / _PATHS[number]
    if file.is_file():
        file.chmod(0o755)


def _become_directory(scene: Scene, number: int) -> None:
    _delete(scene, number)
    _write(scene, f"{_PATHS[number]}/inside.txt", "a file in a directory that was a file")


def _stage(scene: Scene, number: int) -> None:
    scene.attempt("add", "--", _PATHS[number])


def _stage_all(scene: Scene, number: int) -> None:
    scene.attempt("add", *(("-A",), ("-u",), ("-A", "-f", "secret.env"))[number])


def _unstage(scene: Scene, number: int) -> None:
    scene.attempt("rm", "-q", "--cached", "--", _PATHS[number])


def _commit(scene: Scene, number: int) -> None:
    flags = ((), ("-a",), ("-a", "--amend"))[number]
    scene.attempt("commit", "-q", *flags, "-m", scene.marks.new("a message"))


def _reset(scene: Scene, number: int) -> None:
    scene.attempt("reset", "-q", ("--soft", "--mixed", "--hard")[number], "HEAD^")


def _start_branch(scene: Scene, number: int) -> None:
    scene.attempt("checkout", "-q", "-b", _branch(number))


def _switch(scene: Scene, number: int) -> None:
    scene.attempt("checkout", "-q", _branch(number))


def _detach(scene: Scene, number: int) -> None:
    scene.attempt("checkout", "-q", "--detach", f"HEAD~{number}")


def _drop_branch(scene: Scene, number: int) -> None:
    if number:
        scene.attempt("branch", "-q", "-D", _branch(number))


def _join(scene: Scene, number: int, how: str) -> None:
    scene.attempt(*how.split(), _branch(number))


def _conclude(scene: Scene, number: int, how: str) -> None:
    operation = ("merge", "rebase", "cherry-pick")[number]
    scene.attempt("-c", "core.editor=true", operation, how)


def _revert(scene: Scene, number: int) -> None:
    scene.attempt("revert", "--no-edit", f"HEAD~{number}")


def _stash(scene: Scene, number: int) -> None:
    scene.attempt("stash", "push", "-q", *((), ("--include-untracked",), ("--keep-index",))[number])


def _unstash(scene: Scene, number: int) -> None:
    # The last entry is the person's.
    if len(scene.git("stash", "list").splitlines()) > 1:
        scene.attempt("stash", ("pop", "apply", "drop")[number])


def _nest(scene: Scene, number: int) -> None:
    path = _REPOSITORIES[number]
    if (scene.top / path.split("/", maxsplit=1)[0]).is_symlink():
        return
    scene.attempt("init", "-q", path)
    _write(scene, f"{path}/inside.txt", "a file in a repository")


def _commit_in_nest(scene: Scene, number: int) -> None:
    inside = scene.top / _REPOSITORIES[number]
    if (inside / ".git").is_dir():
        git(inside, "add", "-A")
        git(inside, "commit", "-q", "-m", scene.marks.new("a message in a repository"), check=False)


def _submodule(scene: Scene, number: int) -> None:
    if not (scene.top / "lib").exists():
        scene.attempt("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(scene.library), "lib")
    if (scene.top / "lib" / ".git").is_file():
        _write(scene, "lib/lib.txt", "an edit in a submodule")
        if number:
            git(scene.top / "lib", "commit", "-q", "-a", "-m", scene.marks.new("a message in a submodule"), check=False)


def _hide(scene: Scene, number: int) -> None:
    scene.attempt("update-index", ("--assume-unchanged", "--skip-worktree", "--really-refresh")[number], "a.txt")


def _sparse(scene: Scene, number: int) -> None:
    scene.attempt("sparse-checkout", *(("set", "--cone", "src"), ("set", "--cone", "docs"), ("disable",))[number])


def _deliver(scene: Scene, number: int) -> None:
    """Have the runner end a session well, if it does, before another begins."""
    with suppress(WorktreeError):
        scene.wt.settle(f"Session {number}")
        scene.wt.push()


def _tidy(scene: Scene, number: int) -> None:
    """Come back to the Issue branch with everything committed, and the rest swept away more or less thoroughly."""
    for operation in ("merge", "rebase", "cherry-pick", "revert", "am"):
        scene.attempt(operation, "--abort")
    scene.attempt("checkout", "-q", BRANCH)
    _stage_all(scene, 0)
    _commit(scene, 0)
    scene.attempt("clean", "-q", ("-fd", "-fdx", "-ffdx")[number])


DEEDS: Mapping[str, Deed] = {
    "edit": _edit,
    "append": _append,
    "delete": _delete,
    "write an ignored file": _ignored,
    "write an odd name": _odd,
    "add an ignore rule": _rule,
    "link": _link,
    "make executable": _mode,
    "turn a file into a directory": _become_directory,
    "stage": _stage,
    "stage all": _stage_all,
    "untrack": _unstage,
    "commit": _commit,
    "reset": _reset,
    "start a branch": _start_branch,
    "switch": _switch,
    "detach": _detach,
    "drop a branch": _drop_branch,
    "merge": partial(_join, how="merge -q"),
    "rebase": partial(_join, how="rebase -q --autostash"),
    "cherry-pick": partial(_join, how="cherry-pick"),
    "continue": partial(_conclude, how="--continue"),
    "abort": partial(_conclude, how="--abort"),
    "revert": _revert,
    "stash": _stash,
    "unstash": _unstash,
    "nest a repository": _nest,
    "commit in a nested one": _commit_in_nest,
    "submodule": _submodule,
    "hide": _hide,
    "sparse": _sparse,
    "deliver": _deliver,
    "tidy": _tidy,
}
