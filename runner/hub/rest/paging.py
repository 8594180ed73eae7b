"""Pages of lists: https://docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

Item = TypeVar("Item")

_SIZE, _LARGEST_SIZE = 30, 100


@dataclass(frozen=True, slots=True)
class Page:
    """The page `number`, counted from one, of pages with `size` items."""

    number: int
    size: int

    def cut(self, items: Sequence[Item]) -> list[Item]:
        """Return the items on this page."""
        return list(items[(self.number - 1) * self.size : self.number * self.size])


def page_of(query: Mapping[str, str]) -> Page:
    """Return the page that a query asks for; what is no number counts as not given, as on GitHub."""
    number = _number(query.get("page", ""), default=1)
    return Page(number, min(_number(query.get("per_page", ""), default=_SIZE), _LARGEST_SIZE))


def links(url: str, query: Mapping[str, str], page: Page, total: int) -> str:
    """Return the Link header for a list of `total` items; empty when all are on this page."""
    last = max(1, -(-total // page.size))
    targets = {
        "prev": page.number - 1 if page.number > 1 else None,
        "next": page.number + 1 if page.number < last else None,
        "last": last if page.number < last else None,
        "first": 1 if page.number > 1 else None,
    }
    entries = ((relation, dict(query) | {"page": str(number)}) for relation, number in targets.items() if number)
    return ", ".join(f'<{url}?{urlencode(parameters)}>; rel="{relation}"' for relation, parameters in entries)


def _number(text: str, *, default: int) -> int:
    return int(text) if text.isdecimal() and int(text) > 0 else default
