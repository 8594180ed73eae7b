"""Checking one source against the model, in words for the one who wrote it."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import ValidationError

from runner.settings.keys import keys, unknown_key
from runner.settings.model import Scope, Settings
from runner.settings.places import KeyPath, Problem, dotted
from runner.settings.sources import Source
from runner.settings.values import EMPTY
from worktree import Redactor

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_LONGEST_SHOWN = 60
_MUST_BE = {
    "string_type": "must be text",
    "string_unicode": "must be UTF-8",
    "tuple_type": "must be a list",
    "model_type": "must be a section with keys of its own",
    "model_attributes_type": "must be a section with keys of its own",
}


def check(source: Source, user_file: str) -> list[Problem]:
    """Return all that is wrong with a source, in the order of its lines. `user_file` is where a machine's keys go."""
    return sorted({*source.problems, *_misplaced(source, user_file), *_invalid(source)})


def _misplaced(source: Source, user_file: str) -> Iterator[Problem]:
    for path, key in keys().items():
        if source.is_repositorys and path in source.places and key.scope is Scope.MACHINE:
            remedy = f"put it in {user_file}, or in the environment as {key.variable}"
            yield Problem(source.place(path), f"{dotted(path)} belongs to the machine, not to the repository; {remedy}")


def _invalid(source: Source) -> Iterator[Problem]:
    try:
        Settings.model_validate(source.values)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            path = details["loc"]
            if path[0] == "prompt":  # a union: pydantic also names the member that it tried
                path = path[:1] + path[2:]
            remedy = f"; {source.omission}" if details["type"] == EMPTY else ""
            yield Problem(source.place(path), _sentence(_unsaid(path, source), path, details) + remedy)


def _unsaid(path: KeyPath, source: Source) -> str:
    """Return the key that a problem is about, where its place does not name it, as a variable and a flag do."""
    return dotted(path) if source.name else ""


def _sentence(key: str, path: KeyPath, details: "ErrorDetails") -> str:
    if details["type"] == "extra_forbidden":
        return unknown_key(path)
    if details["type"] == "missing":
        return f'{dotted(path[:-1])} must be text, or a section with the key "{path[-1]}"'
    if isinstance(path[-1], int):
        key = f"{key}, entry {path[-1] + 1}," if key else f"entry {path[-1] + 1}"
    what = _what(details)
    instead = f", not {_shown(details['input'])}" if what.startswith("must be") else ""
    remedy = "; put it in quotes" if what == "must be text" and isinstance(details["input"], int | float) else ""
    return f"{key} {what}{instead}{remedy}".lstrip()


def _what(details: "ErrorDetails") -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"must be {context['expected']}".replace("'", '"')
    return _MUST_BE.get(kind, details["msg"])


def _shown(value: object) -> str:
    """Return a value as the user wrote it, short and without secrets."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a section"
    if isinstance(value, list | tuple):
        return "a list"
    text = Redactor()(str(value)) if isinstance(value, str) else value
    written = json.dumps(text, ensure_ascii=False, default=str)
    return written if len(written) <= _LONGEST_SHOWN else f"{written[:_LONGEST_SHOWN]}…"
