"""The Repair loop: takes the steps that `delivery.decision` decides on, until the goal or the end of all means."""

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import assert_never

from delivery.base_fix import BaseFixes
from delivery.base_fix_choice import Ailment, is_base_fix
from delivery.causes import Code, Stage
from delivery.checks import Absence, Expected, Verdict, why_absent
from delivery.conventions import Conventions
from delivery.decision import (
    Act,
    AwaitChecks,
    BaseFix,
    Done,
    Fail,
    LookAtOrigin,
    LookAtPullRequest,
    MakeReady,
    Merge,
    MergeUpstream,
    Push,
    Refused,
    Repair,
    Verify,
    decide,
)
from delivery.errors import PolicyRefusal, RunFailureError
from delivery.github import Check, GitHub, PullRequest
from delivery.goal import Goal
from delivery.issue_text import changes_since
from delivery.loop_facts import Facts, Kind, LoopRules, Sample
from delivery.prompt import repair_prompt
from delivery.pull_request import Description, PullRequests, describe
from delivery.repair_tasks import checks_task, conflict_task, review_task, verify_task
from delivery.self_merge import MergeRefusedError, SelfMerge
from delivery.stages import Stages
from delivery.text import end_of
from delivery.watching import CheckWatch, StoppedError
from delivery.workflows import Proposed, which_apply
from worktree import BranchRewrittenError, GitError, PushRefused, Redactor

_LOG_READ = 65_536  # bytes from the end of a log
_MOST_LOGS = 3
_MERGEABLE_POLL = 2.0  # seconds; GitHub works it out once it is asked


