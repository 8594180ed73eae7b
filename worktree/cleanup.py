"""Taking a worktree away: what is proven to be elsewhere is removed, and the rest is kept in the rescue store."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from worktree.checkout import Checkout
from worktree.checkpoint import drop_checkpoints
from worktree.descent import each_below
from worktree.errors import GitError, WorktreeError
from worktree.files import private_index
from worktree.git import Git
from worktree.launch import registered_paths
from worktree.made import foreign_entries, holds_files, operation_entries
from worktree.moments import written_now
from worktree.mounts import mounts_below
from worktree.naming import some
from worktree.processes import at_work_in
from worktree.proof import (
    REPOSITORY,
    UNTRACKED,
    Look,
    Proof,
    ask_index,
    copied_index,
    equals_head,
    look_at_all,
    look_at_rest,
    prove,
)
from worktree.reading import read_regular, read_words
from worktree.record import Retained, aside_of
from worktree.removal import Removal, drop_copies
from worktree.rescue import harden, keep_index, keep_snapshot
from worktree.screening import shown
from worktree.state import State, Status, state_at_head, state_of, state_without_files
from worktree.store import Manifest, Row, Store, read_manifest

_LATE = "git does not list it, or it appeared or changed at the last moment"
EMPTY = "an empty directory"
_RULES = (".gitattributes", ".gitignore", ".gitmodules")  # by which git judges other files


@dataclass(frozen=True, slots=True, kw_only=True)
class Ties:
    """What decides whether a worktree may be moved aside, and taken apart there.

    `locked_by` is the reason of git's lock on it, `links_back` whether its `.git` is still ours; `mounts` and `linked`
    are what is mounted and what other worktrees are in it.
    """

    locked_by: str | None
    links_back: bool
    mounts: tuple[str, ...]
    linked: tuple[str, ...]


def reason_to_leave(ties: Ties, run_id: str) -> str | None:
    """Decide: None for a worktree that is ours to move, else why it is not touched."""
    if not ties.links_back:
        return "its .git was replaced or removed"
    if ties.locked_by is None:
        return "its lock was taken away"
    if ties.locked_by != f"nightkeep {run_id}":
        return f"its lock is not ours: {ties.locked_by}"
    if ties.mounts:
        return f"something is mounted in it: {_named(ties.mounts)}"
    return f"another worktree is in it: {_named(ties.linked)}" if ties.linked else None


def reason_to_retain(state: State, at_work: tuple[str, ...], *, index_kept: bool, all_kept: bool = False) -> str | None:
    """Decide about a worktree that was moved aside: None to take it apart, else why it goes back to its place.

    `index_kept` says whether a snapshot on origin has what the index alone holds, `all_kept` whether one here or there
    has all that the state is about.
    """
    if at_work:
        return f"somebody is at work in it: {_named(at_work)}"
    if all_kept:
        return None
    if state.operation is not None:
        return f"a {state.operation.value[0]} is unfinished in it"
    if state.unmerged:
        return f"it has unresolved conflicts: {_named(state.unmerged)}"
    return "its index holds what no commit on origin has" if state.index_only and not index_kept else None


def _named(paths: tuple[str, ...]) -> str:
    return some([ascii(path)[1:-1] for path in paths])


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What clean-up did: why the worktree is `retained`, None when it is gone; the commit at its `head`; and what went
    to the rescue store, where anything did.
    """

    retained: str | None
    head: str | None
    rows: tuple[Row, ...] = ()
    store: Path | None = None


def clean_up(checkout: Checkout) -> Cleaned:
    """Remove the worktree, its local branch where the run made that, and its record, and lose nothing by it.

    Whatever cannot be told makes the worktree stay where it is. `checkout` must be a completion view; raises nothing.
    """
    try:
        if checkout.released and checkout.is_displaced():
            return Cleaned(f"something else stands at {checkout.path}", read_head(checkout))
        if not checkout.has_tree:
            return _finish(checkout)
        reason = reason_to_leave(ties_of(checkout), checkout.record.run_id)
        if reason:
            return Cleaned(reason, read_head(checkout))
        return _take_apart(checkout.without_new_filters())
    except Exception as error:
        return Cleaned(f"it could not be told whether everything is safe: {error}", read_head(checkout))


def read_head(checkout: Checkout) -> str | None:
    """Return the commit at HEAD, or None when git cannot tell."""
    try:
        return checkout.git.run("rev-parse", "--verify", "HEAD").text
    except (GitError, OSError):
        return None


def ties_of(checkout: Checkout) -> Ties:
    """Look at what decides whether a worktree may be moved. Raises OSError."""
    return Ties(
        locked_by=" ".join(read_words(checkout.admin / "locked")) or None,
        links_back=_links_back(checkout),
        mounts=tuple(mounts_below(checkout.path)),
        linked=tuple(_linked_inside(checkout)),
    )


def _links_back(checkout: Checkout) -> bool:
    try:
        link = os.fsdecode(read_regular(checkout.path / ".git"))
    except OSError:
        return False
    return checkout.is_in_place() and link == f"gitdir: {checkout.admin}\n"


