"""The kinds of value that a setting may have, and what is said when it has another."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from runner.settings.trust import is_repository

EMPTY = "empty"
"""The type of the error for text that is empty: what to do about it depends on where it stands."""

_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) *([A-Za-z]*)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_LONGEST = 30 * 24 * 3600
_LARGEST = 10**12
_MOST_DAYS = 3650
_MOST_TIMES = 100
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(\[bot\])?")
_LONGEST_LABEL = 50  # characters; GitHub's limit
# What a shell takes literally.
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
# Words that only a shell gives a meaning to. A word may hold the same characters without that: Bash(git:*), >=3.11,
# a URL's a=1&b=2, <name>.
_SHELL_WORD = re.compile(
    r"""([0-9]?[&|;<>]+[0-9-]?)        # && || | ; > 2>&1
      | ([0-9]?&?>{1,2})[\w./~$].*     # >log
      | ([0-9]?<)[\w./~$][^>]*         # <file
      | (\$\(|`).*
      | .*[^&|;](;|&&|\|\|)            # first; second""",
    re.VERBOSE,
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*=).*")


def _quantity(value: object, units: Mapping[str, int]) -> float:
    """Return the number that `value` stands for, or 0."""
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * units.get(match[2].lower(), 0) if match else 0


def _duration(value: object) -> float:
    seconds = _quantity(value, _SECONDS)
    if not 0 < seconds <= _LONGEST:
        raise ValueError("must be a duration: 90s, 15m, 2h or a number of seconds, above 0 and up to 30 days")
    return seconds


def read_duration(text: str) -> float:
    """Return the seconds that a duration stands for, as it may be written in a file. Raises ValueError."""
    return _duration(text)


def _size(value: object) -> int:
    size = _quantity(value, _BYTES)
    if not 1 <= size <= _LARGEST:
        raise ValueError("must be a size: 50MB, 1.5 GB, 512KiB or a number of bytes, above 0 and up to 1000 GB")
    return int(size)


def _days(value: object) -> int:
    days = _quantity(value, {"": 1, "d": 1})
    if not 1 <= days <= _MOST_DAYS or days != int(days):
        raise ValueError(f"must be a whole number of days, from 1 to {_MOST_DAYS}")
    return int(days)


def _count(value: object) -> int:
    count = _quantity(value, {"": 1})
    whole = count == int(count) and str(value).strip()[:1].isdigit()
    if not whole or count > _MOST_TIMES:
        raise ValueError(f"must be a whole number, from 0 to {_MOST_TIMES}")
    return int(count)


def _several(value: object) -> int:
    count = _count(value)
    if count == 0:
        raise ValueError(f"must be a whole number, from 1 to {_MOST_TIMES}")
    return count


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    if text not in ("true", "false", "yes", "no", "on", "off"):
        raise ValueError("must be true or false")
    return text in ("true", "yes", "on")


def _written(number: float, units: Mapping[str, int]) -> str:
    """Write a quantity in the largest of `units` that leaves a whole number."""
    best = max((factor, unit) for unit, factor in units.items() if number % factor == 0 or factor == 1)
    return f"{number / best[0]:.10g}{best[1]}"


def _written_duration(seconds: float) -> str:
    return _written(seconds, {"s": 1, "m": 60, "h": 3600})


def _written_size(size: int) -> str:
    return _written(size, {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9})


def _command(text: str) -> str:
    command = _text(text).strip()
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {str(error).lower()}") from error
    if words != _words_of_one_line(command):
        raise ValueError("has several lines, but is one command, run without a shell; try: sh -c 'FIRST && SECOND'")
    if syntax := _shell_syntax(command):
        raise ValueError(
            f"is run without a shell; for {syntax} write sh -c '…', or put it in quotes when it is to be passed on"
        )
    return command


def _shell_syntax(command: str) -> str:
    """Return the first thing in the command that is certainly meant for a shell, "" when there is none."""
    words = _QUOTED.sub("''", command).split()
    meant = [_ASSIGNMENT.fullmatch(words[0]), *map(_SHELL_WORD.fullmatch, words)]
    return next((part for match in meant if match for part in match.groups() if part), "")


def _words_of_one_line(command: str) -> list[str]:
    """Split as `shlex.split` does, but for line ends, which separate nothing here."""
    lexer = shlex.shlex(command, posix=True)
    lexer.whitespace_split, lexer.whitespace, lexer.commenters = True, " \t", ""
    return list(lexer)


def _text(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError(EMPTY, "is empty")
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("holds a character that is no text: NUL, or what is not UTF-8")
    return text


def _label(text: str) -> str:
    name = text.strip()
    if not (name.isprintable() and 0 < len(name) <= _LONGEST_LABEL):
        raise ValueError(f"must be the name of a label: one line of 1 to {_LONGEST_LABEL} characters")
    return name


def _repository(text: str) -> str:
    if not is_repository(text):
        raise ValueError("must be OWNER/NAME on github.com, or HOST/OWNER/NAME")
    return text


def _login(value: str) -> str:
    if not _LOGIN.fullmatch(value.strip()):
        raise ValueError("must be an account's login, such as olga or renovate[bot]")
    return value.strip()


def _path(value: object) -> Path:
    text = str(value) if isinstance(value, str | Path) else ""
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError("begins with ~, but there is no such home directory") from error
    if not path.is_absolute() or "\0" in text:
        raise ValueError("must be an absolute path, or one that begins with ~/")
    return path


def _schema_of_quantity(units: str, unit: str) -> WithJsonSchema:
    written = {"type": "string", "pattern": rf"^[0-9]+(\.[0-9]+)? *({units})?$"}
    return WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0, "description": unit}, written]})


Duration = Annotated[
    float,
    BeforeValidator(_duration),
    PlainSerializer(_written_duration, return_type=str, when_used="json"),
    _schema_of_quantity("[sSmMhH]", "Seconds."),
]
"""Seconds; above zero."""

Size = Annotated[
    int,
    BeforeValidator(_size),
    PlainSerializer(_written_size, return_type=str, when_used="json"),
    _schema_of_quantity("[kKmMgG]?[bB]|[kKmMgG][iI][bB]", "Bytes."),
]
"""Bytes; above zero."""

Days = Annotated[
    int,
    BeforeValidator(_days),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _MOST_DAYS, "description": "Days."},
                {"type": "string", "pattern": "^[1-9][0-9]*d?$"},
            ]
        }
    ),
]
"""Days; at least one."""

Count = Annotated[
    int, BeforeValidator(_count), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": _MOST_TIMES})
]
"""How many times something may happen."""

Several = Annotated[
    int, BeforeValidator(_several), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": _MOST_TIMES})
]
"""How many of something there may be; at least one."""

Switch = Annotated[bool, BeforeValidator(_switch)]
"""Yes or no."""

Command = Annotated[str, AfterValidator(_command)]
"""A command that `shlex.split` splits into at least one word."""

Text = Annotated[str, AfterValidator(_text)]
Label = Annotated[str, AfterValidator(_label)]
Login = Annotated[str, AfterValidator(_login)]
Repository = Annotated[str, AfterValidator(_repository)]
AbsolutePath = Annotated[Path, BeforeValidator(_path)]
