"""Putting other people's text into Markdown."""

import re
import unicodedata
from pathlib import Path

from worktree.reading import read_regular

_ELLIPSIS = "…"
# https://docs.github.com/en/actions/how-tos/manage-workflow-runs/skip-workflow-runs
_SKIPS = re.compile(r"\[(skip ci|ci skip|no ci|skip actions|actions skip)\]", re.IGNORECASE)


# What is not for the eye: control characters, invisible ones (among them those that turn the direction of text),
# halves of characters, line separators. Joiners are part of words and of emoji.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    """Return `text` with what cannot be seen shown: ␛ for an escape, `\\u202e` for what has no picture."""
    return text if text.isprintable() else "".join(map(_shown, text.replace("\r\n", "\n")))


def _shown(char: str) -> str:
    if char in "\n\t" or char in _JOINERS or unicodedata.category(char) not in _UNSEEN:
        return char
    if char < " ":
        return chr(0x2400 + ord(char))
    return "␡" if char == "\x7f" else char.encode("unicode-escape").decode("ascii")


def fenced(text: str, language: str = "text") -> str:
    """Return `text` as a code block that nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def one_line(text: str, limit: int) -> str:
    """Return the first line of `text` that is not blank, cut to `limit` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + _ELLIPSIS


def as_subject(text: str, limit: int) -> str:
    """Return the first line of `text` for a commit or a title, without words for which GitHub runs no workflows."""
    return _SKIPS.sub(r"(\1)", one_line(text, limit))


def as_name(text: str, limit: int = 200) -> str:
    """Return `text`, which others chose, as one line of which everything can be seen, cut to `limit` characters."""
    return one_line(" ".join(visible(text).split()), limit)


def as_code(text: str, limit: int) -> str:
    """Return `text` as a line of inline code, cut to `limit`, so that nothing in it is a mention, a link or markup."""
    line = as_name(text[: 2 * limit], limit)
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    between = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{between}{line}{between}{ticks}"


def end_of(log: Path | None, size: int) -> str:
    """Return the last `size` bytes of a file as text, "" where there is none, or something else in its place."""
    try:
        return read_regular(log, size).decode(errors="replace") if log else ""
    except OSError:
        return ""


def tail(text: str, lines: int, characters: int) -> str:
    """Return the end of `text`: at most so many lines and characters, cut between characters."""
    last = "\n".join(text.removesuffix("\n").split("\n")[-lines:])
    return last if len(last) <= characters else _ELLIPSIS + last[-characters:]
