"""Preserving a Failed run's work: the steps of `Worktree.preserve_failed_run`."""

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from worktree.checkout import Checkout
from worktree.errors import BranchRewrittenError, FenceLostError, GitError, WorktreeError
from worktree.files import list_files, stage_all
from worktree.git import IDENTITY
from worktree.ladder import Rung, choose_rung, climb
from worktree.machine import host_name
from worktree.moments import written
from worktree.naming import some
from worktree.processes import at_work_in
from worktree.pushing import push, step_to
from worktree.reading import read_words
from worktree.rescue import drop_needless, keep, keep_index, keep_made, keep_snapshot, keep_withheld, name_left, publish
from worktree.run_refs import checkpoint_ref
from worktree.screening import shown
from worktree.snapshot import Snapshot, commit_tree
from worktree.state import State, read_state, state_without_files

_LONGEST_SUBJECT = 120
_TRUE = ("true", "yes", "on", "1")
_SUBJECT = "nightkeep: failed run ("


def preserve(checkout: Checkout, base: str, reason: str) -> None:
    """Bring what the run made to origin. `checkout` must be a completion view. Raises WorktreeError or OSError."""
    if not checkout.has_tree:
        _preserve_commits(checkout)
        return
    checkout.require_in_place()
    state = read_state(checkout.git, checkout.admin)
    is_plain = state.is_plain_on(checkout.record.branch) and not checkout.is_shared()
    snapshot = None if is_plain else keep_snapshot(checkout, state)
    try:
        commit = _mark(checkout, state, base, reason, snapshot)
    except Exception as error:
        # A lock that a killed git left behind stops a commit, but no snapshot, nor a push of what was committed. The
        # first cause stays the headline.
        with suppress(WorktreeError, OSError):
            _push_branch(checkout)
        with suppress(WorktreeError, OSError):
            publish(checkout, snapshot or keep_snapshot(checkout, state))
        raise _with_holder(checkout, error) from error
    refused = _push(checkout, commit) if commit else None
    if isinstance(refused, FenceLostError | BranchRewrittenError):
        # The branch is another run's by now, or lacks what somebody took off it.
        refused = None
        keep(checkout, "head", commit or "")
    if snapshot is not None:
        drop_needless(checkout, state, snapshot)
    keep_made(checkout, state, besides=[commit] if commit else [])
    if refused is None or commit is None:
        _publish_kept(checkout)
        return
    climbed = climb(checkout, commit, refused)
    # Where the rescue ref was refused as well, the rest is not tried.
    if choose_rung(refused) is Rung.RESCUE_REF and commit not in checkout.ledger.local.values():
        with suppress(WorktreeError, OSError):
            _publish_kept(checkout)
    raise climbed from refused


def _with_holder(checkout: Checkout, error: Exception) -> Exception:
    """Return the error, with who is at work there where somebody may hold git's lock."""
    at_work = at_work_in(checkout.path, checkout.record.started) if (checkout.admin / "index.lock").exists() else []
    return WorktreeError(f"{error}; at work there: {', '.join(at_work)}") if at_work else error


def _publish_kept(checkout: Checkout) -> None:
    """Bring each rescue ref that is here to origin."""
    for ref in tuple(checkout.ledger.local):
        publish(checkout, ref)


def _preserve_commits(checkout: Checkout) -> None:
    """Bring to origin what a run made whose files are gone: by its clean-up, which kept them, or by somebody else."""
    _push_branch(checkout)
    _keep_checkpoint(checkout)
    state = state_without_files(checkout.git, checkout.admin)
    if not checkout.directory.is_clearing():
        keep_index(checkout, state)
    keep_made(checkout, state)
    _publish_kept(checkout)


