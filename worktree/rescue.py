"""Rescue refs: what the Issue branch cannot carry, on origin, or here where it may not go there."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from worktree.checkout import Checkout
from worktree.durable import sync_directory
from worktree.errors import GitError, PrivateWorkError, WorktreeError
from worktree.files import Screen, private_index
from worktree.made import loose_ends, named_commits, tips
from worktree.naming import some
from worktree.pushing import push
from worktree.remote import ABSENT, RefUpdate
from worktree.run_refs import rescue_ref
from worktree.screening import explained, screen_commits, screen_files, shown
from worktree.snapshot import Snapshot, commit_tree, index_tree, take_snapshot
from worktree.state import State

_MOST_TAKEN = 100  # names of rescue refs that are tried
WITHHELD = "withheld"  # what a rescue ref is called that is never pushed


def keep_snapshot(checkout: Checkout, state: State) -> str:
    """Snapshot the worktree, but for what may not be published, into a local rescue ref; return the ref's name."""
    return _keep_snapshot(checkout, state, "snapshot", checkout.kept_from_salvage)


def keep_withheld(checkout: Checkout, state: State, snapshot: str) -> str:
    """Snapshot all of the worktree into a local rescue ref that is never pushed, where another one left something out.

    Returns the ref of which of the two has all. Raises WorktreeError when something cannot be kept so.
    """
    if not _files(checkout.ledger.snapshots[snapshot].left):
        return snapshot
    ref = _keep_snapshot(checkout, state, WITHHELD, _nothing_held_back)
    if left := _files(checkout.ledger.snapshots[ref].left):
        named = some([shown(path, checkout.git.redact) for path in left])
        raise WorktreeError(f"nothing in it is touched, because no snapshot could be made of {named}")
    return ref


def _nothing_held_back(_paths: Collection[str]) -> Mapping[str, str]:
    return {}


def _files(left: Mapping[str, str]) -> list[str]:
    """Return the paths, but for those of repositories inside: git leaves these alone."""
    return [path for path in left if not path.endswith("/")]


def _keep_snapshot(checkout: Checkout, state: State, name: str, screen: Screen) -> str:
    subject = f"nightkeep: snapshot of {checkout.record.branch}"
    snapshot = take_snapshot(
        checkout.git,
        checkout.admin,
        checkout.path,
        state,
        scratch=checkout.directory.path,
        screen=screen,
        subject=subject,
    )
    ref = keep(checkout, name, snapshot.commit)
    checkout.ledger.snapshots[ref] = snapshot
    name_left(checkout, snapshot.left)
    return ref


def keep_index(checkout: Checkout, state: State) -> None:
    """Give what is in the index of a worktree whose files are gone a local rescue ref, unless HEAD or one has it."""
    if not (checkout.has_admin and state.head and (checkout.admin / "index").exists()):
        return
    with private_index(checkout.git, checkout.admin, checkout.directory.path) as private:
        tree = index_tree(private, private.run("diff", "--name-only", "--diff-filter=U", "-z", "--cached").fields)
    commits = (state.head, *checkout.ledger.local.values())
    known = checkout.shared.run("rev-parse", *(f"{commit}^{{tree}}" for commit in commits)).text.split()
    if tree in {*known, *(snapshot.tree for snapshot in checkout.ledger.snapshots.values())}:
        return
    subject = f"nightkeep: snapshot of {checkout.record.branch}\n\nOf its index alone: its files were gone.\n"
    commit = commit_tree(checkout.shared, tree, [state.head], subject)
    checkout.ledger.snapshots[keep(checkout, "snapshot", commit)] = Snapshot(commit, tree, tree, {})


def name_suspects(checkout: Checkout, paths: Collection[str]) -> None:
    """Name the files, which were committed for an agent, that look like they hold a secret which origin has not."""
    git = checkout.git
    found = screen_files(git, checkout.path, paths, checkout.record.pinned, limit=git.limits.screen)
    for path, rule in sorted(found.items()):
        if " " not in rule:
            advice = "if it is one, revoke it and take it off the branch"
            place = f"{shown(path, git.redact)} {explained(rule)}; {advice}"
            checkout.ledger.places.append(("committed all the same", place))


def name_left(checkout: Checkout, left: Mapping[str, str]) -> None:
    """Name the paths that a commit of ours left out, each with why."""
    known = set(checkout.ledger.places)
    for path, why in left.items():
        place = ("left out of the commit", f"{shown(path, checkout.git.redact)}: {explained(why)}")
        if place not in known:
            checkout.ledger.places.append(place)


def drop_needless(checkout: Checkout, state: State, ref: str) -> bool:
    """Drop a kept snapshot that was taken only because HEAD was elsewhere, and that has what HEAD has."""
    snapshot = checkout.ledger.snapshots[ref]
    if state.operation or state.unmerged or state.index_only or not state.head:
        return False
    if checkout.shared.run("rev-parse", "--verify", f"{state.head}^{{tree}}").text != snapshot.tree:
        return False
    checkout.shared.run("update-ref", "--no-deref", "-d", ref, snapshot.commit)
    del checkout.ledger.snapshots[ref], checkout.ledger.local[ref]
    return True


def keep(checkout: Checkout, name: str, commit: str) -> str:
    """Give `commit` a local rescue ref of that name, numbered from the second on, unless it has one; return the ref."""
    ledger = checkout.ledger
    for ref, kept in ledger.local.items():
        if kept == commit:
            return ref
    stem = rescue_ref(checkout.record.run_id, name)
    taken = {ref for ref in (*ledger.local, *ledger.refs) if ref == stem or ref.startswith(f"{stem}-")}
    ref = _create_ref(checkout, stem, len(taken) + 1, commit)
    ledger.local[ref] = commit
    return ref


