"""`nightkeep doctor`: what would stop a Run in this clone, or surprise its user."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from delivery.errors import GitHubError, PreflightError
from delivery.findings import Facts, Finding, Level, diagnose, errors
from delivery.github import GitHub, Repository
from delivery.issue_url import repository_of
from delivery.preflight import check_repository, nothing_to_start_from, unanswered
from delivery.probes import ask_about_token, look_at_clone, missing_labels, probe_origin
from runner.addresses import api_url
from runner.exit_codes import ExitCode, signal_exit_code
from runner.processes import become_subreaper
from runner.progress import Progress
from runner.settings import REPOSITORY_FILE, Settings
from runner.signals import recorded_signals
from runner.token import close_to_other_processes
from runner.token_source import LearningRedactor
from runner.wiring import conventions, find_token, launch_directory, load, logs_of, open_launch, repository_settings
from worktree import GitError, Interrupted, Interruption, Launch, Origin, Redactor, secrets_in

_LEVEL_WIDTH, _NAME_WIDTH = 9, 17


def examine_clone(token_file: Path | None, held: Mapping[str, str], *, as_json: bool) -> int:
    """Print every finding about the clone that we are in; return 0 without errors, else 2."""
    progress = Progress(sys.stderr, os.environ)
    redact = Redactor([*held.values(), *secrets_in(os.environ)])
    with recorded_signals() as interruption:
        try:
            findings = _findings(token_file, held, progress, interruption)
        except PreflightError as error:
            remedy = "mend that, and ask again: nightkeep doctor"
            findings = [_explained("preflight", redact(str(error)), remedy)]
        except Interrupted:
            assert interruption.recorded is not None  # noqa: S101 - that is what raised it
            return signal_exit_code(interruption.recorded)
        finally:
            progress.close()
    status = ExitCode.NOT_BEGUN if errors(findings) else ExitCode.DELIVERED
    print(_document(findings, status) if as_json else _table(findings))  # noqa: T201 - what the command is for
    return status


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clone:
    """What is looked at, and by which means."""

    launch: Launch
    repository: str
    host: str
    origin: Origin
    github: GitHub
    machine: Settings
    token_file: Path | None


def _findings(
    token_file: Path | None, held: Mapping[str, str], progress: Progress, interruption: Interruption
) -> list[Finding]:
    """Look at everything that can be looked at; raises PreflightError where there is nothing to look at."""
    become_subreaper()
    clone = _clone(token_file, held, progress, interruption)
    redact = clone.launch.git.redact
    try:
        with closing(clone.github):
            found = _examine(clone)
    finally:
        clone.launch.close()
    return [replace(one, sentence=redact(one.sentence)) for one in found]


def _clone(token_file: Path | None, held: Mapping[str, str], progress: Progress, interruption: Interruption) -> _Clone:
    if shutil.which("git") is None:
        raise PreflightError("git was not found on PATH; install it (2.38 or newer)")
    redact = LearningRedactor([*held.values(), *secrets_in(os.environ)])
    machine = load({"token-file": token_file}).settings
    launch = open_launch(
        launch_directory(), machine, interruption, redact, remedy="run this in the clone that it is to look at"
    )
    server, repository = _place(launch)
    host = urlsplit(server).netloc
    address = api_url(server, os.environ)

    def report(line: str) -> None:
        progress.say(redact(line))

    token = find_token(machine, held, host, learn=redact.learn, report=report).token
    close_to_other_processes()
    return _Clone(
        launch=launch,
        repository=repository,
        host=host,
        origin=Origin(f"{server}/{repository}.git", token),
        github=GitHub(api_url=address, token=token, repository=repository, interruption=interruption, report=report),
        machine=machine,
        token_file=token_file,
    )


def _place(launch: Launch) -> tuple[str, str]:
    """Return the server and OWNER/NAME that the clone is one of; by SSH the server's web address is a guess."""
    url = launch.origin_url or ""
    named = repository_of(url)
    if named is None:
        raise PreflightError(f'{launch.top} has no remote "origin" on a server; run this in a clone from GitHub')
    host, repository = named
    stated = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/")
    scheme = "http" if url.startswith("http://") else "https"
    return (stated if urlsplit(stated).netloc.lower() == host else f"{scheme}://{host}"), repository


