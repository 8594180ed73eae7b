"""What is known in a Repair loop before each step, and what each step makes of it."""

from dataclasses import dataclass, replace
from enum import StrEnum

from delivery.checks import Required, Verdict
from delivery.github import PullRequest


class Kind(StrEnum):
    """What a Repair is for."""

    CONFLICT = "conflict"
    REVIEW = "review"
    VERIFY = "verify"
    CHECKS = "checks"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRules:
    """How the loop is done. `base` is the Base branch; `merges` says that this is a Merge run.

    `repairs` and `moves` are the budgets; `verifies` says whether there is a command that each head must pass before
    it is pushed, `fixes_base` whether the Base branch may be mended by a Run of its own.
    """

    base: str
    branch: str
    merges: bool = False
    repairs: int = 5
    moves: int = 5
    required: Required = Required.AUTO
    verifies: bool = False
    fixes_base: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """How much of the budgets is used up."""

    repairs: int = 0
    moves: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Origin as it was looked at last: the Base branch's commit, and the newest of others' commits on the Issue branch.

    Each is None where HEAD has it already.
    """

    base: str | None = None
    foreign: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A merge that GitHub refused, at which head and after what was spent; `why` is in its words."""

    head: str
    spent: Spent
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFixed:
    """A Base fix that has ended: the issue that it was, which checks it was for, and why it did not mend them.

    `failure` is None when the issue was closed, with whatever came of it on the Base branch.
    """

    url: str
    names: str
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known before a step. What must be looked at (again) is None.

    `base_commit` is the one of the Base branch that the head holds. `conflict` names the upstream of a merge that
    stopped at a conflict, `unresolved` says what a Repair of one left undone, `unreviewed` is the last commit before
    others' commits came in. `verify_failure` is the cause when the verify command failed at `verified`;
    `verify_repaired` and `checks_repaired` are the heads that a Repair was last given, `repeated` the one whose checks
    were asked to run again. `pushed` is what origin has of the branch; `push_refused` says that it did not take this
    head, because others' commits are there. `verdict` is about `head`, `base_fix` what came of the one that a Run may
    have.
    """

    rules: LoopRules
    head: str
    base_commit: str
    spent: Spent = Spent()
    interrupted: bool = False
    sample: Sample | None = None
    conflict: str | None = None
    unresolved: str | None = None
    unreviewed: str | None = None
    verified: str | None = None
    verify_failure: str | None = None
    verify_repaired: str | None = None
    pushed: str | None = None
    push_refused: bool = False
    is_ready: bool = False
    verdict: Verdict | None = None
    checks_repaired: str | None = None
    repeated: str | None = None
    base_fix: BaseFixed | None = None
    pull: PullRequest | None = None
    refusal: Refusal | None = None

    def looked(self, sample: Sample) -> "Facts":
        """Return the facts after a look at origin."""
        return replace(self, sample=sample)

    def merged(self, upstream: str, commit: str, head: str, *, spent: Spent, foreign: bool, conflicts: bool) -> "Facts":
        """Return the facts after a merge of `upstream` at `commit`, which stopped at a conflict or made `head`."""
        reviewed_to = self.unreviewed or self.head
        sample = self.sample or Sample()
        left = replace(sample, foreign=None) if foreign else replace(sample, base=None)
        return replace(
            self._at(head),
            spent=spent,
            sample=left,
            base_commit=self.base_commit if foreign else commit,
            conflict=upstream if conflicts else None,
            unreviewed=reviewed_to if foreign else self.unreviewed,
        )

    def repaired(self, kind: Kind, head: str, *, spent: Spent, unresolved: str | None = None) -> "Facts":
        """Return the facts after a Repair that left HEAD at `head`: all of them may have changed meanwhile."""
        before = self.head
        facts = replace(self._at(head), spent=spent, sample=None, verdict=None, pull=None)
        match kind:
            case Kind.CONFLICT:
                return replace(facts, conflict=None, unresolved=unresolved)
            case Kind.REVIEW:
                return replace(facts, unreviewed=None)
            case Kind.VERIFY:
                return replace(facts, verify_repaired=before, verified=None, verify_failure=None)
            case Kind.CHECKS:
                return replace(facts, checks_repaired=before)

    def verified_as(self, head: str, failure: str | None) -> "Facts":
        """Return the facts after the verify command, which left HEAD at `head`, and failed for that cause or passed."""
        return replace(self._at(head), verified=head, verify_failure=failure)

    def pushed_as(self, *, taken: bool) -> "Facts":
        """Return the facts after a push, which origin took, or not because of commits that are not here."""
        if taken:
            return replace(self, pushed=self.head, push_refused=False)
        return replace(self, push_refused=True, sample=None)

    def watched(self, verdict: Verdict, *, repeated: bool) -> "Facts":
        """Return the facts after the checks of the head were waited for: origin may have moved meanwhile."""
        again = self.head if repeated else self.repeated
        return replace(self, verdict=verdict, repeated=again, sample=None, pull=None)

    def base_fixed(self, fixed: BaseFixed | None) -> "Facts":
        """Return the facts after a Base fix: the Base branch has moved, or the checks may be others by now.

        None was made when the Base branch had moved before.
        """
        if fixed is None:
            return replace(self, sample=None)
        return replace(self, base_fix=fixed, verdict=None, sample=None, pull=None)

    def refused(self, why: str) -> "Facts":
        """Return the facts after GitHub refused the merge: everything is looked at once more."""
        refusal = Refusal(head=self.head, spent=self.spent, why=why)
        return replace(self, refusal=refusal, verdict=None, sample=None, pull=None)

    def _at(self, head: str) -> "Facts":
        """Return the facts for a head; of another one than before nothing is known."""
        if head == self.head:
            return self
        return replace(self, head=head, verdict=None, pull=None, push_refused=False, verify_failure=None)
