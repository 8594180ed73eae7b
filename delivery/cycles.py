"""Issues that wait for each other."""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from delivery.github import QueuedIssue

Key = tuple[str, int]
"""An issue: its repository's name in small letters, and its number."""
_Issue = TypeVar("_Issue", bound=Hashable)
_LONGEST = 8  # issues that are named of a cycle


def cycle_of(start: _Issue, waits: Mapping[_Issue, Sequence[_Issue]]) -> tuple[_Issue, ...]:
    """Return the shortest way along which `start` waits for itself, it first; empty when it does not.

    `waits` says which issue waits for which others.
    """
    came_from: dict[_Issue, _Issue] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for there in waits.get(here, ()):
            if there == start:
                way = [here]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return tuple(reversed(way))
            if there not in came_from:
                came_from[there] = here
                waiting.append(there)
    return ()


def ring_of(cycle: Sequence[str]) -> list[str]:
    """Return what to name of a cycle: the way back to where it began, of a long one its first part and its end."""
    ring = [*cycle, cycle[0]]
    return [*ring[:_LONGEST], "…", ring[-1]] if len(ring) > _LONGEST + 1 else ring


def waits_of(issue: QueuedIssue, repository: str) -> dict[Key, tuple[Key, ...]]:
    """Return what one issue tells of who waits for whom: it for its open blockers, sub-issues for their Specs."""
    own = (repository.lower(), issue.number)
    blockers = [one for one in issue.blockers if one.is_open]
    waits = {own: tuple((one.repository.lower(), one.number) for one in blockers)}
    for one in blockers:
        if one.parent is not None:
            waits[(one.repository.lower(), one.number)] = ((one.parent[0].lower(), one.parent[1]),)
    return waits
