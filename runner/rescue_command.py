"""`nightkeep rescue`: what is kept of runs that are over, how to get it back, and how to be rid of it."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from runner.access import Access, with_access
from runner.table import aligned, print_table
from runner.wording import counted, printable, written_size
from worktree.dropping import Deleter, Deletion, drop
from worktree.moments import written
from worktree.restoring import Restored, restore
from worktree.stored import Rescued, RescueError, Way, branch_of, find_rescued, read_rescued, ways_back

_MOST_NAMED = 3
_NO_MANIFEST = "no manifest: what put it there was killed, or somebody spoilt it"


def list_rescued(held: Mapping[str, str], token_file: Path | None, *, offline: bool, as_json: bool) -> int:
    """List what is kept of each run, the newest first; return the exit status."""

    def work(access: Access) -> int:
        on_origin = access.refs_on_origin()
        rescued = read_rescued(access.launch, on_origin or {})
        if as_json:
            _print_json([_summary(access, one, asked=on_origin is not None) for one in rescued])
        elif rescued:
            headings = ("ID", "when", "branch", "what", "size", "where")
            print_table(headings, [_row(access, one) for one in rescued])
        else:
            access.say(f"nothing is kept of any run of {access.launch.top}")
        return 0

    return with_access(work, held, token_file, online=not offline)


def show_rescued(run_id: str, held: Mapping[str, str], token_file: Path | None, *, offline: bool, as_json: bool) -> int:
    """Show everything that is kept of a run, and the commands that bring it back; return the exit status."""

    def work(access: Access) -> int:
        on_origin = access.refs_on_origin()
        one = find_rescued(read_rescued(access.launch, on_origin or {}), run_id)
        ways = ways_back(access.launch.git, one)
        if as_json:
            document = _summary(access, one, asked=on_origin is not None)
            _print_json(document | {"entries": _entries(one), "ways_back": [asdict(way) for way in ways]})
        else:
            _show(access, one, ways, asked=on_origin is not None)
        return 0

    return with_access(work, held, token_file, online=not offline)


def restore_rescued(run_id: str, paths: Sequence[str], to: Path | None, held: Mapping[str, str]) -> int:
    """Copy files of a run from the store into the clone's checkout, or to a directory; return the exit status."""

    def work(access: Access) -> int:
        one = find_rescued(read_rescued(access.launch), run_id)
        target = Path(os.path.realpath(to)) if to else access.launch.top
        _tell_restored(access, one, restore(one, paths, target), target)
        return 0

    return with_access(work, held, online=False)


def drop_rescued(run_id: str, held: Mapping[str, str], token_file: Path | None, *, remote: bool) -> int:
    """Delete what is kept of a run, with `remote` on origin, too; return the exit status."""

    def work(access: Access) -> int:
        on_origin = access.refs_on_origin()
        if remote and on_origin is None:
            raise RescueError("nothing was deleted; try again when origin can be read, or leave --remote out")
        one = find_rescued(read_rescued(access.launch, on_origin or {}), run_id)
        drop(Deleter(launch=access.launch, remote=access.remote, deleted=print_deletion), one)
        return 0

    return with_access(work, held, token_file, online=remote)


def print_deletion(deletion: Deletion, verb: str = "deleted") -> None:
    """Print one line about something that was deleted."""
    size = f", {written_size(deletion.size)}" if deletion.size else ""
    why = f" ({printable(deletion.why)})" if deletion.why else ""
    print(f"{verb} {printable(deletion.what)}{size}{why}")  # noqa: T201 - the command's output


def _row(access: Access, one: Rescued) -> tuple[str, ...]:
    when = f"{one.moment.astimezone():%Y-%m-%d %H:%M}"
    branch = printable(branch_of(access.launch.git, one) or "?")
    size = written_size(one.size) if one.store else ""
    return one.run_id, when, branch, _what(one), size, _where(one)


def _what(one: Rescued) -> str:
    names = [*one.entries]
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    parts = [*names[:_MOST_NAMED], *more, *(f"submodule {path.name}" for path in one.modules)]
    parts += ["bundle"] * len(one.bundles)
    parts += [ref.rpartition("/")[2] for ref in {**one.local, **one.on_origin}]
    note = [f"({_NO_MANIFEST.partition(':')[0]})"] if one.store and not one.manifest else []
    return " ".join([", ".join(map(printable, parts)), *note]).strip()


