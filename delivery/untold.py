"""What GitHub could not be told when a Run failed, kept on the disk until it can be.

<logs>/<owner>/<name>/7-20261130T012231+0000-untold.json    private, beside the journal of the Run
<logs>/<owner>/<name>/7-20261130T012231+0000-untold.md      a note that GitHub refused when it could be asked again

An agent of the same user can write such a file, or put words into one, as it can into its own output. So a file has no
say in where its note goes: the journal beside it says which issue and Issue branch the Failed run was about, and GitHub
which open pull request there is from that branch. Who forges the journal as well reaches no further than an issue of
the repository and that issue's own branches.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from delivery.branches import branch_number
from delivery.errors import GitHubError, GitHubUnavailableError, is_for_later
from delivery.github import PullRequest
from delivery.issue_url import IssueUrl
from delivery.note import as_note, newer_of, note_marker
from delivery.outcome import Outcome, Pending
from delivery.parts import Parts
from delivery.pull_request import PullRequests
from delivery.unfinished import FailedRun, read_failed
from worktree import read_journal
from worktree.durable import sync_directory
from worktree.reading import read_regular

RECOVER = "nightkeep recover"
_LONGEST = 1 << 20  # bytes; GitHub takes 65,536 characters of a note


class Untold(BaseModel):
    """The Failure note of a Run, and what is pending about its pull request.

    `head` is the commit that the Run left that at, or the Issue branch on origin; None where neither was seen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    head: str | None
    pending: Pending | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of it: the note's URL; or why it is still untold; or, where GitHub refused it, the file it is in."""

    run: FailedRun
    url: str | None = None
    trouble: str | None = None
    refused: Path | None = None


@contextmanager
def kept(parts: Parts, outcome: Outcome) -> Iterator[Path | None]:
    """Write down, durably, what is about to be told of a Failed run; nobody else tells it while the block lasts.

    Yields the file, for whoever told it to remove; None where there is no note, and no place or no room for it.
    """
    file = _place(parts) if outcome.note else None
    descriptor = None
    if file is not None:
        try:
            descriptor = _write(file, _untold(outcome).model_dump_json(indent=2) + "\n")
        except (OSError, ValueError) as error:
            parts.report(f"the Failure note could not be put down in {file}: {error}")
    try:
        yield file if descriptor is not None else None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _place(parts: Parts) -> Path | None:
    journal = parts.journal.file
    return journal and journal.with_name(journal.name.replace("-journal", "-untold", 1)).with_suffix(".json")


def _untold(outcome: Outcome) -> Untold:
    pull_request = outcome.pull_request
    return Untold(
        head=outcome.refs.get(f"refs/heads/{outcome.branch}") or (pull_request.head if pull_request else None),
        pending=outcome.pending,
        note=outcome.note.encode(errors="replace").decode(),
    )


def tell(parts: Parts, directory: Path) -> list[Told]:
    """Tell GitHub what Runs whose logs are in `directory` could not, the oldest first; each by itself.

    Each is told once, however many ask for it at a time, and looked up before it is repeated. What GitHub refuses for
    good is not tried again. Raises Interrupted.
    """
    files = sorted(directory.glob("*-untold*.json"), key=lambda file: file.name.partition("-")[2])
    return [told for file in files if (told := _tell_one(parts, file)) is not None]


def _tell_one(parts: Parts, file: Path) -> Told | None:
    try:
        with _taken(file) as untold:
            return _told(parts, file, _run_of(parts, file), untold) if untold else None
    except (OSError, ValueError, RecursionError) as error:
        parts.report(f"{file} cannot be read, so nothing is told of it: {error}")
        return None


@contextmanager
def _taken(file: Path) -> Iterator[Untold | None]:
    """Read a file that nobody else can take while the block lasts; None when somebody else has, or had, it."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = os.fstat(descriptor).st_nlink > 0
    except BlockingIOError:
        is_there = False
    try:
        yield Untold.model_validate_json(read_regular(file, _LONGEST)) if is_there else None
    finally:
        os.close(descriptor)


def _run_of(parts: Parts, file: Path) -> FailedRun:
    """Return the Run that a file is about, as its journal names it. Raises OSError or ValueError where none does."""
    journal = file.with_name(file.name.replace("-untold", "-journal", 1)).with_suffix(".jsonl")
    run = read_failed(read_journal(journal))
    if run is None:
        raise ValueError(f"{journal} tells of no Failed run")
    is_here = run.url.server.lower() == parts.url.server.lower() and _repository(run.url) == _repository(parts.url)
    if not is_here or branch_number(run.url.number, run.branch) is None:
        raise ValueError(f"{journal} is about {run.branch} for {run.url}, which is no Issue branch of this repository")
    return run


def _repository(url: IssueUrl) -> str:
    return url.repository.lower()


def _told(parts: Parts, file: Path, run: FailedRun, untold: Untold) -> Told:
    about = f"the Failure note of {run.url}"
    note = as_note(parts.redact(untold.note), run.branch)
    try:
        found = _settle(parts, run, untold) if untold.pending else _newest(parts, run)
        number = found.number if found and found.is_open else run.url.number
        url = parts.github.comment(number, note_marker(run.branch), note, newer_of)
    except GitHubError as error:
        if is_for_later(error):
            trouble = f"{about} could not be written: {error}; it is kept in {file}; then: {RECOVER}"
            parts.report(trouble)
            return Told(run=run, trouble=trouble)
        refused = file.with_suffix(".md")
        os.close(_write(refused, note))
        file.unlink()
        parts.report(f"{about} was refused: {error}; it is in {refused}, and is not tried again")
        return Told(run=run, refused=refused)
    file.unlink()
    parts.report(f"{about}, which could not be written when it failed, is at {url}")
    return Told(run=run, url=url)


def _newest(parts: Parts, run: FailedRun) -> PullRequest | None:
    return next(iter(parts.github.pull_requests(run.branch)), None)


def _settle(parts: Parts, run: FailedRun, untold: Untold) -> PullRequest | None:
    """Do what is pending about the pull request, unless somebody went on from there; return the latest one."""
    github = parts.github
    latest = _newest(parts, run)
    if untold.head is None or (latest and (not latest.is_open or latest.head != untold.head)):
        return latest
    pull_requests = PullRequests(
        github, github.issue(run.url.number), base=run.base, branch=run.branch, report=parts.report
    )
    try:
        marked = pull_requests.mark_failed(latest, may_open=untold.pending is Pending.OPEN)
    except GitHubError as error:
        if is_for_later(error):
            raise
        parts.report(f"no pull request could be opened for {run.branch}: {error}")
        return None
    for line in marked.trouble:
        parts.report(line)
    if marked.pending:
        raise GitHubUnavailableError(marked.trouble[-1], 0)
    return marked.pull_request


def _write(file: Path, text: str) -> int:
    """Write a private file, durably, in place of what was there; return a descriptor that holds its lock."""
    unfinished = file.with_name(f"{file.name}.new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with os.fdopen(descriptor, "w", encoding="utf-8", closefd=False) as opened:
            opened.write(text)
        os.fsync(descriptor)
        unfinished.replace(file)
        sync_directory(file.parent)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
