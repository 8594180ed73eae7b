"""The Launch directory: the clone that a run is started from, and never worked in."""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from worktree.configuration import read_configuration
from worktree.errors import GitError, LaunchError
from worktree.git import Git, Limits
from worktree.interruption import Interruption
from worktree.origin import Origin, pinned_settings
from worktree.outage import Outage
from worktree.processes import RUN_MARKER
from worktree.reading import read_regular, read_words
from worktree.record import RunRecord, owner_may_live, read_records
from worktree.redaction import Redactor
from worktree.remote import Remote
from worktree.stash import StashEntry, read_stash
from worktree.survey import Survey, survey

_NO_LIMITS = Limits()
_OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A clone as it stood when it was opened.

    `directory` is what the user named, `top` the top level of its checkout, `common` the git directory that all
    its worktrees share, `worktrees` the directory that worktrees are made in. `configuration` holds (scope, key,
    value) in git's order, `refs` each ref's object id, see also `detached_heads`, `stash` its entries. `checked_out` is
    the branch of that checkout, None when HEAD is detached or has no commit yet.
    """

    directory: Path
    top: Path
    common: Path
    worktrees: Path
    git: Git
    configuration: tuple[tuple[str, str, str], ...]
    refs: Mapping[str, str]
    stash: tuple[StashEntry, ...]
    checked_out: str | None
    outage: Outage | None = None

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
            worktrees=top.parent,
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
            refs={ref: oid for oid, ref in (row[1:].split(" ", 1) for row in listed)} | detached_heads(common),
            stash=read_stash(common),
            checked_out=heads[0].removeprefix("refs/heads/") if heads else None,
        )

    def reopened(self) -> "Launch":
        """Return the same clone as it is now. Raises GitError."""
        listed = self.git.run("for-each-ref", "--format=%(objectname) %(refname)").text.splitlines()
        refs = {ref: oid for oid, ref in (row.split(" ", 1) for row in listed)}
        return replace(self, refs=refs | detached_heads(self.common), stash=read_stash(self.common))

    def close(self) -> None:
        """Stop what git commands may have left running; call it when none is to follow."""
        self.git.sweep()

    def limited(self, limits: Limits) -> "Launch":
        """Return the same clone with other limits for what is done from it."""
        return replace(self, git=replace(self.git, limits=limits))

    def patient(self, report: Callable[[str], object]) -> "Launch":
        """Return the same clone, whose origin is waited for when it cannot be reached, see `Remote`."""
        return replace(self, outage=Outage(report))

    def of_run(self, run_id: str) -> "Launch":
        """Return the same clone for work on a run: git that outlives its runner is stopped before that is recovered."""
        return replace(self, git=self.git.within(**{RUN_MARKER: run_id}))

    @property
    def origin_url(self) -> str | None:
        """The URL of the remote "origin" as it is configured, or None."""
        urls = [value for _, key, value in self.configuration if key == "remote.origin.url"]
        return urls[-1] if urls else None

    @property
    def is_shallow(self) -> bool:
        """Whether the clone lacks older history."""
        return (self.common / "shallow").exists()

    @property
    def is_partial(self) -> bool:
        """Whether the clone lacks objects that git is to fetch when they are needed."""
        keys = {key for _, key, value in self.configuration if value.lower() not in ("", "false", "no", "off", "0")}
        return any(
            key == "extensions.partialclone" or (key.startswith("remote.") and key.endswith(".promisor"))
            for key in keys
        )

    def survey(self, commit: str) -> Survey:
        """Look at what a commit that was fetched asks of this machine. Raises GitError."""
        return survey(self.git, commit, is_partial=self.is_partial)

    def has_git_command(self, name: str) -> bool:
        """Whether `git <name>`, a command that is no part of git itself, is installed where git finds it."""
        return self.git.answers(name, "version")

    def git_version(self) -> tuple[int, ...]:
        """Return git's version as far as it is numbers. Raises GitError."""
        found = re.search(r"[0-9]+(?:\.[0-9]+)*", self.git.run("version").text)
        return tuple(int(part) for part in found[0].split(".")) if found else ()

    def remote(self, origin: Origin | None = None) -> Remote:
        """Return origin at that pinned URL and credential, or as the clone itself reaches it."""
        pinned = origin or Origin(self._own_url())
        return Remote(
            git=self.git,
            common=self.common,
            origin=pinned,
            settings=pinned_settings(self.configuration, pinned),
            object_format=self.value("extensions.objectformat"),
            pause=self.git.limits.pause,
            outage=self.outage,
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
        for record in read_records(self.common):
            if record.branch == branch and record.path.exists():
                return _taken(record, may_live=owner_may_live(self.common, record))
        in_the_way = name_in_the_way(branch, (ref.removeprefix("refs/heads/") for ref in self.refs))
        if in_the_way:
            remedy = f"rename it: git branch -m {in_the_way} NAME"
            return f"the local branch {in_the_way} keeps git from making {branch}; {remedy}"
        local = self.refs.get(f"refs/heads/{branch}")
        if local is None:
            return None
        if local == on_origin:
            place = self._checkout_of(branch)
            return f"'{branch}' is already checked out at '{place}'; switch to another branch there" if place else None
        how = "is not on origin" if on_origin is None else "differs from origin's"
        return (
            f"the local branch {branch} in {self.top} {how}; push it, rename it (git branch -m {branch} NAME) "
            f"or delete it (git branch -D {branch}), then run again"
        )

    def _checkout_of(self, branch: str) -> Path | None:
        """Return the checkout that has `branch`, None when none has."""
        wanted = ["ref:", f"refs/heads/{branch}"]
        if read_words(self.common / "HEAD") == wanted:
            return self.top
        heads = (self.common / "worktrees").glob("*/HEAD")
        return next((checkout_noted_in(head.parent) for head in heads if read_words(head) == wanted), None)

    def read_file(self, commit: str, path: str) -> str | None:
        """Return the text of a file as a commit has it, None when it has none there. Raises UnicodeDecodeError."""
        asked = f"{commit}:{path}\n".encode()
        answer = self.git.run("cat-file", "--batch", stdin=asked).stdout
        header, _, content = answer.partition(b"\n")
        # "<object id> blob <size>", or "<what was asked> missing"
        words = header.split(b" ")
        return content[: int(words[2])].decode() if len(words) == 3 and words[1] == b"blob" else None

    def _own_url(self) -> str:
        if self.origin_url is None:
            raise LaunchError(f'{self.top} has no remote "origin"; add one: git remote add origin URL')
        url = self.git.run("ls-remote", "--get-url", "origin").text
        local = "://" not in url and ":" not in url.split("/", 1)[0]
        return str(self.top / url) if local else url

    def value(self, key: str) -> str | None:
        """Return the value that was configured for a key, given in lower case; None where there is none."""
        return next((value for _, name, value in reversed(self.configuration) if name == key), None)


def name_in_the_way(branch: str, others: Iterable[str]) -> str | None:
    """Return one of `others` beside which git can have no branch of that name: one is a directory of the other."""
    return next((name for name in others if name.startswith(f"{branch}/") or branch.startswith(f"{name}/")), None)


def detached_heads(common: Path) -> dict[str, str]:
    """Return the commits that the HEADs of people's checkouts name and perhaps no ref does, by git's names for them.

    Not those of worktrees of runs, by their locks; what cannot be read is passed over.
    """
    admins = {f"worktrees/{admin.name}/HEAD": admin for admin in sorted((common / "worktrees").glob("*"))}
    found = {}
    for name, admin in {"main-worktree/HEAD": common, **admins}.items():
        with suppress(OSError):
            words = read_words(admin / "HEAD")
            is_commit = len(words) == 1 and _OBJECT_ID.fullmatch(words[0])
            if is_commit and read_words(admin / "locked")[:1] != ["nightkeep"]:
                found[name] = words[0]
    return found


def registered_paths(common: Path) -> set[Path]:
    """Return where git has linked worktrees of the clone noted, there or not."""
    found = set()
    for admin in (common / "worktrees").glob("*"):
        with suppress(OSError):
            found.add(checkout_noted_in(admin))
    return found


def checkout_noted_in(admin: Path) -> Path:
    """Return where the worktree is whose git directory that is."""
    # Relative to git's directory where git was told so.
    written = os.fsdecode(read_regular(admin / "gitdir")).removesuffix("\n")
    return Path(os.path.normpath(admin / written)).parent


def _taken(record: RunRecord, *, may_live: bool) -> str:
    where = f"{record.branch} is checked out in {record.path} by run {record.run_id}"
    if may_live:
        return f"{where}, process {record.pid} on {record.host}; wait for its end, or work on another issue"
    release = shlex.join(["nightkeep", "worktrees", "release", str(record.path)])
    return f"{where}, which has ended and kept it; see what it holds, and release it: {release}"


def _places(here: Git) -> tuple[Path, Path]:
    if not here.directory.is_dir():
        raise LaunchError(f"{here.directory} is not a directory")
    try:
        shown = here.run("rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel").text
    except GitError as error:
        if error.status is None:
            raise
        # What git goes on to say about a boundary names a variable that we do not let through to it.
        said = " ".join(line for line in error.stderr.split("\n") if line and not line.startswith("Stopping at "))
        raise LaunchError(f"{here.directory} is not a checkout of a git repository: {said}") from error
    common, _, top = shown.partition("\n")
    if "\n" in top:
        raise LaunchError(
            f"{str(here.directory)!a} has a line end in its path; rename that, for git tells paths by lines"
        )
    return Path(common), Path(top)
