"""The clone that a command was typed in, as far as it says by itself whose it is."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from delivery.issue_url import repository_of
from worktree import Interruption, Launch, LaunchError, Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """A clone of OWNER/NAME, called `repository`, from `host`, which has its port if the URL has one."""

    launch: Launch
    host: str
    repository: str


def clone_here(redact: Redactor) -> Clone | None:
    """Return the clone of a server's repository that the current directory is in, or None. Asks no server.

    Raises GitError when git gave no answer.
    """
    if shutil.which("git") is None:
        return None
    try:
        launch = Launch.open(Path.cwd(), interruption=Interruption(), redact=redact)
    except (LaunchError, FileNotFoundError):
        return None
    named = repository_of(launch.origin_url or "")
    return Clone(launch=launch, host=named[0], repository=named[1]) if named else None
