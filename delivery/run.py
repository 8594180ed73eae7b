"""A Run: one issue, one pull request, from launch to clean-up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from delivery.after_merge import finish_merged
from delivery.base_fix import BaseFixes
from delivery.branches import Continuation, branch_name
from delivery.causes import Stage
from delivery.claim import Claim
from delivery.conventions import Conventions
from delivery.delivery import Delivery, Opening, issue_opening
from delivery.errors import GitHubError, PreflightError
from delivery.failure import code_of, judge
from delivery.issue_text import read_text
from delivery.outcome import Outcome
from delivery.parts import Parts
from delivery.preflight import Plan, preflight, unanswered
from delivery.probes import examine
from delivery.pull_request import PullRequests
from delivery.session import Sessions
from delivery.stages import Stages
from delivery.starters import Starters
from delivery.telling import outcome_of, publish
from delivery.tries import keep_count
from worktree import (
    AcquisitionError,
    BranchTakenError,
    CheckpointRule,
    Interrupted,
    Preserved,
    Worktree,
    WorktreeError,
)
from worktree.naming import some
from worktree.stored import runs_that_left


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Parts):
    """One issue, worked on once."""

    def execute(self, plan: Plan, conventions: Conventions, sessions: Sessions) -> Outcome:
        """Carry out `plan` to the end; every ending is an outcome.

        But for what stops a Run beforehand, see `examine`, and for an issue that cannot be claimed: that raises
        PreflightError, with nothing begun.
        """
        try:
            seen = examine(self.github, self.launch, self.origin, plan, conventions, logs=self.logs, report=self.report)
            plan = self._read(plan, conventions)
        except OSError as error:
            raise _in_the_way(error) from error
        claim = Claim.make(self, plan, conventions, is_atomic=seen.is_atomic is not False)
        with claim.guarding():
            before = plan.choice.pull_request if isinstance(plan.choice, Continuation) else None
            outcome = self._work(plan, conventions, sessions, claim)
            outcome = replace(outcome, continued=isinstance(plan.choice, Continuation))
            outcome = publish(self, plan.issue.number, before, outcome)
            if outcome.merged:
                outcome = finish_merged(self, claim, outcome)
            if outcome.left_nothing:
                self.journal.enter("release")
                claim.release()
            if not claim.is_lost:
                keep_count(self, plan.issue.number, outcome, commit=plan.base_commit, before=plan.tries)
        if claim.end():
            self.journal.enter("end", result=outcome.result)
        self.journal.close()
        return outcome

    def plan(self) -> Plan:
        """Look whether the Run can start, and how; makes and moves no ref. Raises PreflightError or Interrupted."""
        try:
            return preflight(self.github, self.launch, self.origin, self.url, self.base, self.report)
        except Interrupted:
            raise
        except GitHubError as error:
            raise unanswered(error) from error
        except WorktreeError as error:
            raise PreflightError(str(error)) from error
        except OSError as error:
            raise _in_the_way(error) from error

    def _read(self, plan: Plan, conventions: Conventions) -> Plan:
        """Read what the agent is to be told; what becomes another later is found by that."""
        try:
            return replace(plan, text=read_text(self.github, plan.issue, conventions.bots, self.report))
        except GitHubError as error:
            raise unanswered(error) from error

    def _work(self, plan: Plan, conventions: Conventions, sessions: Sessions, claim: Claim) -> Outcome:
        """Do what the Run is for."""
        opening = issue_opening(plan, conventions.instructions)
        pull_requests = PullRequests(self.github, plan.issue, base=plan.base, branch=plan.branch, report=self.report)
        return self.deliver(plan, conventions, sessions, opening, pull_requests, claim)

    def deliver(
        self,
        plan: Plan,
        conventions: Conventions,
        sessions: Sessions,
        opening: Opening,
        pull_requests: PullRequests,
        claim: Claim,
    ) -> Outcome:
        """Carry out a Delivery in a worktree of its own."""
        self.journal.enter("worktree", stage=Stage.WORKTREE, directory=str(self.launch.directory))
        try:
            worktree = self._acquire(plan, claim)
        except PreflightError:
            raise
        except Exception as error:
            return self._without_worktree(plan, error)
        self.journal.enter("begun", run=worktree.run_id, path=str(worktree.path))
        self._report_begun(plan, worktree)
        with worktree:
            stages = Stages(
                plan=plan,
                worktree=worktree,
                sessions=sessions,
                watch=worktree.watch(_checkpoint_rule(plan, conventions), self.report),
                interruption=self.interruption,
                journal=self.journal,
                report=self.report,
            )
            fixes = self._base_fixes(stages, conventions)
            delivery = Delivery(
                stages=stages,
                conventions=conventions,
                github=self.github,
                pull_requests=pull_requests,
                redact=self.redact,
                opening=opening,
                base_fixes=fixes,
                taken=claim.taken,
            )
            ended = delivery.carry_out()
            self.journal.enter("clean-up")
        if worktree.filters_off:
            names = ", ".join(worktree.filters_off)
            self.report(f"git filters that appeared during the run were switched off: {names}")
        self.report(str(worktree.ending))
        outcome = outcome_of(self, worktree, plan.base, ended, _log_of(stages))
        if fixes is None or fixes.kept_here is None:
            return outcome
        return replace(outcome, preserved=Preserved.MACHINE, places=(*outcome.places, *fixes.kept_here))

    def _acquire(self, plan: Plan, claim: Claim) -> Worktree:
        acquire = Worktree.resume if isinstance(plan.choice, Continuation) else Worktree.create
        try:
            return acquire(
                self.launch.patient(self.report),
                branch=plan.branch,
                base=plan.base,
                interruption=self.interruption,
                origin=self.origin,
                fence=claim.fence,
                fetched=plan.fetched,
                run_id=claim.run_id,
            )
        except BranchTakenError as error:
            if claim.fence is None:
                # Whoever has the branch has the issue as well, so the labels are left to them.
                self.journal.discard()
            else:
                claim.withdraw()
            raise PreflightError(f"{error}; wait for its end") from error

    def _base_fixes(self, stages: Stages, conventions: Conventions) -> BaseFixes | None:
        if self.child_runs is None:
            return None
        return BaseFixes(
            stages=stages,
            github=self.github,
            launch=self.launch,
            origin=self.origin,
            runs=self.child_runs,
            pace=conventions.pace,
            limit=conventions.base_fix_limit,
            poll=conventions.patience.poll,
            report=self.report,
            starters=Starters(github=self.github, bots=conventions.bots, report=self.report),
            unready=conventions.unready_labels,
        )

    def _report_begun(self, plan: Plan, worktree: Worktree) -> None:
        """Say where the Run works, and which earlier runs have left commits here that its branch does not have."""
        goes_on = isinstance(plan.choice, Continuation)
        start = f"going on from origin's {plan.branch}" if goes_on else f"starting from origin's {plan.base}"
        if not goes_on and plan.branch != branch_name(plan.issue.number, 1):
            start += ", because the pull request of the branch before is merged or closed"
        self.report(f"working in {worktree.path} on {worktree.branch}, {start}")
        _report_included(worktree, self.report)
        for run_id in runs_that_left(self.launch, plan.branch):
            self.report(f"commits of an earlier run are not in it; see: nightkeep rescue show {run_id}")

    def _without_worktree(self, plan: Plan, error: Exception) -> Outcome:
        result, cause = judge(error, self.interruption)
        self.report(f"failed in stage {Stage.WORKTREE}: {cause}")
        left = isinstance(error, AcquisitionError) and error.left is not None
        return Outcome(
            result=result,
            issue_url=str(self.url),
            base=plan.base,
            branch=plan.branch,
            cause=cause,
            code=code_of(error, self.interruption),
            stage=Stage.WORKTREE,
            preserved=Preserved.MACHINE if left else Preserved.NOTHING_MADE,
            interruption=self.interruption.recorded,
        )


def _in_the_way(error: OSError) -> PreflightError:
    return PreflightError(f"this machine stands in the way: {error}; mend that, and run again")


def _checkpoint_rule(plan: Plan, conventions: Conventions) -> CheckpointRule:
    told = conventions.publishes_checkpoints
    to_origin = plan.is_private is True if told is None else told
    return CheckpointRule(every=conventions.checkpoint_every, to_origin=to_origin)


def _report_included(worktree: Worktree, report: Callable[[str], None]) -> None:
    """Say what `.worktreeinclude` brought into the worktree, and what it did not."""
    included = worktree.included
    if included.paths:
        report(f"copied in by .worktreeinclude: {_named(included.paths)}")
    if included.left:
        report(f"not copied in: {_named([f'{path} ({why})' for path, why in included.left])}")


def _named(paths: Sequence[str]) -> str:
    return some([ascii(path)[1:-1] for path in paths])


def _log_of(stages: Stages) -> Path | None:
    """Return the Session log; one that could not be written is not told of."""
    log = stages.session.log if stages.session else None
    return log if log and log.exists() else None
