"""Real git on the bare repositories that the hub serves."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

_DEADLINE = 60  # seconds; everything here works on a local repository
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_CONFLICT = 1  # what `git merge-tree` ends with when the merge is not clean

# `safe.directory`: a repository that is used in place may belong to somebody else, and whoever starts the hub named
# it on purpose. `gc.auto`: no process outlives the request that started it.
CONFIGURATION = ("-c", "safe.directory=*", "-c", "gc.auto=0", "-c", "maintenance.auto=false")


class GitError(Exception):
    """A git command on a served repository failed; the message is what it was and what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A name and an address to write into commits."""

    name: str
    email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far a head is from its base."""

    commits: int = 0
    files: int = 0
    additions: int = 0
    deletions: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """A file, as git writes its name, and the lines that came and went."""

    file: str
    additions: int
    deletions: int


class BareRepository:
    """The bare repository at `path`. Every call starts git, and raises GitError when that fails."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def create(cls, path: Path) -> "BareRepository":
        """Make an empty bare repository whose default branch is `main`."""
        path.mkdir(parents=True)
        repository = cls(path)
        repository._git("init", "--quiet", "--bare", "--initial-branch=main", ".")
        return repository

    def is_bare(self) -> bool:
        """Tell whether there is a bare repository at exactly this path."""
        if not self._path.is_dir():
            return False
        ended = self._run("rev-parse", "--is-bare-repository", "--git-dir")
        return ended.returncode == 0 and ended.stdout.split() == ["true", "."]

    def default_branch(self) -> str:
        """Return the branch that HEAD names, whether it exists or not."""
        return self._git("symbolic-ref", "HEAD").removeprefix("refs/heads/")

    def refs(self, prefix: str = "refs/heads/") -> dict[str, str]:
        """Return the object id of every ref under `prefix`, by what follows the prefix."""
        lines = self._git("for-each-ref", "--format=%(objectname) %(refname)", prefix).splitlines()
        pairs = (line.split(" ", 1) for line in lines)
        return {name.removeprefix(prefix): object_id for object_id, name in pairs}

    def commit(self, revision: str) -> str | None:
        """Return the id of the commit that `revision` names, or None."""
        ended = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return ended.stdout.strip() or None

    def object_type(self, object_id: str) -> str:
        """Return commit, tag, tree or blob."""
        return self._git("cat-file", "-t", object_id)

    def show(self, object_id: str) -> list[str]:
        """Return tree, parents (separated by spaces), author, address, time and message of a commit."""
        form = "%T%x00%P%x00%an%x00%ae%x00%aI%x00%B"
        return self._git("show", "--no-patch", f"--format={form}", object_id).split("\0")

    def merged_tree(self, base: str, head: str) -> str | None:
        """Return the tree of `head` merged into `base`, or None when they conflict or share no history."""
        ended = self._run("merge-tree", "--write-tree", "--no-messages", base, head)
        if ended.returncode == 0:
            return ended.stdout.strip()
        if ended.returncode == _CONFLICT or not self.related(base, head):
            return None
        raise _failure(ended)

    def related(self, one: str, other: str) -> bool:
        """Tell whether two commits have an ancestor in common."""
        return self._run("merge-base", one, other).returncode == 0

    def write_commit(self, tree: str, parents: tuple[str, ...], message: str, author: Signature) -> str:
        """Write a commit that no ref names yet, and return its id."""
        parent_options = [word for parent in parents for word in ("-p", parent)]
        identity = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_COMMITTER_NAME": "GitHub",
            "GIT_COMMITTER_EMAIL": "noreply@github.com",
        }
        return self._git("commit-tree", tree, *parent_options, "-F", "-", stdin=message, extra=identity)

    def move_branch(self, branch: str, new: str, old: str, why: str) -> bool:
        """Move `branch` from exactly `old` to `new`; returns False when it is somewhere else by now."""
        return self._run("update-ref", "-m", why, f"refs/heads/{branch}", new, old).returncode == 0

    def fork_point(self, commit: str) -> str:
        """Return where the history of `commit` left the default branch; what it was made on, if it is part of that."""
        main = self.commit(self.default_branch())
        shared = self._run("merge-base", main, commit).stdout.strip() if main else ""
        return shared if shared not in ("", commit) else self.commit(f"{commit}^") or _EMPTY_TREE

    def changed_files(self, base: str, head: str) -> list[str]:
        """Return the files that differ between two commits."""
        names = self._git("diff", "--name-only", "--no-renames", "-z", base, head)
        return [name for name in names.split("\0") if name]

    def files(self, commit: str, directory: str) -> dict[str, str]:
        """Return the text of every file that stands in `directory` itself, by its path."""
        names = self._git("ls-tree", "-z", "--name-only", commit, f"{directory}/").split("\0")
        return {name: self._git("show", f"{commit}:{name}") for name in names if name}

    def write_files(self, commit: str, directory: Path) -> None:
        """Write the files of a commit into the new `directory`; the index that git wants for it lies beside."""
        directory.mkdir()
        index = {"GIT_INDEX_FILE": f"{directory}.index"}
        self._git(f"--work-tree={directory}", "read-tree", "--reset", "-u", commit, extra=index)

    def is_ancestor(self, one: str, other: str) -> bool:
        """Tell whether the history of `other` has the commit `one`."""
        return self._run("merge-base", "--is-ancestor", one, other).returncode == 0

    def rebased(self, head: str, onto: str, committer: Signature) -> str | None:
        """Return the last of the commits of `head` made anew on `onto`, or None when they conflict."""
        quiet = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")
        identity = {"GIT_COMMITTER_NAME": committer.name, "GIT_COMMITTER_EMAIL": committer.email}
        with TemporaryDirectory(prefix="nightkeep-hub-") as directory:
            place = f"{directory}/tree"
            self._git(*quiet, "worktree", "add", "--quiet", "--detach", place, head)
            try:
                ended = self._run("-C", place, *quiet, "rebase", "--quiet", onto, extra=identity)
                return self._git("-C", place, "rev-parse", "HEAD") if ended.returncode == 0 else None
            finally:
                self._git("worktree", "remove", "--force", place)

    def create_ref(self, branch: str, commit: str) -> None:
        """Make the new branch `branch`."""
        self._git("update-ref", f"refs/heads/{branch}", commit, "")

    def delete_ref(self, name: str, old: str) -> bool:
        """Delete the ref `name` that holds `old`; returns False when it is not there any more."""
        return self._run("update-ref", "-d", name, old).returncode == 0

    def difference(self, base: str, head: str) -> Difference:
        """Count what `head` has beyond `base`; nothing when the two share no history."""
        if not self.related(base, head):
            return Difference()
        commits = int(self._git("rev-list", "--count", f"{base}..{head}"))
        changes = self.changes(base, head)
        added, deleted = sum(change.additions for change in changes), sum(change.deletions for change in changes)
        return Difference(commits=commits, files=len(changes), additions=added, deletions=deleted)

    def changes(self, base: str, head: str) -> list[Change]:
        """Return the files that `head` changes since it left `base`."""
        rows = (line.split("\t", 2) for line in self._git("diff", "--numstat", f"{base}...{head}").splitlines())
        # A binary file has a dash in place of each count.
        return [Change(file, int(added.replace("-", "0")), int(gone.replace("-", "0"))) for added, gone, file in rows]

    def log(self, base: str, head: str) -> list[tuple[str, str, str]]:
        """Return id, author and subject of the commits that `head` has beyond `base`, oldest first."""
        lines = self._git("log", "--reverse", "--format=%H%x00%an%x00%s", f"{base}..{head}").splitlines()
        return [(commit, author, subject) for commit, author, subject in (line.split("\0") for line in lines)]

    def _git(self, *words: str, stdin: str = "", extra: Mapping[str, str] | None = None) -> str:
        ended = self._run(*words, stdin=stdin, extra=extra)
        if ended.returncode != 0:
            raise _failure(ended)
        return ended.stdout.removesuffix("\n")

    def _run(
        self, *words: str, stdin: str = "", extra: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["git", *CONFIGURATION, *words],
            cwd=self._path,
            env=environment() | dict(extra or {}),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_DEADLINE,
            check=False,
        )


def environment() -> dict[str, str]:
    """Return the whole environment of a git command: nobody's configuration, identity or GIT_* variable."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"}


def _failure(ended: "subprocess.CompletedProcess[str]") -> GitError:
    return GitError(f"{ended.args}: exit {ended.returncode}\n{ended.stdout}{ended.stderr}")