def _keep_checkpoint(checkout: Checkout) -> None:
    """Make the last checkpoint a rescue ref, unless clean-up took the files: nobody else may have had them."""
    ledger = checkout.ledger
    if checkout.directory.is_clearing():
        return
    if ledger.checkpoint:
        keep(checkout, "snapshot", ledger.checkpoint)
    elif ledger.checkpoint_sent:
        place = f"{checkpoint_ref(checkout.record.run_id)} at {ledger.checkpoint_sent} on origin"
        ledger.places.append(("checkpoint", place))
        ledger.checkpoints_offered.clear()  # there it stays


def _push_branch(checkout: Checkout) -> None:
    """Push what is new on the Issue branch as the run left it here."""
    tip = checkout.branch_left()
    refused = _push(checkout, tip) if tip and tip not in checkout.ledger.held else None
    if isinstance(refused, GitError) and tip is not None:
        raise climb(checkout, tip, refused) from refused
    if refused is not None and tip is not None:
        keep(checkout, "head", tip)


def _push(checkout: Checkout, commit: str) -> GitError | FenceLostError | BranchRewrittenError | None:
    """Push the Issue branch, or a marker that is on no branch here; return the refusal, if it is one."""
    try:
        # Whoever found the commit has just looked.
        push(checkout, "failure marker", step_to(checkout, commit), checkout.ledger.refs_seen)
    except (GitError, FenceLostError, BranchRewrittenError) as refused:
        return refused
    return None


def _mark(checkout: Checkout, state: State, base: str, reason: str, snapshot: str | None) -> str | None:
    """Make the failure marker; return the commit that origin's Issue branch is to have, None when nothing was made.

    With HEAD elsewhere, or somebody else on the Issue branch, nothing is aborted or staged, and no ref of anybody's
    moves.
    """
    if state.home != checkout.record.branch or checkout.is_shared():
        taken = checkout.ledger.snapshots[snapshot] if snapshot else None
        return _mark_elsewhere(checkout, state, base, reason, taken)
    settled = _abort(checkout, state, snapshot)
    _stage(checkout, settled)
    if settled.branch != checkout.record.branch or not _differs(checkout, settled, base, "--cached"):
        return None
    if not _is_marked(checkout, settled):
        _commit_marker(checkout, reason)
    return checkout.tip()


def _is_marked(checkout: Checkout, state: State) -> bool:
    """Whether a runner that was killed has made the marker already, and nothing came after it."""
    pushed = state.head == checkout.ledger.refs.get(checkout.branch_ref) != checkout.record.pinned
    if state.head in checkout.ledger.held and not pushed:
        return False
    shown = checkout.git.run("log", "-1", "--format=%s", "HEAD").text
    return shown.startswith(_SUBJECT) and checkout.git.answers("diff-index", "--cached", "--quiet", "HEAD", "--")


def _mark_elsewhere(checkout: Checkout, state: State, base: str, reason: str, snapshot: Snapshot | None) -> str | None:
    """Put the marker on HEAD's commit, wherever that is, and on a rescue ref.

    Origin's Issue branch gets it as well where that is nothing but a step forward, for it and for the local one; else
    it gets the local one's new commits.
    """
    tip = checkout.refs_now().get(checkout.branch_ref)
    mine = tip if tip not in checkout.ledger.held else None
    if snapshot is None or not _differs(checkout, state, base, snapshot.tree):
        return mine
    if state.branch != checkout.record.branch:
        checkout.ledger.places.append(("HEAD was left on", _where_left(checkout, state)))
    message = marker_message(checkout.git.redact(reason), datetime.now(UTC), host_name())
    marker = commit_tree(checkout.shared, snapshot.tree, [state.head] if state.head else [], message)
    if not publish(checkout, keep(checkout, "head", marker)):
        return mine
    before = {checkout.record.pinned, tip, checkout.on_origin} - {None}
    forward = all(checkout.shared.answers("merge-base", "--is-ancestor", str(oid), marker) for oid in before)
    return marker if forward else mine


def _where_left(checkout: Checkout, state: State) -> str:
    if state.branch is None:
        return f"no branch, at {state.head}"
    new = f"refs/heads/{state.branch}" not in checkout.refs
    remedy = f" (new, and still in the clone; be rid of it: git branch -D {shlex.quote(state.branch)})"
    return state.branch + (remedy if new else "")


