"""The agent's command, as it is configured and as it can be started."""

import os
from contextlib import suppress
from pathlib import Path

from delivery.errors import PreflightError
from runner.configured import user_file
from runner.program import found_command, is_relative_path, split_command
from runner.settings import REPOSITORY_FILE, LoadedSettings, home_relative
from worktree import Launch


def agent_argv(loaded: LoadedSettings, directory: Path) -> list[str]:
    """Split the agent's command and find its program; raises PreflightError.

    A relative path is looked up from `directory`, where the command was typed; one in the repository's file means a
    file of the repository, which `setup` may have yet to make, so it is looked up when it runs, in the worktree.
    """
    command = loaded.settings.agent
    if command is None:
        trust = f", or trust this repository, whose file names one: {loaded.trust}" if loaded.trust else ""
        raise PreflightError(
            f"no agent is named; give one by --agent 'COMMAND', NIGHTKEEP_AGENT, or `agent:` in {REPOSITORY_FILE} "
            f"or {home_relative(user_file())}{trust}"
        )
    argv = split_command("agent", command)
    return (
        argv
        if loaded.agent_is_repositorys and is_relative_path(argv[0])
        else found_command("agent", command, directory)
    )


def require_on_base(program: str, launch: Launch, base: str, commit: str) -> None:
    """Raise PreflightError for a program of the repository that the Base branch, at that commit, does not have.

    To be asked where there is nothing that could make it.
    """
    path = os.path.normpath(program)
    if not is_relative_path(program) or path.startswith(".."):
        return
    with suppress(UnicodeDecodeError):  # a binary, so it is there
        if launch.read_file(commit, path) is None:
            raise PreflightError(
                f"the agent {program!r} is no file of the repository on {base}; commit and push it, or name "
                f"another in {REPOSITORY_FILE} (a relative path there is one in the repository)"
            )
