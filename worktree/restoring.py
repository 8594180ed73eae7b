"""Giving back files of the rescue store: copied, over nothing and through no link. The store keeps them."""

import os
import posixpath
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from worktree.copying import TreeCopy, opened_directory
from worktree.descent import below, delete, joined, listed
from worktree.store import Store
from worktree.stored import Rescued, RescueError

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20  # bytes
_MOST_NAMED = 50


class Verdict(Enum):
    """What a restoration does about one path."""

    COPY = "copy it"
    ENTER = "go into it"
    THERE = "it is there"
    CONFLICT = "something else is there"


@dataclass(frozen=True, slots=True)
class Pair:
    """One path: which kind of entry (as `stat.S_IFMT`) the store has and which, if any, is where it is to go.

    `same` says of files and links of one kind that they hold the same; `in_repository`, that the path is in the `.git`
    of a repository that is there: a file more could change what that means.
    """

    kept: int
    there: int | None
    same: bool = True
    in_repository: bool = False


def judge(pair: Pair) -> Verdict:
    """Decide about a path that is to be restored."""
    if pair.there is None:
        return Verdict.CONFLICT if pair.in_repository else Verdict.COPY
    if pair.kept != pair.there:
        return Verdict.CONFLICT
    if pair.kept == stat.S_IFDIR:
        return Verdict.ENTER
    return Verdict.THERE if pair.same else Verdict.CONFLICT


@dataclass(slots=True)
class Restored:
    """What a restoration did: files that it `made`, those that were `there` already, and what it `left_out`.

    A file is anything but a directory; the `directories` that it made are apart. Left out is a `.git` that only names a
    repository which went with the worktree: git would fail over it.
    """

    made: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def restore(rescued: Rescued, paths: Sequence[str], target: Path) -> Restored:
    """Copy paths of the store's tree, all of it when there are none, to the same paths below the directory `target`.

    What is there already, with the same content, is left as it is, so this can be repeated. Kept are bytes and holes,
    modes, times, and links of both kinds; fifos and sockets are made again. The store stays as it is.

    Raises RescueError before anything is written when a path is not in the store, or where something else is in its
    place; then all of those are named. Raises OSError when the disk fails; then a part may be there, each file whole.
    """
    store = _store(rescued)
    wanted = [_relative(path) for path in paths]
    with opened_directory(store.tree) as tree:
        _require(tree, wanted, rescued)
        target = Path(os.path.realpath(target))
        if store.path.resolve() in (target, *target.parents):
            raise RescueError(f"{target} is in the rescue store itself; name another directory")
        target.mkdir(parents=True, exist_ok=True)
        with opened_directory(target) as top:
            plan = _Plan(tree, top, wanted)
            if plan.conflicts:
                raise RescueError(_refusal(plan.conflicts, target))
            plan.carry_out()
    return plan.done


def _store(rescued: Rescued) -> Store:
    if rescued.store is None or not rescued.entries:
        raise RescueError(f"no files are kept of {rescued.run_id}; see what is: nightkeep rescue show {rescued.run_id}")
    return rescued.store


def _relative(path: str) -> str:
    """Return a path of the worktree without "./" and the like, "" for all of it."""
    plain = posixpath.normpath(path)
    if plain.startswith(("/", "../")) or plain == "..":
        raise RescueError(f"{path} is no path in the worktree; give one as `nightkeep rescue show` has it")
    return "" if plain == "." else plain


def _require(tree: int, wanted: Sequence[str], rescued: Rescued) -> None:
    missing = [path for path in wanted if path and not _is_in(tree, path)]
    if missing:
        there = ", ".join(map(_shown, rescued.entries))
        raise RescueError(
            f"{rescued.run_id} has no {', '.join(map(_shown, missing))}; give a path of what it has at the top: {there}"
        )


