"""Talking to origin, with a configuration that no agent can have written."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from worktree.configuration import as_environment
from worktree.errors import GitError
from worktree.git import Completed, Git
from worktree.reading import read_regular

_LONGEST_SHALLOW = 1 << 24  # bytes
ABSENT = ""  # as RefUpdate.expected: the ref must not exist yet


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run pushes to, pinned before any agent starts: a URL, and the token that its host asks for."""

    url: str
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One ref of a push: `ref` is to name the commit `new`.

    `expected` is what the server must hold for that: None for a plain fast-forward, ABSENT for a ref that must not
    exist, else an object id.
    """

    ref: str
    new: str
    expected: str | None = None


# Called before each push of a claimed Run: the update of the claim's ref that must succeed together with the push.
Fence = Callable[[], RefUpdate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Origin as a run sees it.

    Each command runs in a bare repository of its own, made for that command and gone after it, whose objects are
    the Launch repository's (`common` is its git directory). So neither `.git/config`, which every linked worktree
    and thus every agent can write, nor (where there is a token) the user's or the system's configuration has a say
    in where the token goes. `settings` are pinned, see `pinned_settings`; `known` are commits that origin is known
    to hold, so that a fetch asks for no more than what is new.
    """

    git: Git
    common: Path
    origin: Origin
    settings: tuple[tuple[str, str], ...]
    object_format: str | None
    known: set[str]

    @property
    def url(self) -> str:
        """The pinned URL."""
        return self.origin.url

    def completing(self) -> "Remote":
        """Return the same remote for completion work, see `Git.completing`."""
        return replace(self, git=self.git.completing())

    def read(self, *refs: str) -> dict[str, str]:
        """Return the object ids that origin holds now at those full ref names (`*` matches any part)."""
        with self._workplace() as (git, _):
            listed = self._run(git, "ls-remote", "--refs", "--", self.url, *refs).text
        rows = (line.split("\t", 1) for line in listed.splitlines())
        return {ref: oid for oid, ref in rows}

    def fetch(self, *branches: str) -> dict[str, str]:
        """Fetch those branches' commits into the Launch repository's objects; return their ids. Moves no ref."""
        heads = [f"refs/heads/{branch}" for branch in branches]
        with self._workplace() as (git, directory):
            self._run(
                git,
                *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
                *("--", self.url, *(f"+{head}:{head}" for head in heads)),
                limit=git.limits.push,
            )
            fetched = {branch: _read_ref(directory, head) for branch, head in zip(branches, heads, strict=True)}
        self.known.update(fetched.values())
        return fetched

    def rehearse(self, commit: str, *refs: str) -> dict[str, str]:
        """Try, by a dry run, to push a commit to refs; return those that are refused, with the reason. Makes no ref.

        The server is asked for leave to push and for its refs, and gets nothing: rules that it applies to what it
        gets are not seen. Raises GitError when it lets nobody push, or does not answer.
        """
        refspecs = [f"{commit}:{ref}" for ref in refs]
        arguments = ["push", "--dry-run", "--porcelain", "--no-verify", "--", self.url, *refspecs]
        with self._workplace() as (git, _):
            said = self._run(git, *arguments, limit=git.limits.push, accept=(0, 1))
        rows = [line.split("\t") for line in said.text.splitlines() if line.startswith("!\t")]
        if said.status and not rows:
            raise git.failure(arguments, said)
        return {row[1].partition(":")[2]: git.redact(row[2]) for row in rows}

    def push(self, *updates: RefUpdate) -> None:
        """Make origin's refs name the given commits, all of them or none, and read them back.

        Never by force, without hooks, within the push deadline. A push whose answer was lost counts when origin
        holds the new ids. Raises GitError with what the server said.
        """
        with self._workplace() as (git, _):
            try:
                self._run(git, *_push_arguments(self.url, updates), limit=git.limits.push)
            except GitError as refused:
                with suppress(GitError):  # the refusal stays the headline
                    if refused.status and self._holds(updates):
                        return
                raise
        if not self._holds(updates):
            names = ", ".join(update.ref for update in updates)
            raise GitError(
                ("git", "ls-remote", self.origin.url),
                self.common,
                status=0,
                stderr=f"origin took {names} but does not hold it",
            )

    def _holds(self, updates: Sequence[RefUpdate]) -> bool:
        seen = self.read(*(update.ref for update in updates))
        return all(seen.get(update.ref) == update.new for update in updates)

    def _run(self, git: Git, *arguments: str, limit: float | None = None, accept: Collection[int] = (0,)) -> Completed:
        if self.origin.token is None:
            return git.within(**as_environment(self.settings)).run(*arguments, limit=limit, accept=accept)
        with _offered(self.origin.token) as source:
            settings = [*self.settings, *_credential_settings(self.url, source)]
            shielded = git.within(
                **as_environment(settings), GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull
            )
            return shielded.run(*arguments, limit=limit, accept=accept, pass_fds=(source,))

    @contextmanager
    def _workplace(self) -> Iterator[tuple[Git, Path]]:
        with tempfile.TemporaryDirectory(prefix="nightkeep-git-") as name:
            directory = Path(name)
            (directory / "objects").mkdir()
            (directory / "refs").mkdir()
            (directory / "HEAD").write_text("ref: refs/heads/none\n")
            (directory / "config").write_text(_config(self.object_format))
            (directory / "packed-refs").write_text("".join(f"{oid} refs/known/{oid}\n" for oid in sorted(self.known)))
            with contextlib.suppress(FileNotFoundError):
                (directory / "shallow").write_bytes(read_regular(self.common / "shallow", _LONGEST_SHALLOW))
            git = Git(
                directory=self.common,
                interruption=self.git.interruption,
                redact=self.git.redact,
                limits=self.git.limits,
                selectors=(f"--git-dir={directory}",),
                environment={"GIT_OBJECT_DIRECTORY": str(self.common / "objects")},
                finishing=self.git.finishing,
                sweep=self.git.sweep,
            )
            yield git, directory


