"""What every command starts from: git, this machine's settings, the clone it was typed in, and GitHub."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from delivery.errors import PreflightError
from delivery.issue_url import is_address, repository_of
from runner.configured import git_limits, load
from runner.exit_codes import ExitCode, signal_exit_code
from runner.processes import Strays, become_subreaper
from runner.progress import Progress
from runner.settings import LoadedSettings
from runner.signals import recorded_signals
from runner.token import close_to_other_processes
from runner.token_source import LearningRedactor, NoTokenError, TokenSource, find_token
from worktree import GitError, Interrupted, Interruption, Launch, LaunchError, Origin, Redactor, secrets_in
from worktree.remote import Remote
from worktree.stored import RescueError, rescue_refs

if TYPE_CHECKING:  # it takes a while to import, and a command that asks nobody does without
    from delivery.github import GitHub


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A repository, OWNER/NAME, and the web address of its server: `https://host[:port]`."""

    server: str
    repository: str

    @property
    def host(self) -> str:
        """The server's name, with its port if it has one."""
        return urlsplit(self.server).netloc

    @classmethod
    def of(cls, launch: Launch) -> "Place | None":
        """Return the place that a clone is from, None where it is no server's; by SSH the web address is a guess."""
        url = launch.origin_url or ""
        named = repository_of(url)
        if named is None:
            return None
        host, repository = named
        stated = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/")
        scheme = "http" if url.startswith("http://") else "https"
        server = stated if is_address(stated) and urlsplit(stated).netloc.lower() == host else f"{scheme}://{host}"
        return cls(server=server, repository=repository)


def place_of(launch: Launch) -> Place:
    """Return the place that a clone is from; raises PreflightError when that is no server's."""
    place = Place.of(launch)
    if place is None:
        raise PreflightError(
            f"{launch.top} is no clone of a repository on GitHub (origin: {launch.origin_url or 'none'}); "
            "run this in one: git clone https://github.com/OWNER/NAME"
        )
    return place


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """GitHub and origin, both with the token of `source`."""

    github: "GitHub"
    origin: Origin
    source: TokenSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One command as it starts in `directory`, where it was typed.

    `machine` are this machine's settings, flags included; `held` the tokens that the environment had; `redact` is told
    of each token that is read. `report` takes a line for people, which it redacts.
    """

    directory: Path
    machine: LoadedSettings
    held: Mapping[str, str]
    redact: LearningRedactor
    report: Callable[[str], None]
    interruption: Interruption

    @classmethod
    def here(
        cls,
        flags: Mapping[str, object],
        held: Mapping[str, str],
        redact: LearningRedactor,
        report: Callable[[str], None],
        interruption: Interruption,
    ) -> "Start":
        """Look at where we are; raises PreflightError."""
        if shutil.which("git") is None:
            raise PreflightError("git was not found on PATH; install it (2.38 or newer)")
        become_subreaper()
        return cls(
            directory=_launch_directory(),
            machine=load(flags),
            held=held,
            redact=redact,
            report=report,
            interruption=interruption,
        )

    def open_clone(self, *, remedy: str, strays: Strays | None = None) -> Launch:
        """Open the clone here; raises PreflightError, with the `remedy` where there is none, or Interrupted.

        `strays` are stopped before each git command, see `Git`.
        """
        machine = self.machine.settings
        try:
            opened = Launch.open(
                self.directory,
                interruption=self.interruption,
                redact=self.redact,
                limits=git_limits(machine),
                sweep=(strays or Strays()).stop,
            )
        except Interrupted:
            raise
        except LaunchError as error:
            raise PreflightError(f"{error}; {remedy}") from error
        except GitError as error:
            raise PreflightError(str(error)) from error
        return replace(opened, worktrees=machine.worktrees.directory or opened.worktrees)

    def sign_in(self, place: Place) -> SignedIn:
        """Read the token, and return the ways to GitHub with it; asks nobody. Raises PreflightError."""
        from delivery.github import GitHub
        from runner.addresses import api_url

        address = api_url(place.server, os.environ)
        machine, learn = self.machine.settings, self.redact.learn
        source = find_token(machine, self.held, place.host, self.directory, learn=learn, report=self.report)
        close_to_other_processes()
        github = GitHub(
            api_url=address,
            token=source.token,
            renew=source.renew,
            repository=place.repository,
            interruption=self.interruption,
            report=self.report,
        )
        origin = Origin(f"{place.server}/{place.repository}.git", source.token, renew=source.recent)
        return SignedIn(github=github, origin=origin, source=source)


def known_secrets(held: Mapping[str, str]) -> list[str]:
    """Return the secrets that a command knows of before it has read a token."""
    return [*held.values(), *secrets_in(os.environ)]


def _launch_directory() -> Path:
    """Return where the command was typed; raises PreflightError."""
    try:
        return Path.cwd()
    except OSError as error:
        raise PreflightError("the current directory is gone; run this in a clone of the repository") from error


def clone_here(redact: Redactor) -> tuple[Launch, Place] | None:
    """Return the clone of a server's repository that the current directory is in, or None. Asks no server.

    Raises GitError when git gave no answer.
    """
    if shutil.which("git") is None:
        return None
    try:
        launch = Launch.open(Path.cwd(), interruption=Interruption(), redact=redact)
    except (LaunchError, FileNotFoundError):
        return None
    place = Place.of(launch)
    return (launch, place) if place else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The clone, and origin, which is None when it is not to be asked; `github` where a token says who asks."""

    start: Start
    launch: Launch
    remote: Remote | None
    github: "GitHub | None"

    def say(self, line: str) -> None:
        """Tell a person something."""
        self.start.report(line)

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
    """Do the work of a command on its clone; return its exit status, and tell what keeps it from its end.

    Origin and GitHub are there when it works `online`.
    """
    progress = Progress(sys.stderr, os.environ)
    redact = LearningRedactor(known_secrets(held))

    def say(line: str) -> None:
        with suppress(OSError):  # what was printed before comes before, also through a pipe
            sys.stdout.flush()
        progress.say(redact(line))

    with recorded_signals("ending, once nothing is half done", "still ending") as interruption:
        try:
            start = Start.here({"token-file": token_file}, held, redact, say, interruption)
            status = _do(work, start, online=online)
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


def _do(work: Callable[[Access], int], start: Start, *, online: bool) -> int:
    launch = start.open_clone(remedy="run this in a clone of the repository: the one that its runs were started from")
    offline = Access(start=start, launch=launch, remote=None, github=None)
    try:
        if not online:
            return work(offline)
        signed_in = _signed_in(start, launch)
        if signed_in is None:
            return work(replace(offline, remote=launch.remote()))
        with closing(signed_in.github) as github:
            return work(replace(offline, remote=launch.remote(signed_in.origin), github=github))
    finally:
        launch.close()


def _signed_in(start: Start, launch: Launch) -> SignedIn | None:
    """Return the ways to GitHub; None where there is no token or no server, and git has its own ways to origin."""
    place = Place.of(launch)
    try:
        return start.sign_in(place) if place else None
    except NoTokenError:
        return None
