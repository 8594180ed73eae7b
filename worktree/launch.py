"""The Launch directory: the clone that a run is started from, and never worked in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from worktree.configuration import read_configuration
from worktree.errors import GitError, LaunchError
from worktree.git import Git, Limits
from worktree.interruption import Interruption
from worktree.record import read_records
from worktree.redaction import Redactor
from worktree.remote import Origin, Remote, pinned_settings

_NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A clone as it stood when it was opened.

    `directory` is what the user named, `top` the top level of its checkout, `common` the git directory that all
    its worktrees share. `configuration` holds (scope, key, value) in git's order, `refs` each ref's object id.
    `checked_out` is the branch of that checkout, None when HEAD is detached or has no commit yet.
    """

    directory: Path
    top: Path
    common: Path
    git: Git
    configuration: tuple[tuple[str, str, str], ...]
    refs: Mapping[str, str]
    checked_out: str | None

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        interruption: Interruption,
        redact: Redactor | None = None,
        limits: Limits = _NO_LIMITS,
        sweep: Callable[[], Sequence[str]] = tuple,
    ) -> "Launch":
        """Look at the clone at `directory`; raises LaunchError when there is none, and changes nothing.

        `sweep` is called before each git command, see `Git`.
        """
        directory = directory.absolute()
        here = Git(
            directory=directory, interruption=interruption, redact=redact or Redactor(), limits=limits, sweep=sweep
        )
        common, top = _places(here)
        listed = here.run("for-each-ref", "--format=%(HEAD)%(objectname) %(refname)").text.splitlines()
        heads = [row.split(" ", 1)[1] for row in listed if row.startswith("*")]
        return cls(
            directory=directory,
            top=top,
            common=common,
            # The directory is named outright, so that nothing an agent does to `core.bare` or `core.worktree` matters.
            git=Git(
                directory=common,
                interruption=interruption,
                redact=here.redact,
                limits=limits,
                selectors=(f"--git-dir={common}",),
                sweep=sweep,
            ),
            configuration=read_configuration(here),
            refs={ref: oid for oid, ref in (row[1:].split(" ", 1) for row in listed)},
            checked_out=heads[0].removeprefix("refs/heads/") if heads else None,
        )

    @property
    def origin_url(self) -> str | None:
        """The URL of the remote "origin" as it is configured, or None."""
        urls = [value for _, key, value in self.configuration if key == "remote.origin.url"]
        return urls[-1] if urls else None

    def remote(self, origin: Origin | None = None) -> Remote:
        """Return origin at that pinned URL and credential, or as the clone itself reaches it."""
        pinned = origin or Origin(self._own_url())
        return Remote(
            git=self.git,
            common=self.common,
            origin=pinned,
            settings=pinned_settings(self.configuration, pinned),
            object_format=self._value("extensions.objectformat"),
            known={oid for ref, oid in self.refs.items() if ref.startswith("refs/remotes/origin/")},
        )

    def ahead(self, branch: str, commit: str) -> int:
        """Return how many commits the local `branch` has that `commit` (which must be fetched) lacks."""
        local = self.refs.get(f"refs/heads/{branch}", commit)
        if local == commit:
            return 0
        return int(self.git.run("rev-list", "--count", f"{commit}..{local}").text)

    def obstacle(self, branch: str, on_origin: str | None) -> str | None:
        """Return what a local `branch` means for a Run on it, with the remedy: None when it is not in the way.

        `on_origin` is the commit that origin holds, None for a branch that is not there. A local branch that
        equals origin's can be worked on; any other is a person's, and never reset.
        """
        held = [record for record in read_records(self.common) if record.branch == branch and record.path.exists()]
        if held:
            return (
                f"{branch} is checked out in {held[0].path} by run {held[0].run_id} (process {held[0].pid} on "
                f"{held[0].host}); wait for its end. If it has ended, take what you need from there, remove it (git "
                f"worktree remove --force --force {held[0].path}; git branch -D {branch}), then run again"
            )
        local = self.refs.get(f"refs/heads/{branch}")
        if local in (None, on_origin):
            return None
        how = "is not on origin" if on_origin is None else "differs from origin's"
        return (
            f"the local branch {branch} in {self.top} {how}; push it, rename it (git branch -m {branch} NAME) "
            f"or delete it (git branch -D {branch}), then run again"
        )

    def _own_url(self) -> str:
        if self.origin_url is None:
            raise LaunchError(f'{self.top} has no remote "origin"; add one: git remote add origin URL')
        url = self.git.run("ls-remote", "--get-url", "origin").text
        local = "://" not in url and ":" not in url.split("/", 1)[0]
        return str(self.top / url) if local else url

    def _value(self, key: str) -> str | None:
        return next((value for _, name, value in self.configuration if name == key), None)


def _places(here: Git) -> tuple[Path, Path]:
    if not here.directory.is_dir():
        raise LaunchError(f"{here.directory} is not a directory")
    try:
        shown = here.run("rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel").text
    except GitError as error:
        if error.status is None:
            raise
        raise LaunchError(f"{here.directory} is not a checkout of a git repository: {error.stderr.strip()}") from error
    common, top = shown.split("\n")
    return Path(common), Path(top)
