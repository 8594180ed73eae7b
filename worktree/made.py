"""What a run made, by what only its worktree can name."""

import os
import re
from collections.abc import Collection
from pathlib import Path

from worktree.checkout import Checkout
from worktree.errors import WorktreeError
from worktree.git import Git
from worktree.reading import read_regular, read_words
from worktree.stash import read_stash
from worktree.state import State

LONGEST_LOG = 1 << 26  # bytes of the log of HEAD; some three hundred thousand moves


def named_commits(checkout: Checkout, state: State) -> set[str]:
    """Return the commits that HEAD has named during the run, its own refs and operation name, and the Issue branch's.

    Raises OSError when the log of HEAD cannot be read: without it nobody can tell.
    """
    away = state.branch != checkout.record.branch or not checkout.has_admin
    left = checkout.branch_left() if away else None
    tip = {left} if left else set()
    if not checkout.has_admin:
        return tip
    log = read_regular(checkout.admin / "logs" / "HEAD", LONGEST_LOG).decode(errors="replace").splitlines()
    named = {oid for line in log for oid in line.split(" ", 2)[:2] if oid.strip("0")}
    # Git keeps what the log names, and what an unfinished operation needs; what ORIG_HEAD alone names it may prune.
    named |= {*checkout.of_those_here(_root_refs(checkout.admin)), *state.other_heads, *_own_refs(checkout)}
    return named | tip | ({state.head} if state.head else set())


def _root_refs(admin: Path) -> set[str]:
    """Return what ORIG_HEAD and the like name, and any ref that somebody made beside them."""
    files = (file for file in admin.iterdir() if _REF.fullmatch(file.name) and file.name != "HEAD")
    return {oid for file in files if (oid := _commit_in(file))}


def _own_refs(checkout: Checkout) -> list[str]:
    """Return what the refs name that only this worktree has, of a bisection for example."""
    if not holds_files(checkout.admin / "refs"):
        return []
    shown = "--format=%(objectname) %(objecttype) %(refname)"
    rows = [row.split(" ", 2) for row in checkout.git.run("for-each-ref", shown).text.splitlines()]
    own = [row for row in rows if row[2].startswith(("refs/worktree/", "refs/bisect/", "refs/rewritten/"))]
    other = [ref for _, kind, ref in own if kind != "commit"]
    if other:
        raise WorktreeError(f"its own ref {other[0]} names no commit")
    return [oid for oid, _, _ in own]


_REF = re.compile(r"[A-Z][A-Z_]*")
# What git keeps in the directory of a linked worktree, besides refs in capital letters.
_GITS_OWN = re.compile(
    r"(index|sharedindex\..*|next-index-.*|HEAD|AUTO_MERGE|logs|refs|packed-refs|modules|commondir|gitdir|locked|info"
    r"|config\.worktree|sequencer|rebase-(merge|apply)|lfs|gc\.(pid|log)|fsmonitor.*"
    r"|(COMMIT|TAG|NOTES)_EDITMSG|(MERGE|SQUASH)_MSG|MERGE_(RR|MODE|AUTOSTASH)|NOTES_MERGE_.*|EDIT_DESCRIPTION"
    r"|(ORIG|FETCH|MERGE|CHERRY_PICK|REVERT|REBASE|BISECT)_HEAD|GITGUI_(MSG|BCK|EDITMSG)"
    r"|BISECT_(LOG|NAMES|START|TERMS|RUN|EXPECTED_REV|ANCESTORS_OK|FIRST_PARENT)"
    r")(\.lock)?"
)
_OWN_BELOW = {"info": {"sparse-checkout", "attributes", "exclude", "refs"}, "logs": {"HEAD", "refs"}}


def foreign_entries(admin: Path) -> list[str]:
    """Return the paths in a worktree's git directory that git does not put there: somebody kept something in it."""
    if not admin.is_dir():
        return []
    names = sorted(os.listdir(admin))  # noqa: PTH208 - names are all that is needed
    found = [name for name in names if not _GITS_OWN.fullmatch(name) and not _is_ref(admin / name)]
    below = [(above, path.name) for above in _OWN_BELOW for path in sorted((admin / above).glob("*"))]
    return found + [f"{above}/{name}" for above, name in below if name not in _OWN_BELOW[above]]


def operation_entries(admin: Path) -> list[str]:
    """Return the names in a worktree's git directory that say how far an unfinished operation had come."""
    return [name for name in ("rebase-merge", "rebase-apply", "sequencer") if (admin / name).exists()]


def _is_ref(file: Path) -> bool:
    return bool(_REF.fullmatch(file.name)) and _commit_in(file) is not None


def _commit_in(file: Path) -> str | None:
    """Return the object id that a file holds and nothing else, as a ref of this worktree alone does."""
    words = read_words(file)
    return words[0] if len(words) == 1 and re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", words[0]) else None


def holds_files(directory: Path) -> bool:
    """Whether a regular file is in or below a git directory's folder."""
    return any(path.is_file() for path in directory.rglob("*"))


def _stashed(checkout: Checkout, made: Collection[str]) -> list[str]:
    """Return the new stash entries that are the run's: made on the Issue branch, or on a commit of `made`."""
    new = [entry for entry in read_stash(checkout.remote.common) if entry.commit not in checkout.stashes]
    by_name = (f"WIP on {checkout.record.branch}: ", f"On {checkout.record.branch}: ")
    return [
        entry.commit
        for entry in new
        if entry.subject.startswith(by_name) or _first_parent(checkout.shared, entry.commit) in made
    ]


def loose_ends(checkout: Checkout, state: State, kept: Collection[str]) -> list[str]:
    """Return the fewest commits that reach all that the run made and neither origin nor `kept` holds.

    That is commits that HEAD left behind, and the run's stash entries. Not what was reachable when the run began: that
    is the person's.
    """
    # A person may have deleted a branch or a stash entry since, and git have pruned it.
    theirs = checkout.of_those_here({*checkout.refs.values(), *checkout.stashes, *checkout.ledger.held})
    named = named_commits(checkout, state) - theirs
    ends = tips(checkout.shared, named, theirs | set(kept)) if named else []
    return ends + _stashed(checkout, named)


def _first_parent(git: Git, commit: str) -> str:
    return git.run("rev-parse", "--verify", f"{commit}^1").text


def tips(git: Git, commits: Collection[str], beyond: Collection[str]) -> list[str]:
    """Return the fewest of `commits` from which all are reached that are not reached from `beyond`."""
    lines = [*sorted(commits), *(f"^{oid}" for oid in sorted(beyond))]
    rows = git.run("rev-list", "--parents", "--stdin", stdin="\n".join(lines).encode() + b"\n").text.splitlines()
    found = [row.split(" ") for row in rows]
    parents = {parent for row in found for parent in row[1:]}
    return [row[0] for row in found if row[0] not in parents]
