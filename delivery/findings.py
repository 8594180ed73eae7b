"""What would stop a Run, or surprise its user, decided from what was seen beforehand."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from delivery.checks import Required
from delivery.github.checks import ACTIONS
from worktree import Survey
from worktree.naming import some

OLDEST_GIT = (2, 38)


class Level(StrEnum):
    """How much a finding matters; an error keeps a Run from beginning."""

    OK = "ok"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at: what it is called, what was found, and what to do about it, "" for nothing."""

    name: str
    level: Level
    sentence: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return the sentence with its remedy."""
        return f"{self.sentence}; {self.remedy}" if self.remedy else self.sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The bytes that are free at a place and those that its `purpose` needs."""

    purpose: str
    path: Path
    free: int
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What was seen. None: it was not looked at, or could not be seen; nothing is found about it then. Known without a
    look are `is_workflow_token`, `required` and `merges`.

    `push_refused`, `namespace_refused` and `claim_refused` hold what origin said, "" when it refused nothing;
    `is_atomic` says whether it takes refs together. `lfs_is_installed` and `lfs_is_configured` matter only when the
    Base commit names LFS. `credentials` are the places in the configuration that hold one, masked. `own_ways` are those
    in which git here reaches origin without the token. `missing_labels` are those that the repository lacks.
    `unreadable` are the permissions that the token lacks to read what GitHub knows of checks, which a Run judges by
    `required`; `merges` says that it is a Merge run.
    """

    push_refused: str | None = None
    namespace_refused: str | None = None
    claim_refused: str | None = None
    is_atomic: bool | None = None
    token: str | None = None
    is_workflow_token: bool = False
    is_private: bool | None = None
    missing_labels: Sequence[str] | None = None
    unreadable: Sequence[str] | None = None
    required: Required = Required.AUTO
    merges: bool = False
    survey: Survey | None = None
    lfs_is_installed: bool = False
    lfs_is_configured: bool = False
    spaces: Sequence[Space] | None = None
    is_shallow: bool | None = None
    is_partial: bool | None = None
    credentials: Sequence[str] | None = None
    own_ways: Sequence[str] | None = None
    git_version: tuple[int, ...] | None = None


def diagnose(probed: Probed) -> tuple[Finding, ...]:
    """Decide what that means for a Run."""
    return tuple(finding for look in _LOOKS for finding in look(probed))


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that keep a Run from beginning."""
    return [finding for finding in findings if finding.level is Level.ERROR]


def ok(name: str, sentence: str) -> Finding:
    """Say that nothing is to be done."""
    return Finding(name=name, level=Level.OK, sentence=sentence)


def _git(probed: Probed) -> Iterator[Finding]:
    if probed.git_version is None:
        return
    version = ".".join(map(str, probed.git_version))
    if probed.git_version >= OLDEST_GIT:
        yield ok("git-version", f"git is {version}")
    else:
        oldest = ".".join(map(str, OLDEST_GIT))
        yield Finding(
            name="git-version",
            level=Level.ERROR,
            sentence=f"git is {version}",
            remedy=f"install {oldest} or newer",
        )


def _push(probed: Probed) -> Iterator[Finding]:
    if probed.push_refused == "":
        yield ok("push", "origin refuses no push of a branch, as far as a dry run tells")
    elif probed.push_refused is not None:
        yield Finding(
            name="push",
            level=Level.ERROR,
            sentence=f"origin refuses a push of a branch, tried as a dry run: {probed.push_refused}",
            remedy="give the token write access to the repository's contents",
        )


def _namespace(probed: Probed) -> Iterator[Finding]:
    if probed.namespace_refused == "":
        yield ok("claim-namespace", "origin refuses no push to refs/nightkeep/, as far as a dry run tells")
    elif probed.namespace_refused is not None:
        yield Finding(
            name="claim-namespace",
            level=Level.ERROR,
            sentence=f"origin refuses a push to refs/nightkeep/, tried as a dry run: {probed.namespace_refused}",
            remedy="allow refs below refs/nightkeep/ there: what an Issue branch cannot carry is kept under them",
        )


