"""Looking, before any agent's time is spent, for what would stop a Run. `delivery.findings` says what it means."""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex

from delivery.checks import Required
from delivery.claims import CLAIMS
from delivery.conventions import Conventions
from delivery.credentials import credentials_in, name_token
from delivery.errors import GitHubError, PreflightError
from delivery.findings import Level, Probed, Space, diagnose, errors
from delivery.github import GitHub
from delivery.preflight import Plan
from worktree import GitError, Interrupted, Launch, Origin

_ROOM = 100_000_000  # bytes for what an agent makes, beyond a checkout, and for its objects
_LITTLE_ROOM = 10_000_000  # bytes for logs and temporary files
_LFS = "lfs"


@dataclass(frozen=True, slots=True)
class Label:
    """A label as it is made where the repository has none of that name. `color` is six hexadecimal digits."""

    name: str
    color: str
    description: str


def _labels_of(conventions: Conventions) -> tuple[Label, ...]:
    """Return the labels that Runs need in a repository."""
    return (
        Label(conventions.ready_label, "0e8a16", "An agent may take this issue"),
        Label(conventions.in_progress_label, "fbca04", "A Run of Nightkeep works, or has worked, on this issue"),
    )


def examine(
    github: GitHub,
    launch: Launch,
    origin: Origin,
    plan: Plan,
    conventions: Conventions,
    *,
    logs: Path | None,
    report: Callable[[str], None],
) -> Probed:
    """Probe what a Run needs; make the labels that are missing, and report what else is worth saying.

    `logs` is where logs go, None for nowhere. Returns what was seen. Raises PreflightError, with nothing made, when
    something would stop the Run, and Interrupted.
    """
    probed = look_at_clone(launch, plan.base_commit, logs)
    probed = probe_origin(probed, launch, origin, plan.base_commit)
    probed = ask_about_token(probed, github, origin, is_private=plan.is_private)
    if conventions.merges or conventions.checks_required is Required.ALWAYS:
        # Else it would be said, not stop the Run, and the watch says it as well.
        probed = ask_about_checks(probed, github, plan.base_commit, conventions, actions=False)
    findings = diagnose(probed)
    if stops := errors(findings):
        raise PreflightError("\n".join(map(str, stops)))
    for finding in findings:
        if finding.level is not Level.OK:
            report(f"{finding.level}: {finding}")
    _make_labels(github, conventions, report)
    return probed


def look_at_clone(launch: Launch, commit: str | None, logs: Path | None) -> Probed:
    """Look at this machine and the clone, and at a commit that was fetched, if there is one. Raises Interrupted."""
    probed = Probed(
        is_shallow=launch.is_shallow,
        is_partial=launch.is_partial,
        credentials=credentials_in(launch.configuration),
    )
    if commit is not None:
        probed = _survey(probed, launch, commit)
    size = (probed.survey and probed.survey.size) or 0
    return replace(probed, spaces=_spaces(launch, logs, size))


def probe_origin(probed: Probed, launch: Launch, origin: Origin, commit: str) -> Probed:
    """Try a push of that commit to a branch, to our namespace and to a claim by one dry run. Raises Interrupted."""
    probe = f"nightkeep-probe-{token_hex(4)}"
    branch, ours, claim = f"refs/heads/{probe}", f"refs/nightkeep/{probe}", f"{CLAIMS}{probe}"
    try:
        seen = launch.remote(origin).rehearse(commit, branch, ours, claim)
    except Interrupted:
        raise
    except GitError as error:
        return replace(probed, push_refused=" ".join((error.stderr or str(error)).split()))
    return replace(
        probed,
        push_refused=seen.refused.get(branch, ""),
        namespace_refused=seen.refused.get(ours, ""),
        claim_refused=seen.refused.get(claim, ""),
        is_atomic=seen.is_atomic,
    )


def ask_about_token(probed: Probed, github: GitHub, origin: Origin, *, is_private: bool | None) -> Probed:
    """See what kind of token it is, and what is known of drafts by that."""
    is_workflow_token = github.is_workflow_token()
    return replace(
        probed,
        token=name_token(origin.token or "", is_workflow_token=is_workflow_token),
        is_workflow_token=is_workflow_token,
        is_private=is_private,
    )


def ask_about_checks(
    probed: Probed, github: GitHub, commit: str, conventions: Conventions, *, actions: bool = True
) -> Probed:
    """See whether the token may read what checks say, and with `actions` why they do; what GitHub does not answer stays
    unknown.
    """
    rules = replace(probed, required=conventions.checks_required, merges=conventions.merges)
    try:
        return replace(rules, unreadable=github.checks.unreadable(commit, actions=actions))
    except GitHubError:
        return rules


def missing_labels(github: GitHub, conventions: Conventions) -> list[Label]:
    """Return the labels that the repository lacks. Raises GitHubError."""
    there = {name.lower() for name in github.labels()}
    return [label for label in _labels_of(conventions) if label.name.lower() not in there]


def _make_labels(github: GitHub, conventions: Conventions, report: Callable[[str], None]) -> None:
    try:
        for label in missing_labels(github, conventions):
            github.create_label(label.name, label.color, label.description)
            report(f"made the label {label.name}, which the repository lacked")
    except GitHubError as error:
        # Whether an issue can be labelled is for the claim to find out; GitHub makes a label that it does not know.
        report(f"labels that the repository lacks could not be made: {error}")


def _survey(probed: Probed, launch: Launch, commit: str) -> Probed:
    try:
        seen = launch.survey(commit)
        installed = seen.names_lfs and (shutil.which("git-lfs") is not None or launch.has_git_command(_LFS))
    except Interrupted:
        raise
    except GitError:  # a partial clone may be unable to fetch what it lacks; making the worktree tells
        return probed
    configured = any(key.startswith(f"filter.{_LFS}.") for _, key, _ in launch.configuration)
    return replace(probed, survey=seen, lfs_is_installed=installed, lfs_is_configured=configured)


def _spaces(launch: Launch, logs: Path | None, size: int) -> list[Space]:
    wanted: Mapping[str, tuple[Path | None, int]] = {
        "the worktree": (launch.worktrees, size + _ROOM),
        "git's objects": (launch.common, _ROOM),
        "logs": (logs, _LITTLE_ROOM),
        "temporary files": (Path(tempfile.gettempdir()), _LITTLE_ROOM),
    }
    return [
        Space(purpose=purpose, path=path, free=free, needed=needed)
        for purpose, (path, needed) in wanted.items()
        if path is not None and (free := _free(path)) is not None
    ]


def _free(path: Path) -> int | None:
    """Return the bytes that are free where `path` is or would be made; None where nobody can tell."""
    try:
        place = next(place for place in (path, *path.parents) if place.exists())
        usage = shutil.disk_usage(place)
    except (OSError, StopIteration):
        return None
    return usage.free if usage.total else None  # /proc and its like have no size at all
