"""What git says about a worktree: HEAD, the index, and an operation that was left unfinished."""

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from worktree.git import Git
from worktree.reading import read_words

_ATTEMPTS = 3


class Operation(Enum):
    """A git command that stopped half-way. The value is what aborts it."""

    MERGE = ("merge", "--abort")
    REBASE = ("rebase", "--abort")
    AM = ("am", "--abort")
    CHERRY_PICK = ("cherry-pick", "--abort")
    REVERT = ("revert", "--abort")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What `git status` says. `rows` hold a code and a path: git's two letters for the index and the file, each a dot
    where nothing changed; or `u` unmerged, `?` untracked, `!` ignored.
    """

    head: str | None
    branch: str | None
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A worktree at one moment.

    `head` is the commit at HEAD, None before the first; `branch` is the branch HEAD is on, None when detached;
    `home` is the same, or the branch that an unfinished rebase took HEAD from and that its abort moves.
    `unmerged` are the paths with unresolved conflicts, `staged` those whose index entry differs from HEAD.
    `index_only` says that the index holds content that is neither in HEAD nor in the files. `other_heads` are the
    commits that the unfinished operation brought in, its autostash among them.
    """

    head: str | None
    branch: str | None
    home: str | None
    operation: Operation | None
    unmerged: tuple[str, ...]
    staged: frozenset[str]
    index_only: bool
    other_heads: tuple[str, ...]

    def is_plain_on(self, branch: str) -> bool:
        """Whether staging and committing on `branch` would destroy nothing."""
        return self.branch == branch and self.operation is None and not self.unmerged and not self.index_only


def why_unsettled(state: State, branch: str) -> str | None:
    """Decide whether a session that ended well left work that can be told apart: None, or what stands in the way."""
    if state.operation is not None:
        return f"a {state.operation.value[0]} unfinished"
    if state.branch != branch:
        return f"{f'the branch {state.branch}' if state.branch else 'a detached HEAD'} checked out, and not {branch}"
    if state.unmerged:
        return f"conflicts unresolved in {', '.join(state.unmerged)}"
    return None


def read_state(git: Git, admin: Path) -> State:
    """Read the state of the worktree whose git directory is `admin`."""
    # Untracked files are not asked for, they cannot be lost by staging.
    return state_of(read_status(git, "--untracked-files=no"), admin)


def state_of(status: Status, admin: Path) -> State:
    """Return what a status and the git directory `admin` say together."""
    return State(
        head=status.head,
        branch=status.branch,
        home=_rebased_branch(admin) or status.branch,
        operation=_operation(admin),
        unmerged=tuple(path for code, path in status.rows if code == "u"),
        staged=frozenset(path for code, path in status.rows if code == "u" or (len(code) == 2 and code[0] != ".")),
        index_only=any(len(code) == 2 and "." not in code for code, _ in status.rows),
        other_heads=_other_heads(admin),
    )


def state_without_files(git: Git, admin: Path) -> State:
    """Return the state of a worktree whose files are gone: HEAD, and what an unfinished operation brought in."""
    return replace(state_at_head(git, admin), operation=None)


def state_at_head(git: Git, admin: Path) -> State:
    """Return the state of a worktree whose index has what HEAD has."""
    words = read_words(admin / "HEAD")
    branch = words[1].removeprefix("refs/heads/") if words[:1] == ["ref:"] else None
    found = git.run("rev-parse", "--verify", "--quiet", "HEAD", accept=(0, 1))
    return State(
        head=found.text or None,
        branch=branch,
        home=_rebased_branch(admin) or branch,
        operation=_operation(admin),
        unmerged=(),
        staged=frozenset(),
        index_only=False,
        other_heads=_other_heads(admin),
    )


def read_status(git: Git, *options: str) -> Status:
    """Ask git for the status of a worktree."""
    # `--no-renames` keeps one path an entry.
    question = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", *options)
    for _ in range(_ATTEMPTS):
        answer = git.run(*question)
        headers = dict(row[2:].split(" ", 1) for row in answer.fields if row.startswith("# "))
        if headers.keys() >= {"branch.oid", "branch.head"}:
            head, branch = headers["branch.oid"], headers["branch.head"]
            return Status(
                head=None if head == "(initial)" else head,
                branch=None if branch == "(detached)" else branch,
                rows=tuple(_row(row) for row in answer.fields if not row.startswith("# ")),
            )
    # A process that git was made to start (by a filter) takes answers out of the pipe. Each attempt stops it first.
    raise git.failure(question, answer)


def _row(line: str) -> tuple[str, str]:
    match line[0]:
        case "1":
            return line[2:4], line.split(" ", 8)[8]
        case "u":
            return "u", line.split(" ", 10)[10]
        case _:
            return line[0], line[2:]


def _operation(admin: Path) -> Operation | None:
    if (admin / "rebase-merge").exists():
        return Operation.REBASE
    if (admin / "rebase-apply").exists():
        return Operation.AM if (admin / "rebase-apply" / "applying").exists() else Operation.REBASE
    if (admin / "MERGE_HEAD").exists():
        return Operation.MERGE
    if (admin / "REVERT_HEAD").exists():
        return Operation.REVERT
    # A sequence that stopped after somebody committed by hand has no CHERRY_PICK_HEAD; aborting is the same.
    if (admin / "CHERRY_PICK_HEAD").exists() or (admin / "sequencer").exists():
        return Operation.CHERRY_PICK
    return None


def _rebased_branch(admin: Path) -> str | None:
    for place in ("rebase-merge", "rebase-apply"):
        words = read_words(admin / place / "head-name")
        if words:
            return words[0].removeprefix("refs/heads/")
    return None


def _other_heads(admin: Path) -> tuple[str, ...]:
    names = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "MERGE_AUTOSTASH")
    files = [admin / name for name in names] + [
        admin / place / "autostash" for place in ("rebase-merge", "rebase-apply")
    ]
    return tuple(word for file in files for word in read_words(file))
