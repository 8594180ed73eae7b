"""What the commands on rescued work start from: the clone they were typed in, and ways to ask its origin."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from delivery.errors import PreflightError
from delivery.github import GitHub
from delivery.issue_url import repository_of
from runner.addresses import api_url
from runner.exit_codes import ExitCode, signal_exit_code
from runner.processes import become_subreaper
from runner.progress import Progress
from runner.settings import Settings
from runner.signals import recorded_signals
from runner.token import close_to_other_processes
from runner.token_source import LearningRedactor
from runner.wiring import find_token, launch_directory, load, open_launch
from worktree import GitError, Interrupted, Interruption, Launch, LaunchError, Origin, secrets_in
from worktree.remote import Remote
from worktree.stored import RescueError, rescue_refs


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The clone, and origin, which is None when it is not to be asked; `github` where a token says who asks."""

    launch: Launch
    remote: Remote | None
    github: GitHub | None
    say: Callable[[str], None]

    def refs_on_origin(self) -> dict[str, str] | None:
        """Return the rescue refs that origin holds, None where it was not asked or did not answer, and say so then."""
        if self.remote is None:
            return None
        try:
            return rescue_refs(self.remote)
        except Interrupted:
            raise
        except GitError as error:
            said = " ".join(error.stderr.split()) or str(error)
            self.say(f"origin cannot be read, so rescue refs there are not shown: {said}")
            return None


def with_access(
    work: Callable[[Access], int], held: Mapping[str, str], token_file: Path | None = None, *, online: bool
) -> int:
    """Do the work of a command on rescued work; return its exit status, and tell what keeps it from its end."""
    progress = Progress(sys.stderr, os.environ)
    redact = LearningRedactor([*held.values(), *secrets_in(os.environ)])

    def say(line: str) -> None:
        with suppress(OSError):  # what was printed before comes before, also through a pipe
            sys.stdout.flush()
        progress.say(redact(line))

    with recorded_signals() as interruption:
        try:
            status = _do(work, held, token_file, redact, say, interruption, online=online)
            return signal_exit_code(interruption.recorded) if interruption.recorded else status
        except (PreflightError, LaunchError, RescueError) as error:
            say(str(error))
            return ExitCode.NOT_BEGUN
        except BrokenPipeError:
            # Whoever reads has read enough; what Python would still write at its end goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Interrupted:
            assert interruption.recorded is not None  # noqa: S101 - that is what raised it
            return signal_exit_code(interruption.recorded)
        except (GitError, OSError) as error:
            say(f"{error}; what was not named as deleted or restored is as it was: nightkeep rescue list")
            return ExitCode.FAILED
        finally:
            progress.close()


def _do(
    work: Callable[[Access], int],
    held: Mapping[str, str],
    token_file: Path | None,
    redact: LearningRedactor,
    say: Callable[[str], None],
    interruption: Interruption,
    *,
    online: bool,
) -> int:
    if shutil.which("git") is None:
        raise PreflightError("git was not found on PATH; install it (2.38 or newer)")
    become_subreaper()
    machine = load({"token-file": token_file}).settings
    remedy = "run this in the clone that the runs were started from"
    launch = open_launch(launch_directory(), machine, interruption, redact, remedy=remedy)
    try:
        if not online:
            return work(Access(launch=launch, remote=None, github=None, say=say))
        github = _github(launch, machine, held, redact, say, interruption)
        if github is None:
            return work(Access(launch=launch, remote=launch.remote(), github=None, say=say))
        origin, asked = github
        with closing(asked):
            return work(Access(launch=launch, remote=launch.remote(origin), github=asked, say=say))
    finally:
        launch.close()


def _github(
    launch: Launch,
    machine: Settings,
    held: Mapping[str, str],
    redact: LearningRedactor,
    say: Callable[[str], None],
    interruption: Interruption,
) -> tuple[Origin, GitHub] | None:
    """Return origin with a token, and GitHub; None where there is no token or no server, and git has its own ways."""
    named = repository_of(launch.origin_url or "")
    if named is None:
        return None
    host, repository = named
    server = _server(launch.origin_url or "", host)
    try:
        token = find_token(machine, held, host, learn=redact.learn, report=say).token
    except PreflightError:
        if machine.token_file or machine.token_command:
            raise
        return None
    close_to_other_processes()
    github = GitHub(
        api_url=api_url(server, os.environ), token=token, repository=repository, interruption=interruption, report=say
    )
    return Origin(f"{server}/{repository}.git", token), github


def _server(url: str, host: str) -> str:
    """Return the address of the server that a clone is from; by SSH its web address is a guess."""
    stated = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/")
    if urlsplit(stated).netloc.lower() == host:
        return stated
    return f"{'http' if url.startswith('http://') else 'https'}://{host}"


def printable(text: str) -> str:
    """Return a name such that a terminal shows it and does nothing else."""
    return text if text.isprintable() else ascii(text)[1:-1]


def counted(number: int, one: str, more: str) -> str:
    """Write how many there are of something, for people."""
    return f"{number} {one if number == 1 else more}"


def written_size(size: int) -> str:
    """Write a number of bytes for people."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
