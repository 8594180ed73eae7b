"""Where the token comes from, at the start and when it is read afresh."""

import os
import re
import select
import shlex
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from delivery.errors import PreflightError
from runner.program import found_command
from runner.settings import Settings
from runner.token import SOURCES
from worktree import Redactor

_GH_LIMIT = 5  # seconds
_KEEPS = 5  # seconds for which a command is not run again, but for a token that was refused
_LONGEST = 1 << 16  # bytes that are read where a token is to be


class TokenError(Exception):
    """A place gives no token now. The text says why, and what to do about it."""


class NoTokenError(PreflightError):
    """There is no token anywhere; the text says where one can be."""

    def __init__(self, host: str = "HOST") -> None:
        super().__init__(
            "there is no token; give one by --token-file FILE, token-file or token-command in your configuration, "
            f"NIGHTKEEP_TOKEN or GITHUB_TOKEN, or log the GitHub CLI in (gh auth login --hostname {host})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPlace:
    """A place that a token is read from: what people call it, and what they do when its token is not good.

    `read` is for the first time, `read_again` for a time at which an agent may have changed what is there. Both
    return what they find, or raise TokenError. What was found is as good as new for `keeps` seconds.
    """

    name: str
    remedy: str
    read: Callable[[], str]
    read_again: Callable[[], str]
    keeps: float = 0


class TokenSource:
    """The token of a command: a Run's may die while an agent works, and is then read afresh from its place.

    `learn` is told of each token before anybody else gets it, `report` of trouble in reading it afresh. Making it
    reads the token for the first time, and raises TokenError.
    """

    def __init__(
        self, place: TokenPlace, *, learn: Callable[[str], None], report: Callable[[str], None] = lambda _: None
    ) -> None:
        self.place = place
        self._learn = learn
        self._report = report
        self._trouble = ""
        self.token = self._accepted(place.read())
        self._read_at = time.monotonic()

    def recent(self) -> str | None:
        """Return the token as its place gave it moments ago, or gives it now; for whoever asks often."""
        return self.token if time.monotonic() - self._read_at < self.place.keeps else self.renew()

    def renew(self) -> str | None:
        """Return the token as its place gives it now, which may be the same as before; None when it gives none."""
        try:
            self.token = self._accepted(self.place.read_again())
        except TokenError as error:
            self._tell(f"no token could be read afresh: {error}")
            return None
        finally:
            self._read_at = time.monotonic()
        return self.token

    def _tell(self, trouble: str) -> None:
        """Report trouble, but not again and again what was said last."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._report(trouble)

    def _accepted(self, text: str) -> str:
        token = text.strip()
        if not token:
            raise TokenError(f"{self.place.name} is empty; {self.place.remedy}")
        if not re.fullmatch(r"[!-~]+", token):
            raise TokenError(
                "what was given as the token is none: it must be one word of ASCII characters; "
                f"look at {self.place.name}"
            )
        self._learn(token)
        return token


class LearningRedactor(Redactor):
    """A Redactor that can be told of more secrets: whoever has it masks them from then on."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = [*secrets]
        super().__init__(self._secrets)

    def learn(self, secret: str) -> None:
        """Mask this secret, too."""
        if secret not in self._secrets:
            self._secrets.append(secret)
            super().__init__(self._secrets)


def find_token(
    machine: Settings,
    held: Mapping[str, str],
    host: str,
    directory: Path,
    *,
    learn: Callable[[str], None],
    report: Callable[[str], None],
) -> TokenSource:
    """Return where the token for `host` comes from, read once; raises PreflightError, NoTokenError where there is none.

    A relative path of a command is looked up from `directory`.
    `learn` is told of each token, `report` when it is the GitHub CLI's, and of trouble in reading it afresh.
    """
    place = _token_place(machine, held, directory)
    if place is None:
        return _token_of_gh(host, learn=learn, report=report)
    try:
        return TokenSource(place, learn=learn, report=report)
    except TokenError as error:
        raise PreflightError(str(error)) from error


def _token_place(machine: Settings, held: Mapping[str, str], directory: Path) -> TokenPlace | None:
    if machine.token_file is not None:
        return token_in_file(machine.token_file)
    if machine.token_command is not None:
        argv = found_command("token-command", machine.token_command, directory)
        return token_by_command(argv, machine.limits.token_command)
    return token_in_environment(held)


def _token_of_gh(host: str, *, learn: Callable[[str], None], report: Callable[[str], None]) -> TokenSource:
    place = None if os.environ.get("GITHUB_ACTIONS") == "true" else token_of_gh(host)
    try:
        source = TokenSource(place, learn=learn, report=report) if place else None
    except TokenError:
        source = None
    if source is None:
        raise NoTokenError(host)
    report(f"using the token that the GitHub CLI has for {host} (gh auth token)")
    return source


def token_in_file(file: Path) -> TokenPlace:
    """Return the place that is a file."""
    return TokenPlace(
        name=f"the token file {file}",
        remedy="write a valid token into it",
        read=lambda: _text_of(file),
        read_again=lambda: _text_of(file, waits=False),
    )


def token_in_environment(held: Mapping[str, str]) -> TokenPlace | None:
    """Return the place that is NIGHTKEEP_TOKEN, else GITHUB_TOKEN; None when neither holds anything."""
    name = next((name for name in SOURCES if held.get(name, "").strip()), None)
    if name is None:
        return None
    return TokenPlace(
        name=name,
        remedy=f"set {name} to a valid token",
        read=lambda: held[name],
        read_again=lambda: held[name],
    )


def token_by_command(argv: Sequence[str], limit: float) -> TokenPlace:
    """Return the place that is the output of `token-command`, which may take `limit` seconds."""
    return _place_by_command(
        argv, limit, name="token-command", remedy=f"see what it prints, and how it ends: {shlex.join(argv)}"
    )


def token_of_gh(host: str) -> TokenPlace | None:
    """Return the place that is the GitHub CLI's token for `host`; None when there is no such program."""
    program = shutil.which("gh")
    if program is None:
        return None
    argv = [str(Path(program).absolute()), "auth", "token", "--hostname", host]
    name = f"the GitHub CLI (gh auth token --hostname {host})"
    return _place_by_command(argv, _GH_LIMIT, name=name, remedy=f"log it in: gh auth login --hostname {host}")


def _place_by_command(argv: Sequence[str], limit: float, *, name: str, remedy: str) -> TokenPlace:
    def read() -> str:
        try:
            return _printed_by(argv, limit)
        except OSError as error:
            raise TokenError(f"{name} could not be run: {error.strerror}; {remedy}") from error
        except TokenError as error:
            raise TokenError(f"{name} {error}; {remedy}") from error

    return TokenPlace(name=name, remedy=remedy, read=read, read_again=read, keeps=_KEEPS)


def _text_of(file: Path, *, waits: bool = True) -> str:
    """Return a file's text. Only with `waits` one may be a pipe, as a shell's <(…) makes one: once, at the start."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK))
        with os.fdopen(descriptor, "rb") as opened:
            if not waits and not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise TokenError(f"the token file {file} is no regular file, so it is read only once")
            return opened.read(_LONGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TokenError(f"the token file cannot be read: {why}: {file}; name one that holds the token") from error


def _printed_by(argv: Sequence[str], limit: float) -> str:
    """Return what a command printed. Raises OSError, and TokenError for one that failed or did not end in time."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )
    deadline = time.monotonic() + limit
    with process:
        try:
            said = _output(process, deadline)
            status = process.wait(max(0.1, deadline - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            # It, or something that it has started and that holds its output open.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise TokenError(f"gave no answer within {limit:g} seconds") from None
    if status != 0:
        raise TokenError(f"failed with status {status}")
    if not said.strip():
        raise TokenError("printed nothing")
    return said.decode(errors="replace")


def _output(process: "subprocess.Popen[bytes]", deadline: float) -> bytes:
    """Return what the process writes until it closes its output, or as much of it as a token may be long."""
    assert process.stdout is not None  # noqa: S101 (for mypy: we asked for a pipe)
    said = b""
    while len(said) < _LONGEST:
        if not select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        chunk = os.read(process.stdout.fileno(), _LONGEST)
        if not chunk:
            break
        said += chunk
    return said