@dataclass(slots=True, kw_only=True)
class RepairLoop:
    """One Delivery's way from work that was made to its goal. `description` is for the pull request.

    `base_fixes` has the Base branch mended where the conventions say so; None where nobody can.
    """

    stages: Stages
    conventions: Conventions
    github: GitHub
    pull_requests: PullRequests
    description: Description
    redact: Redactor
    base_fixes: BaseFixes | None = None
    _pull: PullRequest | None = field(default=None, init=False)
    _merging: tuple[str, str] = field(default=("", ""), init=False)
    _foreign: tuple[str, ...] = field(default=(), init=False)
    _conflicts: tuple[str, ...] = field(default=(), init=False)
    _red: Verdict = field(default_factory=Verdict, init=False)
    _failed_step: Path | None = field(default=None, init=False)
    _self_merge: SelfMerge = field(init=False)

    def run(self, head: str) -> Goal:
        """Go to the goal from the commit at HEAD, which is `head`.

        Raises PolicyRefusal, RunFailureError, and what git and GitHub raise.
        """
        plan, conventions = self.stages.plan, self.conventions
        self._self_merge = SelfMerge(stages=self.stages, github=self.github, conventions=conventions)
        rules = LoopRules(
            base=plan.base,
            branch=plan.branch,
            merges=conventions.merges,
            repairs=conventions.repairs,
            moves=conventions.moves,
            required=conventions.checks_required,
            verifies=conventions.verify is not None,
            fixes_base=conventions.fixes_base and self.base_fixes is not None,
        )
        facts = Facts(rules=rules, head=head, base_commit=plan.base_commit)
        while True:
            facts = replace(facts, interrupted=self.stages.interruption.recorded is not None)
            self.stages.worktree.keep_fence()
            step = decide(facts)
            match step:
                case Done():
                    return self._reached(step)
                case Refused():
                    raise PolicyRefusal(self._self_merge.refusal(step.why))
                case Fail():
                    red = (facts.verdict.own or facts.verdict.inherited) if facts.verdict else ()
                    raise RunFailureError(step.cause, step.code, [(check.name, check.url) for check in red])
                case _:
                    facts = self._take(step, facts)

    def _reached(self, step: Done) -> Goal:
        assert self._pull is not None  # noqa: S101 - it was looked at just before
        if self._pull.head != step.head:
            self.stages.report(f"{self._pull.url} shows commits of others, whose checks were not watched")
        return Goal(pull_request=self._pull, merged=step.merged)

    def _take(self, step: Act, facts: Facts) -> Facts:
        match step:
            case LookAtOrigin():
                return self._look(facts)
            case MergeUpstream():
                return self._merge_upstream(step, facts)
            case Repair():
                return self._repair(step, facts)
            case Verify():
                return self._verify(facts)
            case AwaitChecks():
                return self._watch(step, facts)
            case BaseFix():
                return self._base_fix(step, facts)
            case Push() | MakeReady() | LookAtPullRequest() | Merge():
                return self._publish(step, facts)
            case _:
                assert_never(step)

    def _publish(self, step: Push | MakeReady | LookAtPullRequest | Merge, facts: Facts) -> Facts:
        match step:
            case Push():
                return self._push(facts)
            case MakeReady():
                return self._make_ready(facts)
            case LookAtPullRequest():
                return self._look_at_pull_request(facts)
            case Merge():
                return self._merge(step, facts)

    # What origin has.

    def _look(self, facts: Facts) -> Facts:
        # What had failed before a look is no stage of its own: a look goes with the push.
        self.stages.stage = Stage.PUSH
        try:
            seen = self.stages.worktree.look_upstream(facts.head, facts.rules.base, foreign=facts.rules.merges)
        except BranchRewrittenError:
            # Whoever merges a pull request may delete its branch.
            pull = self.github.pull_request(self._pull.number) if self._pull else None
            if pull is None or not pull.is_merged:
                raise
            self._pull = pull
            return replace(facts, pull=pull, sample=Sample())
        return facts.looked(Sample(base=seen.base, foreign=seen.foreign))

    def _merge_upstream(self, step: MergeUpstream, facts: Facts) -> Facts:
        stages, worktree, rules = self.stages, self.stages.worktree, facts.rules
        name = f"origin/{rules.branch if step.foreign else rules.base}"
        if step.foreign:
            self._foreign = worktree.new_in(step.commit)
            for line in self._foreign:
                stages.report(f"taking in a new commit from {name}: {line}")
        stages.report(f"merging {name}, which is at {step.commit[:12]} now")
        stages.enter(Stage.REPAIR, "merge-upstream", commit=step.commit)
        self._merging = (name, step.commit)
        self._conflicts = worktree.merge(step.commit, name)
        conflicts = bool(self._conflicts)
        return facts.merged(
            name, step.commit, worktree.head(), spent=step.spent, foreign=step.foreign, conflicts=conflicts
        )

    # Mending.

    def _repair(self, step: Repair, facts: Facts) -> Facts:
        stages, worktree, number = self.stages, self.stages.worktree, step.spent.repairs
        stages.report(f"{step.cause}; starting Repair {number} of {facts.rules.repairs}")
        prompt = repair_prompt(
            stages.plan.issue,
            self._task(step, facts),
            base=facts.rules.base,
            branch=facts.rules.branch,
            instructions=self.conventions.instructions,
            told=stages.plan.told,
        )
        session = stages.run_session(Stage.REPAIR, f"repair-{number}", prompt)
        unresolved = worktree.finish_merge(self._merging[1]) if step.kind is Kind.CONFLICT else None
        if unresolved is not None:
            name = self._merging[0]
            return facts.repaired(
                step.kind, facts.head, spent=step.spent, unresolved=f"the Repair did not merge {name}: {unresolved}"
            )
        stages.enter(Stage.COMMIT, "settle")
        subject = session.subject or f"Repair {number}"
        if left := worktree.settle(subject, self.conventions.commit):
            stages.report(f"left out of the pull request: {', '.join(left)}")
        facts = facts.repaired(step.kind, worktree.head(), spent=step.spent)
        if not session.pull_request_text.strip():
            return facts
        self.description = describe(stages.plan.issue, session.pull_request_text, session.final_text)
        return replace(facts, is_ready=False)

    def _task(self, step: Repair, facts: Facts) -> str:
        match step.kind:
            case Kind.CONFLICT:
                return conflict_task(self._merging[0], facts.rules.branch, self._conflicts)
            case Kind.REVIEW:
                commits = tuple(map(self.redact, self._foreign))
                return review_task(facts.rules.branch, facts.unreviewed or facts.head, commits)
            case Kind.VERIFY:
                command = self.redact(shlex.join(self.conventions.verify or ()))
                return verify_task(command, step.cause, self.redact(end_of(self._failed_step, _LOG_READ)))
            case Kind.CHECKS:
                return self.redact(checks_task(facts.head, self._red, self._logs()))

    def _logs(self) -> Mapping[str, str]:
        """Return the ends of the logs of the first failed jobs, as far as the token may read them."""
        jobs = [check for check in self._red.own if check.job is not None][:_MOST_LOGS]
        logs = {check.name: self._log_of(check) for check in jobs}
        return {name: log for name, log in logs.items() if log}

    def _log_of(self, check: Check) -> str:
        return self.redact(self.github.checks.log_tail(check.job, _LOG_READ)) if check.job is not None else ""

    def _verify(self, facts: Facts) -> Facts:
        """Run the verify command, which may itself commit what it mends."""
        before, cause = self.stages.session, None
        try:
            self.stages.run_step(Stage.VERIFY, self.conventions.verify or ())
        except RunFailureError as failure:
            # Only a command that fails is something to repair.
            session = self.stages.session
            if self.stages.interruption.recorded or session is None or not session.status or session.survivors:
                raise
            self._failed_step, cause = session.log, str(failure)
        else:
            self.stages.session = before  # it is the agent's words that explain a later failure
        return facts.verified_as(self.stages.worktree.head(), cause)

    # The pull request.

    def _push(self, facts: Facts) -> Facts:
        stages = self.stages
        stages.report(f"pushing {facts.rules.branch}")
        stages.enter(Stage.PUSH, "push")
        try:
            stages.worktree.push()
        except PushRefused as refused:
            if not (facts.rules.merges and refused.is_behind):
                raise
            stages.report(f"{refused}; looking at them")
            return facts.pushed_as(taken=False)
        return facts.pushed_as(taken=True)

    def _make_ready(self, facts: Facts) -> Facts:
        self.stages.enter(Stage.PULL_REQUEST, "ready")
        if self._pull is None:
            self._pull = self.pull_requests.make_ready(self.description)
        else:
            self.pull_requests.describe(self._pull, self.description)
        return replace(facts, is_ready=True)

    def _look_at_pull_request(self, facts: Facts) -> Facts:
        """Read it until GitHub has caught up with the push and worked out whether it merges, or the grace is over."""
        assert self._pull is not None  # noqa: S101 - it was made ready
        number, patience = self._pull.number, self.conventions.patience
        self.stages.stage = Stage.PULL_REQUEST
        deadline = time.monotonic() + patience.grace
        while True:
            self._pull = pull = self.github.pull_request(number)
            caught_up = pull.head == facts.head or not facts.rules.merges
            if not pull.is_open or (caught_up and pull.mergeable is not None) or time.monotonic() > deadline:
                return replace(facts, pull=pull)
            self.stages.sleep(min(patience.poll, _MERGEABLE_POLL))

    # Checks.

    def _watch(self, step: AwaitChecks, facts: Facts) -> Facts:
        self.stages.enter(Stage.CHECKS, "watch", head=facts.head)
        watch = CheckWatch(
            github=self.github.checks,
            head=facts.head,
            # Who mends the Base branch leaves nothing for others.
            base_commit=None if is_base_fix(self.stages.plan.issue) else facts.base_commit,
            expected=lambda: self._expected(facts),
            absence=lambda expected: self._why_absent(facts, expected),
            patience=self.conventions.patience,
            merges=facts.rules.merges,
            interruption=self.stages.interruption,
            keep_fence=self.stages.worktree.keep_fence,
            report=self.stages.report,
        )
        try:
            verdict = watch.repeat(self._red) if step.repeat else watch.to_the_end()
        except StoppedError:
            return facts
        if verdict.own:
            self._red = verdict
        for check in verdict.inherited:
            self.stages.report(f"{check.name} fails on {facts.rules.base}, too: {check.url}")
        if verdict.absence is not None:
            self.stages.report(f"no check runs on {facts.head[:12]}: {verdict.absence}")
        return facts.watched(verdict, repeated=step.repeat)

    def _base_fix(self, step: BaseFix, facts: Facts) -> Facts:
        assert self.base_fixes is not None and self._pull is not None  # noqa: S101, PT018 - else none is decided on
        self.stages.enter(Stage.CHECKS, "base-fix", base=step.base_commit)
        base, url = facts.rules.base, self._pull.url
        ailment = Ailment(base=base, commit=step.base_commit, checks=step.checks, found_by=url)
        fixed = self.base_fixes.have_made(ailment)
        self.stages.stop_if_interrupted()
        return facts.base_fixed(fixed)

    def _expected(self, facts: Facts) -> Expected:
        worktree, rules = self.stages.worktree, facts.rules
        texts = worktree.workflow_texts()
        try:
            paths = worktree.changed_paths(facts.base_commit) if texts else ()
        except GitError:  # a shallow clone may have no common commit; then a check is waited for, perhaps in vain
            paths = None
        workflows = which_apply(texts, Proposed(base=rules.base, branch=rules.branch, paths=paths))
        return Expected(
            required=self._self_merge.rules.checks,
            runs=workflows.runs,
            is_filtered=workflows.is_filtered,
            can_start=not self.github.is_workflow_token(),
        )

    def _why_absent(self, facts: Facts, expected: Expected) -> Absence:
        on_base = self.github.checks.of(facts.base_commit)
        return why_absent(expected, others_check=any(check.run is None for check in on_base))

    def _merge(self, step: Merge, facts: Facts) -> Facts:
        assert self._pull is not None  # noqa: S101 - it was looked at just before
        self._stop_if_changed()
        try:
            self._pull = self._self_merge.merge(self._pull, step.head)
        except MergeRefusedError as refused:
            self.stages.report(f"the merge was refused: {refused}; looking at everything once more")
            return facts.refused(str(refused))
        return replace(facts, pull=self._pull)

    def _stop_if_changed(self) -> None:
        """Raise PolicyRefusal when the issue is another one than the agent was told: a person decides then."""
        plan, conventions = self.stages.plan, self.conventions
        self.stages.stage = Stage.MERGE
        changed = changes_since(self.github, plan.issue, plan.told, conventions.bots, conventions.unready_labels)
        if changed:
            raise PolicyRefusal(
                f"after the agent was told of issue #{plan.issue.number}, {', '.join(changed)}; so this is not merged "
                "unseen: look whether it still fits, and merge the pull request or close it",
                Code.ISSUE_CHANGED,
            )
