"""Taking a worktree away, after proof that nothing is lost with it."""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from worktree.caches import is_cache
from worktree.checkout import Checkout
from worktree.errors import GitError
from worktree.fidelity import unfaithful
from worktree.files import Listing, list_files, private_index, write_complete_tree
from worktree.mounts import mounts_below
from worktree.processes import at_work_in
from worktree.reading import read_regular, read_words
from worktree.state import State, read_state

_MOST_NAMED = 5
_LONGEST_LOG = 1 << 26  # bytes of the log of HEAD; some three hundred thousand moves

# What tells one state of a file from another: device, inode, mode, size, modification and change times in ns.
Signature = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that decides whether a worktree may be removed.

    `at_work` names the processes that work in it. `locked_by` is the reason of git's lock on it, `links_back`
    whether its `.git` is still ours. `changed` are paths that differ from HEAD and from every snapshot on origin;
    `converted` those whose bytes git does not have; `hidden` such that git was told not to look at; `ignored` those
    that are no caches; `unknown` what git does not list at all; `mounts` what is mounted in it. `unheld` is a
    commit that the run made and that origin was not seen to hold, `private_refs` whether the worktree has refs of
    its own, `submodules` whether it has the object stores of submodules, which go with its git directory.
    """

    state: State
    at_work: tuple[str, ...]
    locked_by: str | None
    links_back: bool
    changed: tuple[str, ...]
    converted: tuple[str, ...]
    hidden: tuple[str, ...]
    ignored: tuple[str, ...]
    unknown: tuple[str, ...]
    unheld: str | None
    mounts: tuple[str, ...]
    private_refs: bool
    submodules: bool


def reason_to_retain(facts: Facts, branch: str, run_id: str) -> str | None:
    """Decide: None when everything here is proven to be elsewhere, else why the worktree stays."""
    return _not_ours(facts, run_id) or _not_on_origin(facts, branch) or _files_to_keep(facts)


def _not_ours(facts: Facts, run_id: str) -> str | None:
    if facts.at_work:
        return f"somebody is at work in it: {_named(facts.at_work)}"
    if not facts.links_back:
        return "its .git was replaced or removed"
    if facts.locked_by is None:
        return "its lock was taken away"
    return None if facts.locked_by == f"nightkeep {run_id}" else f"its lock is not ours: {facts.locked_by}"


def _not_on_origin(facts: Facts, branch: str) -> str | None:
    if facts.state.operation is not None:
        return f"a {facts.state.operation.value[0]} is unfinished in it"
    if facts.state.branch != branch:
        return f"HEAD is on {facts.state.branch or 'no branch'}, not on {branch}"
    if facts.unheld is not None:
        return f"commit {facts.unheld} was made in it and is not known to be on origin"
    if facts.private_refs:
        return "it has refs of its own"
    return "it has submodules of its own" if facts.submodules else None


def _files_to_keep(facts: Facts) -> str | None:
    for what, paths in (
        ("what is mounted there", facts.mounts),
        ("edits that git was told not to look at", facts.hidden),
        ("changes in no commit on origin", facts.changed),
        ("files whose bytes git has in another form only", facts.converted),
        ("ignored files", facts.ignored),
        ("files that git does not list", facts.unknown),
    ):
        if paths:
            return f"it holds {what}: {_named(paths)}"
    return None


def _named(paths: tuple[str, ...]) -> str:
    more = len(paths) - _MOST_NAMED
    shown = ", ".join(ascii(path)[1:-1] for path in paths[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What clean-up did: why the worktree is `retained`, None when it is gone; and the commit at its `head`."""

    retained: str | None
    head: str | None


def clean_up(checkout: Checkout) -> Cleaned:
    """Remove the worktree, its local branch where the run made that, and its record, if all is proven safe.

    Whatever cannot be told counts against removal. `checkout` must be a completion view; raises nothing.
    """
    try:
        checkout = checkout.without_new_filters()
        signatures = _signatures(checkout.path)
        facts = _facts(checkout, signatures)
        reason = reason_to_retain(facts, checkout.record.branch, checkout.record.run_id)
        return Cleaned(reason or _remove(checkout, signatures, facts.state), facts.state.head)
    except Exception as error:
        return Cleaned(f"it could not be told whether everything is safe: {error}", read_head(checkout))


def read_head(checkout: Checkout) -> str | None:
    """Return the commit at HEAD, or None when git cannot tell."""
    try:
        return checkout.git.run("rev-parse", "--verify", "HEAD").text
    except (GitError, OSError):
        return None


def _facts(checkout: Checkout, signatures: dict[str, Signature]) -> Facts:
    state = read_state(checkout.git, checkout.admin)
    listing = list_files(checkout.git, checkout.path)
    ignored = _ignored(checkout)
    repositories = [path for path in signatures if "/.git/" in f"/{path}/"]
    caches = [
        path
        for path in ignored
        if is_cache(checkout.path / path) and not any(inside.startswith(path) for inside in repositories)
    ]
    listed = listing.tracked | listing.changed | listing.untracked
    return Facts(
        state=state,
        at_work=tuple(at_work_in(checkout.path, checkout.record.started)),
        locked_by=_locked_by(checkout.admin),
        links_back=_links_back(checkout),
        changed=_changed(checkout, state, listing),
        converted=_converted(checkout, state, listing, signatures),
        hidden=tuple(sorted(listing.hidden)),
        ignored=tuple(path for path in ignored if path not in caches),
        unknown=tuple(path for path in signatures if path not in listed and not path.startswith(tuple(caches))),
        unheld=_unheld_commit(checkout, state),
        mounts=tuple(mounts_below(checkout.path)),
        private_refs=_holds_files(checkout.admin / "refs"),
        submodules=_holds_files(checkout.admin / "modules"),
    )


