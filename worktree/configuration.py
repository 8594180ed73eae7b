"""Git's configuration: reading it, giving it to a command, and the filters that a session brought along."""

import os
from collections.abc import Mapping, Sequence

from worktree.git import Git

# (scope, key, value) in git's order.
Configuration = Sequence[tuple[str, str, str]]


def read_configuration(git: Git) -> tuple[tuple[str, str, str], ...]:
    """Return the configuration that git has there, without what our own commands carry."""
    parts = os.fsdecode(git.run("config", "--list", "--show-scope", "-z").stdout).split("\0")
    entries = zip(parts[0::2], parts[1::2], strict=False)
    # A key without a value is git's way of writing `true`.
    split = ((scope, *(entry.split("\n", 1) if "\n" in entry else (entry, "true"))) for scope, entry in entries)
    return tuple((scope, key, value) for scope, key, value in split if scope != "command")


def git_environment(settings: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return the variables that give settings to git; unlike `-c` they take any name."""
    pairs = {
        f"GIT_CONFIG_{part}_{n}": text
        for n, pair in enumerate(settings)
        for part, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(len(settings)), **pairs}


def new_filters(pinned: Configuration, now: Configuration) -> tuple[str, ...]:
    """Return the names of the filters that are not what they were when the configuration was pinned."""
    before, after = _filters(pinned), _filters(now)
    return tuple(sorted(name for name in after if after[name] != before.get(name)))


def changed_keys(pinned: Configuration, now: Configuration, spared: str) -> tuple[str, ...]:
    """Return the keys of the clone's and the user's files that were changed, but for those that begin with `spared`.

    Nothing is known where only filters were pinned.
    """
    before, after = _of_files(pinned), _of_files(now)
    if "core.repositoryformatversion" not in before:
        return ()
    keys = before.keys() | after.keys()
    return tuple(sorted(key for key in keys if before.get(key) != after.get(key) and not key.startswith(spared)))


def _of_files(configuration: Configuration) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for scope, key, value in configuration:
        if scope in ("local", "worktree", "global"):
            found.setdefault(key, []).append(value)
    return found


def without_filters(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the settings that switch filters off: files are taken as they are."""
    off = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return tuple((f"filter.{name}.{key}", value) for name in names for key, value in off.items())


def _filters(configuration: Configuration) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for _, key, value in configuration:
        section, _, rest = key.partition(".")
        name, dot, variable = rest.rpartition(".")
        if section == "filter" and dot:
            found.setdefault(name, []).append((variable, value))
    return found
