"""Finishing a Run whose runner was killed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from delivery.after_merge import finish_merged
from delivery.causes import Code
from delivery.claim import Claim
from delivery.errors import RunFailureError
from delivery.failure import Failure, fail
from delivery.github import Issue
from delivery.goal import Goal
from delivery.outcome import Outcome, Result
from delivery.parts import Parts
from delivery.pull_request import PullRequests
from delivery.spec.account import show_as_it_is
from delivery.telling import outcome_of, publish
from delivery.tries import keep_count
from delivery.unfinished import Unfinished
from worktree import (
    WENT_ON_FROM,
    DeferredError,
    Preserved,
    Worktree,
    WorktreeError,
    has_record,
    orphans,
    rescue_ref,
    rescued_by,
    retained_by,
)

_DIED = "Nightkeep was killed"


def recover(parts: Parts, unfinished: Unfinished, save_output: Callable[[str], Path | None]) -> Outcome:
    """Finish what a Run began whose runner was killed: preserve, draft, note, release; every ending is an outcome.

    `save_output` is called with the run's id once nothing of its session is left, to bring what that had printed
    into a Session log.

    Raises DeferredError, with nothing done, when somebody is at work in its worktree; GitHubError or WorktreeError
    when GitHub or origin does not answer. Then it can be done again.
    """
    issue = parts.github.issue(parts.url.number)
    pull_requests = PullRequests(
        parts.github, issue, base=unfinished.base, branch=unfinished.branch, report=parts.report
    )
    claim = Claim.of(parts, issue, unfinished)
    with claim.guarding():
        outcome = _finished(parts, unfinished, claim, pull_requests, save_output)
        outcome = _with_taken_over(parts, unfinished, outcome)
        if not unfinished.unclaimed:  # else all that follows was done
            outcome = _told(parts, unfinished, claim, issue, outcome)
    if not claim.end():
        raise WorktreeError(f"the claim on #{issue.number} is still on origin")
    parts.journal.enter("end", result=outcome.result)
    parts.journal.close()
    return outcome


def _told(parts: Parts, unfinished: Unfinished, claim: Claim, issue: Issue, outcome: Outcome) -> Outcome:
    outcome = replace(outcome, continued=unfinished.continued)
    outcome = publish(parts, issue.number, outcome.pull_request if unfinished.continued else None, outcome)
    if unfinished.is_spec and not claim.is_lost:
        show_as_it_is(parts, issue, outcome)
    if outcome.merged:
        outcome = finish_merged(parts, claim, outcome)
    if outcome.left_nothing and not unfinished.delivered:
        parts.journal.enter("release")
        claim.release()
    if not claim.is_lost:
        keep_count(parts, issue.number, outcome, commit=None)
    return outcome


def _with_taken_over(parts: Parts, unfinished: Unfinished, outcome: Outcome) -> Outcome:
    """Name what the Run went on from: it may have been killed before any of that was in its worktree."""
    if unfinished.took_over is None or any(what == WENT_ON_FROM for what, _ in outcome.places):
        return outcome
    ref = rescue_ref(unfinished.took_over, "checkpoint")
    there = parts.launch.remote(parts.origin).read(ref)
    if ref not in there:
        return outcome
    made = Preserved.ORIGIN if outcome.preserved is Preserved.NOTHING_MADE else outcome.preserved
    place = (WENT_ON_FROM, f"{ref} at {there[ref]} on origin")
    return replace(outcome, preserved=made, places=(*outcome.places, place), refs={**outcome.refs, **there})


def _finished(
    parts: Parts,
    unfinished: Unfinished,
    claim: Claim,
    pull_requests: PullRequests,
    save_output: Callable[[str], Path | None],
) -> Outcome:
    run_id, common = unfinished.run_id, parts.launch.common
    if run_id is None or not has_record(common, run_id) or retained_by(common, run_id):
        overtaken = claim.is_lost and run_id is not None and not unfinished.unclaimed
        return replace(_without_record(parts, unfinished, pull_requests), overtaken=overtaken)
    if not any(orphan.run_id == run_id for orphan in orphans(parts.launch)):
        raise DeferredError(f"somebody else may be at work on run {run_id}, or its record cannot be read")
    reclaimed = Worktree.reclaim(
        parts.launch, run_id, origin=parts.origin, fence=claim.fence, delivered=unfinished.delivered
    )
    with reclaimed as worktree:
        session_log = save_output(run_id)
        ended: Goal | Failure | None = _reached(parts, unfinished, pull_requests)
        if ended is None and not unfinished.delivered:
            ended = fail(
                worktree,
                unfinished.base,
                _cause_of(unfinished),
                stage=unfinished.stage,
                pull_requests=pull_requests,
                opens_draft=unfinished.opens_draft,
                interruption=parts.interruption,
                journal=parts.journal,
                report=parts.report,
            )
        parts.journal.enter("clean-up")
    parts.report(str(worktree.ending))
    return outcome_of(parts, worktree, unfinished.base, ended, session_log)


def _reached(parts: Parts, unfinished: Unfinished, pull_requests: PullRequests) -> Goal | None:
    """Return the goal that a Run had reached: merged, as GitHub alone may know, or delivered."""
    if unfinished.merging is not None:
        number, head = unfinished.merging
        seen = parts.github.pull_request(number)
        if seen.is_merged and seen.head == head:
            return Goal(pull_request=seen, merged=True)
    found = pull_requests.find() if unfinished.delivered else None
    return Goal(pull_request=found, merged=False) if found else None


def _cause_of(unfinished: Unfinished) -> RunFailureError:
    return RunFailureError(unfinished.cause or _DIED, unfinished.code or Code.KILLED)


def _without_record(parts: Parts, unfinished: Unfinished, pull_requests: PullRequests) -> Outcome:
    """Return how a Run ended whose worktree was not made yet, was retained, or is gone: it is left to say so."""
    common, run_id = parts.launch.common, unfinished.run_id
    remote = parts.launch.remote(parts.origin)
    there = remote.read(rescue_ref(run_id, "*")) if run_id else {}
    store = rescued_by(common, run_id) if run_id else None
    retained = retained_by(common, run_id) if run_id else None
    reached = _reached(parts, unfinished, pull_requests)
    delivered = unfinished.delivered or reached is not None
    made = bool(there) or _has_branch(parts, unfinished)
    local = {ref: oid for ref, oid in parts.launch.refs.items() if run_id and ref.startswith(rescue_ref(run_id))}
    here = store or retained or local
    places = [(ref.rsplit("/", 1)[1], f"{ref} at {oid} on origin") for ref, oid in there.items()]
    places += [(ref.rsplit("/", 1)[1], f"{ref} at {oid} in {common}") for ref, oid in local.items()]
    places += [("kept on this machine", str(store))] if store else []
    return Outcome(
        result=Result.DELIVERED if delivered else Result.FAILED,
        issue_url=str(parts.url),
        base=unfinished.base,
        branch=unfinished.branch,
        run_id=run_id,
        preserved=Preserved.MACHINE if here else Preserved.ORIGIN if made else Preserved.NOTHING_MADE,
        pull_request=reached.pull_request if reached else pull_requests.find(),
        merged=reached is not None and reached.merged,
        cause=None if delivered else unfinished.cause or _DIED,
        code=None if delivered else unfinished.code or Code.KILLED,
        stage=None if delivered else unfinished.stage,
        places=retained[1].places if retained else tuple(places),
        refs=there,
        retained=retained[1].why if retained else None,
        worktree=retained[0] if retained else None,
        rescued=store,
    )


def _has_branch(parts: Parts, unfinished: Unfinished) -> bool:
    ref = f"refs/heads/{unfinished.branch}"
    return not unfinished.continued and ref in parts.launch.remote(parts.origin).read(ref)
