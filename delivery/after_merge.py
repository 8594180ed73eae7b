"""What is left to do once a Run's pull request is merged. None of it can fail the Run any more."""

import shlex
from collections.abc import Callable
from dataclasses import replace

from delivery.claim import Claim
from delivery.errors import DeliveryError
from delivery.outcome import Outcome
from delivery.parts import Parts
from worktree import ABSENT, RefUpdate, WorktreeError


def finish_merged(parts: Parts, claim: Claim, outcome: Outcome) -> Outcome:
    """Delete the Issue branch on origin, close the issue and take its label off.

    Each is done whatever became of the one before, after a recorded interruption as well, and may be done already;
    what cannot be done is told with the command to do it by hand.
    """
    pull = outcome.pull_request
    assert pull is not None  # noqa: S101 - only a pull request is merged
    branch, head, url = outcome.branch, pull.head, str(parts.url)
    parts.journal.enter("after-merge")
    undeleted = _do(
        parts,
        f"the branch {branch} could not be deleted on origin",
        ["git", "push", "origin", "--delete", branch],
        lambda: _delete(parts, claim, branch, head),
    )
    unclosed = _do(
        parts,
        f"{url} could not be closed",
        ["gh", "issue", "close", url],
        lambda: _close(parts, pull.number, outcome),
    )
    unlabelled = _do(
        parts,
        f"the label {claim.labels.in_progress} could not be taken off {url}",
        ["gh", "issue", "edit", url, "--remove-label", claim.labels.in_progress],
        claim.labels.finish,
    )
    said = tuple(line for line in (undeleted, unclosed, unlabelled) if line)
    told = outcome if undeleted else _without_branch(outcome)
    return replace(told, secondary=(*outcome.secondary, *said))


def _do(parts: Parts, what: str, by_hand: list[str], action: Callable[[], None]) -> str:
    """Do one thing, once more when a signal came in its way; return what was not done, "" when it was."""
    for may_repeat in (True, False):
        try:
            action()
        except (DeliveryError, WorktreeError) as error:
            if may_repeat and parts.interruption.recorded:
                continue
            line = f"{what}: {error}; by hand: {shlex.join(by_hand)}"
            parts.report(f"warning: {line}")
            return line
        break
    return ""


def _delete(parts: Parts, claim: Claim, branch: str, head: str) -> None:
    remote, ref = parts.launch.remote(parts.origin).completing(), f"refs/heads/{branch}"
    # Commits that came after the merge are nobody's to delete.
    if ref in remote.read(ref):
        claim.push(RefUpdate(ref, ABSENT, head))


def _close(parts: Parts, pull_request: int, outcome: Outcome) -> None:
    number = parts.url.number
    if parts.github.close_issue(number):
        marker = f"<!-- nightkeep:merged {outcome.branch} -->"
        said = f"{marker}\nClosed by #{pull_request}, merged into {outcome.base} by a Merge run of Nightkeep."
        parts.github.comment(number, marker, said)


def _without_branch(outcome: Outcome) -> Outcome:
    """Return the outcome that names, in place of the Issue branch that is gone, where it was merged to."""
    ref, merged = f"refs/heads/{outcome.branch}", f"refs/heads/{outcome.base}"
    places = [place for place in outcome.places if not place[1].startswith(f"{ref} at ")]
    refs = {name: oid for name, oid in outcome.refs.items() if name != ref}
    commit = outcome.pull_request.merge_commit if outcome.pull_request else None
    if commit:
        places.insert(0, ("merged", f"{merged} at {commit} on origin"))
        refs[merged] = commit
    return replace(outcome, places=tuple(places), refs=refs)
