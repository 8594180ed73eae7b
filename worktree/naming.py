"""Naming several things in one sentence."""

from collections.abc import Sequence


def some(names: Sequence[str], most: int = 5) -> str:
    """Name the first `most`, and say how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