def publish(checkout: Checkout, ref: str) -> bool:
    """Push a local rescue ref to the ref of the same name on origin, which must not exist there.

    False when it stays here, named, because it would carry a commit along that was the person's alone, or something
    that looks like a secret, or was made of what is withheld. Raises GitError when origin does not take it.
    """
    commit = checkout.ledger.local[ref]
    if ref.startswith(rescue_ref(checkout.record.run_id, WITHHELD)):
        return False
    found = screen_commits(
        checkout.shared,
        [commit],
        checkout.ledger.held,
        checkout.record.pinned,
        limit=checkout.shared.limits.screen,
    )
    if found:
        held_back = some([f"{place} ({rule})" for place, rule in sorted(found.items())])
        checkout.ledger.places.append(("not pushed", f"{ref}, because of {held_back}"))
        return False
    try:
        push(checkout, ref.rsplit("/", 1)[1].partition("-")[0], RefUpdate(ref, commit, ABSENT))
    except PrivateWorkError as error:
        checkout.ledger.places.append(("not pushed", str(error)))
        return False
    del checkout.ledger.local[ref]
    checkout.ledger.held |= checkout.ledger.joined.get(ref, frozenset())
    checkout.shared.run("update-ref", "--no-deref", "-d", ref, commit)
    return True


def keep_made(checkout: Checkout, state: State, besides: Collection[str] = ()) -> str | None:
    """Give what the run made a local rescue ref, as far as neither origin, another one nor `besides` holds it.

    Returns the ref, None when there was nothing; see `loose_ends`.
    """
    ends = loose_ends(checkout, state, {*besides, *checkout.ledger.local.values()})
    if not ends:
        return None
    ref = keep(checkout, "made", _join(checkout, ends))
    checkout.ledger.joined[ref] = frozenset(ends)
    return ref


def harden(checkout: Checkout, state: State) -> None:
    """Make local refs, and the objects behind them, survive a loss of power: for all that only they will hold.

    That is what the run made, as far as origin was not seen to hold it, and each rescue ref that stayed here.
    """
    _keep_rest(checkout, state)
    local = set(checkout.ledger.local.values())
    if not local:
        return
    pack = Path(checkout.remote.common, "objects", "pack", "pack")
    lines = [*sorted(local), *(f"^{oid}" for oid in sorted(checkout.ledger.held))]
    asked = ("\n".join(lines) + "\n").encode()
    checkout.shared.run("pack-objects", "--quiet", "--revs", "--delta-base-offset", str(pack), stdin=asked)
    sync_directory(pack.parent)


def _keep_rest(checkout: Checkout, state: State) -> None:
    held = {*checkout.ledger.held, *checkout.ledger.local.values()}
    named = named_commits(checkout, state) - held
    rest = tips(checkout.shared, named, held) if named else []
    if not rest:
        return
    now = checkout.refs_now()
    # A ref that moved meanwhile may have been moved by the agent, and moves on with the next fetch or its owner.
    theirs = {oid for ref, oid in checkout.refs.items() if now.get(ref) == oid and ref != checkout.branch_ref}
    rest = tips(checkout.shared, rest, held | theirs)
    if rest:
        keep(checkout, "made", _join(checkout, rest))


def _join(checkout: Checkout, commits: Iterable[str]) -> str:
    """Make one commit with all of those as parents."""
    first, *others = commits
    message = f"nightkeep: made on {checkout.record.branch}, and on no branch that goes to origin\n"
    return commit_tree(checkout.shared, f"{first}^{{tree}}", [first, *others], message)


def _create_ref(checkout: Checkout, stem: str, number: int, commit: str) -> str:
    """Make a local ref, durably, called `stem` with the first number from `number` on that is free; return it."""
    reason = f"nightkeep {checkout.record.run_id}"
    sync = ("-c", "core.fsync=all")
    # Not to be interrupted: whether it was made must be known.
    git = checkout.shared.completing()
    for last in range(number, number + _MOST_TAKEN):
        ref = stem if last == 1 else f"{stem}-{last}"
        try:
            git.run(*sync, "update-ref", "--no-deref", "-m", reason, ref, commit, "0" * len(commit))
            break
        except GitError:
            # An agent knows the name, too.
            if not git.answers("show-ref", "--verify", "--quiet", ref):
                raise
    else:
        raise WorktreeError(f"{stem} and so many names after it are taken")
    # Git makes the file durable, but not the names that lead to it.
    for name in Path(ref).parents[:-1]:
        if (checkout.remote.common / name).is_dir():  # there is none where refs are kept in tables
            sync_directory(checkout.remote.common / name)
    return ref


def made_elsewhere(checkout: Checkout) -> list[tuple[str, str]]:
    """Return the refs, the stash among them, that are new in the Launch repository since the run began.

    They may be the agent's work or a person's: they are named, and nothing else. Branches of other runs do not count,
    nor what origin was seen to hold.
    """
    # A push has looked already, after the session's end.
    seen = checkout.ledger.refs_seen or checkout.refs_now()
    known = checkout.ledger.of_others | {checkout.branch_ref} | (checkout.refs.keys() - {"refs/stash"})
    safe = checkout.ledger.held | checkout.stashes | {checkout.refs.get("refs/stash")}
    passed = ("refs/remotes/", "refs/nightkeep/", "refs/tags/")
    new = [
        (ref, oid) for ref, oid in seen.items() if ref not in known and oid not in safe and not ref.startswith(passed)
    ]
    return [(ref, oid) for ref, oid in new if tips(checkout.shared, [oid], checkout.ledger.held)]
