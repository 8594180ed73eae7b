"""Where bytes are after a run, whether its ending says so, and whether anybody else's are as they were."""

import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.world import World
from worktree import Ending

MARK = "nightkeep-mark-"
PERSONS_MARK = "persons-mark-"

_MARKS = re.compile(rb"%s[0-9a-f]{24}" % MARK.encode())
_OBJECT_ID = re.compile(rb"\b[0-9a-f]{40}\b")
_OURS = ("refs/remotes/", "refs/nightkeep/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What is left of a run: `owed` says of each mark what it was planted as, `protected` are refs of others on
    origin, `admin` the worktree's git directory as long as it lasts.
    """

    ending: Ending
    admin: Path
    run_id: str
    owed: Mapping[bytes, str]
    protected: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere bytes can be found. An ending names it by `name`."""

    name: str
    read: Callable[[], bytes]


def lost(world: World, aftermath: Aftermath) -> dict[str, str]:
    """Return what cannot be found where the ending says that something is, with where it is instead."""
    said = _said(aftermath.ending)
    named: list[Place] = []
    others: list[Place] = []
    for place in _places(world, aftermath):
        (named if re.search(rf"{re.escape(place.name)}(?![\w.-])", said) else others).append(place)
    missing = search(aftermath.owed, named)
    nowhere = search(missing, others)
    return {
        aftermath.owed[mark]: "nowhere" if mark in nowhere else "in a place that the ending does not name"
        for mark in missing
    }


def search(marks: Iterable[bytes], places: Iterable[Place]) -> set[bytes]:
    """Return those of the marks that are in none of the places; looks no further than it must."""
    missing = set(marks)
    for place in places:
        if not missing:
            break
        content = place.read()
        missing = {mark for mark in missing if mark not in content}
    return missing


def held(world: World, top: Path, admin: Path) -> list[Place]:
    """Return the places that hold what a worktree that is in use holds."""
    return [
        Place("the worktree", lambda: _tree(top)),
        Place("its git directory", lambda: _admin(admin)),
        *_refs_of(world.origin),
        *_refs_of(world.launch),
    ]


def made(world: World, top: Path, admin: Path) -> set[bytes]:
    """Return the marks that a worktree which is in use owes: in its files, index, log of HEAD and stash entries."""
    kept = (_tree(top), _admin(admin), _reachable(world.launch, _stash(world.launch)))
    return {mark for content in kept for mark in _MARKS.findall(content)}


def _said(ending: Ending) -> str:
    places = [text for place in ending.places for text in place]
    branch = [f"refs/heads/{ending.branch}"] if ending.kept else []
    return "\n".join([ending.why, *branch, *places, *ending.refs])


def _places(world: World, aftermath: Aftermath) -> Iterator[Place]:
    yield from _refs_of(world.origin)
    yield from _refs_of(world.launch)
    store = world.launch / ".git" / "nightkeep" / "rescue" / aftermath.run_id
    if store.exists():
        yield Place(str(store), lambda: _store(world, store))
    if aftermath.ending.kept:
        path = aftermath.ending.path
        yield Place(str(path), lambda: _tree(path) + b"\n" + _admin(aftermath.admin))


def _refs_of(repository: Path) -> Iterator[Place]:
    refs = _refs(repository)
    stashes = _stash(repository)
    for ref, oid in refs.items():
        roots = stashes if ref == "refs/stash" else [oid]
        yield Place(ref, partial(_reachable, repository, roots))


def _store(world: World, store: Path) -> bytes:
    return _tree(store) + b"".join(_bundle(world, Path(os.fsdecode(path))) for path in _files(os.fsencode(store)))


def _bundle(world: World, path: Path) -> bytes:
    """Return the objects that a bundle brings, if it is one and what it builds on can be had."""
    if not _read(os.fsencode(path)).startswith(b"# v"):
        return b""
    scratch = world.launch.with_name(f"unbundled-{path.stat().st_ino}.git")
    _git(world.launch, "clone", "-q", "--bare", str(world.origin), str(scratch))
    _git(scratch, "fetch", "-q", str(world.launch), "+refs/*:refs/launch/*")
    with suppress(AssertionError):  # what it builds on is nowhere, so nobody can take anything out of it
        _git(scratch, "fetch", "-q", str(path), "+refs/*:refs/bundled/*")
    return _reachable(scratch, [oid for ref, oid in _refs(scratch).items() if ref.startswith("refs/bundled/")])


def _tree(top: Path) -> bytes:
    """Return names, contents and link targets of everything below, and the objects of the repositories in it."""
    found = []
    for path, status in _walk(os.fsencode(top)):
        found.append(path[len(os.fsencode(top)) :])
        if stat.S_ISLNK(status.st_mode):
            found.append(os.readlink(path))  # noqa: PTH115 - bytes
        elif stat.S_ISREG(status.st_mode):
            found.append(_read(path))
        elif stat.S_ISDIR(status.st_mode) and _is_repository(path):
            found.append(_objects(Path(os.fsdecode(path))))
        if path.endswith(b"/.git") and stat.S_ISREG(status.st_mode):
            found.append(_linked(_read(path)))
    return b"\n".join(found)


def _linked(link: bytes) -> bytes:
    """Return what the git directory holds that the `.git` of a linked worktree names."""
    admin = Path(os.fsdecode(link).removeprefix("gitdir: ").removesuffix("\n"))
    return _admin(admin) if link.startswith(b"gitdir: /") and (admin / "gitdir").exists() else b""


def _admin(admin: Path) -> bytes:
    """Return what a worktree's git directory holds or names: log of HEAD, index, refs, operations, submodules."""
    if not (admin / "HEAD").exists():
        return b""
    texts = [_read(path) for path in _files(os.fsencode(admin)) if b"/modules/" not in path]
    named = {oid.decode() for text in texts for oid in _OBJECT_ID.findall(text)}
    with suppress(AssertionError):  # an index that git cannot read names nothing
        index = _git(admin.parent, f"--git-dir={admin}", "ls-files", "--stage").decode(errors="replace")
        named |= {row.split(" ")[1] for row in index.splitlines() if not row.startswith("160000")}
    modules = admin / "modules"
    return _reachable(admin.parent.parent, named) + (_tree(modules) if modules.exists() else b"")


def _reachable(repository: Path, roots: Iterable[str]) -> bytes:
    """Return all objects that can be reached from those roots that the repository has."""
    asked = "".join(f"{oid}\n" for oid in sorted(set(roots) - {"0" * 40})).encode()
    if not asked:
        return b""
    answers = _git(repository, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
    there = b"".join(row.split()[0] + b"\n" for row in answers.splitlines() if not row.endswith(b" missing"))
    listed = _git(repository, "rev-list", "--objects", "--no-object-names", "--stdin", stdin=there)
    return _git(repository, "cat-file", "--batch", "--buffer", stdin=listed)


def _objects(repository: Path) -> bytes:
    # Named outright, because the store of a submodule that was rescued says where its files once were.
    named = (f"--git-dir={repository}", f"--work-tree={repository}")
    return _git(repository, *named, "cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")


def _refs(repository: Path) -> dict[str, str]:
    listed = _git(repository, "for-each-ref", "--format=%(objectname) %(refname)").decode().splitlines()
    return {ref: oid for oid, ref in (row.split(" ", 1) for row in listed)}


def _stash(repository: Path) -> list[str]:
    """Return the stash entries, the latest first."""
    log = repository / ".git" / "logs" / "refs" / "stash"
    if not log.exists():
        return []
    return [row.split(" ", 2)[1] for row in log.read_text(errors="replace").splitlines()][::-1]


def _walk(top: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Go over everything below; follows no link."""
    with _accessible(top, stat.S_IRUSR | stat.S_IXUSR):
        for name in os.listdir(top):  # noqa: PTH208 - bytes
            path = top + b"/" + name
            status = os.lstat(path)
            yield path, status
            if stat.S_ISDIR(status.st_mode):
                yield from _walk(path)


def _files(top: bytes) -> Iterator[bytes]:
    return (path for path, status in _walk(top) if stat.S_ISREG(status.st_mode))


def _read(path: bytes) -> bytes:
    with _accessible(path, stat.S_IRUSR), open(path, "rb") as file:  # noqa: PTH123 - bytes
        return file.read()


def _is_repository(directory: bytes) -> bool:
    with _accessible(directory, stat.S_IRUSR):
        return {b"HEAD", b"objects", b"refs"} <= set(os.listdir(directory))  # noqa: PTH208 - bytes


@contextmanager
def _accessible(path: bytes, needed: int) -> Iterator[None]:
    """Let the owner at something for the moment, whatever its mode."""
    mode = stat.S_IMODE(os.lstat(path).st_mode)
    if mode & needed == needed:
        yield
        return
    os.chmod(path, mode | needed)  # noqa: PTH101 - bytes
    try:
        yield
    finally:
        os.chmod(path, mode)  # noqa: PTH101 - bytes


def _git(directory: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(["git", *arguments], cwd=directory, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, f"git {' '.join(arguments)} in {directory}: {os.fsdecode(done.stderr)}"
    return done.stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Bystanders:
    """Everything in and around a clone that is no business of a run."""

    head: bytes
    index: bytes
    refs: Mapping[str, str]
    stash: tuple[str, ...]
    files: Mapping[bytes, tuple[int, bytes]]
    on_origin: Mapping[str, str]

    @classmethod
    def of(cls, world: World) -> "Bystanders":
        """Look at them as they are now."""
        launch = world.launch
        files = [*_others(os.fsencode(launch)), *_others(os.fsencode(launch.with_name("outside")))]
        return cls(
            head=(launch / ".git" / "HEAD").read_bytes(),
            index=_git(launch, "ls-files", "--stage", "-v"),
            refs=_refs(launch),
            stash=tuple(_stash(launch)),
            files=dict(files),
            on_origin=_refs(world.origin),
        )

    def harmed(self, world: World, aftermath: Aftermath) -> list[str]:
        """Return what of them is not as it was, and what a run must not leave behind."""
        now = Bystanders.of(world)
        branch = f"refs/heads/{aftermath.ending.branch}"
        theirs = {ref: oid for ref, oid in self.refs.items() if not ref.startswith(_OURS) and ref != "refs/stash"}
        shared = {ref: oid for ref, oid in self.on_origin.items() if ref != branch} | dict(aftermath.protected)
        return [
            *(["HEAD"] if now.head != self.head else []),
            *(["the index"] if now.index != self.index else []),
            *(["the stash"] if now.stash[len(now.stash) - len(self.stash) :] != self.stash else []),
            *(ref for ref, oid in theirs.items() if now.refs.get(ref) != oid),
            *(f"{ref} on origin" for ref, oid in shared.items() if now.on_origin.get(ref) != oid),
            *(
                os.fsdecode(path)
                for path in self.files.keys() | now.files
                if self.files.get(path) != now.files.get(path)
            ),
            *(["a person's work, published"] if PERSONS_MARK.encode() in _objects(world.origin) else []),
            *_left_behind(world, aftermath),
        ]


def _others(top: bytes) -> Iterator[tuple[bytes, tuple[int, bytes]]]:
    for path, status in _walk(top):
        if not path.startswith(top + b"/.git/") and path != top + b"/.git":
            regular = stat.S_ISREG(status.st_mode)
            yield path, (status.st_mode, _read(path) if regular else b"")


def _left_behind(world: World, aftermath: Aftermath) -> Iterator[str]:
    ending = aftermath.ending
    locks = [path for path in (world.launch / ".git").rglob("*.lock") if path.name != "owner.lock"]
    yield from (f"{path} left behind" for path in [*locks, *world.origin.rglob("*.lock")])
    removing = ending.path.with_name(f"{ending.path.name}.removing")
    if removing.exists():
        yield f"{removing} left behind"
    if ending.path.exists() and not ending.kept:
        yield f"{ending.path} is there although it is said to be gone"