def _where(one: Rescued) -> str:
    places = (("store", one.store), ("ref here", one.local), ("ref on origin", one.on_origin))
    return ", ".join(name for name, there in places if there)


def _summary(access: Access, one: Rescued, *, asked: bool) -> dict[str, object]:
    manifest = one.manifest
    return {
        "id": one.run_id,
        "when": written(one.moment),
        "branch": branch_of(access.launch.git, one),
        "worktree": manifest.path if manifest else None,
        "head": manifest.head if manifest else None,
        "store": str(one.store.path) if one.store else None,
        "manifest": manifest is not None,
        "size": one.size,
        "entries": [{"entry": entry} for entry in one.entries],
        "submodules": [str(path) for path in one.modules],
        "bundles": [str(path) for path in one.bundles],
        "refs": {"local": dict(one.local), "origin": dict(one.on_origin) if asked else None},
    }


def _entries(one: Rescued) -> list[dict[str, object]]:
    """Return each entry with why it is there; one that is only in the manifest has no extent: it was deleted."""
    reasons = {row.entry: row.why for row in one.manifest.rows} if one.manifest else {}
    names = [*one.entries, *(entry for entry in reasons if entry not in one.entries)]
    found: list[dict[str, object]] = []
    for name in names:
        extent = one.entries.get(name)
        why = reasons.get(name, _NO_MANIFEST if one.manifest is None else "not in the manifest")
        size, files = (extent.size, extent.files) if extent else (None, None)
        found.append({"entry": name, "why": why, "size": size, "files": files})
    return found


def _show(access: Access, one: Rescued, ways: Sequence[Way], *, asked: bool) -> None:
    manifest = one.manifest
    facts = [
        ("run", one.run_id),
        ("branch", branch_of(access.launch.git, one) or "?"),
        ("ended", f"{one.moment.astimezone():%Y-%m-%d %H:%M:%S}"),
        ("worktree", manifest.path if manifest else None),
        ("HEAD", manifest.head if manifest else None),
        ("store", f"{one.store.path} ({written_size(one.size)})" if one.store else None),
    ]
    print("\n".join(aligned([(name, printable(text)) for name, text in facts if text])))  # noqa: T201
    if one.entries or (manifest and manifest.rows):
        print()  # noqa: T201 - the command's output
        print_table(("entry", "why", "size", "files"), [_entry_row(row) for row in _entries(one)])
    for way in ways:
        print(f"\n{printable(way.what)}: {printable(way.where)}\n  {way.command}")  # noqa: T201
    if one.entries:
        print(f"\nthe files, copied into {access.launch.top}:\n  nightkeep rescue restore {one.run_id}")  # noqa: T201
    if not asked:
        access.say("origin was not asked, so rescue refs there are not shown")


def _entry_row(row: Mapping[str, object]) -> tuple[str, ...]:
    size = row["size"]
    shown = written_size(size) if isinstance(size, int) else ""
    files = "" if row["files"] is None else str(row["files"])
    return printable(str(row["entry"])), printable(str(row["why"])), shown, files


def _tell_restored(access: Access, one: Rescued, restored: Restored, target: Path) -> None:
    print(f"restored {_made(restored)} of {one.run_id} into {printable(str(target))}")  # noqa: T201
    if restored.there:
        access.say(f"{counted(len(restored.there), 'file was', 'files were')} there already")
    if restored.left_out:
        named = ", ".join(map(printable, restored.left_out))
        access.say(f"left out, because it names a repository that is elsewhere now: {named}")
    access.say(f"the store still has them; be rid of them by: nightkeep rescue drop {one.run_id}")


def _made(restored: Restored) -> str:
    """Count the files; directories only where there is nothing else."""
    if restored.directories and not (restored.made or restored.there):
        return counted(len(restored.directories), "directory", "directories")
    return counted(len(restored.made), "file", "files")


def _print_json(document: object) -> None:
    print(json.dumps(document, indent=2))  # noqa: T201 - the command's output
