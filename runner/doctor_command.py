"""`nightkeep doctor`: what would stop a Run in this clone, or surprise its user."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from delivery.credentials import ways_to
from delivery.errors import GitHubError, PreflightError
from delivery.findings import Finding, Level, Probed, diagnose, errors, ok
from delivery.github import GitHub, Repository
from delivery.preflight import check_repository, nothing_to_start_from, unanswered
from delivery.probes import ask_about_checks, ask_about_token, look_at_clone, missing_labels, probe_origin
from runner.access import Place, Start, known_secrets
from runner.agent_command import agent_argv, require_on_base
from runner.configured import logs_of, repository_settings
from runner.exit_codes import ExitCode, signal_exit_code
from runner.progress import Progress
from runner.settings import REPOSITORY_FILE, LoadedSettings, Settings
from runner.signals import recorded_signals
from runner.token_source import LearningRedactor
from runner.wiring import conventions
from worktree import GitError, Interrupted, Launch, Origin
from worktree.inventory import Listed, Standing, list_worktrees

_LEVEL_WIDTH, _NAME_WIDTH = 9, 17


def examine_clone(token_file: Path | None, held: Mapping[str, str], *, as_json: bool) -> int:
    """Print every finding about the clone that we are in; return 0 without errors, else 2."""
    progress = Progress(sys.stderr, os.environ)
    redact = LearningRedactor(known_secrets(held))

    def report(line: str) -> None:
        progress.say(redact(line))

    with recorded_signals("stopping", "stopping") as interruption:
        try:
            findings = _findings(token_file, Start.here({"token-file": token_file}, held, redact, report, interruption))
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
    place: Place
    origin: Origin
    github: GitHub
    machine: Settings
    token_file: Path | None


def _findings(token_file: Path | None, start: Start) -> list[Finding]:
    """Look at everything that can be looked at; raises PreflightError where there is nothing to look at."""
    launch = start.open_clone(remedy="run this in the clone that it is to look at")
    try:
        place = Place.of(launch)
        if place is None:
            raise PreflightError(f'{launch.top} has no remote "origin" on a server; run this in a clone from GitHub')
        signed_in = start.sign_in(place)
        with closing(signed_in.github) as github:
            clone = _Clone(
                launch=launch,
                place=place,
                origin=signed_in.origin,
                github=github,
                machine=start.machine.settings,
                token_file=token_file,
            )
            found = _examine(clone)
    finally:
        launch.close()
    return [replace(one, sentence=start.redact(one.sentence)) for one in found]


def _examine(clone: _Clone) -> list[Finding]:
    found: list[Finding] = []
    repository = _repository(clone, found)
    base, commit = _base(clone, repository, found)
    probed = replace(
        look_at_clone(clone.launch, commit, logs_of(clone.machine)),
        git_version=_git_version(clone),
        own_ways=ways_to(clone.launch.origin_url or "", clone.launch.configuration),
    )
    if commit is not None:
        probed = probe_origin(probed, clone.launch, clone.origin, commit)
        probed = _with_labels(probed, clone, base, commit, found)
    if repository is not None:
        probed = ask_about_token(probed, clone.github, clone.origin, is_private=repository.is_private)
    return [*found, *diagnose(probed), *_left_behind(clone)]


def _repository(clone: _Clone, found: list[Finding]) -> Repository | None:
    try:
        seen = check_repository(clone.github, clone.place.repository)
    except GitHubError as error:
        found.append(_explained("repository", str(unanswered(error)), "see that the network and the token are right"))
    except PreflightError as error:
        found.append(_explained("repository", str(error), "name a repository that the token may push to"))
    else:
        found.append(ok("repository", f"{seen.full_name} can be read and pushed to"))
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
        found.append(ok("base-branch", f"a Run starts from origin's {base}"))
    else:
        sentence = f"{clone.launch.checked_out or 'what is checked out'} is no branch of origin"
        found.append(Finding(name="base-branch", level=Level.WARNING, sentence=sentence, remedy=f"use --base {base}"))
    return base or "", commit


def _with_labels(probed: Probed, clone: _Clone, base: str, commit: str, found: list[Finding]) -> Probed:
    try:
        loaded = repository_settings(
            clone.launch,
            clone.machine,
            {"token-file": clone.token_file},
            repository=clone.place.repository,
            host=clone.place.host,
            base=base,
            commit=commit,
        )
        found += [_explained("configuration", notice, "", Level.NOTICE) for notice in loaded.notices]
        found.append(_agent(clone, loaded, base, commit))
        rules = conventions(loaded.settings)
        probed = ask_about_checks(probed, clone.github, commit, rules)
        missing = missing_labels(clone.github, rules)
    except PreflightError as error:
        remedy = f"correct it, and look again: nightkeep config check {REPOSITORY_FILE}"
        found += [_error("configuration", line, remedy) for line in str(error).splitlines()]
        return probed
    except GitHubError:  # what keeps GitHub from answering is said of the repository
        return probed
    return replace(probed, missing_labels=[label.name for label in missing])


def _agent(clone: _Clone, loaded: LoadedSettings, base: str, commit: str) -> Finding:
    if loaded.settings.agent is None:
        return _notice("agent", "no agent is configured", "give each command one (--agent), or configure one (agent:)")
    try:
        argv = agent_argv(loaded, clone.launch.directory)
        if loaded.settings.setup is None:
            require_on_base(argv[0], clone.launch, base, commit)
    except PreflightError as error:
        return _explained("agent", str(error), "")
    return ok("agent", f"the agent is {argv[0]}")


def _left_behind(clone: _Clone) -> list[Finding]:
    """Say which worktrees earlier runs have left: those of killed runners, and those that were kept."""
    listed = list_worktrees(clone.launch.common)
    killed = [one for one in listed if one.standing is Standing.ORPHANED]
    kept = [one for one in listed if one.standing is Standing.RETAINED]
    found = []
    if killed:
        sentence = f"the runner is gone of {_named(killed)}; the next Run in this clone finishes it"
        found.append(_notice("killed-runs", sentence, "or finish it now: nightkeep recover"))
    if kept:
        sentence = f"kept until somebody releases it: {_named(kept)}"
        found.append(_notice("kept-worktrees", sentence, "see why, and what it holds: nightkeep worktrees"))
    return found or [ok("worktrees", "no earlier run has left a worktree")]


def _named(listed: Sequence[Listed]) -> str:
    return ", ".join(str(one.path or one.run_id) for one in listed)


def _git_version(clone: _Clone) -> tuple[int, ...] | None:
    try:
        return clone.launch.git_version()
    except Interrupted:
        raise
    except GitError:
        return None


def _notice(name: str, sentence: str, remedy: str) -> Finding:
    return Finding(name=name, level=Level.NOTICE, sentence=sentence, remedy=remedy)


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