def _linked_inside(checkout: Checkout) -> list[str]:
    places = registered_paths(checkout.remote.common)
    return sorted(str(place) for place in places if checkout.path in place.parents)


def _take_apart(checkout: Checkout) -> Cleaned:
    with _moved_aside(checkout) as aside:
        kept = _keep_unsettled(aside) if aside.released else None
        with copied_index(aside) as private:
            look = None if equals_head(private) else look_at_all(aside, private)
            state = state_of(look.status, aside.admin) if look else state_at_head(aside.git, aside.admin)
            at_work = tuple(at_work_in(aside.path, aside.record.started))
            reason = reason_to_retain(state, at_work, index_kept=_index_kept(aside, state), all_kept=state == kept)
            if reason:
                return Cleaned(reason, state.head)
            harden(aside, state)
            with _made_whole_on_error(aside):
                look = look or _take_first(aside, private, state)
                proof = prove(aside, private, look)
                rows, store = _clear(aside, proof, state, _deletions(look.status, proof))
    _forget(checkout, state)
    return Cleaned(None, state.head, rows, store)


def _keep_unsettled(aside: Checkout) -> State | None:
    """Take a snapshot, which stays here, where more than files and commits is at stake; return the state then."""
    with copied_index(aside) as private:
        state = state_of(look_at_all(aside, private).status, aside.admin)
    settled = state.operation is None and not state.unmerged and not state.index_only
    if settled or at_work_in(aside.path, aside.record.started):
        return None
    keep_snapshot(aside, state)
    return state


def _finish(checkout: Checkout) -> Cleaned:
    """Take away the rest of a worktree whose runner was killed while it was made, or while it was taken apart."""
    state = state_without_files(checkout.git, checkout.admin)
    if moved := checkout.moved_to_by_git():
        return Cleaned(f"it was moved to {moved}; move it back to {checkout.record.path}", state.head)
    if not checkout.directory.is_clearing():
        keep_index(checkout, state)
    harden(checkout, state)
    rows, store = _stored(checkout)
    # What stands there by now under its name may be somebody else's.
    if checkout.has_admin and (checkout.is_in_place() or checkout.is_at(aside_of(checkout.path))):
        with _moved_aside(checkout) as aside, copied_index(aside) as private:
            look = look_at_all(aside, private)
            at_work = tuple(at_work_in(aside.path, aside.record.started))
            if at_work:
                return Cleaned(reason_to_retain(state, at_work, index_kept=True), state.head)
            # What is missing now was taken away, or was not there yet.
            with _made_whole_on_error(aside):
                rows, store = _clear(aside, prove(aside, private, look), state, [])
    _forget(checkout, state)
    return Cleaned(None, state.head, rows, store)


def _take_first(checkout: Checkout, private: Git, state: State) -> Look:
    """Take away what the index alone proves, so that git need only look at what is left then."""
    told = ask_index(checkout, private, state.head or checkout.record.pinned)
    _note_clearing(checkout, state)
    drop_copies(checkout.path, checkout.top, checkout.included.paths)
    # Git still needs the rules for what is left.
    removal = Removal(checkout.path, told.safe, told.odd, later=_RULES)
    removal.carry_out()
    return look_at_rest(checkout, private, told, removal, state)


@contextmanager
def _made_whole_on_error(checkout: Checkout) -> Iterator[None]:
    """Give back what was taken away of HEAD's files if it does not end well, so that a whole worktree is found."""
    try:
        yield
    except Exception:
        checkout.git.run("checkout-index", "--all", "--quiet", accept=range(256))
        raise


def _stored(checkout: Checkout) -> tuple[tuple[Row, ...], Path | None]:
    """Return what the rescue store has of a run whose runner was killed just after it was moved there."""
    store = Store(checkout.remote.common, checkout.record.run_id)
    if not any(place.exists() for place in (store.tree, store.modules, store.admin)):
        return (), None
    if store.tree.exists():
        (store.tree / ".git").unlink(missing_ok=True)
    rows = read_manifest(store.path).rows
    _name(checkout, store, rows)
    return rows, store.path


def _clear(checkout: Checkout, proof: Proof, state: State, deleted: list[str]) -> tuple[tuple[Row, ...], Path | None]:
    _note_clearing(checkout, state)
    Removal(checkout.path, proof.safe, proof.changed).carry_out()
    drop_copies(checkout.path, checkout.top, checkout.included.paths)
    left = sorted(set(os.listdir(checkout.path)) - {".git"})  # noqa: PTH208 - names are all that is needed
    rows = _rows(checkout, left, proof, deleted)
    return rows, _keep_rest(checkout, state.head, rows)


def _note_clearing(checkout: Checkout, state: State) -> None:
    on_branch = state.branch == checkout.record.branch
    checkout.directory.note_clearing(state.head if on_branch else checkout.refs_now().get(checkout.branch_ref))


