"""Where logs are and what they are called, and the Command log.

<logs>/<owner>/<name>/                      private; <logs> is `logs.directory`, else in the user's state directory
    7-20261130T012231+0000-command.log      what the command said, and how it ended: the Command log
    7-20261130T012231+0000-journal.jsonl    each step that changed something, put down before it was taken
    7-20261130T012231+0000-implement.log    what its agent printed: a Session log
    7-20261130T012231+0000-verify.log       what a step printed
"""

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from itertools import count
from pathlib import Path

from platformdirs import user_state_path

from delivery.text import end_of
from worktree.moments import written_now

_COMMAND = "command"
_NAME = re.compile(r"(?P<issue>[0-9]+)-(?P<began>[0-9]{8}T[0-9]{6}[+-][0-9]{4})-(?P<what>.+)\.(?:log|jsonl)")
# No line of the command looks like this: each of them begins with our name.
_ENDING = re.compile(r"\S+ ended: (.+)")
_ENDING_LOOKED_AT = 4096  # bytes from the end of a Command log


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where the logs of one command are."""

    directory: Path
    stem: str

    @classmethod
    def of(cls, logs: Path, repository: str, issue: int) -> "LogPlace":
        """Return the place for a command on that issue of OWNER/NAME that begins now."""
        stem = f"{issue}-{datetime.now().astimezone():%Y%m%dT%H%M%S%z}"
        return cls(logs / repository, stem)

    def file(self, what: str) -> Path:
        """Return the file for the log of a session's kind, or of the command."""
        return self.directory / f"{self.stem}-{what}.log"

    @property
    def journal(self) -> Path:
        """The file for the journal; a command that began in the same second has its own stem."""
        return self.directory / f"{self.stem}-journal.jsonl"


def default_directory() -> Path:
    """Return where logs are when the configuration does not say."""
    return user_state_path("nightkeep") / "logs"


def create_log(log: Path) -> tuple[Path, FileIO]:
    """Create a private log, under another name if that one is taken: a log is never overwritten."""
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = (log if number == 1 else log.with_name(f"{log.stem}-{number}{log.suffix}") for number in count(1))
    for path in names:
        try:
            return path, FileIO(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w")
        except FileExistsError:
            continue
    raise AssertionError("unreachable: the names never end")


class CommandLog:
    """What one command says, from the moment that its work starts: private, redacted, each line written at once.

    Lines are held until `begin`, and written first. Trouble with the file is returned once, as a sentence for the
    user, and ends nothing but the log. `path` is the file, None while there is none or when it cannot be written.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self._held: list[str] | None = []
        self._made: list[Path] = []
        self._file: FileIO | None = None
        self._redact: Callable[[str], str] = str

    def begin(self, place: LogPlace, redact: Callable[[str], str]) -> str | None:
        """Start the file with what was said until now."""
        held, self._held, self._redact = self._held or [], None, redact
        self._made = [path for path in (place.directory, *place.directory.parents) if not path.exists()]
        try:
            self.path, self._file = create_log(place.file(_COMMAND))
        except OSError as error:
            return _unwritable(error)
        return self._write("".join(held))

    def add(self, line: str) -> str | None:
        """Take a line of the command, as it was printed."""
        return self._take(f"{written_now()} nightkeep: {line}")

    def end(self, how: str) -> str | None:
        """Say how the command ended, and close the file."""
        trouble = self._take(f"{written_now()} ended: {how}")
        self._close()
        return trouble

    def discard(self) -> None:
        """Remove the file, and the directories that were made for it: nothing was begun after all."""
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()
                for directory in self._made:
                    directory.rmdir()
        self._close()
        self.path = None

    def _take(self, line: str) -> str | None:
        # Whoever prints the log must not have the cursor moved.
        text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in line) + "\n"
        if self._held is not None:
            self._held.append(text)
            return None
        return self._write(text)

    def _write(self, text: str) -> str | None:
        if self._file is None:
            return None
        rest = memoryview(self._redact(text).encode(errors="replace"))
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._close()
            return _unwritable(error)
        return None

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _unwritable(error: OSError) -> str:
    return (
        f"the Command log cannot be written ({error.strerror}: {error.filename or 'its file'}); the work goes on "
        "without it. Another place can be named as logs.directory in your configuration"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One log that is there. `changed` is when it was last written, in seconds of the epoch; `size` is in bytes."""

    path: Path
    repository: str
    issue: int
    began: datetime
    what: str
    size: int
    changed: float

    @property
    def is_command(self) -> bool:
        """Whether this is a Command log."""
        return self.what == _COMMAND or self.what.startswith(f"{_COMMAND}-")

    @property
    def command(self) -> tuple[str, int, datetime]:
        """What the files of one command have in common."""
        return (self.repository, self.issue, self.began)

    def ending(self) -> str | None:
        """Return how the command ended; None when this log does not say."""
        if not self.is_command:
            return None
        lines = end_of(self.path, _ENDING_LOOKED_AT).splitlines()
        match = _ENDING.fullmatch(lines[-1]) if lines else None
        return match[1] if match else None


def find_logs(logs: Path, repository: str | None = None) -> list[LogFile]:
    """Return the logs, the newest command's first, each command's together; of OWNER/NAME only where it is given."""
    wanted = repository.lower() if repository else None
    found = [
        log
        for path in (*logs.glob("*/*/*.log"), *logs.glob("*/*/*.jsonl"))
        if (log := _log_file(path, logs)) is not None
    ]
    return sorted((log for log in found if wanted in (None, log.repository.lower())), key=_order)


def _order(log: LogFile) -> tuple[float, str, int, bool, float]:
    return (-log.began.timestamp(), log.repository, log.issue, not log.is_command, log.changed)


def _log_file(path: Path, logs: Path) -> LogFile | None:
    match = _NAME.fullmatch(path.name)
    try:
        seen = path.lstat()
        began = datetime.fromisoformat(match["began"]) if match else None
    except (OSError, ValueError):  # removed just now, or a name that only looks like ours
        return None
    if match is None or began is None or not stat.S_ISREG(seen.st_mode):
        return None
    return LogFile(
        path=path,
        repository=path.parent.relative_to(logs).as_posix(),
        issue=int(match["issue"]),
        began=began,
        what=match["what"],
        size=seen.st_size,
        changed=seen.st_mtime,
    )
