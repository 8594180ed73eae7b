"""The keys that the model has, and the nearest one to a key that it has not."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import get_origin

from runner.settings.model import SCOPE, Scope, Section, Settings
from runner.settings.places import KeyPath, dotted

PREFIX = "NIGHTKEEP_"


@dataclass(frozen=True, slots=True)
class Key:
    """A setting with a value of its own, which a later source replaces as a whole."""

    path: KeyPath
    scope: Scope
    is_list: bool

    @property
    def variable(self) -> str:
        """The name of the environment variable that sets it."""
        return PREFIX + "_".join(map(str, self.path)).upper().replace("-", "_")

    @property
    def flag(self) -> str:
        """The name of the flag that sets it."""
        return "--" + "-".join(map(str, self.path))


@cache
def keys() -> Mapping[KeyPath, Key]:
    """Return every key by its path, in the model's order."""
    return {key.path: key for key in _keys_of(Settings, ())}


def _keys_of(section: type[Section], path: KeyPath) -> Iterator[Key]:
    for name, field in section.model_fields.items():
        here = (*path, field.alias or name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from _keys_of(field.annotation, here)
        else:
            extra = field.json_schema_extra
            assert isinstance(extra, dict), f"{name} has no scope"  # noqa: S101 - `_key` makes all of them
            yield Key(here, Scope(str(extra[SCOPE])), get_origin(field.annotation) is tuple)


def unknown_key(path: KeyPath) -> str:
    """Say that there is no such key, and which one may have been meant."""
    return f'unknown key "{dotted(path)}"{_suggestion(_nearest(path))}'


def unknown_variable(name: str) -> str:
    """Say that there is no such environment variable, and which one may have been meant."""
    near = _closest(name.removeprefix(PREFIX), {key.variable.removeprefix(PREFIX) for key in keys().values()})
    return f"unknown environment variable{_suggestion(near and _quoted(PREFIX + near))}"


def _suggestion(near: str | None) -> str:
    return f"; did you mean {near}?" if near else ""


def _quoted(text: str) -> str:
    return f'"{text}"'


def _nearest(path: KeyPath) -> str | None:
    name, section = str(path[-1]), path[:-1]
    if section == ("prompt",):
        return _quoted("prompt.replace")
    elsewhere = {text: key for key in keys() if len(key) > 1 for text in (str(key[-1]), dotted(key))}
    if name in elsewhere:
        return _under(elsewhere[name])
    siblings = {str(known[len(section)]) for known in keys() if known[: len(section)] == section}
    if near := _closest(name, siblings):
        return _quoted(dotted((*section, near)))
    near = _closest(name, elsewhere)
    return _under(elsewhere[near]) if near else None


def _under(path: KeyPath) -> str:
    return f"{_quoted(str(path[-1]))} under {_quoted(dotted(path[:-1]))}"


def _closest(name: str, known: Collection[str]) -> str | None:
    return next(iter(get_close_matches(name, sorted(known), n=1)), None)
