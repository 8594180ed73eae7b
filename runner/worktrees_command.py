"""`nightkeep worktrees`: which worktrees of runs there are, why, and how to let one go."""

import json
import os
import select
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from delivery.errors import PreflightError
from runner.access import Access, with_access
from runner.exit_codes import ExitCode
from runner.table import aligned, print_table
from runner.wording import counted, printable, written_size
from worktree import (
    Ending,
    GitError,
    Interrupted,
    Interruption,
    Owner,
    Worktree,
    WorktreeError,
    has_record,
    read_held,
)
from worktree.holding import Holding, read_holding
from worktree.inventory import Listed, Standing, list_worktrees
from worktree.moments import read_moment, written
from worktree.naming import some

_MOST_NAMED = 10
_GLANCE = 0.2  # seconds between looks, while somebody thinks, whether a signal has come
_UNITS = (("day", 86400), ("hour", 3600), ("min", 60))


def show_worktrees(held: Mapping[str, str], *, as_json: bool) -> int:
    """List every worktree of the clone's runs, why it is there and what can be done; return the exit status."""

    def work(access: Access) -> int:
        listed = list_worktrees(access.launch.common)
        if as_json:
            _print(json.dumps([_as_document(one) for one in listed], indent=2))
        elif listed:
            now = datetime.now(UTC)
            print_table(("worktree", "state", "branch", "age", "size", "owner"), [_row(one, now) for one in listed])
            for one in listed:
                if lines := _explained(one):
                    _print("\n" + "\n".join(map(printable, lines)))
        else:
            access.say(f"no run of {access.launch.top} has a worktree")
        return 0

    return with_access(work, held, online=False)


def release_worktree(
    path: Path, held: Mapping[str, str], token_file: Path | None, *, agreed: bool, as_json: bool
) -> int:
    """Show what a retained worktree holds and, once a person agrees, let it go; return the exit status."""

    def work(access: Access) -> int:
        one = retained_at(path, list_worktrees(access.launch.common))
        try:
            return _release(access, one, agreed=agreed, as_json=as_json)
        except (Interrupted, PreflightError):
            raise
        except (WorktreeError, OSError) as error:
            is_there = has_record(access.launch.common, one.run_id)
            raise _refused(str(error) if is_there else "somebody else has released it just now") from error

    return with_access(work, held, token_file, online=True)


def _release(access: Access, one: Listed, *, agreed: bool, as_json: bool) -> int:
    origin = access.remote.origin if access.remote else None
    there = _on_origin(access, one)
    holding = read_holding(access.launch, one.run_id, origin, there or {})
    if not as_json:
        _show(one, holding)
    why = f"{holding.obstacle}; then release it again" if holding.obstacle else None
    if why is None and not agreed:
        why = _disagreement(access.launch.git.interruption)
    ending = None
    if why is None:
        # What origin holds is asked anew: somebody may have thought for long.
        anew: dict[str, str] | None = {} if there is None else None
        with Worktree.reopen(access.launch.reopened(), one.run_id, origin=origin, there=anew) as worktree:
            pass
        ending = worktree.ending
        why = ending.why if ending.kept else None
    if as_json:
        document = _as_document(one) | {"holding": asdict(holding)} | _released(one, ending)
        _print(json.dumps(document, indent=2))
    if access.launch.git.interruption.recorded and ending is None:
        return ExitCode.NOT_BEGUN
    if why or ending is None:
        raise _refused(why or "")
    if not as_json:
        _tell(access, one, ending)
    return 0


def _on_origin(access: Access, one: Listed) -> dict[str, str] | None:
    """Return the refs that origin holds, None where it does not answer: then nothing counts as being there."""
    assert access.remote is not None  # noqa: S101 - it was asked for
    try:
        return read_held(access.remote, one.run_id)
    except Interrupted:
        raise
    except GitError as error:
        said = " ".join(error.stderr.split()) or str(error)
        access.say(f"origin cannot be read, so everything counts as being only here: {said}")
        return None


def retained_at(given: Path, listed: Sequence[Listed]) -> Listed:
    """Return the retained worktree at a path, however that is written; raises PreflightError."""
    # A link in the place of the worktree is the worktree's name, not another place.
    written = Path(os.path.abspath(given))  # noqa: PTH100 - follows no link
    meant = {Path(os.path.realpath(given)), Path(os.path.realpath(written.parent)) / written.name}
    found = [one for one in listed if one.is_at(meant)]
    if not found:
        others = [str(one.path) for one in listed if one.standing is Standing.RETAINED]
        named = f"; retained are {', '.join(others)}" if others else ""
        raise _refused(f"no worktree of a run of this clone is retained at {written}{named}")
    why = _reason_to_refuse(found[-1])
    if why:
        raise _refused(why)
    return found[-1]


def _reason_to_refuse(one: Listed) -> str | None:
    """Decide: None for a worktree that a person may let go, else why not, with what to do."""
    match one.standing:
        case Standing.RETAINED if one.owner is Owner.UNKNOWN:
            return f"{_DOUBT}; release it where the run was"
        case Standing.RETAINED:
            return None
        case Standing.AT_WORK:
            return f"{_run(one)} is at work in {one.path}; wait for its end"
        case _:
            return f"{one.path} is {_WHAT_TO_DO[one.standing].format(run=one.run_id, host=one.host, record=one.record)}"


_DOUBT = "this clone is a copy of the one that the run was started from, so nobody can tell whose the worktree is"
_WHAT_TO_DO = {
    Standing.ORPHANED: "of a run whose runner was killed; finish that first: nightkeep recover",
    Standing.ELSEWHERE: "of a run on {host}, whose end only that host can tell; release it there",
    Standing.IN_DOUBT: f"of run {{run}}; {_DOUBT}; look there",
    Standing.UNREADABLE: "of run {run}, whose record cannot be read, so nothing can be told of it; see {record}",
    Standing.UNRECORDED: "of run {run}, which has no record any more, so nothing can be proven of it; take from it "
    "what you need, and remove it by git worktree remove --force --force",
}


