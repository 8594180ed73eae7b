"""`nightkeep config`: what the configuration says, and what is wrong with it. Asks no server and needs no token."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from delivery.errors import PreflightError
from runner.access import Place, clone_here, known_secrets
from runner.configured import load, trusts, user_file
from runner.exit_codes import ExitCode
from runner.progress import Progress
from runner.settings import REPOSITORY_FILE, LoadedSettings, entry_for, file_problems, show
from runner.table import print_table
from worktree import Launch, Redactor, WorktreeError


def show_config(held: Mapping[str, str], *, as_json: bool) -> int:
    """Print each value and where it came from; return the exit status."""
    return _told(held, lambda redact: _show(redact, as_json=as_json))


def check_config(file: Path | None, held: Mapping[str, str]) -> int:
    """Print each problem of both files, or of the one that is named; return the exit status."""
    return _told(held, lambda redact: _check(file, redact))


def _told(held: Mapping[str, str], work: Callable[[Redactor], int]) -> int:
    redact = Redactor(known_secrets(held))
    try:
        return work(redact)
    except (PreflightError, WorktreeError) as error:
        _say(redact(str(error)))
        return ExitCode.NOT_BEGUN


def _show(redact: Redactor, *, as_json: bool) -> int:
    file = _repository_file(redact)
    loaded = _as_it_counts(file)
    notes = _notes(file, loaded)
    rows = show(loaded, redact)
    if as_json:
        settings = {key: {"value": yaml.safe_load(value), "from": origin} for key, value, origin in rows}
        print(json.dumps({"settings": settings, "notes": [redact(note) for note in notes]}, indent=2))  # noqa: T201
        return 0
    print_table(("key", "value", "from"), rows)
    for note in notes:
        _say(redact(note))
    return 0


def _check(file: Path | None, redact: Redactor) -> int:
    problems = file_problems(file, user_file()) if file else _problems_here(redact)
    for line in problems or ("no problems",):
        print(redact(line))  # noqa: T201 - the command's output
    return ExitCode.NOT_BEGUN if problems else 0


def _problems_here(redact: Redactor) -> tuple[str, ...]:
    """Return what is wrong with both files and the environment; a repository's file need not be trusted for that."""
    try:
        file = _repository_file(redact)
        with suppress(PreflightError):  # what is wrong is told below, with what is wrong besides
            for note in _notes(file, _as_it_counts(file)):
                _say(redact(note))
        file.loaded(trusted=True)
    except PreflightError as error:
        return tuple(str(error).splitlines())
    return ()


def _as_it_counts(file: "_RepositoryFile") -> LoadedSettings:
    """Return the settings of a Run here: with the repository's file where it is trusted; raises PreflightError."""
    machine = load({}).settings
    return file.loaded(trusted=trusts(machine, file.repository, file.host))


def _notes(file: "_RepositoryFile", loaded: LoadedSettings) -> tuple[str, ...]:
    return loaded.notices or (file.note,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RepositoryFile:
    """The repository's file as the clone knows it from origin: `text` is None when there is none, `note` says why."""

    note: str
    host: str = ""
    repository: str = ""
    base: str = ""
    text: str | None = None

    def loaded(self, *, trusted: bool) -> LoadedSettings:
        """Return the settings of the machine and this file; raises PreflightError."""
        name = entry_for(self.repository, self.host)
        return load({}, repository_text=self.text, repository_name=name, base=self.base, trusted=trusted)


def _repository_file(redact: Redactor) -> _RepositoryFile:
    here = clone_here(redact)
    if here is None:
        return _RepositoryFile(note=f"not in a clone of a repository on a server, so no {REPOSITORY_FILE} was read")
    launch, place = here
    base = launch.checked_out
    if base is None:
        return _RepositoryFile(
            note=f"HEAD is on no branch, so there is no Base branch to read {REPOSITORY_FILE} from; check one out"
        )
    ref = f"refs/remotes/origin/{base}"
    if ref not in launch.refs:
        return _RepositoryFile(
            note=f"origin's {base} is not known here, so {REPOSITORY_FILE} was not read; try: git fetch origin {base}"
        )
    return _as_fetched(launch, place, base, ref)


def _as_fetched(launch: Launch, place: Place, base: str, ref: str) -> _RepositoryFile:
    where = f"{REPOSITORY_FILE} on {base}"
    try:
        text = launch.read_file(ref, REPOSITORY_FILE)
    except UnicodeDecodeError as error:
        raise PreflightError(f"{where}: is not UTF-8") from error
    note = f"{where} was read as last fetched from origin" if text is not None else f"origin has no {where}"
    return _RepositoryFile(note=note, host=place.host, repository=place.repository, base=base, text=text)


def _say(text: str) -> None:
    Progress(sys.stderr, os.environ).say(text)
