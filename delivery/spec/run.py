"""A Spec run: an issue with sub-issues, worked on Ticket by Ticket, reviewed as a whole, and delivered like a Run."""

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from datetime import datetime

from delivery.branches import Continuation
from delivery.causes import Code, Stage
from delivery.child_runs import ConfiguredBy
from delivery.claim import Claim
from delivery.claims import Held, Unreadable, claim_ref, judge_claim, read_claims
from delivery.conventions import Conventions
from delivery.delivery import Opening
from delivery.errors import GitHubError, PreflightError, RunFailureError
from delivery.failure import Failure, fail
from delivery.issue_text import decided_since
from delivery.outcome import Outcome
from delivery.preflight import Plan, unanswered
from delivery.prompt import review_prompt
from delivery.pull_request import Description
from delivery.run import Run
from delivery.session import SessionResult, Sessions
from delivery.spec.account import Account
from delivery.spec.graph import Graph
from delivery.spec.reading import Let, read_graph, read_merged
from delivery.spec.spec_branch import SpecBranch
from delivery.spec.working_off import WorkingOff
from delivery.starters import Starters
from worktree import ABSENT, Preserved, RefUpdate, WorktreeError
from worktree.naming import some


def spec_run(run: Run, let_at: datetime | None = None) -> "SpecRun":
    """Return what works on an issue with sub-issues by the same parts; see `SpecRun` for `let_at`."""
    return SpecRun(**{part.name: getattr(run, part.name) for part in fields(run)}, let_at=let_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecRun(Run):
    """One Spec, worked on once, by `child_runs`.

    The Spec branch is what a Run calls its Issue branch. It is on origin before any Ticket is begun, and Tickets get
    there through GitHub; only the review of the whole has a worktree. `let_at` is when somebody's word let pickup take
    the Spec; None where a person has started it, who has read what is in it.
    """

    let_at: datetime | None = None

    def execute(self, plan: Plan, conventions: Conventions, sessions: Sessions) -> Outcome:
        """Carry out `plan` to the end, as a Run does.

        Raises PreflightError also for a Spec without a branch whose Tickets are all closed.
        """
        if not isinstance(plan.choice, Continuation):
            try:
                graph = read_graph(self.github, self.url)
            except GitHubError as error:
                raise unanswered(error) from error
            if not graph.unseen and not any(ticket.is_open for ticket in graph.tickets):
                raise PreflightError(
                    f"all sub-issues of #{plan.issue.number} are closed, and there is no branch {plan.branch} that "
                    "they were merged into; close it as well, or reopen what is still to be done"
                )
        return Run.execute(self, plan, conventions, sessions)

    def _work(self, plan: Plan, conventions: Conventions, sessions: Sessions, claim: Claim) -> Outcome:
        account = Account(github=self.github, spec=plan.issue, base=plan.base, branch=plan.branch, report=self.report)
        work: WorkingOff | None = None
        try:
            self._begin(plan, account, claim)
            at = plan.fetched.get(plan.branch, plan.base_commit)
            branch = SpecBranch(launch=self.launch, remote=self.launch.remote(self.origin), name=plan.branch, at=at)
            work = self._working_off(plan, conventions, account, claim, branch)
            with work.runs.ended():
                self._require_done(work.to_the_end())
            claim.keep()
            reviewed, run = self._ready_for_review(plan, account, branch, work.landed)
        except Exception as error:
            return self._failed(plan, conventions, account, work, error, claim)
        opening = self._opening(reviewed, conventions, account, work)
        outcome = run.deliver(reviewed, conventions, sessions, opening, account.pull_requests, claim)
        if outcome.preserved is Preserved.NOTHING_MADE:
            # The review could not begin; what Tickets have merged is there all the same.
            outcome = replace(outcome, preserved=Preserved.ORIGIN, pull_request=outcome.pull_request or account.pull)
        return replace(outcome, places=(*outcome.places, *work.kept_here))

    def _working_off(
        self, plan: Plan, conventions: Conventions, account: Account, claim: Claim, branch: SpecBranch
    ) -> WorkingOff:
        # What Tickets have merged into the Spec branch has no say in how the next one is run: nobody has reviewed it.
        runs, settled = self.child_runs, ConfiguredBy(base=plan.base, commit=plan.base_commit)
        starters = Starters(github=self.github, bots=conventions.bots, report=self.report)
        let = None if self.let_at is None else Let(self.let_at, starters)
        before = read_merged(self.github, plan.branch) if isinstance(plan.choice, Continuation) else {}

        def read() -> Graph:
            return replace(read_graph(self.github, self.url, conventions.unready_labels, let), merged=before)

        assert runs is not None  # noqa: S101 - every command that works on issues has them

        def look(landed: Collection[str]) -> None:
            self._require_wanted(plan, conventions)
            branch.look(landed)

        return WorkingOff(
            graph=read(),
            read=read,
            look=look,
            start=lambda number: runs.start(
                number,
                plan.branch,
                limit=conventions.ticket_limit,
                spec=plan.issue.number,
                configured_by=settled,
            ),
            runs=runs,
            account=account,
            parallel=conventions.parallel,
            is_taken=self._is_taken,
            patience=conventions.ticket_limit,
            poll=conventions.patience.poll,
            keep_fence=claim.keep,
            interruption=self.interruption,
            journal=self.journal,
            report=self.report,
            redact=self.redact,
        )

    def _is_taken(self, number: int) -> bool:
        """Whether a run that lives has an issue's claim; so it is while origin does not answer."""
        ref = claim_ref(number)
        try:
            seen = read_claims(self.launch, self.origin, self.launch.remote(self.origin).read(ref)).get(ref)
        except WorktreeError as error:
            self.report(f"origin could not be asked who has #{number}: {error}")
            return True
        return isinstance(judge_claim(seen, self.github.server_time.now()), Held | Unreadable)

    def _begin(self, plan: Plan, account: Account, claim: Claim) -> None:
        """Bring the Spec branch to origin, or make a draft of the pull request that it has."""
        if isinstance(plan.choice, Continuation):
            account.begin(plan.choice.pull_request)
            return
        self.report(f"pushing {plan.branch}, for the Tickets to be merged into")
        self.journal.enter("spec-branch", stage=Stage.TICKETS, commit=plan.base_commit)
        claim.push(RefUpdate(f"refs/heads/{plan.branch}", plan.base_commit, ABSENT))

    def _require_wanted(self, plan: Plan, conventions: Conventions) -> None:
        """Raise RunFailureError when people have decided meanwhile that the Spec is not to be worked on."""
        decided = decided_since(plan.issue, self.github.issue(plan.issue.number), conventions.unready_labels)
        if decided:
            why = f"#{plan.issue.number} is not to be worked on any more: {', '.join(decided)}"
            raise RunFailureError(why, Code.ISSUE_CHANGED)

    def _require_done(self, left: tuple[str, ...]) -> None:
        if self.interruption.recorded is not None:
            raise RunFailureError("interrupted", Code.INTERRUPTED)
        if left:
            raise RunFailureError(f"Tickets not done: {some(left, 10)}", Code.TICKETS)

    def _ready_for_review(
        self, plan: Plan, account: Account, branch: SpecBranch, landed: Collection[str]
    ) -> tuple[Plan, "SpecRun"]:
        """Return the plan of the review, and what carries it out: with clone and branches as they are by now."""
        pull = account.check()
        branch.look(landed)
        launch = self.launch.reopened()
        fetched = launch.remote(self.origin).fetch(plan.base, plan.branch)
        if pull is None and branch.is_in(fetched[plan.base]):
            raise RunFailureError(
                f"all sub-issues of #{plan.issue.number} are closed, and nothing was merged into {plan.branch}",
                Code.NOTHING_MERGED,
            )
        reviewed = replace(
            plan, choice=Continuation(plan.branch, pull), fetched=fetched, base_commit=fetched[plan.base]
        )
        return reviewed, replace(self, launch=launch)

    def _opening(self, plan: Plan, conventions: Conventions, account: Account, work: WorkingOff) -> Opening:
        def prompt(vanished: bool) -> str:  # noqa: FBT001 - as `Opening` asks
            return review_prompt(
                plan.issue,
                base=plan.base,
                branch=plan.branch,
                standings=work.standings,
                vanished=vanished,
                instructions=conventions.instructions,
                told=plan.told,
            )

        def described(session: SessionResult) -> Description:
            return account.description(session.pull_request_text, session.final_text)

        says = "all Tickets are done; starting the agent to review the whole"
        return Opening(kind="spec-review", says=says, prompt=prompt, describe=described)

    def _failed(
        self,
        plan: Plan,
        conventions: Conventions,
        account: Account,
        work: WorkingOff | None,
        error: Exception,
        claim: Claim,
    ) -> Outcome:
        """End a Spec run that failed before its review: it has no worktree, and the Tickets have kept their own."""
        has_landed = work is not None and work.has_landed
        failure = fail(
            None,
            plan.base,
            error,
            stage=Stage.TICKETS,
            pull_requests=account.pull_requests,
            opens_draft=conventions.opens_draft,
            interruption=self.interruption,
            journal=self.journal,
            report=self.report,
            has_work=has_landed,
        )
        open_ones = [] if work is None else [standing for standing in work.standings if not standing.is_done]
        lines = tuple(
            f"{standing.name}: {standing.words}{f': {standing.cause}' if standing.cause else ''}"
            for standing in open_ones
        )
        for line in lines:
            self.report(line)
        return self._outcome(plan, work, failure, lines, claim)

    def _outcome(
        self, plan: Plan, work: WorkingOff | None, failure: Failure, lines: tuple[str, ...], claim: Claim
    ) -> Outcome:
        preserved, refs = self._preserved(plan, work, claim)
        ref = f"refs/heads/{plan.branch}"
        places = [("Issue branch", f"{ref} at {refs[ref]} on origin")] if ref in refs else []
        return Outcome(
            result=failure.result,
            issue_url=str(self.url),
            base=plan.base,
            branch=plan.branch,
            preserved=preserved,
            pull_request=failure.pull_request,
            cause=failure.cause,
            code=failure.code,
            stage=failure.stage,
            secondary=(*lines, *failure.secondary),
            places=(*places, *(work.kept_here if work else ())),
            refs=refs,
            pending=failure.pending,
            interruption=self.interruption.recorded,
            overtaken=claim.is_lost,
        )

    def _preserved(self, plan: Plan, work: WorkingOff | None, claim: Claim) -> tuple[Preserved, dict[str, str]]:
        """Return where what was made is, and the Spec branch as origin has it; one that nobody needs is taken away."""
        ref = f"refs/heads/{plan.branch}"
        remote = self.launch.remote(self.origin).completing()
        is_new, made = not isinstance(plan.choice, Continuation), work is not None and work.has_made
        try:
            there = remote.read(ref)
            if is_new and not made and there.get(ref) == plan.base_commit:
                self.report(f"taking the branch {plan.branch} away again, for nothing was made")
                claim.push(RefUpdate(ref, ABSENT, plan.base_commit))
                there = {}
        except WorktreeError as error:
            self.report(f"origin could not be asked for {plan.branch}: {error}")
            there = {ref: plan.base_commit} if work is not None else {}
        if work is not None and work.is_kept_here:
            return Preserved.MACHINE, there
        return (Preserved.ORIGIN if there else Preserved.NOTHING_MADE), there
