"""Talking to origin, with a configuration that no agent can have written."""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from worktree.configuration import git_environment
from worktree.errors import GitError, GitTimeoutError, Interrupted, PushRefused
from worktree.git import Completed, Git
from worktree.lfs import LfsStore, can_upload
from worktree.origin import Origin, offered
from worktree.outage import Outage, Retries
from worktree.reading import read_regular
from worktree.refusal import RefusalKind, read_refusal, refused_refs
from worktree.temporary import temporary_directory

T = TypeVar("T")

_REHEARSALS = 3
_LEAST = 0.1  # seconds that a command gets
_LONGEST_SHALLOW = 1 << 24  # bytes
_FIRST_LOOK = 0.25  # of the time that a command has: how long origin may take to say which refs it has, at first
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
ABSENT = ""  # as RefUpdate.expected: the ref must not exist yet; as RefUpdate.new: it is deleted


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One ref of a push: `ref` is to name the commit `new`.

    `expected` is what the server must hold for that: None for a plain fast-forward, ABSENT for a ref that must not
    exist, else an object id. One that `is_record` has no files, so there are none to be uploaded for it.
    """

    ref: str
    new: str
    expected: str | None = None
    is_record: bool = False


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came of a dry run: the refs that are refused, with the reason, and whether refs can be pushed together."""

    refused: Mapping[str, str]
    is_atomic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Origin as a run sees it.

    Each command runs in a bare repository of its own, made for that command and gone after it, whose objects are
    the Launch repository's (`common` is its git directory). So neither `.git/config`, which every linked worktree
    and thus every agent can write, nor (where there is a token) the user's or the system's configuration has a say
    in where the token goes. `settings` are pinned, see `pinned_settings`; `known` are commits that origin is known
    to hold, so that a fetch asks for no more than what is new.

    What may pass is tried again after `pause` seconds, while there is an `outage` to be waited out for longer, see
    `Retries`.
    """

    git: Git
    common: Path
    origin: Origin
    settings: tuple[tuple[str, str], ...]
    object_format: str | None
    known: set[str]
    pause: float = 1.0
    outage: Outage | None = None

    @property
    def url(self) -> str:
        """The pinned URL."""
        return self.origin.url

    def completing(self) -> "Remote":
        """Return the same remote for completion work, see `Git.completing`."""
        return replace(self, git=self.git.completing())

    def read(self, *refs: str) -> dict[str, str]:
        """Return the object ids that origin holds now at those full ref names (`*` matches any part)."""
        return self._patiently(lambda: self._look(*refs))

    def _look(self, *refs: str) -> dict[str, str]:
        arguments = ("ls-remote", "--refs", "--", self.url, *refs)
        with self._workplace() as (git, _):
            try:
                listed = self._run(git, *arguments, limit=git.limits.command * _FIRST_LOOK).text
            except GitTimeoutError:
                # A process of the same user, an agent's too, can read from a pipe what git then waits for in vain.
                listed = self._run(git, *arguments).text
        rows = (line.split("\t", 1) for line in listed.splitlines())
        return {ref: oid for oid, ref in rows}

    def fetch(self, *branches: str) -> dict[str, str]:
        """Fetch those branches' commits into the Launch repository's objects; return their ids. Moves no ref."""
        heads = {branch: f"refs/heads/{branch}" for branch in branches}
        fetched = self.fetch_refs(*heads.values())
        return {branch: fetched[head] for branch, head in heads.items()}

    def fetch_refs(self, *refs: str) -> dict[str, str]:
        """Fetch what those refs name, as `fetch` does."""
        refspecs = [f"+{ref}:{ref}" for ref in refs]
        with self._workplace() as (git, directory):
            self._patiently(lambda: self._run(git, *_FETCH, "--", self.url, *refspecs, limit=git.limits.push))
            fetched = {ref: _read_ref(directory, ref) for ref in refs}
        self.known.update(fetched.values())
        return fetched

    def fetch_there(self, *refs: str) -> dict[str, str]:
        """Fetch what those refs name, as `fetch_refs` does, but for those that are gone by now."""
        try:
            return self.fetch_refs(*refs) if refs else {}
        except GitError:
            left = self.read(*refs)
            if len(left) == len(refs):
                raise
            return self.fetch_refs(*left) if left else {}

    def rehearse(self, commit: str, *refs: str) -> "Rehearsal":
        """Try, by a dry run, to push a commit to refs, all together. Makes no ref.

        The server is asked for leave to push and for its refs, and gets nothing: rules that it applies to what it
        gets are not seen. Raises GitError when it lets nobody push, or does not answer.
        """
        for _ in range(_REHEARSALS):
            try:
                return self._rehearse(commit, refs, is_atomic=True)
            except Interrupted:
                raise
            except GitError:
                # Git ends before it looks at any ref when the server cannot do that, as it does when a server fails.
                apart = self._patiently(lambda: self._rehearse(commit, refs, is_atomic=False))
        return apart

    def _rehearse(self, commit: str, refs: Sequence[str], *, is_atomic: bool) -> "Rehearsal":
        refspecs = [f"{commit}:{ref}" for ref in refs]
        flags = ["--dry-run", "--porcelain", "--no-verify", *(["--atomic"] if is_atomic else [])]
        arguments = ["push", *flags, "--", self.url, *refspecs]
        with self._workplace() as (git, _):
            said = self._run(git, *arguments, limit=git.limits.push, accept=(0, 1))
        refused = refused_refs(said.text)
        if said.status and not refused:
            raise git.failure(arguments, said)
        return Rehearsal({ref: git.redact(why) for ref, why in refused.items()}, is_atomic)

    def push(self, *updates: RefUpdate) -> tuple[str, ...]:
        """Make origin's refs name the given commits, all of them or none, and read them back.

        Never by force, without hooks, within the push deadline. A push whose answer was lost counts when origin
        holds the new ids. The LFS objects that the commits name are uploaded first; returns the ids of those that
        could not be, for want of `git-lfs`. To a remote that takes no push from a shallow clone the missing history
        is fetched, once. Raises PushRefused with what the server said, GitError when it did not take it otherwise.
        """
        deadline = time.monotonic() + self.git.limits.push
        with self._workplace() as (git, _):
            try:
                left = self._patiently(lambda: self._send(git, updates, deadline), pushes=True)
            except PushRefused as refused:
                if refused.refusal.kind is not RefusalKind.SHALLOW or not self._deepen(git, deadline):
                    raise
                left = self._patiently(lambda: self._send(git, updates, deadline), pushes=True)
        if not self._holds(updates, self.read):
            raise GitError(
                ("git", "ls-remote", self.origin.url),
                self.common,
                status=0,
                stderr=f"origin took {_names(updates)} but does not hold it",
            )
        return left

    def _send(self, git: Git, updates: Sequence[RefUpdate], deadline: float) -> tuple[str, ...]:
        left: tuple[str, ...] = ()
        try:
            left = self._upload(
                git, [update.new for update in updates if update.new != ABSENT and not update.is_record], deadline
            )
            self._run(git, *_push_arguments(self.url, updates), limit=_rest(deadline))
        except GitError as error:
            if not error.status:
                raise
            with suppress(GitError):  # the refusal stays the headline
                if self._holds(updates, self._look):
                    return left
            if isinstance(error, GitTimeoutError):
                raise
            refs = refused_refs(error.stdout) or [update.ref for update in updates]
            raise PushRefused(error, read_refusal(error.stdout, error.stderr), [*refs]) from error
        return left

    def _upload(self, git: Git, commits: Sequence[str], deadline: float) -> tuple[str, ...]:
        """Upload the LFS objects that the commits name and that are here; return the ids where that cannot be done."""
        store = LfsStore.of(self.common, self.settings)
        named = store.named_in(git, commits, self.known) if store.exists() else ()
        if not named or not can_upload(git, self.url):
            return named
        for uploading, arguments in store.uploads(git, self.url, named):
            self._run(uploading, *arguments, limit=_rest(deadline))
        return ()

    def _deepen(self, git: Git, deadline: float) -> bool:
        """Fetch the history that a shallow clone lacks; False when that failed.

        Only the workplace's list of where history ends is rewritten: the clone stays as shallow as its owner made it,
        with objects that it does not mention.
        """
        with suppress(GitError):
            self._run(git, *_FETCH, "--unshallow", "--", self.url, "HEAD", limit=_rest(deadline))
            return True
        return False

    def _holds(self, updates: Sequence[RefUpdate], read: Callable[..., dict[str, str]]) -> bool:
        seen = read(*(update.ref for update in updates))
        return all(seen.get(update.ref, ABSENT) == update.new for update in updates)

    def _patiently(self, action: Callable[[], T], *, pushes: bool = False) -> T:
        return Retries(self.git, self.pause, self.outage).until_done(action, pushes=pushes)

    def _run(self, git: Git, *arguments: str, limit: float | None = None, accept: Collection[int] = (0,)) -> Completed:
        """Run a command with the token as it is by now, and again when it was refused and is another one by then."""
        token = self.origin.current()
        try:
            return self._run_with(token, git, arguments, limit, accept)
        except GitError as error:
            if read_refusal(error.stdout, error.stderr).kind is not RefusalKind.UNAUTHORIZED:
                raise
            renewed = self.origin.current()
            if renewed == token:
                raise
            return self._run_with(renewed, git, arguments, limit, accept)

    def _run_with(
        self, token: str | None, git: Git, arguments: Sequence[str], limit: float | None, accept: Collection[int]
    ) -> Completed:
        if token is None:
            return git.within(**git_environment(self.settings)).run(*arguments, limit=limit, accept=accept)
        with offered(token, self.url) as (source, asking):
            settings = [*self.settings, *asking]
            shielded = git.within(
                **git_environment(settings), GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull
            )
            return shielded.run(*arguments, limit=limit, accept=accept, pass_fds=(source,))

    @contextmanager
    def _workplace(self) -> Iterator[tuple[Git, Path]]:
        with temporary_directory() as (directory, _):
            try:
                self._furnish(directory)
            except OSError as error:
                raise GitError(("git", "init", "--bare"), directory, status=None, stderr=str(error)) from error
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

    def _furnish(self, directory: Path) -> None:
        (directory / "objects").mkdir()
        (directory / "refs").mkdir()
        (directory / "HEAD").write_text("ref: refs/heads/none\n")
        (directory / "config").write_text(_config(self.object_format))
        (directory / "packed-refs").write_text("".join(f"{oid} refs/known/{oid}\n" for oid in sorted(self.known)))
        with suppress(FileNotFoundError):
            (directory / "shallow").write_bytes(read_regular(self.common / "shallow", _LONGEST_SHALLOW))


def _rest(deadline: float) -> float:
    return max(deadline - time.monotonic(), _LEAST)


def _names(updates: Sequence[RefUpdate]) -> str:
    return ", ".join(update.ref for update in updates)


def _push_arguments(url: str, updates: Sequence[RefUpdate]) -> list[str]:
    leases = [f"--force-with-lease={update.ref}:{update.expected}" for update in updates if update.expected is not None]
    refspecs = [f"{update.new}:{update.ref}" for update in updates]
    # Some servers cannot do several refs at once, and one ref needs no such promise.
    atomic = ["--atomic"] if len(updates) > 1 else []
    return ["push", "--porcelain", "--no-verify", *atomic, *leases, "--", url, *refspecs]


def _config(object_format: str | None) -> str:
    if object_format is None:
        return "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
    return f"[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = {object_format}\n"


def _read_ref(directory: Path, ref: str) -> str:
    return (directory / ref).read_text().strip()