def _holds_files(directory: Path) -> bool:
    return any(path.is_file() for path in directory.rglob("*"))


def _changed(checkout: Checkout, state: State, listing: Listing) -> tuple[str, ...]:
    changed = sorted(listing.changed | listing.untracked)
    if not changed and state.head and checkout.git.answers("diff-index", "--cached", "--quiet", state.head, "--"):
        return ()
    with private_index(checkout.git, checkout.admin, checkout.directory.path) as private:
        tree, left = write_complete_tree(private, checkout.path, checkout.git.limits.file)
    if left:
        return tuple(left)
    known = {snapshot.tree for snapshot in checkout.ledger.published}
    return () if tree in known and not state.index_only else tuple(changed) or ("the index",)


def _converted(checkout: Checkout, state: State, listing: Listing, signatures: dict[str, Signature]) -> tuple[str, ...]:
    # Files that are not in HEAD are proven by a snapshot, so it must be the one that gives them back.
    left_over = listing.changed | listing.untracked and checkout.ledger.published
    commit = checkout.ledger.published[-1].commit if left_over else state.head or checkout.record.pinned
    # An edit that git normalises away changes nothing for git, but the time of the file.
    touched = [path for path in listing.tracked if path in signatures and signatures[path][-1] > checkout.acquired]
    return tuple(unfaithful(checkout.git, checkout.path, checkout.record.pinned, commit, touched))


def _ignored(checkout: Checkout) -> list[str]:
    flags = ("-z", "--others", "--ignored", "--exclude-standard", "--directory")
    return checkout.git.run("ls-files", *flags).fields


def _locked_by(admin: Path) -> str | None:
    return " ".join(read_words(admin / "locked")) or None


def _links_back(checkout: Checkout) -> bool:
    try:
        link = read_words(checkout.path / ".git")
    except OSError:
        return False
    return checkout.is_in_place() and link == ["gitdir:", *str(checkout.admin).split()]


def _unheld_commit(checkout: Checkout, state: State) -> str | None:
    """Return a commit that HEAD has named during the run and that origin was not seen to hold."""
    log = read_regular(checkout.admin / "logs" / "HEAD", _LONGEST_LOG).decode(errors="replace").splitlines()
    made = {oid for line in log for oid in line.split(" ", 2)[:2] if oid.strip("0")}
    made |= set(read_words(checkout.admin / "ORIG_HEAD"))
    made |= {state.head} if state.head else set()
    unknown = made - checkout.ledger.held
    if not unknown:
        return None
    lines = [*sorted(unknown), *(f"^{oid}" for oid in sorted(checkout.ledger.held))]
    found = checkout.shared.run("rev-list", "--max-count=1", "--stdin", stdin="\n".join(lines).encode() + b"\n")
    return found.text or None


def _signatures(top: Path) -> dict[str, Signature]:
    """Return every entry below `top` that is no directory, with what tells its present state from a later one."""
    found: dict[str, Signature] = {}
    prefix = len(str(top)) + 1
    pending = [str(top)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    found[entry.path[prefix:]] = _signature(entry.stat(follow_symlinks=False))
    found.pop(".git", None)
    return found


def _signature(status: os.stat_result) -> Signature:
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _remove(checkout: Checkout, signatures: dict[str, Signature], proven: State) -> str | None:
    left = _unlink(checkout.path, signatures)
    if left:
        return f"files appeared or changed while it was being removed: {_named(tuple(left))}"
    checkout.shared.run("worktree", "unlock", str(checkout.path))
    checkout.shared.run("worktree", "remove", str(checkout.path))
    if checkout.record.made_branch and proven.head and not _is_checked_out(checkout):
        checkout.shared.run("update-ref", "-d", checkout.branch_ref, proven.head)
    if not checkout.directory.remove():
        checkout.ledger.places.append(("session output", str(checkout.directory.path)))
    return None


def _is_checked_out(checkout: Checkout) -> bool:
    """Whether somebody else has the Issue branch checked out: then it is not ours alone to delete."""
    common = checkout.remote.common
    heads = [common / "HEAD", *(common / "worktrees").glob("*/HEAD")]
    return any(read_words(head) == ["ref:", checkout.branch_ref] for head in heads)


def _unlink(top: Path, signatures: dict[str, Signature]) -> list[str]:
    """Unlink exactly the files of `signatures`, each only if it is still the same, and directories that are empty.

    Works by directory descriptors, so that a directory replaced by a link leads nowhere. Returns what is left.
    """
    prefix = len(str(top)) + 1
    for directory, names, files, descriptor in os.fwalk(top, topdown=False, follow_symlinks=False):
        for name in [*files, *names]:
            _unlink_entry(name, descriptor, signatures.get(f"{directory}/{name}"[prefix:]))
    if os.listdir(top) == [".git"]:  # noqa: PTH208 - names are all that is needed
        (top / ".git").unlink()
        top.rmdir()
        return []
    return sorted(_signatures(top)) or [str(top)]


def _unlink_entry(name: str, descriptor: int, expected: Signature | None) -> None:
    with contextlib.suppress(FileNotFoundError, OSError):
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            os.rmdir(name, dir_fd=descriptor)
        elif expected == _signature(status):
            os.unlink(name, dir_fd=descriptor)
