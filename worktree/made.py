"""What a run made, by what only its worktree can name."""

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
    tip = (
        {oid for ref, oid in checkout.refs_now().items() if ref == checkout.branch_ref}
        if _is_away(checkout, state)
        else set()
    )
    if not checkout.has_admin:
        return tip
    log = read_regular(checkout.admin / "logs" / "HEAD", LONGEST_LOG).decode(errors="replace").splitlines()
    named = {oid for line in log for oid in line.split(" ", 2)[:2] if oid.strip("0")}
    named |= {*read_words(checkout.admin / "ORIG_HEAD"), *state.other_heads, *_own_refs(checkout)}
    return named | tip | ({state.head} if state.head else set())


def _is_away(checkout: Checkout, state: State) -> bool:
    return state.branch != checkout.record.branch or not checkout.has_admin


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


def holds_files(directory: Path) -> bool:
    """Whether a regular file is in or below a git directory's folder."""
    return any(path.is_file() for path in directory.rglob("*"))


def stashed(checkout: Checkout, made: Collection[str]) -> list[str]:
    """Return the new stash entries that are the run's: made on the Issue branch, or on a commit of `made`."""
    new = [entry for entry in read_stash(checkout.remote.common) if entry.commit not in checkout.stashes]
    by_name = (f"WIP on {checkout.record.branch}: ", f"On {checkout.record.branch}: ")
    return [
        entry.commit
        for entry in new
        if entry.subject.startswith(by_name) or _first_parent(checkout.shared, entry.commit) in made
    ]


def _first_parent(git: Git, commit: str) -> str:
    return git.run("rev-parse", "--verify", f"{commit}^1").text


def tips(git: Git, commits: Collection[str], beyond: Collection[str]) -> list[str]:
    """Return the fewest of `commits` from which all are reached that are not reached from `beyond`."""
    lines = [*sorted(commits), *(f"^{oid}" for oid in sorted(beyond))]
    rows = git.run("rev-list", "--parents", "--stdin", stdin="\n".join(lines).encode() + b"\n").text.splitlines()
    found = [row.split(" ") for row in rows]
    parents = {parent for row in found for parent in row[1:]}
    return [row[0] for row in found if row[0] not in parents]