def _is_in(tree: int, path: str) -> bool:
    above, _, name = path.rpartition("/")
    try:
        with below(tree, above) as directory:
            os.stat(name, dir_fd=directory, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _refusal(conflicts: dict[str, str], target: Path) -> str:
    named = [f"  {_shown(path)}: {why}" for path, why in list(conflicts.items())[:_MOST_NAMED]]
    more = [f"  and {len(conflicts) - _MOST_NAMED} more"] if len(conflicts) > _MOST_NAMED else []
    return "\n".join(
        (
            f"nothing was restored, because in {target} something would be in the way, or cannot be read:",
            *named,
            *more,
            "name the paths that you want, or an empty directory to put them in: --to DIRECTORY",
        )
    )


def _shown(path: str) -> str:
    return path if path.isprintable() else ascii(path)[1:-1]


class _Plan:
    """What is to be copied from the open directory `tree` to the open `top`; with `conflicts`, nothing may be."""

    def __init__(self, tree: int, top: int, wanted: Sequence[str]) -> None:
        self._tree = tree
        self._top = top
        self._wanted = wanted
        # Of each directory what is copied into it; parents come before their children.
        self._files: dict[str, list[str]] = {}
        self._made: dict[str, None] = {}
        self.conflicts: dict[str, str] = {}
        self.done = Restored()
        pending = [("", True)]
        while pending:
            pending += self._look(*pending.pop())

    def _look(self, path: str, is_there: bool) -> list[tuple[str, bool]]:  # noqa: FBT001 - a fact, not a flag
        """Decide about each entry of a directory; return the directories in it that are to be looked into."""
        inner: list[tuple[str, bool]] = []
        try:
            with below(self._tree, path) as kept, _there(self._top, path if is_there else None) as there:
                for name, status in listed(kept).items():
                    if self._concerns(joined(path, name)) and self._enters(path, name, status, kept, there):
                        inner.append((joined(path, name), joined(path, name) not in self._made))
        except PermissionError as error:
            self.conflicts[path] = str(error.strerror)
        return inner

    def _concerns(self, path: str) -> bool:
        """Whether the path is wanted, or has a path below it that is."""
        return not self._wanted or any(
            one in ("", path) or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in self._wanted
        )

    def _enters(self, parent: str, name: str, status: os.stat_result, kept: int, there: int | None) -> bool:
        """Note what becomes of an entry, and return whether it is a directory to go into."""
        path, kind = joined(parent, name), stat.S_IFMT(status.st_mode)
        if name == ".git" and (not parent or kind != stat.S_IFDIR):
            self.done.left_out.append(path)
            return False
        try:
            pair = _pair(name, kind, kept, there)
        except OSError as error:
            self.conflicts[path] = f"it cannot be read: {error.strerror}"
            return False
        sealed = there is not None and ".git" in parent.split("/")
        verdict = judge(replace(pair, in_repository=sealed))
        match verdict:
            case Verdict.COPY if kind == stat.S_IFDIR:
                self._made[path] = None
            case Verdict.COPY:
                self._files.setdefault(parent, []).append(name)
            case Verdict.THERE:
                self.done.there.append(path)
            case Verdict.CONFLICT:
                self.conflicts[path] = "something else is there" if pair.there else "another repository is there"
            case Verdict.ENTER:
                pass
        return kind == stat.S_IFDIR and verdict is not Verdict.CONFLICT

    def carry_out(self) -> None:
        """Copy. Raises OSError, also where something came in the way meanwhile; what was made until then stays."""
        for path in self._made:
            self._make_directory(path)
        copy = _Copy(self._tree, self._top)
        for path, names in self._files.items():
            with below(self._tree, path) as kept, below(self._top, path) as there, _staging(there) as staging:
                for name in names:
                    copy.stage(path, name, kept, staging)
                    self._put(joined(path, name), staging, there)
        for path in reversed(self._made):
            self._finish_directory(path)

    def _make_directory(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        with below(self._top, above) as there, _met(path):
            os.mkdir(name, 0o700, dir_fd=there)
        self.done.directories.append(path)

    def _put(self, path: str, staging: int, there: int) -> None:
        """Give a whole file its name; a link, unlike a rename, replaces nothing."""
        name = posixpath.basename(path)
        with _met(path):
            os.link(name, name, src_dir_fd=staging, dst_dir_fd=there, follow_symlinks=False)
        os.unlink(name, dir_fd=staging)
        self.done.made.append(path)

    def _finish_directory(self, path: str) -> None:
        with below(self._tree, path) as kept, below(self._top, path) as there:
            status = os.fstat(kept)
            if os.geteuid() == 0:
                os.fchown(there, status.st_uid, status.st_gid)
            os.fchmod(there, stat.S_IMODE(status.st_mode))
            os.utime(there, ns=(status.st_atime_ns, status.st_mtime_ns))


class _Copy(TreeCopy):
    """Copies single entries; names of one file become names of one file again."""

    def stage(self, path: str, name: str, source: int, staging: int) -> None:
        """Copy an entry of the open directory `source`, which is at `path`, that is no directory."""
        self._copy_entry(path or ".", name, source, staging)


@contextmanager
def _there(top: int, path: str | None) -> Iterator[int | None]:
    if path is None:
        yield None
    else:
        with below(top, path) as directory:
            yield directory


@contextmanager
def _staging(directory: int) -> Iterator[int]:
    """Make a directory beside the targets, for files until they are whole; whatever is in it goes with it."""
    name = f".nightkeep-{secrets.token_hex(8)}"
    os.mkdir(name, 0o700, dir_fd=directory)
    try:
        with below(directory, name) as staging:
            yield staging
    finally:
        delete(directory, name)


@contextmanager
def _met(path: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise OSError(f"{_shown(path)} appeared meanwhile and was left alone; try again for the rest") from error


def _pair(name: str, kind: int, kept: int, there: int | None) -> Pair:
    """Compare an entry with what is in its place; raises OSError when one of them cannot be read."""
    if kind == stat.S_IFREG:
        os.close(os.open(name, _READ, dir_fd=kept))
    found = None
    if there is not None:
        with suppress(FileNotFoundError):
            found = stat.S_IFMT(os.stat(name, dir_fd=there, follow_symlinks=False).st_mode)
    if there is None or found != kind:
        return Pair(kind, found)
    return Pair(kind, found, _same(name, kind, kept, there))


def _same(name: str, kind: int, kept: int, there: int) -> bool:
    if kind == stat.S_IFLNK:
        return os.readlink(name, dir_fd=kept) == os.readlink(name, dir_fd=there)
    return kind != stat.S_IFREG or _same_bytes(name, kept, there)


def _same_bytes(name: str, kept: int, there: int) -> bool:
    with (
        open(os.open(name, _READ, dir_fd=kept), "rb") as one,  # noqa: PTH123 - descriptors
        open(os.open(name, _READ, dir_fd=there), "rb") as other,  # noqa: PTH123
    ):
        if os.fstat(one.fileno()).st_size != os.fstat(other.fileno()).st_size:
            return False
        while chunk := one.read(_CHUNK):
            if other.read(_CHUNK) != chunk:
                return False
    return True
