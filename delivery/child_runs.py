"""Runs that a Run has others do: each in a process of its own, with a claim of its own. `runner` starts them."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from delivery.causes import Code
from worktree import Preserved


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnding:
    """How such a Run ended. `merge_commit` is what its base got of one that was merged. `cause` and `code` say
    why it was not `merged`, `preserved` and `places` where its work is.

    `url` is its pull request's. One that is `taken` was not begun: another run has the issue.
    """

    merged: bool = False
    taken: bool = False
    merge_commit: str | None = None
    url: str | None = None
    cause: str | None = None
    code: Code | None = None
    preserved: Preserved = Preserved.NOTHING_MADE
    places: tuple[tuple[str, str], ...] = ()

    @property
    def is_kept_here(self) -> bool:
        """Whether this machine alone has something that it made."""
        return not self.merged and self.preserved is Preserved.MACHINE


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredBy:
    """The Base branch, and its commit, whose configuration holds for a Run: one that people have reviewed."""

    base: str
    commit: str

    def __str__(self) -> str:
        """Return it as an argument."""
        return f"{self.base}:{self.commit}"

    @classmethod
    def parse(cls, text: str) -> "ConfiguredBy":
        """Return what `str` made an argument of; no branch has a colon in its name."""
        base, commit = text.split(":")
        return cls(base=base, commit=commit)


class ChildRuns(Protocol):
    """Starts Merge runs with the settings of the present command, and says how they ended."""

    def start(
        self,
        number: int,
        base: str,
        *,
        limit: float,
        spec: int | None = None,
        configured_by: ConfiguredBy | None = None,
    ) -> None:
        """Start a Merge run on an issue into `base`, which is told to stop after `limit` seconds.

        `spec` is the number of the issue that this one is a Ticket of. `configured_by` is None where the configuration
        is that of the present command: of the Base branch, or what that was itself started with. Raises OSError.
        """
        ...

    def wait(self, seconds: float) -> Mapping[int, ChildEnding]:
        """Return those that have ended since, by the issues' numbers; waits for one for so long."""
        ...

    def tell(self) -> None:
        """Tell all that run to stop, and keep their work. They are still to be waited for."""
        ...

    def ended(self) -> AbstractContextManager[None]:
        """See that none is left at the end of the block: those that run then are told to stop, and waited for."""
        ...
