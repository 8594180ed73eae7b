"""Running git. The only module that imports GitPython, and the only one that starts a git process."""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from worktree.errors import GitError, GitTimeoutError, Interrupted
from worktree.interruption import Interruption
from worktree.redaction import Redactor

if TYPE_CHECKING:
    from git.cmd import Git as GitPython

_TICK = 0.1  # seconds between two looks at the deadline and the interruption
_LEFT_IN_PIPES = 1 << 20  # bytes; no less than what a process that has ended can have left there

# What git's environment may say about how to reach a server. Every other GIT_* variable says where a repository is,
# who commits or what is configured, and was meant for somebody else's command.
_TRANSPORT = re.compile(r"GIT_(SSH|SSH_COMMAND|SSH_VARIANT|SSL_\w+|PROXY_\w+|HTTP_\w+|ALLOW_PROTOCOL|EXEC_PATH)")
_PROMPTS = {"SSH_ASKPASS", "EDITOR", "VISUAL"}

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    # An agent can write both, and they would make us believe in commits and parents that origin does not have.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
}

# What a user's configuration must not change about our commands: no hooks, no signing, no background work, no
# refusal to stage a file over its line ends, no edit overlooked because its size and time are the old ones, no
# worktree linked by a path that clean-up would not know again, nothing pushed or pruned beyond what is named, no
# conflict that is resolved and staged by an earlier resolution, and then looks like none.
_SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.commitGraph", "false"),
    ("advice.graftFileDeprecated", "false"),
    ("core.safecrlf", "false"),
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    ("commit.gpgSign", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("rerere.enabled", "false"),
    ("worktree.useRelativePaths", "false"),
    ("push.gpgSign", "false"),
    ("push.followTags", "false"),
    ("push.recurseSubmodules", "no"),
    ("fetch.prune", "false"),
    ("fetch.pruneTags", "false"),
)

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Nightkeep"), ("EMAIL", "nightkeep@localhost"))
}

# What keeps GitPython from running `git version` twice when it is imported, to find out about a git that it need not
# know: it is told of one that cannot be executed, and that this does not matter.
_NO_LOOK = {"GIT_PYTHON_REFRESH": "quiet", "GIT_PYTHON_GIT_EXECUTABLE": os.devnull}

