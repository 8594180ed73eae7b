"""What was rescued of each run: reading the rescue store and the rescue refs, here and on origin."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from worktree.copying import opened_directory
from worktree.descent import Extent, below, listed, measure
from worktree.errors import GitError, WorktreeError
from worktree.git import Git
from worktree.launch import Launch
from worktree.moments import read_moment
from worktree.record import read_records
from worktree.remote import Remote
from worktree.run_refs import CHECKPOINTS, RESCUE
from worktree.store import Manifest, Store, read_manifest

_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
# What these are called by; a rescued head is a commit of the run's and says nothing of its branch.
_OF_BRANCH = re.compile(r"nightkeep: (?:snapshot of|checkpoint of|made on) (\S+?)(?:,.*)?")
_NONE: Mapping[str, str] = MappingProxyType({})


class RescueError(WorktreeError):
    """What was rescued cannot be shown, restored or dropped as asked. Nothing was changed; the text has the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """What is kept of one run: in the store, if `store` is there, and by rescue refs and its last checkpoint, each with
    its object id.

    `manifest` is None where there is none that can be read: whoever wrote it was killed, or it was spoilt. `entries`
    are the top entries of the store's tree, with their extents. `recorded` is the Issue branch as the run's record
    names it, None where there is no record any more.
    """

    run_id: str
    store: Store | None
    manifest: Manifest | None
    entries: Mapping[str, Extent]
    size: int
    local: Mapping[str, str]
    on_origin: Mapping[str, str]
    recorded: str | None = None

    @property
    def moment(self) -> datetime:
        """When the run ended, as far as that is known, else when it began."""
        try:
            return read_moment(self.manifest.moment if self.manifest else "")
        except ValueError:
            return began(self.run_id)

    @property
    def bundles(self) -> tuple[Path, ...]:
        """The bundles of commits that origin refused."""
        return self.store.bundles() if self.store else ()

    @property
    def modules(self) -> tuple[Path, ...]:
        """The git directories of submodules."""
        return tuple(sorted(_git_directories(self.store.modules))) if self.store else ()


