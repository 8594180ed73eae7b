"""The stages of one Delivery: where it is, and what runs in its worktree there."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from delivery.causes import Code, Stage
from delivery.errors import RunFailureError
from delivery.preflight import Plan
from delivery.prompt import resume_prompt
from delivery.session import SessionRequest, SessionResult, Sessions
from worktree import Interruption, Journal, Watch, Worktree

_CODES = {Stage.SETUP: Code.SETUP, Stage.VERIFY: Code.VERIFY}


@dataclass(slots=True, kw_only=True)
class Stages:
    """Runs sessions and steps, of which `watch` is told.

    `stage` tells where the Delivery is, `session` whose words explain a failure there. `unfinished` says which sessions
    ended while work of theirs still ran.
    """

    plan: Plan
    worktree: Worktree
    sessions: Sessions
    watch: Watch
    interruption: Interruption
    journal: Journal
    report: Callable[[str], None]
    stage: Stage = field(default=Stage.SESSION, init=False)
    session: SessionResult | None = field(default=None, init=False)
    unfinished: list[str] = field(default_factory=list, init=False)

    def enter(self, stage: Stage, step: str, **facts: str | int) -> None:
        """Say that a step which changes something is about to be taken in that stage."""
        self.stage = stage
        self.journal.enter(step, stage=stage, **facts)

    def stop_if_interrupted(self) -> None:
        """Raise when a signal is recorded, or the claim is lost: GitHub is not asked through git, so nothing else would
        notice. While the claim is the Run's, origin is told now and then that it lives.
        """
        if self.interruption.recorded:
            raise RunFailureError("interrupted", Code.INTERRUPTED)
        self.worktree.keep_fence()

    def sleep(self, seconds: float) -> None:
        """Wait; raises as `stop_if_interrupted` does."""
        self.interruption.wait(seconds, self.worktree.keep_fence)
        self.stop_if_interrupted()

    def run_step(self, stage: Stage, argv: Sequence[str]) -> None:
        """Run `setup` or `verify` to a good end. Raises RunFailureError."""
        self.report(f"running {stage}: {shlex.join(argv)}")
        self._run(stage, stage, "", argv)

    def run_session(self, stage: Stage, kind: str, prompt: str) -> SessionResult:
        """Run the agent to a good end; raises RunFailureError.

        A session that ended well while work still ran beside it is resumed, once, to see to that.
        """
        ended = self._run(stage, kind, prompt, None)
        if not ended.unfinished:
            return ended
        ran = ", ".join(ended.unfinished)
        self.report(f"the session {kind} ended while this still ran, and was stopped: {ran}")
        self.unfinished.append(f"the session {kind} ended while this still ran: {ran}")
        if not ended.resumable:
            self.report("it cannot be resumed; carrying on, as that may not have been needed")
            return ended
        self.report("resuming the session, once")
        resumed = self._run(stage, f"{kind}-resume", resume_prompt(ended.unfinished), None, ended.resumable)
        if resumed.unfinished:
            self.report(f"it ended like that again ({', '.join(resumed.unfinished)}); carrying on")
        else:
            self.unfinished.pop()
        return resumed.after(ended)

    def _run(
        self, stage: Stage, kind: str, prompt: str, argv: Sequence[str] | None, resume: str | None = None
    ) -> SessionResult:
        self.enter(stage, "session", kind=kind)
        request = replace(self._request(kind, prompt), argv=argv, resume=resume)
        self.session = ended = self.sessions.run(request)
        if not self.interruption.recorded:
            self.worktree.keep_fence()  # then it was stopped for that
        if ended.denied:
            self.report(f"the agent was not allowed to use {', '.join(ended.denied)}; its command decides that")
        if ended.cause is not None:
            raise RunFailureError(ended.cause, _CODES.get(stage, ended.code))
        if ended.survivors:
            left = ", ".join(ended.survivors)
            raise RunFailureError(f"processes were left that could not be stopped: {left}", Code.PROCESSES)
        return ended

    def _request(self, kind: str, prompt: str) -> SessionRequest:
        plan = self.plan
        return SessionRequest(
            kind=kind,
            prompt=prompt,
            directory=self.worktree.path,
            private=self.worktree.private,
            watch=self.watch,
            environment={
                "NIGHTKEEP_RUN": self.worktree.run_id,
                "NIGHTKEEP_ISSUE_URL": plan.issue.url,
                "NIGHTKEEP_BASE": plan.base,
                "NIGHTKEEP_BRANCH": plan.branch,
            },
        )