def pinned_settings(configuration: Sequence[tuple[str, str, str]], origin: Origin) -> tuple[tuple[str, str], ...]:
    """Choose the settings that a command to origin gets from the configuration as it stood at the start.

    With a token the files are not read at all, so how to reach the server (proxies, certificates) is carried over
    from the user's and the system's; headers and cookies are not, they may be credentials for somebody else.
    Without one the user's files are read as ever and only the clone's own transport settings need carrying.
    """
    return tuple((key, value) for scope, key, value in configuration if _carried(scope, key, origin.token is not None))


def _carried(scope: str, key: str, shielded: bool) -> bool:  # noqa: FBT001 - a fact, not a flag
    if shielded:
        other = key.endswith(("extraheader", "cookiefile"))
        return scope in ("system", "global") and key.startswith("http.") and not other
    return scope in ("local", "worktree") and key.startswith(("http.", "credential.", "ssh.", "core.sshcommand"))


def _push_arguments(url: str, updates: Sequence[RefUpdate]) -> list[str]:
    leases = [f"--force-with-lease={update.ref}:{update.expected}" for update in updates if update.expected is not None]
    refspecs = [f"{update.new}:{update.ref}" for update in updates]
    # Some servers cannot do several refs at once, and one ref needs no such promise.
    atomic = ["--atomic"] if len(updates) > 1 else []
    return ["push", "--porcelain", "--no-verify", *atomic, *leases, "--", url, *refspecs]


@contextmanager
def _offered(token: str) -> Iterator[int]:
    """Yield a descriptor from which the credential helper reads the token, a line for each time that git asks.

    A pipe, because an environment, an argument or a file can be read by other processes.
    """
    source, sink = os.pipe()
    try:
        with os.fdopen(sink, "w") as lines:
            lines.write(f"{token}\n" * 8)
        yield source
    finally:
        os.close(source)


def _credential_settings(url: str, source: int) -> list[tuple[str, str]]:
    parts = urlsplit(url)
    helper = (
        f'!f() {{ test "$1" = get && IFS= read -r token </dev/fd/{source}'
        ' && printf "username=x-access-token\\npassword=%s\\n" "$token"; }; f'
    )
    return [("credential.helper", ""), (f"credential.{parts.scheme}://{parts.netloc}.helper", helper)]


def _config(object_format: str | None) -> str:
    if object_format is None:
        return "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
    return f"[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = {object_format}\n"


def _read_ref(directory: Path, ref: str) -> str:
    return (directory / ref).read_text().strip()