def _claims(probed: Probed) -> Iterator[Finding]:
    if probed.claim_refused:
        yield Finding(
            name="claims",
            level=Level.WARNING,
            sentence=f"origin takes no claim below refs/nightkeep/claims/: {probed.claim_refused}. The labels still "
            "show who works on an issue, but two machines may take the same one; origin then takes the branch of one",
            remedy="allow refs below refs/nightkeep/claims/ there",
        )
    elif probed.is_atomic is False:
        yield Finding(
            name="claims",
            level=Level.WARNING,
            sentence="origin cannot take several refs together (atomic pushes). One machine alone still takes an "
            "issue, but a run that was stopped for longer than its lease can push once more after another took it over",
            remedy="use a server that can, as GitHub can",
        )
    elif probed.is_atomic and probed.claim_refused == "":
        yield ok("claims", "origin refuses no claim, as far as a dry run tells, and takes refs together")


def _token(probed: Probed) -> Iterator[Finding]:
    if probed.token is None:
        return
    if probed.is_workflow_token:
        yield Finding(
            name="token",
            level=Level.WARNING,
            sentence=f"the token is {probed.token}: pull requests that it opens start no workflows, so no checks run",
            remedy="use the token of a GitHub app, or a fine-grained personal access token",
        )
    else:
        yield ok("token", f"the token is {probed.token}")


def _drafts(probed: Probed) -> Iterator[Finding]:
    if probed.is_workflow_token:
        yield Finding(
            name="drafts",
            level=Level.WARNING,
            sentence="GitHub lets the built-in token of a workflow turn no pull request into a draft, or out of it",
            remedy="use the token of a GitHub app, or a fine-grained personal access token",
        )
    elif probed.is_private:
        yield Finding(
            name="drafts",
            level=Level.NOTICE,
            sentence="whether there are draft pull requests is unknown until tried: "
            "private repositories have them on paid plans only",
        )
    elif probed.is_private is not None:
        yield ok("drafts", "the repository is public, so it has draft pull requests")


def _checks(probed: Probed) -> Iterator[Finding]:
    if probed.unreadable is None:
        return
    lacking = [one for one in probed.unreadable if one != ACTIONS]
    if lacking:
        level, so = _without_checks(probed)
        yield Finding(
            name="checks",
            level=level,
            sentence=f"the token may not read {' and '.join(lacking)}: {so}",
            remedy=f"give it {', '.join(f'{one}: read' for one in lacking)} (classic tokens: the scope repo)",
        )
    if ACTIONS in probed.unreadable:
        yield Finding(
            name="actions",
            level=Level.NOTICE,
            sentence="the token may not read Actions: agents are not shown the logs of failed jobs, and a job that "
            "fails by chance is not run again",
            remedy="give it actions: write",
        )
    if not probed.unreadable:
        yield ok("checks", "the token may read checks and statuses")


def _without_checks(probed: Probed) -> tuple[Level, str]:
    if probed.required is Required.NEVER:
        return Level.WARNING, "pull requests count as green unseen, as checks.required: never says"
    if probed.required is Required.ALWAYS:
        return Level.ERROR, "with checks.required: always no Run can come to a good end"
    if probed.merges:
        return Level.ERROR, "a Merge run merges nothing whose checks it cannot see, unless checks.required is never"
    return Level.WARNING, "whether a pull request is green is unknown, and a Run that does not merge takes it for green"


def _labels(probed: Probed) -> Iterator[Finding]:
    if probed.missing_labels:
        yield Finding(
            name="labels",
            level=Level.NOTICE,
            sentence=f"the repository lacks {_counted(probed.missing_labels, 'label')}",
            remedy="`nightkeep run` makes what is missing",
        )
    elif probed.missing_labels is not None:
        yield ok("labels", "the repository has the labels that Runs set (labels.ready, labels.in-progress)")


