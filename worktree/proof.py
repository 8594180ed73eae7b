"""Which files of a worktree are proven to be elsewhere, and why the others are not."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from worktree.checkout import Checkout
from worktree.fidelity import unfaithful
from worktree.files import everything_up_to, private_index, show_hidden, write_complete_tree
from worktree.git import Git
from worktree.index import GITLINK, LINK, Entry, UnreadIndexError, read_index
from worktree.removal import Removal
from worktree.snapshot import Snapshot
from worktree.state import State, Status, read_status

_CONVERTING = ("core.autocrlf", "core.eol", "core.attributesfile", "filter.")
_MOST_PATHS = 100  # that git is asked about by name
UNTRACKED = "untracked"
_MEANING = {"?": UNTRACKED, "!": "ignored"}
_CHANGED = "changes in no commit on origin"
REPOSITORY = "a repository of its own, whose commits no commit here carries"
_SUBMODULE = "a submodule, whose work no commit here carries"
_CONVERTED = "bytes that git has in another form only"


@dataclass(frozen=True, slots=True)
class Look:
    """One look at files, through a copy of the index: git's status, and the entries that it compared them with.

    `proven` are entries that need no further proof.
    """

    status: Status
    entries: Mapping[str, Entry]
    proven: Mapping[str, Entry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proof:
    """`safe` are the index entries of the files whose very bytes origin gives back, by path. `why` says of other paths
    what they are; a directory's stands for all in it.
    """

    safe: Mapping[str, Entry]
    why: Mapping[str, str]

    @property
    def changed(self) -> list[str]:
        """The paths of `why` that git has something of."""
        return [path for path, what in self.why.items() if what not in _MEANING.values()]


@contextmanager
def copied_index(checkout: Checkout) -> Iterator[Git]:
    """Yield a git on a copy of the index, which is the caller's to change."""
    with private_index(checkout.git, checkout.admin, checkout.directory.path) as private:
        # The copy may be written: then it has each file as it is now, for us to compare with when it is removed.
        private = private.within(GIT_OPTIONAL_LOCKS="1")
        if not os.path.lexists(checkout.admin / "index"):
            private.run("read-tree", "HEAD")  # it was being made: then its files are HEAD's
        yield private


def equals_head(private: Git) -> bool:
    """Whether the index has what HEAD has; told without a look at any file."""
    flags = ("--cached", "--quiet", "--ignore-submodules=none", "--ita-visible-in-index")
    return private.run("diff-index", *flags, "HEAD", "--", accept=range(256)).status == 0


@dataclass(frozen=True, slots=True)
class Told:
    """What an index tells that equals HEAD: its `entries`, and the `safe` ones of them, of files that origin gives back
    as long as they did not change since git looked.
    """

    entries: Mapping[str, Entry]
    safe: Mapping[str, Entry]

    @property
    def odd(self) -> set[str]:
        """The paths of which it tells nothing."""
        return self.entries.keys() - self.safe.keys()


def ask_index(checkout: Checkout, private: Git, head: str) -> Told:
    """Read an index that equals HEAD, which must be on origin, or about to be kept here.

    No file is looked at but those that were touched during the run, and their bytes are read. Of links that were made
    during the run nothing is told: their times could be those of a link that was there a moment before.
    """
    entries = _entries(private, checkout)
    acquired = checkout.acquired
    looked_at = {
        path: entry
        for path, entry in entries.items()
        if not (entry.hidden or (entry.mode == LINK and entry.changed > acquired))
    }
    return Told(entries, _given_back(checkout, looked_at, head))


def look_at_all(checkout: Checkout, private: Git, paths: Sequence[str] = ()) -> Look:
    """Look at all files, or at those at and below `paths`; also at those that git was told not to look at."""
    look = _look(private, checkout, paths)
    hidden = [path for path, entry in look.entries.items() if entry.hidden and _is_there(checkout, path)]
    if hidden:
        show_hidden(private, hidden)
        look = _look(private, checkout, paths)
    return look


def look_at_rest(checkout: Checkout, private: Git, told: Told, removal: Removal, state: State) -> Look:
    """Look at what is left after the `safe` files that an index told of were removed."""
    proven = {path: told.safe[path] for path in removal.waiting}
    odd = [path for path in told.odd if _is_there(checkout, path)]
    missing = frozenset(removal.missing)
    tracked = {path for path in (*removal.left, *missing) if path in told.entries}.union(odd)
    if not (removal.left or tracked):
        return Look(Status(head=state.head, branch=state.branch, rows=()), {}, proven)
    tops = sorted({path.partition("/")[0] for path in (*removal.left, *tracked)})
    paths = tops if len(tops) <= _MOST_PATHS else ()
    if tracked:
        look = look_at_all(checkout, private, paths)
        status, entries = look.status, {path: look.entries[path] for path in tracked & look.entries.keys()}
    else:
        status, entries = _status(private, paths), {}
    rows = tuple((code, path) for code, path in status.rows if "D" not in code or path in missing)
    return Look(replace(status, rows=rows), entries, proven)


def _is_there(checkout: Checkout, path: str) -> bool:
    return os.path.lexists(f"{checkout.path}/{path}")


def _look(private: Git, checkout: Checkout, paths: Sequence[str]) -> Look:
    return Look(_status(private, paths), _entries(private, checkout))


def _status(private: Git, paths: Sequence[str]) -> Status:
    options = ("--untracked-files=normal", "--ignored=traditional", "--ignore-submodules=dirty")
    return read_status(private.within(GIT_LITERAL_PATHSPECS="1"), *options, "--", *paths)


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
    safe = {**look.proven, **_given_back(checkout, same, look.status.head or checkout.record.pinned)}
    if why and checkout.ledger.published:
        snapshot = checkout.ledger.published[-1]
        differing, entries = _compare(checkout, private, snapshot)
        rest = {path: entry for path, entry in entries.items() if path not in differing and path not in same}
        safe |= _given_back(checkout, rest, snapshot.commit)
        gone = {path for code, path in look.status.rows if "D" in code} - differing - entries.keys()
        why = {path: what for path, what in why.items() if path not in safe and path not in gone}
    why |= dict.fromkeys(same.keys() - safe.keys(), _CONVERTED)
    modules = (path for path, entry in safe.items() if entry.mode == GITLINK)
    return Proof(safe, why | {path: _SUBMODULE for path in modules if any((checkout.path / path).glob("*"))})


def _compare(checkout: Checkout, private: Git, snapshot: Snapshot) -> tuple[set[str], dict[str, Entry]]:
    """Stage all files; return the paths that the snapshot has otherwise, and the index's entries then."""
    screen = everything_up_to(checkout.path, checkout.git.limits.file)
    tree, _ = write_complete_tree(private, checkout.path, screen)
    return _differing(private, snapshot.tree, tree), _entries(private, checkout)


def _given_back(checkout: Checkout, entries: Mapping[str, Entry], commit: str) -> dict[str, Entry]:
    """Return those of the entries of files whose very bytes git makes of what `commit` has."""
    if not entries:
        return {}
    acquired = checkout.acquired
    touched = [path for path, entry in entries.items() if entry.changed > acquired and entry.mode != GITLINK]
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


def _differing(git: Git, one: str, other: str) -> set[str]:
    if one == other:
        return set()
    return set(git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other, "--").fields)
