"""The kinds of value that a setting may have, and what is said when it has another."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from runner.settings.trust import is_repository

_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) *([A-Za-z]*)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_LONGEST = 30 * 24 * 3600
_LARGEST = 10**12
_LONGEST_LABEL = 50  # characters; GitHub's limit


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


def _size(value: object) -> int:
    size = _quantity(value, _BYTES)
    if not 1 <= size <= _LARGEST:
        raise ValueError("must be a size: 50MB, 1.5 GB, 512KiB or a number of bytes, above 0 and up to 1000 GB")
    return int(size)


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
    return command


def _words_of_one_line(command: str) -> list[str]:
    """Split as `shlex.split` does, but for line ends, which separate nothing here."""
    lexer = shlex.shlex(command, posix=True)
    lexer.whitespace_split, lexer.whitespace, lexer.commenters = True, " \t", ""
    return list(lexer)


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; leave the key out, or write null")
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

Command = Annotated[str, AfterValidator(_command)]
"""A command that `shlex.split` splits into at least one word."""

Text = Annotated[str, AfterValidator(_text)]
Label = Annotated[str, AfterValidator(_label)]
Repository = Annotated[str, AfterValidator(_repository)]
AbsolutePath = Annotated[Path, BeforeValidator(_path)]
