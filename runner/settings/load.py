"""Reading every source, and making one `Settings` of them or one error."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from delivery.lease import LONGEST_LEASE
from runner.settings.check import check
from runner.settings.keys import keys
from runner.settings.model import Settings
from runner.settings.places import KeyPath, Place, Problem, SettingsError, dotted
from runner.settings.sources import Source, environment_source, file_source, flag_source, home_relative, user_source

REPOSITORY_FILE = ".github/nightkeep.yml"


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, where each key's value (`limits.session`) was written, and what the user should know.

    `agent_is_repositorys` says whether the repository's file named the agent. `trust` says how to have a repository's
    file that was ignored count, when that file names an agent; "" otherwise.
    """

    settings: Settings
    origins: Mapping[str, str]
    notices: tuple[str, ...] = ()
    agent_is_repositorys: bool = False
    trust: str = ""


def load_settings(
    *,
    repository_text: str | None,
    repository_name: str,
    base: str,
    trusted: bool,
    user_file: Path,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
) -> LoadedSettings:
    """Read the sources; later ones win key by key: repository's file, `user_file`, `environment`, `flags`.

    `repository_text` is `.github/nightkeep.yml` as it stands on the branch `base` on origin, None when there is none
    or it is not known yet; used only when `trusted`, else a notice says how to trust `repository_name` (as an entry
    of `trusted-repositories` names it). `user_file` may be missing. `flags` holds values by dotted key
    (`limits.session`), None for a flag that was not given; paths in it may be relative to the current directory.
    Raises SettingsError with every problem of every source.
    """
    repository_file = f"{REPOSITORY_FILE} on {base}"
    user_name = home_relative(user_file)
    sources = [user_source(user_file, user_name), environment_source(environment), flag_source(flags)]
    if repository_text is not None and trusted:
        sources.insert(0, file_source(repository_text, repository_file, is_repositorys=True))
    problems = [problem for source in sources for problem in check(source, user_name)]
    if problems:
        raise SettingsError(problems)
    loaded = _merged(sources)
    if repository_text is None or trusted:
        return loaded
    remedy = f'add "{repository_name}" to trusted-repositories in {user_name}, {_trusting(loaded, repository_name)}'
    notice = f"{repository_file} is ignored, because this machine does not trust {repository_name}; to use it, {remedy}"
    names_agent = file_source(repository_text, repository_file).values.get("agent") is not None
    return replace(loaded, notices=(notice,), trust=remedy if names_agent else "")


def _trusting(loaded: LoadedSettings, repository_name: str) -> str:
    """Return the line that trusts one more repository."""
    names = [*loaded.settings.trusted_repositories, repository_name]
    quoted = (f'"{name}"' if ":" in name else name for name in names)
    return f"as in: trusted-repositories: [{', '.join(quoted)}]"


def file_problems(file: Path, user_file: Path) -> tuple[str, ...]:
    """Return what is wrong with a file that is to become a repository's, one `FILE:LINE: …` each.

    `user_file` is where a machine's keys belong.
    """
    name = home_relative(file) if file.is_absolute() else str(file)
    if not file.exists():
        return (str(Problem(Place(name), "does not exist")),)
    source = replace(user_source(file, name), is_repositorys=True)
    if problems := check(source, home_relative(user_file)):
        return SettingsError(problems).problems
    try:
        _merged([source])
    except SettingsError as error:
        return error.problems
    return ()


def _merged(sources: list[Source]) -> LoadedSettings:
    given: dict[KeyPath, tuple[object, Source]] = {}
    for source in sources:
        given |= {path: (value, source) for path, value in _given(source.values, ())}
    settings = Settings.model_validate(_nested({path: value for path, (value, _) in given.items()}))
    places = {path: source.place(path) for path, (_, source) in given.items()}
    contradiction = _contradiction(settings, places)
    if contradiction:
        raise SettingsError([contradiction])
    origins = {dotted(path): str(places.get(path, "default")) for path in keys()}
    _, agent_source = given.get(("agent",), (None, Source()))
    return LoadedSettings(settings, origins, agent_is_repositorys=agent_source.is_repositorys)


def _given(values: Mapping[str, object], path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    """Return each key that a checked source gives, with its value."""
    for name, value in values.items():
        here = (*path, name)
        if here in keys():
            yield here, value
        elif isinstance(value, Mapping):
            yield from _given(value, here)


def _nested(values: Mapping[KeyPath, object]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in values.items():
        section = root
        for name in path[:-1]:
            section = section.setdefault(str(name), {})
        section[str(path[-1])] = value
    return root


def _contradiction(settings: Settings, places: Mapping[KeyPath, Place]) -> Problem | None:
    """Return what is wrong between keys that may come from different sources."""
    ready, in_progress = settings.labels.ready, settings.labels.in_progress
    if ready.lower() == in_progress.lower():
        place = places.get(("labels", "in-progress")) or places[("labels", "ready")]
        return Problem(place, f'labels.ready and labels.in-progress must differ, but both are "{ready}"')
    lease, heartbeat = settings.limits.lease, settings.limits.heartbeat
    if not 2 * heartbeat <= lease <= LONGEST_LEASE:
        place = places.get(("limits", "heartbeat")) or places[("limits", "lease")]
        return Problem(place, "limits.lease must be twice limits.heartbeat at least, and 7 days at most")
    return None
