"""A Run: one issue, one pull request, from launch to clean-up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from delivery.branches import Continuation
from delivery.claim import Claim
from delivery.conventions import Conventions
from delivery.delivery import Delivery
from delivery.errors import GitHubError, PreflightError, RunFailureError, Stage
from delivery.failure import Failure, fail, judge
from delivery.github import GitHub, PullRequest
from delivery.issue_url import IssueUrl
from delivery.note import NoteFacts, failure_note, note_marker, resolved_note, with_earlier
from delivery.outcome import Outcome, Result
from delivery.preflight import Plan, preflight, unanswered
from delivery.probes import examine
from delivery.pull_request import PullRequests
from delivery.session import Sessions
from delivery.unfinished import Unfinished
from worktree import (
    AcquisitionError,
    BranchTakenError,
    Interrupted,
    Interruption,
    Journal,
    Launch,
    Origin,
    Preserved,
    Redactor,
    Worktree,
    WorktreeError,
    host_name,
    orphans,
    rescued_by,
    retained_by,
)

_DIED = "Nightkeep was killed"
_MOST_NAMED = 5
_LOG_READ = 200_000  # bytes from the end of a Session log; a note shows less


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a Run works with; `runner` wires it together.

    `base` is the Base branch asked for, None for the one that is checked out. `report` takes a line of progress.
    `continue_command` is what a person types to go on from a Failed run, redacted. `journal` is told of each step
    that changes something before it is taken. `logs` is the directory that logs go to, None where there are none.
    """

    url: IssueUrl
    base: str | None
    github: GitHub
    launch: Launch
    origin: Origin
    interruption: Interruption
    report: Callable[[str], None]
    redact: Redactor
    host: str
    continue_command: str
    journal: Journal = field(default_factory=Journal)
    logs: Path | None = None

    def execute(self, plan: Plan, conventions: Conventions, sessions: Sessions) -> Outcome:
        """Carry out `plan` to the end; every ending is an outcome.

        But for what stops a Run beforehand, see `examine`, and for an issue that cannot be labelled: that raises
        PreflightError, with nothing begun.
        """
        examine(self.github, self.launch, self.origin, plan, conventions, logs=self.logs, report=self.report)
        claim = self._claim(plan, conventions)
        before = plan.choice.pull_request if isinstance(plan.choice, Continuation) else None
        outcome = self._publish(plan.issue.number, before, self._work(plan, conventions, sessions))
        # A Continuation's branch was there before: something was made, though not by this Run.
        if outcome.preserved is Preserved.NOTHING_MADE and not isinstance(plan.choice, Continuation):
            self.journal.enter("release")
            claim.release()
        self.journal.enter("end", result=outcome.result)
        self.journal.close()
        return outcome

    def recover(self, unfinished: Unfinished, save_output: Callable[[str], Path | None]) -> Outcome:
        """Finish what a Run began whose runner was killed: preserve, draft, note, release; every ending is an outcome.

        `save_output` is called with the run's id once nothing of its session is left, to bring what that had printed
        into a Session log.

        Raises DeferredError, with nothing done, when somebody is at work in its worktree; GitHubError or WorktreeError
        when GitHub or origin does not answer. Then it can be done again.
        """
        issue = self.github.issue(self.url.number)
        pull_requests = PullRequests(
            self.github, issue, base=unfinished.base, branch=unfinished.branch, report=self.report
        )
        outcome = self._finished(unfinished, pull_requests, save_output)
        outcome = self._publish(issue.number, outcome.pull_request if unfinished.continued else None, outcome)
        if outcome.preserved is Preserved.NOTHING_MADE and not unfinished.continued and not unfinished.delivered:
            self.journal.enter("release")
            Claim.of(self.github, issue, unfinished, self.report).release()
        self.journal.enter("end", result=outcome.result)
        self.journal.close()
        return outcome

    def _finished(
        self, unfinished: Unfinished, pull_requests: PullRequests, save_output: Callable[[str], Path | None]
    ) -> Outcome:
        recorded = any(orphan.run_id == unfinished.run_id for orphan in orphans(self.launch))
        if unfinished.run_id is None or not recorded:
            return self._without_record(unfinished, pull_requests)
        with Worktree.reclaim(self.launch, unfinished.run_id, origin=self.origin) as worktree:
            session_log = save_output(unfinished.run_id)
            ended: PullRequest | Failure | None = None
            if unfinished.delivered:
                ended = pull_requests.find()
            else:
                ended = fail(
                    worktree,
                    unfinished.base,
                    RunFailureError(unfinished.cause or _DIED),
                    stage=unfinished.stage,
                    pull_requests=pull_requests,
                    opens_draft=unfinished.opens_draft,
                    interruption=self.interruption,
                    journal=self.journal,
                    report=self.report,
                )
            self.journal.enter("clean-up")
        self.report(str(worktree.ending))
        return self._outcome(worktree, unfinished.base, ended, session_log)

    def _without_record(self, unfinished: Unfinished, pull_requests: PullRequests) -> Outcome:
        """Return how a Run ended whose worktree was not made yet, was retained, or is gone: it is left to say so."""
        common, run_id = self.launch.common, unfinished.run_id
        remote = self.launch.remote(self.origin)
        there = remote.read(f"refs/nightkeep/rescue/{run_id}/*") if run_id else {}
        store = rescued_by(common, run_id) if run_id else None
        retained = retained_by(common, run_id) if run_id else None
        made = bool(there) or self._has_branch(unfinished)
        here = store or retained
        places = [(ref.rsplit("/", 1)[1], f"{ref} at {oid} on origin") for ref, oid in there.items()]
        return Outcome(
            result=Result.DELIVERED if unfinished.delivered else Result.FAILED,
            issue_url=str(self.url),
            base=unfinished.base,
            branch=unfinished.branch,
            run_id=run_id,
            preserved=Preserved.MACHINE if here else Preserved.ORIGIN if made else Preserved.NOTHING_MADE,
            pull_request=pull_requests.find(),
            cause=None if unfinished.delivered else unfinished.cause or _DIED,
            stage=None if unfinished.delivered else unfinished.stage,
            places=retained[1].places if retained else tuple(places),
            refs=there,
            retained=retained[1].why if retained else None,
            worktree=retained[0] if retained else None,
            rescued=store,
        )

    def _has_branch(self, unfinished: Unfinished) -> bool:
        ref = f"refs/heads/{unfinished.branch}"
        return not unfinished.continued and ref in self.launch.remote(self.origin).read(ref)

    def plan(self) -> Plan:
        """Look whether the Run can start, and how. Raises PreflightError or Interrupted; changes nothing."""
        try:
            return preflight(self.github, self.launch, self.origin, self.url, self.base, self.report)
        except Interrupted:
            raise
        except GitHubError as error:
            raise unanswered(error) from error
        except WorktreeError as error:
            raise PreflightError(str(error)) from error

    def _claim(self, plan: Plan, conventions: Conventions) -> Claim:
        claim = Claim(
            self.github,
            plan.issue,
            ready=conventions.ready_label,
            in_progress=conventions.in_progress_label,
            report=self.report,
        )
        self.journal.enter(
            "claim",
            clone=str(self.launch.common),
            host=host_name(),
            issue=str(self.url),
            base=plan.base,
            branch=plan.branch,
            ready=conventions.ready_label,
            in_progress=conventions.in_progress_label,
            was_ready=claim.was_ready,
            was_in_progress=claim.was_in_progress,
            continued=isinstance(plan.choice, Continuation),
            opens_draft=conventions.opens_draft,
            continue_command=self.continue_command,
        )
        try:
            claim.make()
        except GitHubError as error:
            claim.release()
            self.journal.discard()
            raise PreflightError(f"issue #{self.url.number} could not be labelled: {error}") from error
        return claim

    def _work(self, plan: Plan, conventions: Conventions, sessions: Sessions) -> Outcome:
        acquire = Worktree.resume if isinstance(plan.choice, Continuation) else Worktree.create
        self.journal.enter("worktree", directory=str(self.launch.directory))
        try:
            worktree = acquire(
                self.launch,
                branch=plan.branch,
                base=plan.base,
                interruption=self.interruption,
                origin=self.origin,
                fetched=plan.fetched,
            )
        except BranchTakenError as error:
            # Whoever has the branch has the claim as well, so the labels are left to them.
            self.journal.discard()
            raise PreflightError(f"{error}; wait for its end") from error
        except Exception as error:
            return self._without_worktree(plan, error)
        start = plan.branch if isinstance(plan.choice, Continuation) else plan.base
        how = "going on from" if isinstance(plan.choice, Continuation) else "starting from"
        self.journal.enter("begun", run=worktree.run_id, path=str(worktree.path))
        self.report(f"working in {worktree.path} on {worktree.branch}, {how} origin's {start}")
        _report_included(worktree, self.report)
        with worktree:
            delivery = Delivery(
                plan=plan,
                conventions=conventions,
                worktree=worktree,
                sessions=sessions,
                pull_requests=PullRequests(
                    self.github, plan.issue, base=plan.base, branch=plan.branch, report=self.report
                ),
                interruption=self.interruption,
                journal=self.journal,
                report=self.report,
            )
            ended = delivery.carry_out()
            self.journal.enter("clean-up")
        if worktree.filters_off:
            names = ", ".join(worktree.filters_off)
            self.report(f"git filters that appeared during the run were switched off: {names}")
        self.report(str(worktree.ending))
        return self._outcome(worktree, plan.base, ended, _log_of(delivery))

    def _outcome(
        self, worktree: Worktree, base: str, ended: PullRequest | Failure | None, session_log: Path | None
    ) -> Outcome:
        ending = worktree.ending
        reached = Outcome(
            result=Result.DELIVERED,
            issue_url=str(self.url),
            base=base,
            branch=worktree.branch,
            run_id=worktree.run_id,
            session_log=session_log,
            preserved=ending.preserved,
            places=ending.places,
            refs=ending.refs,
            retained=ending.why if ending.kept else None,
            worktree=ending.path,
            rescued=ending.rescued,
        )
        if not isinstance(ended, Failure):
            return replace(reached, pull_request=ended)
        return replace(
            reached,
            result=ended.result,
            pull_request=ended.pull_request,
            cause=ended.cause,
            stage=ended.stage,
            secondary=ended.secondary,
            interruption=self.interruption.recorded,
        )

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
            stage=Stage.WORKTREE,
            preserved=Preserved.MACHINE if left else Preserved.NOTHING_MADE,
            interruption=self.interruption.recorded,
        )

    def _publish(self, issue: int, before: PullRequest | None, outcome: Outcome) -> Outcome:
        """Write the Failure note, or turn an earlier one into a short "resolved by"; trouble is only added.

        `before` is the pull request that was there before.
        """
        if outcome.result is not Result.DELIVERED:
            outcome = replace(outcome, note=self._note(outcome))
        self.journal.enter("note", cause=outcome.cause)
        try:
            if outcome.note:
                number = outcome.pull_request.number if outcome.pull_request else issue
                url = self.github.comment(number, note_marker(outcome.branch), outcome.note, with_earlier)
                self.report(f"the Failure note is at {url}")
            else:
                self._resolve_notes(issue, before, outcome)
        except Exception as error:
            line = f"the Failure note could not be written: {error}"
            self.report(line)
            return replace(outcome, secondary=(*outcome.secondary, line))
        return outcome

    def _note(self, outcome: Outcome) -> str:
        facts = NoteFacts(
            moment=datetime.now(UTC),
            host=self.host,
            log_text=_end_of(outcome.session_log),
            continue_command=self.continue_command,
        )
        return self.redact(failure_note(outcome, facts))

    def _resolve_notes(self, issue: int, before: PullRequest | None, outcome: Outcome) -> None:
        if outcome.pull_request is None or outcome.run_id is None:
            return
        marker = note_marker(outcome.branch)
        note = resolved_note(outcome.branch, outcome.pull_request.url, outcome.run_id, datetime.now(UTC))
        # A note stands on the pull request of a Continuation, or on the issue when there was no pull request then.
        self.github.edit_comment(issue, marker, note, with_earlier)
        if before:
            self.github.edit_comment(outcome.pull_request.number, marker, note, with_earlier)


def _report_included(worktree: Worktree, report: Callable[[str], None]) -> None:
    """Say what `.worktreeinclude` brought into the worktree, and what it did not."""
    included = worktree.included
    if included.paths:
        report(f"copied in by .worktreeinclude: {_some(included.paths)}")
    if included.left:
        report(f"not copied in: {_some([f'{path} ({why})' for path, why in included.left])}")


def _some(paths: Sequence[str]) -> str:
    more = len(paths) - _MOST_NAMED
    shown = ", ".join(ascii(path)[1:-1] for path in paths[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _log_of(delivery: Delivery) -> Path | None:
    """Return the Session log; one that could not be written is not told of."""
    log = delivery.session.log if delivery.session else None
    return log if log and log.exists() else None


def _end_of(log: Path | None) -> str:
    if log is None or not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_READ))
        return file.read().decode(errors="replace")
