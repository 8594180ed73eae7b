"""Runs in processes of their own, which `runner` starts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a Run in a process of its own ended. `cause` is None when it reached its goal."""

    merged: bool
    pull_request: str | None = None
    cause: str | None = None


class ChildRuns(Protocol):
    """Starts Merge runs with the settings of the present command, each in a process of its own."""

    def merge_run(self, issue_url: str, base: str, *, limit: float, tick: Callable[[], None]) -> ChildEnd:
        """Carry out a Merge run on an issue into `base` and return how it ended.

        `tick` is called several times a second meanwhile. After `limit` seconds, or once a signal is recorded, the Run
        is told to end, and waited for: it keeps its own work. So it is when `tick` raises, which is raised then. Raises
        OSError when it cannot be started.
        """
        ...