def _refused(why: str) -> PreflightError:
    return PreflightError(f"nothing was released: {why}")


def _disagreement(interruption: Interruption) -> str | None:
    """Ask on the terminal, and return None for a yes, else why it stays: whatever is no yes is a no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return "there is no terminal to ask on; give --yes to release it"
    sys.stderr.write("Release it? What nothing else holds is kept, see above. [y/N] ")
    sys.stderr.flush()
    while interruption.recorded is None:
        # Not by reading: a signal that is only recorded would not end that.
        if select.select([sys.stdin], [], [], _GLANCE)[0]:
            answer = sys.stdin.readline().strip().lower()
            return None if answer in ("y", "yes") else "that was no yes"
    return "interrupted"


def _row(one: Listed, now: datetime) -> tuple[str, ...]:
    age = _age((now - one.began).total_seconds()) if one.began else "?"
    size = "gone" if one.size is None else written_size(one.size)
    owner = f"process {one.pid} on {one.host}, {one.owner}" if one.pid else "?"
    return printable(str(one.path or "?")), one.standing, printable(one.branch or "?"), age, size, printable(owner)


def _age(seconds: float) -> str:
    for unit, length in _UNITS:
        number = int(seconds // length)
        if number:
            return f"{number} min" if unit == "min" else counted(number, unit, f"{unit}s")
    return "now"


def _explained(one: Listed) -> list[str]:
    """Say why a worktree is there, where its work is and what can be done about it; nothing of one at work."""
    if one.standing is Standing.AT_WORK:
        return []
    if one.standing is not Standing.RETAINED or one.retained is None or one.owner is Owner.UNKNOWN:
        return [_reason_to_refuse(one) or ""]
    lines = [f"{one.path} was retained on {_local(one.retained.moment)}: {_in_a_line(one.retained.why)}"]
    lines += [f"  {what}: {where}" for what, where in one.retained.places if where != str(one.path)]
    begun = "  its release was begun and not finished; " if one.half_released else "  look at what it holds, and "
    return [*lines, f"{begun}be rid of it: nightkeep worktrees release {shlex.quote(str(one.path))}"]


def _local(moment: str) -> str:
    try:
        return f"{read_moment(moment).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return moment


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


def _run(one: Listed) -> str:
    return f"run {one.run_id}, process {one.pid} on {one.host},"


def _show(one: Listed, holding: Holding) -> None:
    retained = one.retained
    facts = [
        ("worktree", str(one.path)),
        ("run", one.run_id),
        ("branch", one.branch),
        ("retained", f"{_local(retained.moment)}: {_in_a_line(retained.why)}" if retained else None),
        ("HEAD", f"{holding.head} on {holding.branch or 'no branch'}" if holding.head else None),
        ("size", "its directory is gone" if one.size is None else written_size(one.size)),
        ("unfinished", f"a {holding.unfinished}" if holding.unfinished else None),
        ("conflicts", _named(holding.unmerged)),
        ("uncommitted", _named(holding.changed)),
        ("untracked", _named(holding.untracked)),
        ("ignored", _named(holding.ignored)),
    ]
    _print("\n".join(aligned([(name, printable(text)) for name, text in facts if text])))
    if holding.commits:
        _print(f"\n{counted(len(holding.commits), 'commit is', 'commits are')} nowhere else:")
        for oid, subject in holding.commits[:_MOST_NAMED]:
            _print(f"  {oid[:12]} {printable(subject)}")
        if len(holding.commits) > _MOST_NAMED:
            _print(f"  and {len(holding.commits) - _MOST_NAMED} more")
    _print("")


def _named(paths: Sequence[str]) -> str:
    return some([*map(printable, paths)], _MOST_NAMED)


def _tell(access: Access, one: Listed, ending: Ending) -> None:
    _print(f"released {printable(str(one.path))}")
    for what, where in ending.places:
        _print(f"{what}: {printable(where)}")
    if _is_kept(one, ending):
        _print(f"what was kept of it, and how to get it back: nightkeep rescue show {one.run_id}")
    else:
        access.say("everything that was in it is on origin, was copied in and is in the clone, or can be made again")


def _is_kept(one: Listed, ending: Ending) -> bool:
    return bool(ending.rescued) or any(f"nightkeep/rescue/{one.run_id}" in where for _, where in ending.places)


def _released(one: Listed, ending: Ending | None) -> dict[str, object]:
    if ending is None or ending.kept:
        return {"released": False}
    return {
        "released": True,
        "places": [{"what": what, "where": where} for what, where in ending.places],
        "rescued": str(ending.rescued) if ending.rescued else None,
        "show": f"nightkeep rescue show {one.run_id}" if _is_kept(one, ending) else None,
    }


def _as_document(one: Listed) -> dict[str, object]:
    retained = one.retained
    return {
        "run": one.run_id,
        "state": one.standing,
        "path": str(one.path) if one.path else None,
        "branch": one.branch,
        "began": written(one.began) if one.began else None,
        "size": one.size,
        "owner": {"pid": one.pid, "host": one.host, "state": one.owner},
        "retained": retained.why if retained else None,
        "retained_at": retained.moment if retained else None,
        "places": [{"what": what, "where": where} for what, where in retained.places] if retained else [],
        "release_begun": one.half_released,
    }


def _print(text: str) -> None:
    print(text)  # noqa: T201 - the command's output
