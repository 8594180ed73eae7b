"""From an agent's raw output to its Session log: cut into lines, redacted, made safe to show."""

import codecs
import os
import re
import time
from collections import deque
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from delivery.text import one_line
from runner.agents import Agent, Conversation, any_command, shown
from runner.agents.events import Event
from runner.logs import create_log
from worktree.reading import open_regular

# How much is read at a time, in bytes: a hundred thousand empty lines take half a second. More of a long line.
_GLANCE = 1 << 17
# The same at most, and how long a line of text may grow before it is passed on in pieces.
_PIECE = 1 << 20
# The same for a line of an agent's stream: a picture that a tool has read is one.
_LONGEST_MESSAGE = 1 << 25
# No secret is longer than this; what is held back of a piece, in characters.
_LONGEST_SECRET = 1 << 14
_FINAL_TEXT = 4000
_BRIEF = 100  # characters

_KEY_MARK = re.compile(r"-----(BEGIN|END) [A-Z ]*PRIVATE KEY-----")
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str) -> str:
    """Return a text without control characters, but for the ends of its lines and tabs."""
    return "\n".join(_CONTROL.sub("", _ESCAPE.sub("", line)) for line in re.split(r"\r\n?|\n", text))


class _Line(NamedTuple):
    """A line without control characters, and with pictures of them."""

    plain: str
    pictured: str


