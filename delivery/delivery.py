"""A Delivery: from the opening session to the goal, or to a Failed run."""

from collections.abc import Callable
from dataclasses import dataclass, field

from delivery.base_fix import BaseFixes
from delivery.branches import Continuation
from delivery.causes import Code, Stage
from delivery.conventions import Conventions
from delivery.errors import GitHubError, RunFailureError
from delivery.failure import Failure, fail
from delivery.github import GitHub
from delivery.goal import Goal
from delivery.issue_text import changes_since
from delivery.preflight import Plan
from delivery.prompt import Instructions, opening_prompt
from delivery.pull_request import Description, PullRequests, describe
from delivery.repair_loop import RepairLoop
from delivery.session import SessionResult
from delivery.stages import Stages
from worktree import Checkpoint, Redactor, Takeover

_CHANGED = "<!-- nightkeep:issue-changed -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A Delivery's opening session: its kind, and what it is told.

    `says` is who is at work for people, `prompt` makes what the session is told, from whether a session that vanished
    has left work here; `describe` makes the pull request's description of its result.
    """

    kind: str
    says: str
    prompt: Callable[[bool], str]
    describe: Callable[[SessionResult], Description]


def issue_opening(plan: Plan, instructions: Instructions) -> Opening:
    """Return the opening of a Run that works on its issue."""

    def prompt(vanished: bool) -> str:  # noqa: FBT001 - as `Opening` asks
        return opening_prompt(
            plan.issue,
            base=plan.base,
            branch=plan.branch,
            continued=isinstance(plan.choice, Continuation),
            vanished=vanished,
            instructions=instructions,
            spec=plan.spec,
            told=plan.told,
        )

    def described(session: SessionResult) -> Description:
        return describe(plan.issue, session.pull_request_text, session.final_text)

    return Opening(kind="implement", says="starting the agent", prompt=prompt, describe=described)


@dataclass(slots=True, kw_only=True)
class Delivery:
    """One Delivery in one worktree, which begins with a session of `opening`.

    `taken` is what was taken over for it of a run that vanished.
    """

    stages: Stages
    conventions: Conventions
    github: GitHub
    pull_requests: PullRequests
    redact: Redactor
    opening: Opening
    base_fixes: BaseFixes | None = None
    taken: Takeover | None = None
    _went_on_from: Checkpoint | None = field(default=None, init=False)

    def carry_out(self) -> Goal | Failure:
        """Deliver; returns the pull request at its goal, or what the failure function made of it."""
        stages = self.stages
        try:
            return self._deliver()
        except Exception as error:
            return fail(
                stages.worktree,
                stages.plan.base,
                error,
                stage=stages.stage,
                pull_requests=self.pull_requests,
                opens_draft=self.conventions.opens_draft,
                interruption=stages.interruption,
                journal=stages.journal,
                report=stages.report,
                unfinished=stages.unfinished,
            )

    def _deliver(self) -> Goal:
        stages = self.stages
        self._take_over()
        if self.conventions.setup is not None:
            stages.run_step(Stage.SETUP, self.conventions.setup)
        session = self._run_session()
        description = self.opening.describe(session)
        stages.enter(Stage.COMMIT, "settle")
        left = stages.worktree.settle(_subject(session, description), self.conventions.commit)
        if left:
            stages.report(f"left out of the pull request: {', '.join(left)}")
        head = stages.worktree.head_beyond_base()
        if head is None:
            raise RunFailureError(_nothing_made(session), Code.NOTHING_MADE)
        loop = RepairLoop(
            stages=stages,
            conventions=self.conventions,
            github=self.github,
            pull_requests=self.pull_requests,
            description=description,
            redact=self.redact,
            base_fixes=self.base_fixes,
        )
        goal = loop.run(head)
        if not goal.merged:
            stages.stop_if_interrupted()
            self._tell_changes(goal)
        return goal

    def _tell_changes(self, goal: Goal) -> None:
        """Say on the pull request that the issue is another one than the agent was told; trouble is only reported."""
        plan, conventions = self.stages.plan, self.conventions
        number = plan.issue.number
        try:
            changed = changes_since(self.github, plan.issue, plan.told, conventions.bots, conventions.unready_labels)
            if changed:
                what = " and ".join(changed)
                self.stages.report(f"while the agent worked on #{number}, {what}")
                text = f"After the agent was told of #{number}, {what}. Look whether this still fits."
                self.github.comment(goal.pull_request.number, _CHANGED, f"{_CHANGED}\n\n{text}\n")
        except GitHubError as error:
            self.stages.report(f"whether #{number} was changed meanwhile could not be told: {error}")

    def _take_over(self) -> None:
        stages, taken = self.stages, self.taken
        if taken is None:
            return
        stages.stage = Stage.WORKTREE
        stages.report(f"{taken.checkpoint}, which has not ended, is on origin; going on from it")
        if stages.worktree.take_over(taken):
            self._went_on_from = taken.checkpoint
        else:
            stages.report(f"it was not gone on from: {taken.why}")

    def _run_session(self) -> SessionResult:
        stages, opening = self.stages, self.opening
        stages.report(opening.says)
        return stages.run_session(Stage.SESSION, opening.kind, opening.prompt(self._went_on_from is not None))


def _nothing_made(session: SessionResult) -> str:
    denied = f"; it was not allowed to use {', '.join(session.denied)}" if session.denied else ""
    return f"the agent ended well, but nothing was made{denied}"


def _subject(session: SessionResult, description: Description) -> str:
    """Choose the subject of the commit that the runner makes for an agent that made none."""
    written = description.title if session.pull_request_text.strip() else ""
    return written or session.subject or description.title
