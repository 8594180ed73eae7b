"""What a worktree that was retained holds, as far as it would be missed."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from worktree.checkout import Checkout
from worktree.cleanup import reason_to_leave, ties_of
from worktree.files import list_files, private_index, show_hidden
from worktree.git import Git
from worktree.launch import Launch
from worktree.made import named_commits
from worktree.origin import Origin
from worktree.reclaim import look_into, with_what_is_held
from worktree.run_refs import checkpoint_ref
from worktree.state import State, read_status, state_of, state_without_files
from worktree.temporary import temporary_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What is in a worktree. Paths are relative to its top, as Python's `os` functions take them.

    `head` is the commit at HEAD and `branch` the branch that HEAD is on, each None where there is none. `unfinished` is
    the git command that stopped half-way, `unmerged` the paths with conflicts. `commits` are (id, subject) of those
    that neither origin nor another ref of the clone reaches, the newest first. `changed` differs from HEAD, in the
    index or in the files; of `untracked` and `ignored` a directory ends with a slash and stands for all in it.
    `obstacle` is what keeps it from being released as it stands, with the remedy; None when nothing does.
    """

    head: str | None
    branch: str | None
    unfinished: str | None
    unmerged: tuple[str, ...]
    commits: tuple[tuple[str, str], ...]
    changed: tuple[str, ...]
    untracked: tuple[str, ...]
    ignored: tuple[str, ...]
    obstacle: str | None


def read_holding(launch: Launch, run_id: str, origin: Origin | None, there: Mapping[str, str]) -> Holding:
    """Look at what a retained worktree holds; changes nothing. `there` are the refs of origin, see `read_held`.

    Raises WorktreeError or OSError where that cannot be told.
    """
    checkout = with_what_is_held(look_into(launch, run_id, origin), launch, there).without_new_filters()
    rows: Sequence[tuple[str, str]] = ()
    if checkout.has_tree:
        with _everything_shown(checkout) as git:
            status = read_status(git, "--untracked-files=normal", "--ignored=traditional", "--ignore-submodules=dirty")
        state, rows = state_of(status, checkout.admin), status.rows
    else:
        state = state_without_files(checkout.git, checkout.admin)
    return Holding(
        head=state.head if checkout.has_admin else None,
        branch=state.branch if checkout.has_admin else None,
        unfinished=state.operation.value[0] if state.operation else None,
        unmerged=state.unmerged,
        commits=_nowhere_else(checkout, state),
        changed=tuple(path for code, path in rows if len(code) == 2),
        untracked=tuple(path for code, path in rows if code == "?"),
        ignored=tuple(path for code, path in rows if code == "!"),
        obstacle=_obstacle(checkout),
    )


def _obstacle(checkout: Checkout) -> str | None:
    if checkout.is_displaced():
        return f"something else stands at {checkout.path}; move it away"
    if checkout.directory.is_clearing() or not checkout.has_tree:
        return None
    path, ours = shlex.quote(str(checkout.path)), f"nightkeep {checkout.record.run_id}"
    ties = ties_of(checkout)
    why = reason_to_leave(ties, checkout.record.run_id)
    if why is None or not ties.links_back or ties.locked_by == ours:
        return why and f"{why}; put that right"
    unlock = f"git worktree unlock {path} && " if ties.locked_by else ""
    return f"{why}; give it its own lock again: {unlock}git worktree lock --reason '{ours}' {path}"


@contextmanager
def _everything_shown(checkout: Checkout) -> Iterator[Git]:
    """Yield a git on a copy of the index without the flags that hide edits from git."""
    with temporary_directory() as (directory, _), private_index(checkout.git, checkout.admin, directory) as private:
        hidden = list_files(private, checkout.path).hidden
        if hidden:
            show_hidden(private, hidden)
        yield private


def _nowhere_else(checkout: Checkout, state: State) -> tuple[tuple[str, str], ...]:
    named = named_commits(checkout, state)
    going = (checkout.branch_ref, checkpoint_ref(checkout.record.run_id))
    others = {oid for ref, oid in checkout.refs_now().items() if ref not in going}
    held = checkout.of_those_here({*others, *checkout.ledger.held})
    lines = [*sorted(named), *(f"^{oid}" for oid in sorted(held))]
    asked = ("\n".join(lines) + "\n").encode()
    shown = ("log", "--no-show-signature", "-z", "--format=%H %s", "--stdin")
    rows = checkout.shared.run(*shown, stdin=asked).fields if named else []
    return tuple((row.partition(" ")[0], row.partition(" ")[2]) for row in rows)