def began(run_id: str) -> datetime:
    """Return when a run began, which its id says."""
    return datetime.strptime(run_id.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def read_rescued(launch: Launch, on_origin: Mapping[str, str] = _NONE) -> list[Rescued]:
    """Return what is kept of each run, the newest first. `on_origin` are the refs that `rescue_refs` returned."""
    local, there = _by_run(launch.refs), _by_run(on_origin)
    stores = {run: Store(launch.common, run) for run in _in_store(launch.common)}
    recorded = {record.run_id: record.branch for record in read_records(launch.common)}
    runs = sorted({*stores, *local, *there}, reverse=True)
    return [_read(run, stores.get(run), local.get(run, {}), there.get(run, {}), recorded.get(run)) for run in runs]


def runs_that_left(launch: Launch, branch: str) -> list[str]:
    """Return the runs on `branch` of which commits are here, in a rescue ref or a bundle; looks at no stored file."""
    local = _by_run(launch.refs)
    stores = {run: Store(launch.common, run) for run in _in_store(launch.common)}
    recorded = {record.run_id: record.branch for record in read_records(launch.common)}
    left = sorted({*local, *(run for run, store in stores.items() if store.bundles())})
    found = (
        Rescued(
            run_id=run,
            store=stores.get(run),
            manifest=_manifest(stores[run].path) if run in stores else None,
            entries={},
            size=0,
            local=local.get(run, {}),
            on_origin={},
            recorded=recorded.get(run),
        )
        for run in left
    )
    return [one.run_id for one in found if branch_of(launch.git, one) == branch]


def rescue_refs(remote: Remote) -> dict[str, str]:
    """Return the rescue refs that origin holds now, and the checkpoints, each with its object id. Raises GitError."""
    return remote.read(f"{RESCUE}*", f"{CHECKPOINTS}*")


def find_rescued(rescued: Sequence[Rescued], given: str) -> Rescued:
    """Return what is kept of the run whose id begins with `given`; raises RescueError unless there is exactly one."""
    found = [one for one in rescued if given and one.run_id.startswith(given)]
    if len(found) == 1:
        return found[0]
    if found:
        raise RescueError(f"{given} can be any of {_names(found)}; give more of the ID")
    if rescued:
        raise RescueError(f"nothing is kept of a run {given!r}; give one of which something is: {_names(rescued)}")
    raise RescueError(f"nothing is kept of a run {given!r}, nor of any other here; see: nightkeep rescue list")


def _names(rescued: Sequence[Rescued]) -> str:
    return ", ".join(one.run_id for one in rescued)


def branch_of(git: Git, rescued: Rescued) -> str | None:
    """Return the Issue branch of a run as its manifest, its record or a rescued commit names it; None if none does."""
    if rescued.manifest:
        return rescued.manifest.branch
    if rescued.recorded:
        return rescued.recorded
    for commit in {**rescued.on_origin, **rescued.local}.values():
        said = git.run("log", "-1", "--no-show-signature", "--format=%s", commit, accept=(0, 128)).text
        if found := _OF_BRANCH.fullmatch(said):
            return found[1]
    return None


@dataclass(frozen=True, slots=True)
class Way:
    """Commits that were rescued: `what` they are, `where` they are, and the command that brings them into the clone."""

    what: str
    where: str
    command: str


def ways_back(git: Git, rescued: Rescued) -> list[Way]:
    """Return how to get at each commit that is kept of a run. None of the commands changes a branch that exists."""
    found = [
        Way(_parts(ref)[1], f"{ref} in this clone", shlex.join(["git", "branch", _branch(ref), ref]))
        for ref in rescued.local
    ]
    found += [Way(_parts(ref)[1], f"{ref} on origin", _fetch("origin", ref)) for ref in rescued.on_origin]
    found += [way for bundle in rescued.bundles for way in _ways_of_bundle(git, bundle)]
    # A fetch, or a log, would fail over the worktree that its configuration names; and would read what else is there.
    found += [
        Way("submodule", str(path), shlex.join(["git", "clone", str(path), f"rescued-{path.name}"]))
        for path in rescued.modules
    ]
    return found


def _ways_of_bundle(git: Git, bundle: Path) -> list[Way]:
    try:
        heads = git.run("bundle", "list-heads", str(bundle)).text.splitlines()
    except GitError:
        unread = f"{bundle}, which git cannot read"
        return [Way("bundle", unread, shlex.join(["git", "bundle", "verify", str(bundle)]))]
    return [Way("bundle", str(bundle), _fetch(str(bundle), head.partition(" ")[2])) for head in heads]


def _fetch(source: str, ref: str) -> str:
    return shlex.join(["git", "fetch", source, f"{ref}:refs/heads/{_branch(ref)}"])


def _branch(ref: str) -> str:
    """Return the name of a branch for what a ref holds: rescued/<run id>/snapshot."""
    return f"rescued/{'/'.join(_parts(ref))}"


def _parts(ref: str) -> tuple[str, str]:
    """Return the run whose ref it is, and what that holds; "" for what is none of ours."""
    if ref.startswith(CHECKPOINTS):
        return ref.removeprefix(CHECKPOINTS), "checkpoint"
    run, _, name = ref.removeprefix(RESCUE).partition("/") if ref.startswith(RESCUE) else ("", "", "")
    return run, name


def _in_store(common: Path) -> Iterator[str]:
    """Yield the runs that have a directory in the store; whatever else is there is none of ours."""
    try:
        with os.scandir(common / "nightkeep" / "rescue") as found:
            yield from (one.name for one in found if _is_run(one.name) and one.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return


def _by_run(refs: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for ref, oid in refs.items():
        run, name = _parts(ref)
        if name and _is_run(run):
            found.setdefault(run, {})[ref] = oid
    return found


def _is_run(name: str) -> bool:
    if not _RUN_ID.fullmatch(name):
        return False
    try:
        began(name)
    except ValueError:
        return False
    return True


def _read(
    run_id: str, store: Store | None, local: Mapping[str, str], on_origin: Mapping[str, str], recorded: str | None
) -> Rescued:
    entries, beside = _extents(store) if store else ({}, Extent())
    return Rescued(
        run_id=run_id,
        store=store,
        manifest=_manifest(store.path) if store else None,
        entries=entries,
        size=sum(entries.values(), beside).size,
        local=local,
        on_origin=on_origin,
        recorded=recorded,
    )


def _extents(store: Store) -> tuple[dict[str, Extent], Extent]:
    """Return the extent of each top entry of the tree, and that of what is beside the tree."""
    entries, beside = {}, Extent()
    with suppress(FileNotFoundError), opened_directory(store.path) as directory:
        names = listed(directory).keys() - {store.tree.name}
        beside = sum((measure(directory, name) for name in names), beside)
        # Its `.git` said where git had its files, which is nowhere now.
        with below(directory, store.tree.name) as tree:
            entries = {name: measure(tree, name) for name in listed(tree) if name != ".git"}
    return entries, beside


def _manifest(directory: Path) -> Manifest | None:
    """Read a manifest; None for one that is missing, or that somebody else wrote something into."""
    try:
        manifest = read_manifest(directory)
    except (OSError, ValueError, RecursionError):
        return None
    texts = [manifest.branch, manifest.path, manifest.moment, manifest.head or ""]
    texts += [text for row in manifest.rows for text in (row.entry, row.why)]
    sound = manifest.run_id == directory.name and all(isinstance(text, str) for text in texts)
    return manifest if sound else None


def _git_directories(modules: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(modules):
        if "HEAD" in files and "objects" in names:
            yield Path(directory)
            names[:] = [name for name in names if name == "modules"]