def _examine(clone: _Clone) -> list[Finding]:
    found: list[Finding] = []
    repository = _repository(clone, found)
    base, commit = _base(clone, repository, found)
    facts = replace(look_at_clone(clone.launch, commit, logs_of(clone.machine)), git_version=_git_version(clone))
    if commit is not None:
        facts = probe_origin(facts, clone.launch, clone.origin, commit)
        facts = _with_labels(facts, clone, base, commit, found)
    if repository is not None:
        facts = ask_about_token(facts, clone.github, clone.origin, is_private=repository.is_private)
    return [*found, *diagnose(facts)]


def _repository(clone: _Clone, found: list[Finding]) -> Repository | None:
    try:
        seen = check_repository(clone.github, clone.repository)
    except GitHubError as error:
        found.append(_explained("repository", str(unanswered(error)), "see that the network and the token are right"))
    except PreflightError as error:
        found.append(_explained("repository", str(error), "name a repository that the token may push to"))
    else:
        found.append(_ok("repository", f"{seen.full_name} can be read and pushed to"))
        return seen
    return None


def _base(clone: _Clone, repository: Repository | None, found: list[Finding]) -> tuple[str, str | None]:
    """Fetch the branch that a Run would start from: the one that is checked out, else the repository's own."""
    wanted = [clone.launch.checked_out, repository.default_branch if repository else None]
    remote = clone.launch.remote(clone.origin)
    try:
        heads = remote.read(*(f"refs/heads/{name}" for name in wanted if name))
        base = next((name for name in wanted if f"refs/heads/{name}" in heads), None)
        commit = remote.fetch(base)[base] if base else None
    except Interrupted:
        raise
    except GitError as error:
        sentence = f"origin cannot be read: {' '.join(error.stderr.split()) or error}"
        found.append(_error("base-branch", sentence, "see that the network and the token are right"))
        return "", None
    if base is None:
        found.append(_explained("base-branch", str(nothing_to_start_from(clone.launch)), ""))
    elif base == clone.launch.checked_out:
        found.append(_ok("base-branch", f"a Run starts from origin's {base}"))
    else:
        sentence = f"{clone.launch.checked_out or 'what is checked out'} is no branch of origin"
        found.append(Finding(name="base-branch", level=Level.WARNING, sentence=sentence, remedy=f"use --base {base}"))
    return base or "", commit


def _with_labels(facts: Facts, clone: _Clone, base: str, commit: str, found: list[Finding]) -> Facts:
    try:
        loaded = repository_settings(
            clone.launch,
            clone.machine,
            {"token-file": clone.token_file},
            repository=clone.repository,
            host=clone.host,
            base=base,
            commit=commit,
        )
        found += [_explained("configuration", notice, "", Level.NOTICE) for notice in loaded.notices]
        missing = missing_labels(clone.github, conventions(loaded.settings))
    except PreflightError as error:
        remedy = f"correct it, and look again: nightkeep config check {REPOSITORY_FILE}"
        found += [_error("configuration", line, remedy) for line in str(error).splitlines()]
        return facts
    except GitHubError:  # what keeps GitHub from answering is said of the repository
        return facts
    return replace(facts, missing_labels=[label.name for label in missing])


def _git_version(clone: _Clone) -> tuple[int, ...] | None:
    try:
        return clone.launch.git_version()
    except Interrupted:
        raise
    except GitError:
        return None


def _ok(name: str, sentence: str) -> Finding:
    return Finding(name=name, level=Level.OK, sentence=sentence)


def _error(name: str, sentence: str, remedy: str) -> Finding:
    return Finding(name=name, level=Level.ERROR, sentence=sentence, remedy=remedy)


def _explained(name: str, text: str, otherwise: str, level: Level = Level.ERROR) -> Finding:
    """Return a finding of a text that has its remedy behind a semicolon, as `Finding` writes it."""
    sentence, _, remedy = text.partition("; ")
    return Finding(name=name, level=level, sentence=sentence, remedy=remedy or otherwise)


def _document(findings: Sequence[Finding], status: int) -> str:
    return json.dumps({"exit_code": int(status), "findings": [asdict(one) for one in findings]}, indent=2)


def _table(findings: Sequence[Finding]) -> str:
    lines = []
    for one in findings:
        lines.append(f"{one.level:<{_LEVEL_WIDTH}}{one.name:<{_NAME_WIDTH}}{one.sentence}")
        if one.remedy:
            lines.append(f"{'':{_LEVEL_WIDTH + _NAME_WIDTH}}remedy: {one.remedy}")
    return "\n".join(lines)
