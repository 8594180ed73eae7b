"""Everything that a worktree can hold, each planted with marks by which it is found again."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tests.worktree.runs import IMPATIENT
from tests.worktree.scene import BRANCH, Act, Scene
from tests.world import git
from worktree import Limits

SMALL = replace(IMPATIENT, file=4096)  # bytes from which a file is kept out of pushes
OPERATIONS = ("merge", "rebase", "cherry-pick", "revert", "am")


@dataclass(frozen=True, slots=True)
class Holding:
    """One thing that a worktree can hold. `bound` asks for permissions that root does not override."""

    plant: Act
    bound: bool = False
    limits: Limits = IMPATIENT


def _nothing(scene: Scene) -> None:
    assert scene.top.is_dir()


# Commits


def _pushed(scene: Scene) -> None:
    scene.commit("n.txt", "a pushed commit")
    scene.wt.push()


def _unpushed(scene: Scene) -> None:
    scene.commit("n.txt", "an unpushed commit")


def _reverted(scene: Scene) -> None:
    scene.git("revert", "--no-edit", scene.commit("a.txt", "a reverted commit"))


def _reset_away(scene: Scene) -> None:
    scene.commit("a.txt", "a commit that was reset away")
    scene.git("reset", "-q", "--hard", "HEAD^")


def _reset_below_what_was_pushed(scene: Scene) -> None:
    _pushed(scene)
    scene.git("reset", "-q", "--hard", "HEAD^")
    scene.commit("a.txt", "another way than the pushed one")


def _amended(scene: Scene) -> None:
    scene.commit("a.txt", "a commit that was amended")
    scene.write("a.txt", "the amendment")
    scene.git("commit", "-q", "-a", "--amend", "-m", scene.marks.new("the amendment: its message"))


def _rebased(scene: Scene) -> None:
    scene.git("checkout", "-q", "-b", "side")
    scene.commit("b.txt", "what was rebased onto")
    scene.git("checkout", "-q", BRANCH)
    scene.commit("a.txt", "a commit that was rebased")
    scene.git("rebase", "-q", "side")


def _merged(scene: Scene) -> None:
    scene.git("checkout", "-q", "-b", "side")
    scene.commit("b.txt", "a branch that was merged")
    scene.git("checkout", "-q", BRANCH)
    scene.commit("a.txt", "a commit beside it")
    scene.git("merge", "-q", "--no-ff", "-m", scene.marks.new("a merge: its message"), "side")


def _detached(scene: Scene) -> None:
    scene.git("checkout", "-q", "--detach")
    scene.commit("n.txt", "a commit on a detached HEAD")
    scene.write("a.txt", "an edit on a detached HEAD")


def _detached_and_back(scene: Scene) -> None:
    scene.git("checkout", "-q", "--detach")
    scene.commit("n.txt", "a commit that HEAD was detached for")
    scene.git("checkout", "-q", BRANCH)


def _tagged(scene: Scene) -> None:
    _detached_and_back(scene)
    scene.git("tag", "mine", "HEAD@{1}")


def _on_another_branch(scene: Scene) -> None:
    scene.git("checkout", "-q", "-b", "side")
    scene.commit("n.txt", "a commit on the branch that HEAD is on")
    scene.write("a.txt", "an edit on that branch")


def _another_branch_left(scene: Scene) -> None:
    scene.git("checkout", "-q", "-b", "side")
    scene.commit("n.txt", "a commit on a branch that was left")
    scene.git("checkout", "-q", BRANCH)


def _another_branch_deleted(scene: Scene) -> None:
    _another_branch_left(scene)
    scene.git("branch", "-q", "-D", "side")


def _on_an_orphan(scene: Scene) -> None:
    scene.git("checkout", "-q", "--orphan", "side")
    scene.commit("n.txt", "a commit without a parent")


def _before_the_first_commit_of_an_orphan(scene: Scene) -> None:
    scene.git("checkout", "-q", "--orphan", "side")
    _staged_then_edited(scene)


def _ref_of_its_own(scene: Scene) -> None:
    message = scene.marks.new("a commit that only a ref of the worktree's own names")
    scene.git("update-ref", "refs/worktree/mine", scene.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", message))


def _note(scene: Scene) -> None:
    scene.git("notes", "add", "-m", scene.marks.new("a note"))


# The stash


def _stash(scene: Scene) -> None:
    scene.write("a.txt", "a stashed edit")
    scene.write("n.txt", "a stashed new file")
    scene.git("stash", "push", "-q", "--include-untracked", "-m", scene.marks.new("a stash: its message"))


def _stashes(scene: Scene) -> None:
    _stash(scene)
    scene.write("a.txt", "a staged edit in a second stash")
    scene.git("add", "a.txt")
    scene.write("a.txt", "the edit on top of it")
    scene.git("stash", "push", "-q")


def _stash_of_a_commit(scene: Scene) -> None:
    scene.commit("n.txt", "the commit under a stash")
    _stash(scene)
    scene.git("reset", "-q", "--hard", "HEAD^")


def _stash_conflict(scene: Scene) -> None:
    scene.write("a.txt", "an edit whose stash does not apply")
    scene.git("stash", "push", "-q")
    scene.commit("a.txt", "the commit that is in its way")
    scene.attempt("stash", "pop")


# The index


def _staged(scene: Scene) -> None:
    scene.write("a.txt", "a staged edit")
    scene.git("add", "a.txt")


def _staged_then_edited(scene: Scene) -> None:
    _staged(scene)
    scene.write("a.txt", "an edit after staging")


def _staged_then_deleted(scene: Scene) -> None:
    scene.write("n.txt", "a staged file that was deleted")
    scene.git("add", "n.txt")
    (scene.top / "n.txt").unlink()


def _staged_then_reverted(scene: Scene) -> None:
    _staged(scene)
    (scene.top / "a.txt").write_text("a\n")


def _intended(scene: Scene) -> None:
    scene.write("n.txt", "a file that is only intended to be added")
    scene.git("add", "-N", "n.txt")


# Files


def _modified(scene: Scene) -> None:
    scene.write("a.txt", "an edit")


def _untracked(scene: Scene) -> None:
    scene.write("n.txt", "an untracked file")
    scene.write("deep/er/n.txt", "an untracked file in new directories")


def _ignored(scene: Scene) -> None:
    scene.write("secret.env", "an ignored file")
    scene.write("src/secret.env", "an ignored file in a tracked directory")


def _ignored_directory(scene: Scene) -> None:
    scene.write("scratch/deep/n.txt", "a file in an ignored directory")


def _ignored_by_its_own_rule(scene: Scene) -> None:
    scene.write("out/n.txt", "a file that the agent's own rule ignores")
    (scene.top / "out" / ".gitignore").write_text("*\n")


def _tracked_although_ignored(scene: Scene) -> None:
    scene.write("secret.env", "a file that is tracked although it is ignored")
    scene.git("add", "-f", "secret.env")
    scene.git("commit", "-q", "-m", "forced")
    scene.write("secret.env", "an edit of it")


def _false_cache(scene: Scene) -> None:
    scene.write("__pycache__/notes.txt", "a note where a cache should be")


def _beside_caches(scene: Scene) -> None:
    (scene.top / "scratch").mkdir()
    (scene.top / "scratch" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    scene.write("secret.env", "an ignored file beside a cache")
    _repository(scene, "scratch/clone", "a repository in a cache")


def _links(scene: Scene, directory: str) -> None:
    top = scene.top / directory
    top.mkdir(exist_ok=True)
    (top / scene.marks.new("a link to a directory outside")).symlink_to(scene.outside)
    (top / "outside.txt").symlink_to(scene.outside / "precious.txt")
    (top / "broken").symlink_to(scene.marks.new("the target of a broken link"))
    (top / scene.marks.new("a link to its own parent")).symlink_to("..")


def _directory_replaced_by_a_link(scene: Scene) -> None:
    (scene.top / "docs" / "d.txt").unlink()
    (scene.top / "docs").rmdir()
    (scene.top / "docs").symlink_to(scene.outside)
    scene.write("n.txt", "a file beside a directory that became a link")


def _file_replaced_by_a_directory(scene: Scene) -> None:
    (scene.top / "a.txt").unlink()
    scene.write("a.txt/n.txt", "a file in a directory that was a file")


def _odd_names(scene: Scene, directory: str) -> None:
    names = ("{}\nline", "-{}", "'{}\"", "é日本-{}", " {} ", "{}\\", "{}\udcff", ":(top){}", "{}*?[x]", "-> {}")
    for name in names:
        path = name.format(scene.marks.new(f"the name {name!r}"))
        scene.write(f"{directory}/{path}", f"what is in {name!r}")


def _executable(scene: Scene) -> None:
    scene.write("scratch/run", "an ignored executable")
    scene.write("run", "an executable")
    for path in ("scratch/run", "run"):
        (scene.top / path).chmod(0o755)


def _unreadable(scene: Scene, path: str) -> None:
    scene.write(path, "a file that nobody may read")
    scene.write("n.txt", "a file beside it")
    (scene.top / path).chmod(0)


def _unreadable_directory(scene: Scene, path: str) -> None:
    scene.write(f"{path}/n.txt", "a file in a directory that nobody may look into")
    (scene.top / path).chmod(0)
    scene.undo.callback(_chmod_if_there, scene.top / path)


def _unwritable_directory(scene: Scene, path: str) -> None:
    scene.write(f"{path}/n.txt", "a file in a directory that nobody may change")
    (scene.top / path).chmod(0o555)
    scene.undo.callback(_chmod_if_there, scene.top / path)


def _chmod_if_there(path: Path) -> None:
    if path.exists():
        path.chmod(0o755)


def _hard_links(scene: Scene) -> None:
    scene.write("scratch/one", "what two names share")
    os.link(scene.top / "scratch" / "one", scene.top / "scratch" / scene.marks.new("the other of two names"))
    scene.write("one", "what an ignored and another name share")
    os.link(scene.top / "one", scene.top / "secret.env")


def _fifo(scene: Scene) -> None:
    os.mkfifo(scene.top / scene.marks.new("a fifo"))
    scene.write("n.txt", "a file beside a fifo")


def _socket(scene: Scene) -> None:
    # The path of a socket may be no longer than some hundred bytes.
    short = os.open(scene.top, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"/proc/self/fd/{short}/{scene.marks.new('a socket')}")
    os.close(short)
    scene.write("n.txt", "a file beside a socket")


def _empty_directories(scene: Scene, directory: str) -> None:
    one, other = scene.marks.new("an empty directory"), scene.marks.new("an empty directory in another")
    (scene.top / directory / one).mkdir(parents=True)
    (scene.top / directory / "nested" / other).mkdir(parents=True)


def _sparse_file(scene: Scene) -> None:
    for path in ("scratch/holes", "holes"):
        scene.write(path, "a file with holes")
        mark = scene.marks.new("what is between the holes")
        with (scene.top / path).open("r+") as file:
            file.seek(1 << 20)
            file.write(mark)
            file.truncate(1 << 21)


def _converted(scene: Scene) -> None:
    (scene.top / ".gitattributes").write_text("*.txt text eol=lf\n")
    mark = scene.marks.new("a line whose end git converts")
    del scene.marks.owed[mark.encode()]
    scene.marks.owed[f"{mark}\r\n".encode()] = "a line whose end git converts"
    (scene.top / "n.txt").write_bytes(f"{mark}\r\n".encode())


def _large(scene: Scene, path: str) -> None:
    scene.write(path, "a file over the limit")
    with (scene.top / path).open("a") as file:
        file.write("x" * SMALL.file)
    scene.write("small.txt", "a file beside it")


def _large_committed(scene: Scene) -> None:
    _large(scene, "large.bin")
    scene.git("add", "-A")
    scene.git("commit", "-q", "-m", "large")


# Repositories inside


def _repository(scene: Scene, path: str, what: str) -> None:
    scene.git("init", "-q", path)
    scene.write(f"{path}/first.txt", f"{what}: a commit that was amended")
    inside = scene.top / path
    git(inside, "add", "-A")
    git(inside, "commit", "-q", "-m", scene.marks.new(f"{what}: a message"))
    scene.write(f"{path}/first.txt", f"{what}: the amendment")
    git(inside, "commit", "-q", "-a", "--amend", "-m", "amended")
    scene.write(f"{path}/first.txt", f"{what}: a stash")
    git(inside, "stash", "push", "-q")
    scene.write(f"{path}/new.txt", f"{what}: an untracked file")


def _packed_repository(scene: Scene) -> None:
    _repository(scene, "scratch/clone", "a packed repository")
    git(scene.top / "scratch" / "clone", "gc", "-q")


def _bare_repository(scene: Scene) -> None:
    _repository(scene, "scratch/clone", "a repository with a bare clone")
    scene.git("clone", "-q", "--mirror", "scratch/clone", "scratch/bare.git")


def _repository_without_a_commit(scene: Scene) -> None:
    scene.git("init", "-q", "app")
    scene.write("app/n.txt", "a file in a repository without a commit")


def _repository_of_its_own(scene: Scene) -> None:
    (scene.top / ".git").unlink()
    scene.git("init", "-q")
    scene.commit("n.txt", "a commit in a repository in the worktree's place")
    scene.write("late.txt", "an untracked file in it")


def _worktree_inside(scene: Scene) -> None:
    scene.git("worktree", "add", "-q", "--detach", "scratch/inner")
    scene.write("scratch/inner/n.txt", "a commit in a worktree inside")
    git(scene.top / "scratch" / "inner", "add", "-A")
    git(scene.top / "scratch" / "inner", "commit", "-q", "-m", "inside")
    scene.write("scratch/inner/late.txt", "an untracked file in a worktree inside")


# Submodules


def _submodule(scene: Scene) -> None:
    scene.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(scene.library), "lib")
    scene.git("commit", "-q", "-m", scene.marks.new("the commit that adds a submodule"))


def _submodule_commit(scene: Scene, *, recorded: bool) -> None:
    _submodule(scene)
    git(scene.top / "lib", "checkout", "-q", "--detach")
    scene.write("lib/lib.txt", "a commit in a submodule")
    git(scene.top / "lib", "commit", "-q", "-a", "-m", scene.marks.new("a commit in a submodule: its message"))
    if recorded:
        scene.git("commit", "-q", "-a", "-m", "the submodule's new commit")


def _submodule_dirty(scene: Scene) -> None:
    _submodule(scene)
    scene.write("lib/lib.txt", "an edit in a submodule")
    scene.write("lib/new.txt", "an untracked file in a submodule")


def _submodule_ignored(scene: Scene) -> None:
    _submodule(scene)
    exclude = Path(git(scene.top / "lib", "rev-parse", "--path-format=absolute", "--git-path", "info/exclude"))
    exclude.write_text("*.local\n")
    scene.write("lib/settings.local", "an ignored file in a submodule")


def _submodule_stash(scene: Scene) -> None:
    _submodule(scene)
    scene.write("lib/lib.txt", "a stash in a submodule")
    git(scene.top / "lib", "stash", "push", "-q")


def _submodule_removed(scene: Scene) -> None:
    _submodule_commit(scene, recorded=True)
    scene.git("submodule", "deinit", "-q", "--force", "lib")
    scene.git("rm", "-q", "lib")
    scene.git("commit", "-q", "-m", "no submodule")


# What git is told not to look at


def _hidden(scene: Scene, flag: str) -> None:
    scene.git("update-index", flag, "a.txt")
    scene.write("a.txt", f"an edit behind {flag}")


def _outside_the_cone(scene: Scene) -> None:
    scene.git("sparse-checkout", "set", "--cone", "src")
    scene.write("docs/d.txt", "an edit outside the cone")
    scene.write("docs/n.txt", "a new file outside the cone")
    scene.write("src/s.txt", "an edit inside the cone")


def _committed_outside_the_cone(scene: Scene) -> None:
    scene.commit("docs/n.txt", "a commit outside the cone")
    scene.git("sparse-checkout", "set", "--cone", "src")


# Operations that stopped half-way


def _half_way(scene: Scene, operation: str, *, resolved: bool) -> None:
    scene.git("checkout", "-q", "-b", "side")
    theirs = scene.commit("a.txt", "the other side of a conflict")
    patch = scene.world.origin.with_name("theirs.patch")
    patch.write_text(scene.git("format-patch", "-1", "--stdout") + "\n")
    scene.git("checkout", "-q", BRANCH)
    first = scene.commit("a.txt", "the commit before a conflict")
    scene.commit("a.txt", "this side of a conflict")
    argument = {"cherry-pick": theirs, "revert": first, "am": f"-3 {patch}"}.get(operation, "side")
    scene.attempt(operation, *argument.split())
    assert "UU a.txt" in scene.git("status", "--porcelain")
    with (scene.top / "a.txt").open("a") as file:
        file.write(scene.marks.new("an edit of a conflict") if not resolved else "")
    if resolved:
        scene.write("a.txt", "a staged resolution")
        scene.git("add", "a.txt")
        scene.write("a.txt", "an edit after the resolution")
    scene.write("b.txt", "a staged edit beside a conflict")
    scene.git("add", "b.txt")
    scene.write("b.txt", "an edit on top of it")
    scene.write("n.txt", "an untracked file beside a conflict")


def _autostashed(scene: Scene) -> None:
    scene.git("checkout", "-q", "-b", "side")
    scene.commit("a.txt", "the other side of a rebase")
    scene.git("checkout", "-q", BRANCH)
    scene.commit("a.txt", "this side of a rebase")
    scene.write("b.txt", "an edit that a rebase stashed")
    scene.attempt("rebase", "--autostash", "side")
    assert (scene.top / "a.txt").read_text().startswith("<<<<<<<")
    scene.write("b.txt", "an edit during a rebase")


def _stopped_at_an_edit(scene: Scene) -> None:
    scene.commit("n.txt", "a commit that a rebase stopped at")
    scene.commit("a.txt", "a commit that a rebase has yet to pick")
    scene.git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~2")
    scene.write("n.txt", "a commit made while a rebase was stopped")
    scene.git("commit", "-q", "-a", "--amend", "--no-edit")
    scene.write("b.txt", "an edit while a rebase was stopped")


def _merge_to_commit(scene: Scene) -> None:
    _another_branch_left(scene)
    scene.git("merge", "-q", "--no-ff", "--no-commit", "side")
    scene.write("n.txt", "an edit of what a merge brought")


def _bisecting(scene: Scene) -> None:
    scene.commit("n.txt", "a commit that is being bisected")
    scene.git("bisect", "start")
    scene.git("bisect", "bad")
    scene.write("a.txt", "an edit during a bisection")


def _squashed(scene: Scene) -> None:
    scene.git("checkout", "-q", "-b", "side")
    scene.commit("a.txt", "a branch that was squashed")
    scene.git("checkout", "-q", BRANCH)
    scene.commit("a.txt", "this side of a squash")
    scene.attempt("merge", "--squash", "side")


_COMMITS: Mapping[str, Act] = {
    "commits-pushed": _pushed,
    "commits-unpushed": _unpushed,
    "commits-reverted": _reverted,
    "commits-reset-away": _reset_away,
    "commits-reset-below-what-was-pushed": _reset_below_what_was_pushed,
    "commits-amended": _amended,
    "commits-rebased": _rebased,
    "commits-merged": _merged,
    "detached": _detached,
    "detached-and-back": _detached_and_back,
    "tagged": _tagged,
    "branch-checked-out": _on_another_branch,
    "branch-left": _another_branch_left,
    "branch-deleted": _another_branch_deleted,
    "orphan": _on_an_orphan,
    "orphan-unborn": _before_the_first_commit_of_an_orphan,
    "own-ref": _ref_of_its_own,
    "note": _note,
    "stash": _stash,
    "stashes": _stashes,
    "stash-of-a-commit": _stash_of_a_commit,
    "stash-conflict": _stash_conflict,
}

_FILES: Mapping[str, Act] = {
    "staged": _staged,
    "staged-then-edited": _staged_then_edited,
    "staged-then-deleted": _staged_then_deleted,
    "staged-then-reverted": _staged_then_reverted,
    "intended": _intended,
    "modified": _modified,
    "untracked": _untracked,
    "ignored": _ignored,
    "ignored-directory": _ignored_directory,
    "ignored-by-its-own-rule": _ignored_by_its_own_rule,
    "tracked-although-ignored": _tracked_although_ignored,
    "cache-false": _false_cache,
    "cache-neighbours": _beside_caches,
    "links": partial(_links, directory="."),
    "links-ignored": partial(_links, directory="scratch"),
    "directory-became-link": _directory_replaced_by_a_link,
    "file-became-directory": _file_replaced_by_a_directory,
    "odd-names": partial(_odd_names, directory="."),
    "odd-names-ignored": partial(_odd_names, directory="scratch"),
    "executable": _executable,
    "hard-links": _hard_links,
    "fifo": _fifo,
    "socket": _socket,
    "empty-directories": partial(_empty_directories, directory="."),
    "empty-directories-ignored": partial(_empty_directories, directory="scratch"),
    "sparse-file": _sparse_file,
    "converted": _converted,
    "assume-unchanged": partial(_hidden, flag="--assume-unchanged"),
    "skip-worktree": partial(_hidden, flag="--skip-worktree"),
    "outside-the-cone": _outside_the_cone,
    "outside-the-cone-committed": _committed_outside_the_cone,
}

_REPOSITORIES: Mapping[str, Act] = {
    "repository": partial(_repository, path="app", what="a repository"),
    "repository-ignored": partial(_repository, path="scratch/clone", what="an ignored repository"),
    "repository-packed": _packed_repository,
    "repository-bare": _bare_repository,
    "repository-unborn": _repository_without_a_commit,
    "repository-in-place": _repository_of_its_own,
    "worktree-inside": _worktree_inside,
    "submodule-commit": partial(_submodule_commit, recorded=False),
    "submodule-commit-recorded": partial(_submodule_commit, recorded=True),
    "submodule-dirty": _submodule_dirty,
    "submodule-ignored": _submodule_ignored,
    "submodule-stash": _submodule_stash,
    "submodule-removed": _submodule_removed,
}

_UNFINISHED: Mapping[str, Act] = {
    **{f"{name}-conflict": partial(_half_way, operation=name, resolved=False) for name in OPERATIONS},
    **{f"{name}-resolved": partial(_half_way, operation=name, resolved=True) for name in OPERATIONS},
    "rebase-autostash": _autostashed,
    "rebase-at-an-edit": _stopped_at_an_edit,
    "merge-to-commit": _merge_to_commit,
    "squash-conflict": _squashed,
    "bisect": _bisecting,
}

HOLDINGS: Mapping[str, Holding] = {
    "nothing": Holding(_nothing),
    **{name: Holding(act) for table in (_COMMITS, _FILES, _REPOSITORIES, _UNFINISHED) for name, act in table.items()},
    "unreadable": Holding(partial(_unreadable, path="closed.txt"), bound=True),
    "unreadable-ignored": Holding(partial(_unreadable, path="secret.env"), bound=True),
    "unreadable-tracked": Holding(partial(_unreadable, path="a.txt"), bound=True),
    "unreadable-directory": Holding(partial(_unreadable_directory, path="closed"), bound=True),
    "unwritable-directory": Holding(partial(_unwritable_directory, path="closed"), bound=True),
    "unwritable-directory-ignored": Holding(partial(_unwritable_directory, path="scratch"), bound=True),
    "large": Holding(partial(_large, path="large.bin"), limits=SMALL),
    "large-tracked": Holding(partial(_large, path="a.txt"), limits=SMALL),
    "large-committed": Holding(_large_committed, limits=SMALL),
}
