"""What would stop a Run, or surprise its user, decided from what was seen beforehand."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from delivery.checks import Required
from delivery.github.checks import ACTIONS
from worktree import Survey
from worktree.naming import some

OLDEST_GIT = (2, 38)
_MASK = "***"
# https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats
_TOKENS = {
    "github_pat_": "a fine-grained personal access token",
    "ghp_": "a classic personal access token",
    "gho_": "the token of an OAuth app, as `gh` has one",
    "ghu_": "a user's token for a GitHub app",
    "ghs_": "the token of a GitHub app",
}
_TOKEN_SHAPE = re.compile(r"(gh[pousr]_|github_pat_)\w+|[0-9a-f]{40}")


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
class Facts:
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


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """Decide what the facts mean for a Run."""
    return tuple(finding for look in _LOOKS for finding in look(facts))


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that keep a Run from beginning."""
    return [finding for finding in findings if finding.level is Level.ERROR]


def name_token(token: str, *, is_workflow_token: bool) -> str:
    """Say what kind of token it is, as far as that can be seen."""
    if is_workflow_token:
        return "the built-in token of a workflow"
    return next((kind for prefix, kind in _TOKENS.items() if token.startswith(prefix)), "of an unknown kind")


def credentials_in(configuration: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return where a clone's configuration holds a credential, masked: in a remote's URL, or in a header.

    `configuration` holds (scope, key, value). Headers count where any worktree can read them: in the clone's own files.
    """
    return tuple(place for scope, key, value in configuration if (place := _credential(scope, key, value)))


def _credential(scope: str, key: str, value: str) -> str | None:
    if key.startswith("remote.") and key.endswith((".url", ".pushurl")):
        masked = _masked(value)
        return f"{key} ({masked})" if masked else None
    header = scope in ("local", "worktree") and key.startswith("http.") and key.endswith("extraheader")
    return key if header and value.lower().startswith(("authorization:", "proxy-authorization:")) else None


def ways_to(url: str, configuration: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return in which ways git reaches the remote at `url` without our token: over SSH, or by credential helpers.

    `configuration` holds (scope, key, value) in git's order.
    """
    if not url.startswith(("http://", "https://")):
        return ("SSH",)
    host = urlsplit(url).hostname or ""
    ways: list[str] = []
    for _, key, value in configuration:
        if not key.startswith("credential.") or not key.endswith(".helper"):
            continue
        place = key.removeprefix("credential").removesuffix("helper").strip(".")
        if place and host not in place and "*" not in place:
            continue
        ways = [*ways, key] if value else []
    return tuple(dict.fromkeys(ways))


def _masked(url: str) -> str | None:
    """Return the URL without its credential; None when it has none. A user's name alone is none."""
    if not url.startswith(("http://", "https://")):
        return None
    user, at, host = urlsplit(url).netloc.rpartition("@")
    name, _, password = user.partition(":")
    if not at or not (password or _TOKEN_SHAPE.fullmatch(name)):
        return None
    return url.replace(f"{user}@{host}", f"{_MASK}@{host}", 1)


def ok(name: str, sentence: str) -> Finding:
    """Say that nothing is to be done."""
    return Finding(name=name, level=Level.OK, sentence=sentence)


def _git(facts: Facts) -> Iterator[Finding]:
    if facts.git_version is None:
        return
    version = ".".join(map(str, facts.git_version))
    if facts.git_version >= OLDEST_GIT:
        yield ok("git-version", f"git is {version}")
    else:
        oldest = ".".join(map(str, OLDEST_GIT))
        yield Finding(
            name="git-version",
            level=Level.ERROR,
            sentence=f"git is {version}",
            remedy=f"install {oldest} or newer",
        )


def _push(facts: Facts) -> Iterator[Finding]:
    if facts.push_refused == "":
        yield ok("push", "origin refuses no push of a branch, as far as a dry run tells")
    elif facts.push_refused is not None:
        yield Finding(
            name="push",
            level=Level.ERROR,
            sentence=f"origin refuses a push of a branch, tried as a dry run: {facts.push_refused}",
            remedy="give the token write access to the repository's contents",
        )


def _namespace(facts: Facts) -> Iterator[Finding]:
    if facts.namespace_refused == "":
        yield ok("claim-namespace", "origin refuses no push to refs/nightkeep/, as far as a dry run tells")
    elif facts.namespace_refused is not None:
        yield Finding(
            name="claim-namespace",
            level=Level.ERROR,
            sentence=f"origin refuses a push to refs/nightkeep/, tried as a dry run: {facts.namespace_refused}",
            remedy="allow refs below refs/nightkeep/ there: what an Issue branch cannot carry is kept under them",
        )


def _claims(facts: Facts) -> Iterator[Finding]:
    if facts.claim_refused:
        yield Finding(
            name="claims",
            level=Level.WARNING,
            sentence=f"origin takes no claim below refs/nightkeep/claims/: {facts.claim_refused}. The labels still "
            "show who works on an issue, but two machines may take the same one; origin then takes the branch of one",
            remedy="allow refs below refs/nightkeep/claims/ there",
        )
    elif facts.is_atomic is False:
        yield Finding(
            name="claims",
            level=Level.WARNING,
            sentence="origin cannot take several refs together (atomic pushes). One machine alone still takes an "
            "issue, but a run that was stopped for longer than its lease can push once more after another took it over",
            remedy="use a server that can, as GitHub can",
        )
    elif facts.is_atomic and facts.claim_refused == "":
        yield ok("claims", "origin refuses no claim, as far as a dry run tells, and takes refs together")


def _token(facts: Facts) -> Iterator[Finding]:
    if facts.token is None:
        return
    if facts.is_workflow_token:
        yield Finding(
            name="token",
            level=Level.WARNING,
            sentence=f"the token is {facts.token}: pull requests that it opens start no workflows, so no checks run",
            remedy="use the token of a GitHub app, or a fine-grained personal access token",
        )
    else:
        yield ok("token", f"the token is {facts.token}")


def _drafts(facts: Facts) -> Iterator[Finding]:
    if facts.is_workflow_token:
        yield Finding(
            name="drafts",
            level=Level.WARNING,
            sentence="GitHub lets the built-in token of a workflow turn no pull request into a draft, or out of it",
            remedy="use the token of a GitHub app, or a fine-grained personal access token",
        )
    elif facts.is_private:
        yield Finding(
            name="drafts",
            level=Level.NOTICE,
            sentence="whether there are draft pull requests is unknown until tried: "
            "private repositories have them on paid plans only",
        )
    elif facts.is_private is not None:
        yield ok("drafts", "the repository is public, so it has draft pull requests")


def _checks(facts: Facts) -> Iterator[Finding]:
    if facts.unreadable is None:
        return
    lacking = [one for one in facts.unreadable if one != ACTIONS]
    if lacking:
        level, so = _without_checks(facts)
        yield Finding(
            name="checks",
            level=level,
            sentence=f"the token may not read {' and '.join(lacking)}: {so}",
            remedy=f"give it {', '.join(f'{one}: read' for one in lacking)} (classic tokens: the scope repo)",
        )
    if ACTIONS in facts.unreadable:
        yield Finding(
            name="actions",
            level=Level.NOTICE,
            sentence="the token may not read Actions: agents are not shown the logs of failed jobs, and a job that "
            "fails by chance is not run again",
            remedy="give it actions: write",
        )
    if not facts.unreadable:
        yield ok("checks", "the token may read checks and statuses")


def _without_checks(facts: Facts) -> tuple[Level, str]:
    if facts.required is Required.NEVER:
        return Level.WARNING, "pull requests count as green unseen, as checks.required: never says"
    if facts.required is Required.ALWAYS:
        return Level.ERROR, "with checks.required: always no Run can come to a good end"
    if facts.merges:
        return Level.ERROR, "a Merge run merges nothing whose checks it cannot see, unless checks.required is never"
    return Level.WARNING, "whether a pull request is green is unknown, and a Run that does not merge takes it for green"


def _labels(facts: Facts) -> Iterator[Finding]:
    if facts.missing_labels:
        yield Finding(
            name="labels",
            level=Level.NOTICE,
            sentence=f"the repository lacks {_counted(facts.missing_labels, 'label')}",
            remedy="`nightkeep run` makes what is missing",
        )
    elif facts.missing_labels is not None:
        yield ok("labels", "the repository has the labels that Runs set (labels.ready, labels.in-progress)")


def _lfs(facts: Facts) -> Iterator[Finding]:
    if facts.survey is None:
        return
    if not facts.survey.names_lfs:
        yield ok("lfs", "no attribute of the Base branch names Git LFS")
    elif not facts.lfs_is_installed:
        yield Finding(
            name="lfs",
            level=Level.ERROR,
            sentence="the Base branch keeps files in Git LFS, and git-lfs was not found",
            remedy="install it (https://git-lfs.com) and run: git lfs install",
        )
    elif not facts.lfs_is_configured:
        yield Finding(
            name="lfs",
            level=Level.WARNING,
            sentence="the Base branch keeps files in Git LFS, which git is not set up for: an agent finds pointers",
            remedy="run: git lfs install",
        )
    else:
        yield ok("lfs", "the Base branch keeps files in Git LFS; what an agent adds is uploaded before each push")


def _disk(facts: Facts) -> Iterator[Finding]:
    if facts.spaces is None:
        return
    for level, factor in ((Level.ERROR, 1), (Level.WARNING, 2)):
        tight = [space for space in facts.spaces if space.free < factor * space.needed]
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


def _submodules(facts: Facts) -> Iterator[Finding]:
    if facts.survey is None:
        return
    if facts.survey.submodules:
        counted = _counted(facts.survey.submodules, "submodule")
        yield Finding(
            name="submodules",
            level=Level.NOTICE,
            sentence=f"worktrees are made without their submodules; the Base branch has {counted}",
            remedy="have `setup` run: git submodule update --init",
        )
    else:
        yield ok("submodules", "the Base branch has no submodules")


def _history(facts: Facts) -> Iterator[Finding]:
    if facts.is_shallow:
        yield Finding(
            name="shallow-clone",
            level=Level.NOTICE,
            sentence="the clone is shallow: an agent sees no older history, and merges may find no common commit",
            remedy="run: git fetch --unshallow",
        )
    elif facts.is_shallow is not None:
        yield ok("shallow-clone", "the clone has the whole history")
    if facts.is_partial:
        yield Finding(
            name="partial-clone",
            level=Level.NOTICE,
            sentence="the clone is partial: git fetches what is missing while it works, with the clone's own "
            "credentials and not with the token",
            remedy="make sure that `git fetch` needs no password here, or run in a full clone",
        )
    elif facts.is_partial is not None:
        yield ok("partial-clone", "the clone has every object")


def _credentials(facts: Facts) -> Iterator[Finding]:
    if facts.credentials:
        yield Finding(
            name="credential",
            level=Level.WARNING,
            sentence=f"the clone's configuration holds a credential, which agents can read: "
            f"{', '.join(facts.credentials)}",
            remedy="take it out (git remote set-url origin URL; on Actions: persist-credentials: false)",
        )
    elif facts.credentials is not None:
        yield ok("credential", "the clone's configuration holds no credential")


def _own_ways(facts: Facts) -> Iterator[Finding]:
    if not facts.own_ways:
        return
    if "SSH" in facts.own_ways:
        sentence = "origin is reached over SSH, so an agent can push with the keys that git has here"
    else:
        sentence = (
            f"git has a credential helper here ({', '.join(facts.own_ways)}): the git of agents does not ask it for "
            "origin, but another program of theirs could"
        )
    yield Finding(
        name="agent-push",
        level=Level.NOTICE,
        sentence=sentence,
        remedy="run Nightkeep as a user without them, or protect the Base branch",
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
