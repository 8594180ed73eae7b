"""Which files of a worktree are proven to be elsewhere, and why the others are not."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from worktree.checkout import Checkout
from worktree.fidelity import unfaithful
from worktree.files import everything_up_to, private_index, show_hidden, write_complete_tree
from worktree.git import Git
from worktree.index import Entry, UnreadIndexError, read_index
from worktree.snapshot import Snapshot
from worktree.state import Status, read_status

_CONVERTING = ("core.autocrlf", "core.eol", "core.attributesfile", "filter.")
_NANO = 1_000_000_000
_GITLINK = 0o160000
UNTRACKED = "untracked"
_MEANING = {"?": UNTRACKED, "!": "ignored"}
_CHANGED = "changes in no commit on origin"
REPOSITORY = "a repository of its own, whose commits no commit here carries"
_SUBMODULE = "a submodule, whose work no commit here carries"
_CONVERTED = "bytes that git has in another form only"


@dataclass(frozen=True, slots=True)
class Look:
    """One look at all files, through a copy of the index: git's status, and the entries that it compared them with."""

    status: Status
    entries: Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Proof:
    """`safe` are the index entries of the files whose very bytes origin gives back, by path. `why` says of other paths
    what they are; a directory's stands for all in it.
    """

    safe: Mapping[str, Entry]
    why: Mapping[str, str]


@contextmanager
def looking(checkout: Checkout) -> Iterator[tuple[Git, Look]]:
    """Look at the files; yield a git on the copy of the index that was used, which is the caller's to change."""
    with private_index(checkout.git, checkout.admin, checkout.directory.path) as private:
        # The copy may be written: then it has each file as it is now, for us to compare with when it is removed.
        private = private.within(GIT_OPTIONAL_LOCKS="1")
        if not os.path.lexists(checkout.admin / "index"):
            private.run("read-tree", "HEAD")  # it was being made: then its files are HEAD's
        look = _look(private, checkout)
        hidden = [path for path, entry in look.entries.items() if entry.hidden]
        there = [path for path in hidden if os.path.lexists(checkout.path / path)]
        if there:
            show_hidden(private, there)
            look = _look(private, checkout)
        yield private, look


def _look(private: Git, checkout: Checkout) -> Look:
    status = read_status(private, "--untracked-files=normal", "--ignored=traditional", "--ignore-submodules=dirty")
    return Look(status, _entries(private, checkout))


def _entries(private: Git, checkout: Checkout) -> dict[str, Entry]:
    file = checkout.directory.path / "index"
    hash_size = len(checkout.record.pinned) // 2
    try:
        return read_index(file, hash_size)
    except FileNotFoundError:
        return {}
    except UnreadIndexError:
        private.run("-c", "index.sparse=false", "update-index", "--no-split-index", "--index-version=2")
        return read_index(file, hash_size)


def prove(checkout: Checkout, private: Git, look: Look) -> Proof:
    """Decide of each file whether origin gives it back: by HEAD, or by the snapshot that was published last.

    HEAD must be on origin, or about to be kept here.
    """
    why = {path: _MEANING.get(code, _CHANGED) for code, path in look.status.rows}
    same = {path: entry for path, entry in look.entries.items() if path not in why}
    safe = _given_back(checkout, same, look.status.head or checkout.record.pinned)
    if why and checkout.ledger.published:
        snapshot = checkout.ledger.published[-1]
        differing, entries = _compare(checkout, private, snapshot)
        rest = {path: entry for path, entry in entries.items() if path not in differing and path not in same}
        safe |= _given_back(checkout, rest, snapshot.commit)
        gone = {path for code, path in look.status.rows if "D" in code} - differing - entries.keys()
        why = {path: what for path, what in why.items() if path not in safe and path not in gone}
    why |= dict.fromkeys(same.keys() - safe.keys(), _CONVERTED)
    modules = (path for path, entry in safe.items() if entry.mode == _GITLINK)
    return Proof(safe, why | {path: _SUBMODULE for path in modules if any((checkout.path / path).glob("*"))})


def _compare(checkout: Checkout, private: Git, snapshot: Snapshot) -> tuple[set[str], dict[str, Entry]]:
    """Stage all files; return the paths that the snapshot has otherwise, and the index's entries then."""
    screen = everything_up_to(checkout.path, checkout.git.limits.file)
    tree, _ = write_complete_tree(private, checkout.path, screen)
    return _differing(private, snapshot.tree, tree), _entries(private, checkout)


def _given_back(checkout: Checkout, entries: Mapping[str, Entry], commit: str) -> dict[str, Entry]:
    """Return those of the entries of files whose very bytes git makes of what `commit` has."""
    touched = [path for path, entry in entries.items() if _touched(entry, checkout.acquired)]
    stay = _rules_stay(checkout)
    odd = set(unfaithful(checkout.git, checkout.path, checkout.record.pinned, commit, touched, rules_stay=stay))
    return {path: entry for path, entry in entries.items() if path not in odd}


def _rules_stay(checkout: Checkout) -> bool:
    """Whether git converts as it did before the run: not by what an agent set up, or what goes with the worktree."""
    if any(key.startswith(_CONVERTING) for key in checkout.ledger.reconfigured):
        return False
    attributes = checkout.remote.common / "info" / "attributes"
    changed = attributes.exists() and attributes.lstat().st_ctime_ns > checkout.acquired
    return not changed and not (checkout.admin / "config.worktree").exists()


def _touched(entry: Entry, acquired: int) -> bool:
    return entry.times[0] * _NANO + entry.times[1] > acquired and entry.mode != _GITLINK


def _differing(git: Git, one: str, other: str) -> set[str]:
    if one == other:
        return set()
    return set(git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other, "--").fields)


def is_still(entry: Entry, status: os.stat_result) -> bool:
    """Whether a file is what git looked at: the same inode, of the same type and size, unchanged since."""
    c_s, c_ns, m_s, m_ns = entry.times
    return (
        status.st_ctime_ns == c_s * _NANO + c_ns
        and status.st_mtime_ns == m_s * _NANO + m_ns
        and status.st_ino & 0xFFFFFFFF == entry.inode
        and status.st_size & 0xFFFFFFFF == entry.size
        and status.st_mode >> 12 == entry.mode >> 12
    )
