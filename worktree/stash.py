"""The stash, which all worktrees of a clone share."""

from pathlib import Path
from typing import NamedTuple

from worktree.reading import read_regular

_LONGEST = 1 << 24  # bytes


class StashEntry(NamedTuple):
    """One entry: its commit, and its subject, as `On issue-7: half done`."""

    commit: str
    subject: str


def read_stash(common: Path) -> tuple[StashEntry, ...]:
    """Return the entries of the stash of the clone whose git directory is `common`, the oldest first."""
    try:
        log = read_regular(common / "logs" / "refs" / "stash", _LONGEST)
    except FileNotFoundError:
        return ()
    lines = (line.partition("\t") for line in log.decode(errors="replace").splitlines())
    return tuple(StashEntry(head.split(" ")[1], subject) for head, _, subject in lines if " " in head)
