"""`nightkeep run`: wires a Run together, and says how it ended."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_state_path

from delivery.errors import PreflightError
from delivery.github import GitHub
from delivery.issue_url import IssueUrl
from delivery.outcome import Outcome, Result
from delivery.run import Run
from runner.environment import agent_environment
from runner.exit_codes import ExitCode, exit_code, signal_exit_code
from runner.processes import become_subreaper
from runner.progress import Progress
from runner.session import AgentSessions, SessionLimits
from runner.strays import stop_strays
from runner.token import choose_token, close_to_other_processes
from worktree import GitError, Interrupted, Interruption, Launch, LaunchError, Origin, Redactor, secrets_in

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user asked for, as typed."""

    issue_url: str
    agent: str
    base: str | None
    token_file: Path | None
    as_json: bool


def run_issue(options: RunOptions, held: Mapping[str, str]) -> int:
    """Run one issue and return the exit status. `held` are the tokens that the environment had."""
    progress = Progress(sys.stderr, os.environ)
    with recorded_signals(progress) as interruption:
        try:
            outcome = _run(options, held, progress, interruption)
        except (PreflightError, LaunchError) as error:
            return _not_begun(options, str(error), ExitCode.NOT_BEGUN, progress)
        except Interrupted:
            assert interruption.recorded is not None  # noqa: S101 - that is what raised it
            return _not_begun(options, "interrupted", signal_exit_code(interruption.recorded), progress)
        except Exception as error:
            traceback.print_exc()
            progress.say(f"a bug in Nightkeep: {type(error).__name__}: {error}; please report it with the lines above")
            return ExitCode.BUG
        _conclude(options, outcome, progress)
        return exit_code(outcome)


def _run(options: RunOptions, held: Mapping[str, str], progress: Progress, interruption: Interruption) -> Outcome:
    url = _issue_url(options.issue_url)
    if shutil.which("git") is None:
        raise PreflightError("git was not found on PATH; install it (2.38 or newer)")
    launch_directory = _launch_directory()
    argv = _agent_argv(options.agent, launch_directory)
    token = _token(options.token_file, held)
    close_to_other_processes()
    become_subreaper()
    redact = Redactor([token, *held.values(), *secrets_in(os.environ)])
    launch = _launch(launch_directory, interruption, redact)
    sessions = AgentSessions(
        argv,
        environment=agent_environment(os.environ, launch),
        logs=user_state_path("nightkeep") / "logs" / url.owner / url.name,
        log_stem=f"{url.number}-{datetime.now().astimezone():%Y%m%dT%H%M%S%z}",
        limits=SessionLimits(),
        interruption=interruption,
        redact=redact,
        progress=progress.agent,
    )
    github = GitHub(api_url=_api_url(url), token=token, repository=url.repository)
    try:
        return Run(
            url=url,
            base=options.base,
            github=github,
            launch=launch,
            origin=Origin(url.clone_url, token),
            sessions=sessions,
            interruption=interruption,
            report=lambda line: progress.say(redact(line)),
            redact=redact,
            host=socket.gethostname() or "unknown",
            continue_command=redact(_continue_command(options, url)),
        ).execute()
    finally:
        github.close()
        stop_strays()


def _launch(directory: Path, interruption: Interruption, redact: Redactor) -> Launch:
    try:
        return Launch.open(directory, interruption=interruption, redact=redact, sweep=stop_strays)
    except Interrupted:
        raise
    except GitError as error:
        raise PreflightError(str(error)) from error


def _launch_directory() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise PreflightError("the current directory is gone; run this in a clone of the repository") from error


def _issue_url(text: str) -> IssueUrl:
    url = IssueUrl.parse(text)
    if url is None:
        raise PreflightError(
            f"{text!r} is not the URL of an issue; it looks like https://github.com/OWNER/NAME/issues/7"
        )
    server = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/")
    if server and server.lower() != url.server.lower():
        raise PreflightError(f"{url} is not on the server that GITHUB_SERVER_URL names ({server})")
    return url


def _continue_command(options: RunOptions, url: IssueUrl) -> str:
    base = ["--base", options.base] if options.base else []
    return shlex.join(["nightkeep", "run", str(url), "--agent", options.agent, *base])