class Follower:
    """Follows a spool that an agent appends to, into a Session log and lines of progress.

    What `agent` knows as its stream is turned into text that a person can read, and into what `conversation` knows;
    any other line, a broken one too, is passed on as it is.

    The log is private (directory 0700, file 0600), redacted, and shows control characters as visible ones, so it
    is safe to print. Progress lines are redacted and have no control characters at all. Trouble with the log is
    told once as progress and does not end anything; `complete` is then False, as it is after output that could
    not be taken over in time, and the spool has to be kept.

    At most `cap` bytes are taken over. Use as a context manager, which closes the files.
    """

    def __init__(
        self,
        spool: Path,
        log: Path,
        *,
        redact: Callable[[str], str],
        progress: Callable[[str], None],
        cap: int,
        agent: Agent = any_command,
    ) -> None:
        self.complete = True
        self.log = log
        self.conversation = Conversation()
        self._agent = agent
        self._longest = _PIECE if agent is any_command else _LONGEST_MESSAGE
        self._redact = redact
        self._progress = progress
        self._left = cap
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._paragraph: deque[str] = deque(maxlen=_FINAL_TEXT)
        self._paragraph_ended = False
        self._spool = FileIO(open_regular(spool), "r")
        self._file: FileIO | None = None
        try:
            self.log, self._file = create_log(log)
        except OSError as error:
            self._log_failed(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._spool.close()
        if self._file is not None:
            self._file.close()

    def follow(self) -> bool:
        """Take over what is new, as much as takes a moment; False when there was nothing."""
        if os.fstat(self._spool.fileno()).st_size < self._spool.tell():
            self._spool.seek(0)  # the agent emptied it, which is what `> /dev/stdout` does to a file
        data = self._spool.read(min(max(_GLANCE, min(_PIECE, len(self._pending))), self._left))
        self._left -= len(data)
        self._pending += self._decoder.decode(data)
        end = self._ready()
        self._take_over(self._pending[:end])
        self._pending = self._pending[end:]
        return bool(data)

    def finish(self, seconds: Callable[[], float]) -> None:
        """Take over the rest, for at most `seconds`, which may shrink. Call it when nobody writes any more."""
        began = time.monotonic()
        while self.follow():
            if time.monotonic() - began > seconds():
                self.complete = False
                self._progress("the agent's output could not be redacted in time; it is kept, unredacted and private")
                return
        if self._spool.tell() < os.fstat(self._spool.fileno()).st_size:
            # The last line is cut somewhere, in a secret perhaps.
            self._write("[the output beyond the limit was left out]\n")
        else:
            self._take_over(self._pending + self._decoder.decode(b"", final=True))
        self._pending = ""

    def final_text(self) -> str:
        """Return what the agent said last, redacted and without control characters, at most 4,000 characters.

        Of a stream these are the first of its last message, else the last of the last paragraph.
        """
        if said := self.conversation.final_text:
            return "\n".join(self._clean(line).plain for line in self._redact(said).split("\n"))[:_FINAL_TEXT].strip()
        return "\n".join(self._paragraph)[-_FINAL_TEXT:].strip()

    def _ready(self) -> int:
        """Return how much of what is pending can be redacted now without cutting a secret in two."""
        end = self._pending.rfind("\n") + 1
        key = self._open_key(end)
        if key is not None and len(self._pending) - key < _LONGEST_SECRET:
            return self._pending.rfind("\n", 0, key) + 1
        if end == 0 and len(self._pending) > self._longest:
            return self._cut()
        return end

    def _open_key(self, end: int) -> int | None:
        """Return where a private key begins in the lines up to `end` that does not end in them; None for no such."""
        begun = None
        for mark in _KEY_MARK.finditer(self._pending, 0, end):
            if mark[1] == "END":
                begun = None
            elif begun is None:
                begun = mark.start()
        return begun

    def _cut(self) -> int:
        """Return a place in an endless line where no secret is cut: both sides redact as they do together."""
        step = _LONGEST_SECRET
        for cut in range(len(self._pending) - step, len(self._pending) - 8 * step, -step):
            left, right = self._pending[cut - step : cut], self._pending[cut : cut + step]
            if self._redact(left) + self._redact(right) == self._redact(left + right):
                return cut
        return len(self._pending)

    def _take_over(self, text: str) -> None:
        """Take over lines; those that are no line of a stream together, as a secret may have several."""
        if self._agent is any_command:
            self._take_over_text(text)
            return
        other = ""
        for line in _LINE.findall(text):
            events = self._agent.events(_ESCAPE.sub("", line).strip())
            if events is None:
                other += line
                continue
            self._take_over_text(other)
            other = ""
            for event in events:
                self._take_over_event(event)
        self._take_over_text(other)

    def _take_over_text(self, text: str) -> None:
        if not text:
            return
        lines = [self._clean(line) for line in self._redact(text).removesuffix("\n").split("\n")]
        for line in lines:
            self._progress(line.plain)
            self._remember(line.plain.rstrip())
        self._write("\n".join(line.pictured for line in lines) + ("\n" if text.endswith("\n") else ""))

    def _take_over_event(self, event: Event) -> None:
        self.conversation.take(event)
        if (as_shown := shown(event)) is None:
            return
        self._write("".join(f"{self._clean(line).pictured}\n" for line in self._redact(as_shown.log).split("\n")))
        if as_shown.progress:
            # Shortened only now: half of a secret would not have been recognised as one.
            lines = [self._clean(line).plain for line in self._redact(as_shown.progress).split("\n")]
            for line in [one_line("\n".join(lines), _BRIEF)] if as_shown.brief else lines:
                self._progress(line)

    def _clean(self, line: str) -> _Line:
        """Return one redacted line without control characters, and with pictures of them."""
        line = line.removesuffix("\r")
        if not _CONTROL.search(line):
            return _Line(line, line)
        bare = _CONTROL.sub(lambda match: " " if match[0] == "\r" else "", _ESCAPE.sub("", line))
        plain = self._redact(bare)
        # A colour in the middle of a secret hides it from the redaction: then the colours are left out.
        return _Line(plain, _CONTROL.sub(_picture, line) if plain == bare else plain)

    def _remember(self, line: str) -> None:
        if line and self._paragraph_ended:
            self._paragraph.clear()
        self._paragraph_ended = not line
        if line:
            self._paragraph.append(line[-_FINAL_TEXT:])

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        rest = memoryview(text.encode(errors="replace"))
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._file.close()
            self._file = None
            self._log_failed(error)

    def _log_failed(self, error: OSError) -> None:
        self.complete = False
        self._progress(
            f"the Session log cannot be written ({error.strerror}); the output is kept, unredacted and private"
        )


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return match[0].encode("unicode_escape").decode()
