"""The settings that count here: this machine's, and a repository's where it is trusted."""

import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_config_path

from delivery.errors import PreflightError
from runner.logs import default_directory
from runner.settings import (
    REPOSITORY_FILE,
    LoadedSettings,
    Settings,
    SettingsError,
    entry_for,
    is_trusted,
    load_settings,
)
from worktree import GitError, Interrupted, Launch, Limits


def user_file() -> Path:
    """Return where the user's own configuration is."""
    return user_config_path("nightkeep") / "config.yml"


def load(
    flags: Mapping[str, object],
    *,
    repository_text: str | None = None,
    repository_name: str = "",
    base: str = "",
    trusted: bool = False,
) -> LoadedSettings:
    """Load the settings of this machine, and a repository's if its file's text is given, as `load_settings` does.

    Raises PreflightError with every problem, one in a line.
    """
    try:
        return load_settings(
            repository_text=repository_text,
            repository_name=repository_name,
            base=base,
            trusted=trusted,
            user_file=user_file(),
            environment=os.environ,
            flags=flags,
        )
    except SettingsError as error:
        raise PreflightError(str(error)) from error


def repository_settings(
    launch: Launch,
    machine: Settings,
    flags: Mapping[str, object],
    *,
    repository: str,
    host: str,
    base: str,
    commit: str,
) -> LoadedSettings:
    """Return the settings for OWNER/NAME on `host`, its own file on `base` included where it is trusted.

    `commit` is where origin has `base`, fetched. Raises PreflightError.
    """
    try:
        text = launch.read_file(commit, REPOSITORY_FILE)
    except UnicodeDecodeError as error:
        raise PreflightError(f"{REPOSITORY_FILE} on {base} is not UTF-8: {error}") from error
    except Interrupted:
        raise
    except GitError as error:
        raise PreflightError(f"{REPOSITORY_FILE} on {base} cannot be read: {error}") from error
    return load(
        flags,
        repository_text=text,
        repository_name=entry_for(repository, host),
        base=base,
        trusted=trusts(machine, repository, host),
    )


def trusts(machine: Settings, repository: str, host: str) -> bool:
    """Tell whether OWNER/NAME's own file is used.

    A workflow runs in its own repository by that repository's leave; elsewhere the user decides.
    """
    in_workflow = os.environ.get("GITHUB_ACTIONS") == "true"
    own = os.environ.get("GITHUB_REPOSITORY", "").lower() == repository.lower()
    return (in_workflow and own) or is_trusted(repository, host, machine.trusted_repositories)


def git_limits(settings: Settings) -> Limits:
    """Return what the settings allow git."""
    limits = settings.limits
    return Limits(command=limits.git, push=limits.push, file=limits.file)


def logs_of(machine: Settings) -> Path:
    """Return the directory of all logs."""
    return machine.logs.directory or default_directory()
