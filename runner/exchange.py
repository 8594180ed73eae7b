"""The files by which an agent and the runner talk: the prompt, and the text for the pull request."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worktree import temporary_directory

_PROMPT = "prompt.md"
_PULL_REQUEST = "pull-request.md"
_PULL_REQUEST_BYTES = 64 * 1024


class Exchange:
    """A private temporary directory for one session.

    <temporary directory>/nightkeep-…/    0700
      prompt.md                           the prompt, written by the runner
      pull-request.md                     title, blank line, body, written by the agent if it likes
    """

    def __init__(self, directory: Path, descriptor: int) -> None:
        self._descriptor = descriptor
        self.prompt = directory / _PROMPT
        self.pull_request = directory / _PULL_REQUEST

    def pull_request_text(self) -> str:
        """Return the text for the pull request, not redacted, or nothing; at most 64 KiB are read.

        Read by the directory's descriptor and without following a link: the agent may have put anything there,
        and what the runner can read is not for the agent to choose. A pipe is not waited for.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(_PULL_REQUEST, flags, dir_fd=self._descriptor)
        except OSError:
            return ""
        try:
            text = os.read(file, _PULL_REQUEST_BYTES) if stat.S_ISREG(os.fstat(file).st_mode) else b""
        except OSError:
            return ""
        finally:
            os.close(file)
        if len(text) == _PULL_REQUEST_BYTES:
            text = text[: text.rfind(b"\n") + 1]  # whole lines only: half a secret would not be recognised as one
        return text.decode(errors="replace")


@contextmanager
def exchange(prompt: str) -> Iterator[Exchange]:
    """Make the exchange directory, and remove it with whatever is in it."""
    with temporary_directory() as (directory, descriptor):
        files = Exchange(directory, descriptor)
        files.prompt.write_text(prompt, encoding="utf-8", errors="surrogateescape")
        yield files
