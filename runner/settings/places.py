"""Where a setting was written, and what is wrong there."""

from collections.abc import Iterable
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]
"""The way to a key from the top of the settings; a number is an entry's index in a list."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file (0: the file as a whole), an environment variable or a flag."""

    name: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something that the user has to change, as a sentence, and where."""

    place: Place
    what: str

    def __str__(self) -> str:
        # A file may hold anything, also what would move a terminal's cursor.
        return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in f"{self.place}: {self.what}")


class SettingsError(Exception):
    """The configuration cannot be used. The text has one line for each problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(str(problem) for problem in problems)
        super().__init__("\n".join(self.problems))


def dotted(path: KeyPath) -> str:
    """Return a key as people read it: `limits.session`."""
    return ".".join(part for part in path if isinstance(part, str))
