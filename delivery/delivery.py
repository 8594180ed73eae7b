"""A Delivery: from the opening session to the goal, or to a Failed run."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from delivery.branches import Continuation
from delivery.causes import Code
from delivery.conventions import Conventions
from delivery.errors import RunFailureError, Stage
from delivery.failure import Failure, fail
from delivery.github import PullRequest
from delivery.preflight import Plan
from delivery.prompt import opening_prompt
from delivery.pull_request import Description, PullRequests, describe
from delivery.session import SessionRequest, SessionResult, Sessions
from delivery.text import one_line
from worktree import Interruption, Journal, Worktree

_SUBJECT_LIMIT = 72
_CODES = {Stage.SETUP: Code.SETUP, Stage.VERIFY: Code.VERIFY}


@dataclass(slots=True, kw_only=True)
class Delivery:
    """One Delivery in one worktree. `stage` and `session` tell how far it came."""

    plan: Plan
    conventions: Conventions
    worktree: Worktree
    sessions: Sessions
    pull_requests: PullRequests
    interruption: Interruption
    journal: Journal
    report: Callable[[str], None]
    stage: Stage = field(default=Stage.SESSION, init=False)
    session: SessionResult | None = field(default=None, init=False)

    def carry_out(self) -> PullRequest | Failure:
        """Deliver; returns the pull request that is ready, or what the failure function made of it."""
        try:
            return self._deliver()
        except Exception as error:
            return fail(
                self.worktree,
                self.plan.base,
                error,
                stage=self.stage,
                pull_requests=self.pull_requests,
                opens_draft=self.conventions.opens_draft,
                interruption=self.interruption,
                journal=self.journal,
                report=self.report,
            )

    def _deliver(self) -> PullRequest:
        self._run_step(Stage.SETUP, self.conventions.setup)
        session = self._run_session()
        description = describe(self.plan.issue, session.pull_request_text, session.final_text)
        self.stage = Stage.COMMIT
        self.journal.enter("settle")
        left = self.worktree.settle(_subject(session, description), self.conventions.commit)
        if left:
            self.report(f"left out of the pull request: {', '.join(left)}")
        if self.worktree.commits_beyond_base() == 0:
            raise RunFailureError("the agent ended well, but nothing was made", Code.NOTHING_MADE)
        self._run_step(Stage.VERIFY, self.conventions.verify)
        self.session = session  # from here on it is the agent's words that explain a failure
        self.stage = Stage.PUSH
        self.report(f"pushing {self.worktree.branch}")
        self.journal.enter("push")
        head = self.worktree.push()
        self.stage = Stage.PULL_REQUEST
        # GitHub is not asked through git, so nothing else would notice a signal between here and the goal.
        self._stop_if_interrupted()
        self.journal.enter("ready")
        pull_request = self.pull_requests.make_ready(description, head)
        self._stop_if_interrupted()
        return pull_request

    def _stop_if_interrupted(self) -> None:
        if self.interruption.recorded:
            raise RunFailureError("interrupted", Code.INTERRUPTED)

    def _run_step(self, stage: Stage, argv: Sequence[str] | None) -> None:
        if argv is not None:
            self.stage = stage
            self.report(f"running {stage}: {shlex.join(argv)}")
            self._run(stage, "", argv)

    def _run_session(self) -> SessionResult:
        self.stage = Stage.SESSION
        self.report("starting the agent")
        plan = self.plan
        prompt = opening_prompt(
            plan.issue,
            base=plan.base,
            branch=plan.branch,
            continued=isinstance(plan.choice, Continuation),
            instructions=self.conventions.instructions,
        )
        return self._run("implement", prompt, None)

    def _run(self, kind: str, prompt: str, argv: Sequence[str] | None) -> SessionResult:
        self.journal.enter("session", kind=kind)
        self.session = ended = self.sessions.run(self._request(kind, prompt, argv))
        if ended.cause is not None:
            raise RunFailureError(ended.cause, _CODES.get(self.stage, Code.AGENT))
        if ended.survivors:
            left = ", ".join(ended.survivors)
            raise RunFailureError(f"processes were left that could not be stopped: {left}", Code.PROCESSES)
        return ended

    def _request(self, kind: str, prompt: str, argv: Sequence[str] | None) -> SessionRequest:
        plan = self.plan
        return SessionRequest(
            kind=kind,
            prompt=prompt,
            argv=argv,
            directory=self.worktree.path,
            private=self.worktree.private,
            environment={
                "NIGHTKEEP_RUN": self.worktree.run_id,
                "NIGHTKEEP_ISSUE_URL": plan.issue.url,
                "NIGHTKEEP_BASE": plan.base,
                "NIGHTKEEP_BRANCH": plan.branch,
            },
        )


def _subject(session: SessionResult, description: Description) -> str:
    """Choose the subject of the commit that the runner makes for an agent that made none."""
    written = description.title if session.pull_request_text.strip() else ""
    return written or one_line(session.final_text, _SUBJECT_LIMIT) or description.title
