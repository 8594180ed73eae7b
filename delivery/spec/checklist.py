"""The checklist of Tickets in the Spec's pull request: written between markers, and nowhere else."""

import re
from collections.abc import Sequence

from delivery.spec.graph import TicketStanding
from delivery.text import as_code

_BEGIN, _END = "<!-- nightkeep:tickets -->", "<!-- /nightkeep:tickets -->"
# Markers count on a line of their own only: a cause may hold one. Whoever edits on the web writes \r\n.
# One that has lost its other half marks nothing: what stands between it and the next checklist is others'.
_BLOCK = re.compile(f"^{_BEGIN}\\r?\n(?:(?!^{_BEGIN}\\r?$).)*?^{_END}(?=\\r?$)", re.DOTALL | re.MULTILINE)
_LONGEST = 30_000  # characters; GitHub takes 65,536 of a body, and the rest of it belongs to others
_LONGEST_TITLE = 80  # characters
_CAUSES = (300, 100, 0)  # how many characters of a cause are shown, tried in turn until the checklist fits


def checklist(standings: Sequence[TicketStanding]) -> str:
    """Return the checklist with its markers. Causes must be redacted already."""
    texts = (_block([_row(standing, longest) for standing in standings]) for longest in _CAUSES)
    fitting = next((text for text in texts if len(text) <= _LONGEST), None)
    return fitting or _block(_cut([_row(standing, 0) for standing in standings]))


def with_checklist(body: str, block: str) -> str:
    """Return a pull request's body with the checklist in the place of the one that it has, else at its end."""
    kept = _without_all_but_first(body)
    if _BLOCK.search(kept):
        return _BLOCK.sub(lambda _: block, kept, count=1)
    return f"{kept.rstrip()}\n\n{block}".lstrip()


def _without_all_but_first(body: str) -> str:
    """Return the body without a second checklist, such as a person gets there who copies text."""
    seen: list[str] = []

    def keep_first(found: re.Match[str]) -> str:
        seen.append(found[0])
        return found[0] if len(seen) == 1 else ""

    return _BLOCK.sub(keep_first, body)


def _block(rows: Sequence[str]) -> str:
    return "\n".join([_BEGIN, "### Tickets", "", *rows, _END])


def _row(standing: TicketStanding, longest: int) -> str:
    title = f" {as_code(standing.title, _LONGEST_TITLE)}" if standing.title else ""
    cause = f": {as_code(standing.cause, longest)}" if standing.cause and longest else ""
    return f"- [{'x' if standing.is_done else ' '}] {standing.name}{title}: {standing.words}{cause}"


def _cut(rows: Sequence[str]) -> Sequence[str]:
    """Return as many rows as fit, and how many more there are."""
    shown = list(rows)
    while shown and len("\n".join(shown)) > _LONGEST - 200:
        shown.pop()
    return [*shown, f"- and {len(rows) - len(shown)} more"]