def _stage(checkout: Checkout, state: State) -> None:
    """Stage all that may be published and can be staged, and name the rest."""
    git, top = checkout.git, checkout.path
    screen = checkout.kept_from_salvage
    left = stage_all(git, list_files(git, top), top, screen, state.staged)
    name_left(checkout, left)


def _abort(checkout: Checkout, state: State, snapshot: str | None) -> State:
    if state.operation is None or snapshot is None:
        return state
    whole = checkout.ledger.snapshots[keep_withheld(checkout, state, snapshot)]
    in_the_way = sorted({path for head in _heads_before(checkout) for path in _in_the_way(checkout, whole.tree, head)})
    if in_the_way:
        named = some([shown(path, checkout.git.redact) for path in in_the_way])
        command = state.operation.value[0]
        raise WorktreeError(
            f"the {command} in it is not aborted, for that would overwrite what no snapshot has: {named}"
        )
    checkout.git.run(*state.operation.value)
    return read_state(checkout.git, checkout.admin)


def _heads_before(checkout: Checkout) -> set[str]:
    """Return the commits that an abort can go back to, if they are not HEAD."""
    names = ("rebase-merge/orig-head", "rebase-apply/orig-head", "sequencer/head")
    return {word for name in names for word in read_words(checkout.admin / name)}


def _in_the_way(checkout: Checkout, tree: str, head: str) -> Iterator[str]:
    """Yield the paths that `head` has and `tree`, a snapshot of all that git does not ignore, has not, but the disk."""
    flags = ("-r", "-z", "--name-only", "--no-renames", "--diff-filter=A")
    for path in checkout.git.run("diff-tree", *flags, tree, head, "--").fields:
        place = checkout.path / path
        parents = [checkout.path / parent for parent in Path(path).parents[:-1]]
        if os.path.lexists(place) or any(os.path.lexists(parent) and not parent.is_dir() for parent in parents):
            yield path


def _differs(checkout: Checkout, state: State, base: str, what: str) -> bool:
    """Compare a tree, or the index (`--cached`), with the Base branch; whatever git answers but "equal" means changes.

    Unless nothing was made at all, and the Base branch that everybody shares was moved by somebody else's fetch.
    """
    compared = _diff(checkout, f"refs/remotes/origin/{base}", what)
    if compared == 1 and state.head == checkout.record.pinned:
        return _diff(checkout, checkout.record.pinned, what) != 0
    return compared != 0


def _diff(checkout: Checkout, commit: str, what: str) -> int:
    flags = ("--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
    compared = ("--cached", commit) if what == "--cached" else (commit, what)
    return checkout.git.run("diff", *flags, *compared, "--", accept=range(256)).status


def _commit_marker(checkout: Checkout, reason: str) -> None:
    flags = ("--quiet", "--allow-empty", "--no-verify", "--cleanup=whitespace", "--file=-")
    message = marker_message(checkout.git.redact(reason), datetime.now(UTC), host_name())
    checkout.git.within(**IDENTITY).run("commit", *flags, stdin=message.encode(errors="surrogateescape"))
    if any(key == "commit.gpgsign" and value.lower() in _TRUE for _, key, value in checkout.configuration):
        checkout.ledger.places.append(("unsigned", "the failure marker; nobody is here to sign it"))


def marker_message(reason: str, moment: datetime, host: str) -> str:
    """Return the failure marker's message; `reason` is cut to its first line and to what fits in a subject."""
    lines = reason.strip().splitlines() or ["unknown"]
    room = _LONGEST_SUBJECT - len(f"{_SUBJECT})")
    short = lines[0] if len(lines[0]) <= room else lines[0][: room - 1] + "…"
    return (
        f"{_SUBJECT}{short})\n\n{written(moment)}, host {host}. "
        "Uncommitted work at the time of failure is included in this commit.\n"
    )