def _lfs(probed: Probed) -> Iterator[Finding]:
    if probed.survey is None:
        return
    if not probed.survey.names_lfs:
        yield ok("lfs", "no attribute of the Base branch names Git LFS")
    elif not probed.lfs_is_installed:
        yield Finding(
            name="lfs",
            level=Level.ERROR,
            sentence="the Base branch keeps files in Git LFS, and git-lfs was not found",
            remedy="install it (https://git-lfs.com) and run: git lfs install",
        )
    elif not probed.lfs_is_configured:
        yield Finding(
            name="lfs",
            level=Level.WARNING,
            sentence="the Base branch keeps files in Git LFS, which git is not set up for: an agent finds pointers",
            remedy="run: git lfs install",
        )
    else:
        yield ok("lfs", "the Base branch keeps files in Git LFS; what an agent adds is uploaded before each push")


def _disk(probed: Probed) -> Iterator[Finding]:
    if probed.spaces is None:
        return
    for level, factor in ((Level.ERROR, 1), (Level.WARNING, 2)):
        tight = [space for space in probed.spaces if space.free < factor * space.needed]
        if tight:
            yield Finding(
                name="disk-space",
                level=level,
                sentence=", ".join(_said(space) for space in tight),
                remedy="make room, or name another place (TMPDIR, worktrees.directory, logs.directory)",
            )
            return
    yield ok("disk-space", "there is room for a worktree, its logs and temporary files")


def _said(space: Space) -> str:
    return f"{space.path} has {_megabytes(space.free)} free for {space.purpose}, which needs {_megabytes(space.needed)}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _submodules(probed: Probed) -> Iterator[Finding]:
    if probed.survey is None:
        return
    if probed.survey.submodules:
        counted = _counted(probed.survey.submodules, "submodule")
        yield Finding(
            name="submodules",
            level=Level.NOTICE,
            sentence=f"worktrees are made without their submodules; the Base branch has {counted}",
            remedy="have `setup` run: git submodule update --init",
        )
    else:
        yield ok("submodules", "the Base branch has no submodules")


def _history(probed: Probed) -> Iterator[Finding]:
    if probed.is_shallow:
        yield Finding(
            name="shallow-clone",
            level=Level.NOTICE,
            sentence="the clone is shallow: an agent sees no older history, and merges may find no common commit",
            remedy="run: git fetch --unshallow",
        )
    elif probed.is_shallow is not None:
        yield ok("shallow-clone", "the clone has the whole history")
    if probed.is_partial:
        yield Finding(
            name="partial-clone",
            level=Level.NOTICE,
            sentence="the clone is partial: git fetches what is missing while it works, with the clone's own "
            "credentials and not with the token",
            remedy="make sure that `git fetch` needs no password here, or run in a full clone",
        )
    elif probed.is_partial is not None:
        yield ok("partial-clone", "the clone has every object")


def _credentials(probed: Probed) -> Iterator[Finding]:
    if probed.credentials:
        yield Finding(
            name="credential",
            level=Level.WARNING,
            sentence=f"the clone's configuration holds a credential, which agents can read: "
            f"{', '.join(probed.credentials)}",
            remedy="take it out (git remote set-url origin URL; on Actions: persist-credentials: false)",
        )
    elif probed.credentials is not None:
        yield ok("credential", "the clone's configuration holds no credential")


def _own_ways(probed: Probed) -> Iterator[Finding]:
    if not probed.own_ways:
        return
    if "SSH" in probed.own_ways:
        sentence = "origin is reached over SSH, so an agent can push with the keys that git has here"
    else:
        sentence = (
            f"git has a credential helper here ({', '.join(probed.own_ways)}): the git of agents does not ask it for "
            "origin, but another program of theirs could"
        )
    yield Finding(
        name="agent-push",
        level=Level.NOTICE,
        sentence=sentence,
        remedy="run Nightkeep as a user of its own that cannot push, or protect the Base branch",
    )


def _counted(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}{'s' if len(names) > 1 else ''}: {some(names)}"


_LOOKS = (
    _git,
    _push,
    _namespace,
    _claims,
    _token,
    _drafts,
    _checks,
    _labels,
    _lfs,
    _disk,
    _submodules,
    _history,
    _credentials,
    _own_ways,
)
