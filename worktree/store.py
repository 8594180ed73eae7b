"""The rescue store: what nothing else holds of a worktree that was taken away.

<common git dir>/nightkeep/rescue/<run id>/
    manifest.json   what is here, and why
    tree/           what was left of the worktree, as it was
    modules/        the object stores of its submodules
    admin/          what somebody had put into git's own directory of it, and how far an operation there had come
    work.bundle     commits that origin refused; work-2.bundle and so on, when that came about again
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType

from worktree.durable import make_directory, sync_directory, write_whole
from worktree.moving import LeftBehindError, move
from worktree.reading import read_regular

_MANIFEST = "manifest.json"
_LONGEST_MANIFEST = 1 << 26  # bytes


@dataclass(frozen=True, slots=True)
class Row:
    """One top entry of what was left: its name in the worktree, as Python's `os` functions take it, and why."""

    entry: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What one run left in the store. `moment` is when, RFC 3339 in UTC, and `head` HEAD's commit then; `failed` says
    that it failed, or that nobody knows that it was delivered.
    """

    run_id: str
    branch: str
    path: str
    head: str | None
    failed: bool
    moment: str
    rows: tuple[Row, ...]


class Store:
    """The place of one run in the rescue store; there only once something was put into it."""

    def __init__(self, common: Path, run_id: str) -> None:
        self.path = common / "nightkeep" / "rescue" / run_id
        self.tree = self.path / "tree"
        self.modules = self.path / "modules"
        self.admin = self.path / "admin"
        self.bundle = self.path / "work.bundle"

    def open(self) -> None:
        """Make the directory, for this user alone, if it is not there. Raises OSError where a link leads elsewhere."""
        for directory in (*reversed(self.path.parents[:2]), self.path):
            if directory.is_symlink():
                raise NotADirectoryError(f"{directory} is a link, and nothing is kept through one")
            make_directory(directory)

    def has_manifest(self) -> bool:
        """Whether there is a word on what is here already."""
        return os.path.lexists(self.path / _MANIFEST)

    def free_bundle(self) -> Path:
        """Return a name for a bundle that nothing has yet."""
        names = (self.bundle if number == 1 else self.path / f"work-{number}.bundle" for number in count(1))
        return next(path for path in names if not os.path.lexists(path))

    def bundles(self) -> tuple[Path, ...]:
        """Return the bundles that are there, the first one first."""
        found = (path for path in self.path.glob("work*.bundle") if path.is_file())
        return tuple(sorted(found, key=lambda path: (len(path.name), path.name)))

    def take(
        self, tree: Path, modules: Path | None, manifest: Manifest, beside: Mapping[str, Path] = MappingProxyType({})
    ) -> None:
        """Move what is left of a worktree into the store, whole, over nothing.

        `beside` are files and directories of its git directory, by their paths in `admin/`. The manifest is written
        first: a directory in the store without a word on what it is helps nobody. Raises OSError with the worktree and
        its git directory as they were; or LeftBehindError: all is in the store, and what somebody wrote late is still
        where it was, too.
        """
        self.open()
        if os.path.lexists(self.tree) or (modules is not None and os.path.lexists(self.modules)):
            raise FileExistsError(f"{self.path} holds something already")
        write_manifest(self.path, manifest)
        moved: list[tuple[Path, Path]] = []
        try:
            for name, path in beside.items():
                self._take_beside(path, self.admin / name)
                moved.append((path, self.admin / name))
            if modules is not None:
                move(modules, self.modules)
                moved.append((modules, self.modules))
            move(tree, self.tree)
        except LeftBehindError:
            raise
        except OSError:
            for place, target in moved:
                target.rename(place)
            raise
        for directory in (self.path, tree.parent):
            sync_directory(directory)

    def _take_beside(self, path: Path, target: Path) -> None:
        """Move something from the worktree's git directory, which is on the same file system."""
        make_directory(target.parent)
        if os.path.lexists(target):
            raise FileExistsError(f"{target} exists")
        path.rename(target)
        sync_directory(target.parent)


def rescued_by(common: Path, run_id: str) -> Path | None:
    """Return where what nothing else held of a run is, None when there is nothing."""
    store = Store(common, run_id)
    return store.path if store.path.exists() else None


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write `manifest.json` into a directory of the store, durably, in place of an earlier one."""
    # ASCII, because a name that is no UTF-8 can be written in no other way.
    write_whole(directory / _MANIFEST, json.dumps(asdict(manifest), indent=2, ensure_ascii=True) + "\n")


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest in a directory of the store. Raises OSError or ValueError."""
    fields = json.loads(read_regular(directory / _MANIFEST, _LONGEST_MANIFEST))
    try:
        return Manifest(**{**fields, "rows": tuple(Row(**row) for row in fields["rows"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"{directory / _MANIFEST} is no manifest: {error}") from error
