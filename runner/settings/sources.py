"""The sources of settings, each brought into the shape of a file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.settings.document import LARGEST, read_document
from runner.settings.keys import PREFIX, keys, unknown_key, unknown_variable
from runner.settings.places import KeyPath, Place, Problem

# Set by us for the agent, by whoever starts us for the token, or marks of a session: none of them is a setting.
RESERVED = frozenset(
    PREFIX + name
    for name in (
        "RUN",
        "TOKEN",
        "TOKEN_PIPE",
        "PROMPT_FILE",
        "ISSUE_URL",
        "BASE",
        "BRANCH",
        "SESSION",
        "PR_FILE",
    )
)


@dataclass(slots=True, kw_only=True)
class Source:
    """What one source gives: values nested as in a file, where each key was written, and what is wrong already.

    `omission` says how nothing is said about a key in it.
    """

    name: str = ""
    is_repositorys: bool = False
    omission: str = "leave the key out, or write null"
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: KeyPath) -> Place:
        """Return where the key was written, or the nearest above it that was."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.name))

    def put(self, path: KeyPath, value: object, place: Place) -> None:
        """Add a key."""
        section = self.values
        for name in path[:-1]:
            section = section.setdefault(str(name), {})
        section[str(path[-1])] = value
        self.places[path] = place


def file_source(text: str, name: str, *, is_repositorys: bool = False) -> Source:
    """Return what a file gives; `name` is what people call it."""
    document = read_document(text)
    return Source(
        name=name,
        is_repositorys=is_repositorys,
        values=document.values,
        places={path: Place(name, line) for path, line in document.lines.items()},
        problems=[Problem(Place(name, line), what) for line, what in document.problems],
    )


def user_source(file: Path, name: str) -> Source:
    """Return what the user's own file gives: nothing when there is none."""
    try:
        if not file.exists():
            return Source(name=name)
        if not file.is_file():  # a pipe would be waited for
            return Source(name=name, problems=[Problem(Place(name), "is not a file")])
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        return file_source(content.decode(errors="replace" if len(content) > LARGEST else "strict"), name)
    except OSError as error:
        return Source(name=name, problems=[Problem(Place(name), f"cannot be read: {error.strerror}")])
    except UnicodeDecodeError:
        return Source(name=name, problems=[Problem(Place(name), "is not UTF-8")])


def environment_source(environment: Mapping[str, str]) -> Source:
    """Return what the variables `NIGHTKEEP_*` give; an empty one gives nothing, a list is split at commas."""
    source = Source()
    known = {key.variable: key for key in keys().values()}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in RESERVED:
            continue
        if name not in known:
            source.problems.append(Problem(Place(name), unknown_variable(name)))
        elif text := environment[name].strip():
            key = known[name]
            source.put(key.path, re.split(r"[,\s]+", text.strip(", ")) if key.is_list else text, Place(name))
    return source


def flag_source(flags: Mapping[str, object]) -> Source:
    """Return what flags give, by dotted key; None stands for a flag that was not given."""
    source = Source(omission="leave the flag out, or give it a value")
    for name, value in flags.items():
        path = tuple(name.split("."))
        key = keys().get(path)
        if key is None:
            source.problems.append(Problem(Place(name), unknown_key(path)))
        elif value is not None:
            source.put(path, value.absolute() if isinstance(value, Path) else value, Place(key.flag))
    return source


def home_relative(file: Path) -> str:
    """Return a path as people write it, with ~ for the home directory."""
    try:
        return f"~/{file.relative_to(Path.home())}"
    except (ValueError, RuntimeError):  # elsewhere, or a user without a home directory
        return str(file)