# Another git command holds a lock or moved a ref between our read and our write: waiting helps. Git says so in
# words only; a wrong guess costs a short wait, never work.
_CONTENDED = re.compile(rb"\.lock': File exists|could not lock config file|cannot lock ref .* but expected")


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a git command, a push, a wait for a held lock, and the stop of a command may take, and after which a
    server that did not answer is asked again; how long what is to be pushed may be looked through for secrets; and the
    size in bytes from which a file is kept out of it.
    """

    command: float = 120
    push: float = 300
    lock: float = 10
    stop: float = 5
    pause: float = 1
    screen: float = 30
    file: int = 50_000_000


@dataclass(frozen=True, slots=True)
class Completed:
    """A git command that ran to its end."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text, without the last line end; bytes that are not UTF-8 survive as surrogates."""
        return os.fsdecode(self.stdout).removesuffix("\n")

    @property
    def fields(self) -> list[str]:
        """The fields of a `-z` output, file names as Python's `os` functions take them."""
        return [os.fsdecode(part) for part in self.stdout.split(b"\0") if part]


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Git in one directory.

    An ordinary view refuses to run once `interruption` is recorded and stops the command that is running; the
    view that `completing` returns runs all the same and leaves the record alone. Every command has a deadline, a
    session of its own, no prompt, no hook, standard input closed or given, and output as bytes.

    `sweep` is called before each command. It stops what an earlier one has left running (a filter that went into the
    background could read what git is given, a token say, and take away what git answers) and returns the names of
    those that cannot be stopped; then the command is not run.
    """

    directory: Path
    interruption: Interruption = field(default_factory=Interruption)
    redact: Redactor = field(default_factory=Redactor)
    limits: Limits = field(default_factory=Limits)
    settings: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    selectors: tuple[str, ...] = ()
    finishing: bool = False
    sweep: Callable[[], Sequence[str]] = field(default=tuple, repr=False, compare=False)

    def completing(self) -> "Git":
        """Return the completion view: the same git, for work that a recorded interruption must not stop."""
        return replace(self, finishing=True)

    def within(self, **environment: str) -> "Git":
        """Return the same git with more environment variables."""
        return replace(self, environment={**self.environment, **environment})

    def run(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        accept: Collection[int] = (0,),
        limit: float | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Completed:
        """Run `git <arguments>` and return what came of it.

        `accept` lists the exit statuses that are answers rather than failures. A command that failed because
        another one holds a lock is tried again for `limits.lock` seconds. Raises GitError, GitTimeoutError after
        `limit` seconds (default: `limits.command`), or Interrupted.
        """
        deadline = time.monotonic() + (limit or self.limits.command)
        patience = time.monotonic() + self.limits.lock
        while True:
            done = self._once(arguments, stdin, deadline, pass_fds)
            contended = done.status != 0 and _CONTENDED.search(done.stderr)
            if not contended or time.monotonic() > min(patience, deadline):
                break
            time.sleep(_TICK)
        if done.status not in accept:
            raise self.failure(arguments, done)
        return done

    def wait(self, seconds: float) -> None:
        """Wait, until a signal comes: what is to be completed has little time, then."""
        finishing = self.finishing and self.interruption.recorded is not None
        self.interruption.wait(seconds, finishing=finishing)

    def answers(self, *arguments: str, stdin: bytes | None = None) -> bool:
        """Ask git a yes-or-no question: True for exit 0, False for exit 1, GitError for anything else."""
        return self.run(*arguments, stdin=stdin, accept=(0, 1)).status == 0

    def failure(self, arguments: Sequence[str], done: Completed, kind: type[GitError] = GitError) -> GitError:
        """Return the error that says how `git <arguments>` failed, redacted."""
        argv = [self.redact(argument) for argument in _shown(arguments)]
        stdout, stderr = (self.redact(os.fsdecode(part)) for part in (done.stdout, done.stderr))
        return kind(argv, self.directory, status=done.status, stdout=stdout, stderr=stderr)

    def _once(
        self, arguments: Sequence[str], stdin: bytes | None, deadline: float, pass_fds: Sequence[int]
    ) -> Completed:
        self._refuse_if_interrupted(arguments)
        left = self.sweep()
        if left:
            why = f"processes that were left behind cannot be stopped: {', '.join(left)}"
            raise GitError(_shown(arguments), self.directory, status=None, stderr=why)
        process = self._start(arguments, stdin, pass_fds)
        output = _Output(process)
        try:
            while output.pump(_TICK):
                self._refuse_if_interrupted(arguments)
                if time.monotonic() > deadline:
                    _stop(process, self.limits.stop)
                    raise self.failure(arguments, output.completed(), GitTimeoutError)
        finally:
            _stop(process, self.limits.stop)
            output.close()
        self._refuse_if_interrupted(arguments)
        return output.completed()

    def _start(
        self, arguments: Sequence[str], stdin: bytes | None, pass_fds: Sequence[int]
    ) -> "subprocess.Popen[bytes]":
        # Its `env` can add a variable but not remove one, so `env -u` does. `-C` and not a working directory,
        # because GitPython runs the command elsewhere when that directory is missing. SIGXFSZ stays ignored, as Python
        # has it: git hears of a file that may not grow and takes its locks away, where the signal would leave them.
        environment = {**_ENVIRONMENT, **self.environment}
        removed = [f"--unset={name}" for name in os.environ if _unwanted(name) and name not in environment]
        fixed = [word for key, value in (*_SETTINGS, *self.settings) for word in ("-c", f"{key}={value}")]
        argv = ["env", *removed, "git", "-C", str(self.directory), *self.selectors, *fixed, *arguments]
        try:
            with _file_of(stdin) as source:
                running = _gitpython()().execute(
                    argv,
                    istream=source,
                    as_process=True,
                    env=environment,
                    start_new_session=True,
                    restore_signals=False,
                    pass_fds=tuple(pass_fds),
                )
        except OSError as error:  # a full disk, too
            raise GitError(_shown(arguments), self.directory, status=None, stderr=str(error)) from error
        process = running.proc
        # The wrapper would terminate the process when it is collected; ours decides when.
        running.proc = None
        if process is None:  # pragma: no cover - GitPython's types allow it, its code does not
            raise GitError(_shown(arguments), self.directory, status=None, stderr="no process was started")
        return process

    def _refuse_if_interrupted(self, arguments: Sequence[str]) -> None:
        if self.interruption.recorded and not self.finishing:
            raise Interrupted(_shown(arguments), self.directory, status=None)


class _Output:
    """Collects what a process writes, without waiting for a grandchild that keeps its pipes open or goes on writing."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._parts: dict[int, list[bytes]] = {}
        self._after_end = 0
        for stream in (process.stdout, process.stderr):
            assert stream is not None  # noqa: S101 - GitPython always makes both pipes
            self._parts[stream.fileno()] = []
            self._selector.register(stream, selectors.EVENT_READ)

    def pump(self, seconds: float) -> bool:
        """Collect for at most `seconds`; False once the process is gone and its output is read."""
        # Looked at first: what it wrote just before it ended is in the pipe then, and cannot come later.
        gone = self._process.poll() is not None
        ready = self._selector.select(seconds) if self._selector.get_map() else []
        for key, _ in ready:
            chunk = os.read(key.fd, 1 << 16)
            if chunk:
                self._parts[key.fd].append(chunk)
                self._after_end += len(chunk) if gone else 0
            else:
                self._selector.unregister(key.fileobj)
        if self._selector.get_map():
            return not gone or (bool(ready) and self._after_end < _LEFT_IN_PIPES)
        return self._alive(seconds)

    def _alive(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def completed(self) -> Completed:
        stdout, stderr = (b"".join(parts) for parts in self._parts.values())
        return Completed(self._process.wait(), stdout, stderr)

    def close(self) -> None:
        self._selector.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _stop(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """End a command that is still running, with all that it started in its session's first process group.

    TERM first, so that git drops its locks, KILL for whatever is left after `seconds`.
    """
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if process.poll() is not None:
                _bury_orphans(process.pid)
            os.killpg(process.pid, 0)  # raises once nobody is left
            time.sleep(_TICK / 5)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(seconds)


def _bury_orphans(group: int) -> None:
    """Wait for what has ended of a group whose leader was waited for; where we are the subreaper nobody else does."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


@cache
def _gitpython() -> "type[GitPython]":
    """Import GitPython when it is needed, because that takes a while."""
    before = {name: os.environ.pop(name) for name in _NO_LOOK if name in os.environ}
    os.environ.update(_NO_LOOK)
    try:
        from git.cmd import Git as GitPython
    finally:
        for name in _NO_LOOK:
            del os.environ[name]
        os.environ.update(before)
    return GitPython


@contextlib.contextmanager
def _file_of(stdin: bytes | None) -> Iterator[BinaryIO | None]:
    """Have a file to read `stdin` from, which cannot block as a pipe can."""
    if stdin is None:
        yield None
        return
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        yield source


def _unwanted(name: str) -> bool:
    return name in _PROMPTS or (name.startswith("GIT_") and not _TRANSPORT.fullmatch(name))


def _shown(arguments: Sequence[str]) -> list[str]:
    return ["git", *arguments]