@contextmanager
def _moved_aside(checkout: Checkout) -> Iterator[Checkout]:
    """Rename the directory, so that whoever comes by its name finds nothing; back again if it is still there after."""
    aside = aside_of(checkout.path)
    if not checkout.is_at(aside):
        if os.path.lexists(aside):
            raise WorktreeError(f"{aside} is in the way")
        checkout.path.rename(aside)
    try:
        yield checkout.moved_to(aside)
    finally:
        if aside.exists():
            _put_back(aside, checkout.path)


def _put_back(aside: Path, path: Path) -> None:
    if os.path.lexists(path):
        raise WorktreeError(
            f"it is at {aside} now, because somebody made another {path} meanwhile; move that away first"
        )
    aside.rename(path)


def _index_kept(checkout: Checkout, state: State) -> bool:
    """Whether a snapshot on origin has the index as it is now; asked only where the index alone holds something."""
    known = {snapshot.index_tree for snapshot in checkout.ledger.published} - {None}
    if not state.index_only or not known:
        return False
    with private_index(checkout.git, checkout.admin, checkout.directory.path, "own-index") as private:
        return private.run("write-tree").text in known


def _deletions(status: Status, proof: Proof) -> list[str]:
    """Return the files that were deleted in no commit that origin has."""
    return [path for code, path in status.rows if "D" in code and path in proof.why]


def _rows(checkout: Checkout, left: list[str], proof: Proof, deleted: list[str]) -> tuple[Row, ...]:
    """Say of each top entry that is left why it is; and name the deletions that are in no commit."""
    reasons: dict[str, dict[str, None]] = {}
    for path, what in proof.why.items():
        reasons.setdefault(path.split("/", 1)[0], {})[what] = None
    for name in left:
        if UNTRACKED in reasons.get(name, ()) and _holds_repository(checkout.path / name):
            reasons[name][REPOSITORY] = None
    rows = [Row(name, ", ".join(reasons.get(name, ())) or _unlisted(checkout.path / name)) for name in left]
    rows += [Row(path, "deleted, in no commit on origin") for path in deleted]
    rows += [Row(name, "put into git's own directory of the worktree") for name in foreign_entries(checkout.admin)]
    rows += [Row(name, "how far an unfinished operation had come") for name in operation_entries(checkout.admin)]
    if holds_files(checkout.admin / "modules"):
        rows.append(Row("modules", "object stores of submodules"))
    return tuple(rows)


def _holds_repository(directory: Path) -> bool:
    with suppress(OSError):
        return any(".git" in found for found in each_below(directory))
    return False


def _unlisted(path: Path) -> str:
    with suppress(OSError):
        if not path.is_symlink() and all(all(found.values()) for found in each_below(path)):
            return EMPTY
    return _LATE


def _keep_rest(checkout: Checkout, head: str | None, rows: tuple[Row, ...]) -> Path | None:
    """Move what is left into the rescue store, as one directory, and the object stores of submodules with it."""
    if not rows:
        (checkout.path / ".git").unlink()
        checkout.path.rmdir()
        return None
    store = Store(checkout.remote.common, checkout.record.run_id)
    manifest = Manifest(
        run_id=checkout.record.run_id,
        branch=checkout.record.branch,
        path=str(checkout.record.path),
        head=head,
        failed=checkout.ledger.failed,
        moment=written_now(),
        rows=rows,
    )
    modules = checkout.admin / "modules"
    names = (*foreign_entries(checkout.admin), *operation_entries(checkout.admin))
    beside = {name: checkout.admin / name for name in names}
    store.take(checkout.path, modules if holds_files(modules) else None, manifest, beside)
    (store.tree / ".git").unlink()
    _name(checkout, store, rows)
    return store.path


def _name(checkout: Checkout, store: Store, rows: tuple[Row, ...]) -> None:
    what = _named(tuple(f"{shown(row.entry, checkout.git.redact)} ({row.why})" for row in rows))
    checkout.ledger.places.append(("kept on this machine", f"{what} in {store.path}"))


def _forget(checkout: Checkout, state: State) -> None:
    """Drop what git and we have noted of a worktree that is gone; what cannot be dropped is named, with the remedy."""
    path, branch = checkout.record.path, checkout.record.branch
    try:
        if checkout.has_admin:
            # All that `git worktree unlock` does. It was seen to be ours; after a kill just here there is none.
            (checkout.admin / "locked").unlink(missing_ok=True)
            checkout.shared.run("worktree", "remove", str(path))
        on_branch = state.branch == branch and checkout.has_admin
        tip = state.head if on_branch else checkout.branch_left()
        if checkout.record.made_branch and tip and not checkout.is_checked_out_elsewhere():
            checkout.shared.run("update-ref", "--no-deref", "-d", checkout.branch_ref, tip)
        drop_checkpoints(checkout)
        if not checkout.directory.remove():
            checkout.ledger.places.append(("session output", str(checkout.directory.path)))
            # Else it would be taken for a run that nobody has ended.
            checkout.directory.retain(Retained(why="its session output is here", moment=written_now(), places=()))
    except (WorktreeError, OSError) as error:
        remedy = f"git worktree unlock {path}; git worktree remove {path}; git branch -D {branch}"
        checkout.ledger.places.append(("empty, but still noted by git", f"{path} and {branch}: {error}; {remedy}"))
