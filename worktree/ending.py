"""How a worktree ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Preserved(StrEnum):
    """Where what a run made is. MACHINE means that something is kept only on this machine."""

    ORIGIN = "origin"
    MACHINE = "machine"
    NOTHING_MADE = "nothing-made"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is there after the with-block.

    `kept` says that the checkout and its local branch are still in place, `why` says why, or that they were
    cleaned up. `rescued` is where the files are that nothing else held, None when there were none. `head` is the commit
    HEAD named last, None when git could not tell. `places` lists (what, where) for people, `refs` the refs of origin
    that were seen to hold what was made, the latest last.
    """

    kept: bool
    why: str
    path: Path
    branch: str
    head: str | None
    places: tuple[tuple[str, str], ...]
    refs: Mapping[str, str]
    preserved: Preserved
    rescued: Path | None

    def __str__(self) -> str:
        """Say it in one line."""
        if self.kept:
            head = self.head or "an unknown commit"
            return f"keeping the worktree {self.path} and its local branch {self.branch}, HEAD at {head}: {self.why}"
        gone = f"cleaned up the worktree {self.path} and its local branch {self.branch}"
        return f"{gone}; what only they held is in {self.rescued}" if self.rescued else gone
