"""A snapshot: everything in a worktree as one commit, made without touching anything."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from worktree.files import Screen, private_index, write_complete_tree
from worktree.git import IDENTITY, Git
from worktree.state import State

INDEX_SUBJECT = "nightkeep: the index at the time of the snapshot"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit whose tree is the working files; `left` are the paths that are not in it, each with why.

    `index_tree` is the index's tree where that was put into a commit of its own, a parent.
    """

    commit: str
    tree: str
    index_tree: str | None
    left: Mapping[str, str]


def take_snapshot(
    git: Git,
    admin: Path,
    top: Path,
    state: State,
    *,
    scratch: Path,
    screen: Screen,
    subject: str,
    besides: Sequence[str] = (),
    trailers: Mapping[str, str] = MappingProxyType({}),
) -> Snapshot:
    """Make a commit of the working files, conflict markers and all, in the shape of a stash.

    Its parents are HEAD, a commit of the index where that differs, what the unfinished operation brought in, and the
    commits `besides`. Works while the index is locked; moves no ref. What `screen` holds back is not in it.
    """
    staged_tree = index_commit = None
    if state.index_only or state.operation:
        with private_index(git, admin, scratch) as private:
            staged_tree = index_tree(private, state.unmerged)
            index_commit = commit_tree(private, staged_tree, [state.head] if state.head else [], INDEX_SUBJECT)
    with private_index(git, admin, scratch) as private:
        tree, left = write_complete_tree(private, top, screen, state.staged)
    parents = list(dict.fromkeys(oid for oid in (state.head, index_commit, *state.other_heads, *besides) if oid))
    commit = commit_tree(git, tree, parents, _message(subject, state, _marked(git, state), trailers))
    return Snapshot(commit, tree, staged_tree, left)


def read_snapshot(git: Git, commit: str) -> Snapshot:
    """Return a snapshot that was taken before, without what was left out of it."""
    rows = git.run("log", "--no-walk=unsorted", "--format=%T %s", commit, f"{commit}^@").text.splitlines()
    (tree, _), *parents = (row.split(" ", 1) for row in rows)
    return Snapshot(commit, tree, next((index for index, subject in parents if subject == INDEX_SUBJECT), None), {})


def commit_tree(git: Git, tree: str, parents: list[str], message: str) -> str:
    """Make a commit with Nightkeep's own identity, unsigned; return its id."""
    options = [option for parent in parents for option in ("-p", parent)]
    made = git.within(**IDENTITY).run(
        "commit-tree", tree, *options, "-F", "-", stdin=message.encode(errors="surrogateescape")
    )
    return made.text


def index_tree(private: Git, unmerged: Collection[str]) -> str:
    """Write the tree of an index, which is changed for that: without the paths with conflicts; return its id."""
    if unmerged:
        # An index with conflicts has no tree. Their sides are in commits; what is staged beside them may be nowhere.
        names = "\0".join(unmerged).encode(errors="surrogateescape")
        private.run("update-index", "--force-remove", "-z", "--stdin", stdin=names)
    return private.run("write-tree").text


def _marked(git: Git, state: State) -> list[str]:
    """Return the files that were staged with conflict markers in them: git no longer takes them for unmerged."""
    if state.operation is None or state.head is None:
        return []
    said = git.run("diff", "--cached", "--check", "HEAD", accept=range(256)).text.splitlines()
    return list(dict.fromkeys(line.split(":", 1)[0] for line in said if line.endswith("leftover conflict marker")))


def _message(subject: str, state: State, marked: list[str], trailers: Mapping[str, str]) -> str:
    lines = [subject, ""]
    if state.operation:
        lines.append(f"Unfinished operation: {state.operation.value[0]}.")
    if state.unmerged:
        lines.append("Unresolved conflicts in:")
        lines.extend(f"  {path}" for path in state.unmerged)
    if marked:
        lines.append("Conflict markers staged in:")
        lines.extend(f"  {path}" for path in marked)
    if trailers:
        lines += ["", *(f"{name}: {value}" for name, value in trailers.items())]
    return "\n".join(lines) + "\n"
