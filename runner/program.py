"""Commands that a user named: split into words as a shell would, and their programs found."""

import shlex
import shutil
from pathlib import Path

from delivery.errors import PreflightError


def split_command(what: str, command: str) -> list[str]:
    """Return the words of a command, `what` being its name for people; raises PreflightError."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise PreflightError(f"the {what}'s command cannot be split into words: {error}: {command}") from error
    if not argv:
        raise PreflightError(f"the {what}'s command is empty")
    return argv


def found_command(what: str, command: str, directory: Path) -> list[str]:
    """Return the words of a command, its program by its path: a relative one is looked up from `directory`.

    Raises PreflightError where there is no such program.
    """
    argv = split_command(what, command)
    program = shutil.which(str(directory / argv[0]) if "/" in argv[0] else argv[0])
    if program is None and "/" in argv[0]:
        raise PreflightError(
            f"the {what} {argv[0]!r} was not found, or cannot be executed; name a program on PATH, or the path of one "
            "that may be executed (chmod +x)"
        )
    if program is None:
        raise PreflightError(f"the {what} {argv[0]!r} is not on PATH; install it, or name it by its path")
    return [str(directory / program), *argv[1:]]


def is_relative_path(program: str) -> bool:
    """Whether a program is named by a path from somewhere, and not by its name alone."""
    return "/" in program and not program.startswith("/")