def _api_url(url: IssueUrl) -> str:
    """Return the API's address: as Actions says, else where github.com and GitHub Enterprise have it."""
    named = os.environ.get("GITHUB_API_URL", "").rstrip("/")
    if named:
        if urlsplit(named).scheme not in ("http", "https") or not urlsplit(named).hostname:
            raise PreflightError(f"GITHUB_API_URL is no address: {named!r}; it looks like https://api.github.com")
        return named
    return "https://api.github.com" if urlsplit(url.server).hostname == "github.com" else f"{url.server}/api/v3"


def _agent_argv(command: str, directory: Path) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise PreflightError(f"the agent's command cannot be split into words: {error}: {command}") from error
    if not argv:
        raise PreflightError("the agent's command is empty; name one: --agent 'COMMAND'")
    # The agent runs in a worktree, but its command was typed here.
    program = shutil.which(str(directory / argv[0]) if "/" in argv[0] else argv[0])
    if program is None:
        raise PreflightError(
            f"the agent {argv[0]!r} was not found, or cannot be executed; name a program on PATH, or its path"
        )
    return [str(directory / program), *argv[1:]]


def _token(token_file: Path | None, held: Mapping[str, str]) -> str:
    try:
        token = choose_token(token_file, held)
    except (OSError, UnicodeDecodeError) as error:
        raise PreflightError(f"the token file cannot be read: {error}") from error
    if token is None:
        raise PreflightError("there is no token; give one by --token-file FILE, NIGHTKEEP_TOKEN or GITHUB_TOKEN")
    if not re.fullmatch(r"[!-~]+", token):
        raise PreflightError("what was given as the token is none: it must be one word of ASCII characters")
    return token


@contextmanager
def recorded_signals(progress: Progress) -> Iterator[Interruption]:
    """Record SIGINT, SIGTERM and SIGHUP instead of dying of them, while the block runs."""
    interruption = Interruption()

    def record(signum: int, _frame: object) -> None:
        first = interruption.recorded is None
        interruption.record(signum)
        if first:
            name = signal.Signals(signum).name
            # Written past all buffers: a handler may run while the stream is in use. Whoever read it may be gone, and
            # then what the signal has interrupted must not get an error out of nowhere.
            with suppress(OSError):
                os.write(2, f"nightkeep: {name}: stopping the agent, then keeping its work; please wait\n".encode())

    earlier: dict[signal.Signals, Callable[..., object] | int | None] = {}
    for signum in _SIGNALS:
        # `nohup` says so by ignoring it. An ignored SIGINT says only that a shell started us in the background.
        if signum is not signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
            earlier[signum] = signal.signal(signum, record)
    try:
        yield interruption
    finally:
        progress.close()
        for signum, handler in earlier.items():
            signal.signal(signum, handler)


def _not_begun(options: RunOptions, why: str, status: int, progress: Progress) -> int:
    progress.say(f"{why}")
    progress.say("nothing was begun or claimed")
    if options.as_json:
        _print(json.dumps({"result": "not-begun", "exit_code": int(status), "cause": why}))
    return status


def _conclude(options: RunOptions, outcome: Outcome, progress: Progress) -> None:
    url = outcome.pull_request.url if outcome.pull_request else None
    if outcome.result is Result.DELIVERED:
        progress.say(f"{url} is ready for review")
    else:
        progress.say(f"failed: {outcome.cause}")
        for line in outcome.secondary:
            progress.say(f"also: {line}")
    for what, where in outcome.places:
        progress.say(f"{what}: {where}")
    if outcome.session_log:
        progress.say(f"Session log: {outcome.session_log}")
    if options.as_json:
        _print(json.dumps(as_document(outcome), indent=2))
    elif url:
        _print(url)


def _print(text: str) -> None:
    with suppress(OSError):  # a reader that went away changes nothing about how the Run ended
        print(text)  # noqa: T201 - the only two things that go to standard output


def as_document(outcome: Outcome) -> dict[str, object]:
    """Return the outcome as `--json` prints it."""
    return {
        "result": outcome.result,
        "exit_code": int(exit_code(outcome)),
        "issue": outcome.issue_url,
        "pull_request": outcome.pull_request.url if outcome.pull_request else None,
        "base": outcome.base,
        "branch": outcome.branch,
        "cause": outcome.cause,
        "stage": outcome.stage,
        "secondary": list(outcome.secondary),
        "preserved": outcome.preserved,
        "places": [{"what": what, "where": where} for what, where in outcome.places],
        "session_log": str(outcome.session_log) if outcome.session_log else None,
        "run": outcome.run_id,
        "interrupted_by": outcome.interruption.name if outcome.interruption else None,
    }
