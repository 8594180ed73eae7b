"""The one way in which a Run, or a Spec run, fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delivery.causes import Code, Stage
from delivery.errors import (
    DeliveryError,
    GitHubError,
    GitHubForbiddenError,
    GitHubUnavailableError,
    PolicyRefusal,
    RunFailureError,
    is_for_later,
)
from delivery.github import PullRequest
from delivery.outcome import Pending, Result
from delivery.pull_request import Marked, PullRequests
from worktree import (
    AcquisitionError,
    BranchRewrittenError,
    FenceLostError,
    GitError,
    Interruption,
    Journal,
    LaunchError,
    PreservationError,
    PushRefused,
    UnsettledError,
    Worktree,
    WorktreeError,
)

# What is so once a Run has lost its claim.
OVERTAKEN = "the issue is another run's by now, or nobody's: its branch, its pull request and its labels are left alone"
# The first that fits.
_CODES: tuple[tuple[type[Exception], Code], ...] = (
    (GitHubUnavailableError, Code.GITHUB_UNAVAILABLE),
    (GitHubForbiddenError, Code.PERMISSION),
    (GitHubError, Code.GITHUB),
    (PushRefused, Code.PUSH_REFUSED),
    (FenceLostError, Code.LEASE_LOST),
    (BranchRewrittenError, Code.REWRITTEN),
    (UnsettledError, Code.UNSETTLED),
    (AcquisitionError, Code.WORKTREE),
    (LaunchError, Code.WORKTREE),
    (WorktreeError, Code.GIT),
    (DeliveryError, Code.MACHINE),
    (OSError, Code.MACHINE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A delivery that failed, after all that could be done for it was done; `pending` is what can be done later.

    `failing` are the checks that failed, by name and address.
    """

    result: Result
    cause: str
    code: Code
    stage: Stage
    secondary: tuple[str, ...]
    pull_request: PullRequest | None
    failing: tuple[tuple[str, str], ...] = ()
    pending: Pending | None = None


def fail(
    worktree: Worktree | None,
    base: str,
    error: Exception,
    *,
    stage: Stage,
    pull_requests: PullRequests,
    opens_draft: bool,
    interruption: Interruption,
    journal: Journal,
    report: Callable[[str], None],
    unfinished: Sequence[str] = (),
    has_work: bool = False,
) -> Failure:
    """End a delivery that failed with `error` in `stage`, or where causes of its kind belong.

    Preserves the work by one call on the worktree and turns the pull request into a draft, whatever preservation
    did, or labels it where it cannot be one; where none exists and origin holds work, `opens_draft` lets one be opened.
    After a Policy refusal it does nothing: the pull request stays as it was checked. Once the claim is lost the work
    goes to rescue refs, and the pull request is left to whoever has the claim. A recorded interruption takes the
    cause's place. `unfinished` says what sessions had left unfinished before, which may be why, and is told with the
    cause. A Spec run has no `worktree` until its Tickets are done, and nothing to preserve then; `has_work` says
    whether origin holds work. Trouble in here is listed under the cause, never in its place.
    """
    result, cause = judge(error, interruption)
    code = code_of(error, interruption)
    stage = code.stage or stage
    if unfinished and result is Result.FAILED and code is not Code.INTERRUPTED:
        cause = f"{cause}; before that, {'; '.join(unfinished)}"
    report(f"failed in stage {stage}: {cause}")
    secondary: list[str] = []
    before = interruption.recorded
    if worktree is not None and result is not Result.POLICY_REFUSAL:
        report("seeing that what was made is on origin, or kept here")
        journal.enter("preserve", cause=cause, code=code, stage=stage)
        _preserve(worktree, base, cause, secondary)
    journal.enter("draft", result=result, cause=cause, code=code, stage=stage)
    may_open = opens_draft and (has_work if worktree is None else worktree.has_work_on_origin)
    if code is Code.LEASE_LOST or (worktree is not None and worktree.is_fence_lost):
        secondary.append(OVERTAKEN)
        marked, may_open = Marked(None), False
    else:
        marked = _settle_pull_request(pull_requests, result, secondary, may_open=may_open)
    if interruption.recorded and not before:
        secondary.append(f"{interruption.recorded.name} came while the work was being kept, which went on")
    for line in secondary:
        report(line)
    pending = (Pending.OPEN if may_open else Pending.CONVERT) if marked.pending else None
    return Failure(
        result=result,
        cause=cause,
        code=code,
        stage=stage,
        secondary=tuple(secondary),
        pull_request=marked.pull_request,
        failing=error.failing if isinstance(error, RunFailureError) else (),
        pending=pending,
    )


def judge(error: Exception, interruption: Interruption) -> tuple[Result, str]:
    """Decide what kind of ending an error makes, and its cause in one sentence."""
    if interruption.recorded:
        return Result.FAILED, f"interrupted by {interruption.recorded.name}"
    if isinstance(error, PolicyRefusal):
        return Result.POLICY_REFUSAL, str(error)
    if isinstance(error, GitError) and not isinstance(error, PushRefused) and error.refused_credential:
        return Result.FAILED, f"origin: {error.refused_credential}"
    if isinstance(error, (DeliveryError, WorktreeError, OSError)):
        return Result.FAILED, str(error)
    return Result.BUG, f"a bug in Nightkeep: {type(error).__name__}: {error}"


def code_of(error: Exception, interruption: Interruption) -> Code:
    """Decide what kind of cause an error makes."""
    if interruption.recorded:
        return Code.INTERRUPTED
    if isinstance(error, RunFailureError):
        return error.code
    if isinstance(error, GitHubError) and error.status == 401:
        return Code.TOKEN
    if isinstance(error, GitError) and error.refused_credential:
        return Code.TOKEN
    if isinstance(error, GitError) and error.is_outage:
        return Code.ORIGIN
    return next((code for kind, code in _CODES if isinstance(error, kind)), Code.BUG)


def _preserve(worktree: Worktree, base: str, cause: str, secondary: list[str]) -> None:
    try:
        worktree.preserve_failed_run(base, next(iter(cause.splitlines()), ""))
    except PreservationError:
        # Why not is the reason for which the worktree is retained, and is told as that.
        secondary.append("preservation was not completed, so the worktree is kept")


def _settle_pull_request(
    pull_requests: PullRequests, result: Result, secondary: list[str], *, may_open: bool
) -> Marked:
    found = None
    try:
        found = pull_requests.find()
        if result is Result.POLICY_REFUSAL:
            return Marked(found)
        marked = pull_requests.mark_failed(found, may_open=may_open)
    except Exception as error:
        secondary.append(f"the pull request could not be looked up or opened: {error}")
        return Marked(found, pending=is_for_later(error) and result is not Result.POLICY_REFUSAL)
    secondary.extend(marked.trouble)
    return marked
