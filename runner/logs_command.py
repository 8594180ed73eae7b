"""`nightkeep logs`: which logs there are, and what the last command on an issue said."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from delivery.errors import PreflightError
from runner.access import clone_here, known_secrets
from runner.configured import load, logs_of
from runner.exit_codes import ExitCode
from runner.logs import LogFile, find_logs
from runner.progress import Progress
from runner.settings import is_repository
from runner.table import print_table
from runner.wording import written_size
from worktree import Redactor, WorktreeError

_UNFINISHED = "still running, or killed"


def show_logs(issue: int | None, repository: str | None, held: Mapping[str, str], *, as_json: bool) -> int:
    """List the logs, or show those of the newest command on an issue; return the exit status."""
    redact = Redactor(known_secrets(held))
    try:
        logs = logs_of(load({}).settings)
        wanted = _wanted(repository, redact)
    except (PreflightError, WorktreeError) as error:
        return _refuse(redact(str(error)))
    found = find_logs(logs, wanted)
    if issue is not None:
        found = _newest(found, issue)
    if issue is not None and not found:
        return _refuse(f"{_none(wanted, issue, logs)}; `nightkeep logs` lists what there is")
    if as_json:
        print(json.dumps([_as_document(log) for log in found], indent=2))  # noqa: T201 - the command's output
    elif issue is not None:
        _print_content(found)
    elif found:
        print_table(("issue", "began", "log", "size", "how it ended"), [_row(log) for log in found])
    else:
        Progress(sys.stderr, os.environ).say(_none(wanted, None, logs))
    return 0


def _wanted(repository: str | None, redact: Redactor) -> str | None:
    if repository is not None:
        if not is_repository(repository) or repository.count("/") != 1:
            raise PreflightError(f"--repository takes OWNER/NAME, not {repository!r}")
        return repository
    here = clone_here(redact)
    return here[1].repository if here else None


def _refuse(why: str) -> int:
    Progress(sys.stderr, os.environ).say(why)
    return ExitCode.NOT_BEGUN


def _none(wanted: str | None, issue: int | None, logs: Path) -> str:
    where = f"{logs}/{wanted}" if wanted else str(logs)
    return f"there are no logs of issue {issue} in {where}" if issue is not None else f"there are no logs in {where}"


def _newest(found: Sequence[LogFile], issue: int) -> list[LogFile]:
    of_issue = [log for log in found if log.issue == issue]
    return [log for log in of_issue if log.command == of_issue[0].command]


def _row(log: LogFile) -> tuple[str, str, str, str, str]:
    began = f"{log.began.astimezone():%Y-%m-%d %H:%M:%S}"
    return (f"{log.repository}#{log.issue}", began, log.what, written_size(log.size), _ending(log))


def _ending(log: LogFile) -> str:
    return (log.ending() or _UNFINISHED) if log.is_command else ""


def _as_document(log: LogFile) -> dict[str, object]:
    return {
        "repository": log.repository,
        "issue": log.issue,
        "began": log.began.isoformat(),
        "log": log.what,
        "size": log.size,
        "ended": log.ending(),
        "path": str(log.path),
    }


def _print_content(found: Sequence[LogFile]) -> None:
    """Print each log under its path. All of them were made safe to print when they were written."""
    for log in found:
        # As bytes: a Session log can be long.
        sys.stdout.buffer.write(f"==> {log.path} <==\n".encode(errors="replace"))
        with log.path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
            file.seek(max(0, file.tell() - 1))
            ended = file.read() in (b"", b"\n")
        sys.stdout.buffer.write(b"\n" if ended else b"\n\n")
    sys.stdout.flush()
