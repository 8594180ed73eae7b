"""Putting other people's text into Markdown."""

import re

_ELLIPSIS = "…"


def fenced(text: str, language: str = "text") -> str:
    """Return `text` as a code block that nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def one_line(text: str, limit: int) -> str:
    """Return the first line of `text` that is not blank, cut to `limit` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + _ELLIPSIS


def tail(text: str, lines: int, characters: int) -> str:
    """Return the end of `text`: at most so many lines and characters, cut between characters."""
    last = "\n".join(text.splitlines()[-lines:])
    return last if len(last) <= characters else _ELLIPSIS + last[-characters:]
