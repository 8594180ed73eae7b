"""The Self-merge of a Merge run: at exactly the watched head, by the rules of the Base branch."""

import time
from contextlib import suppress
from dataclasses import dataclass, field

from delivery.causes import Code, Stage
from delivery.conventions import Conventions
from delivery.errors import DeliveryError, GitHubError, GitHubUnavailableError, RunFailureError
from delivery.github import GitHub, PullRequest, RuleSet
from delivery.stages import Stages


class MergeRefusedError(DeliveryError):
    """GitHub did not merge. Its text is GitHub's, and is read by people only."""


@dataclass(slots=True, kw_only=True)
class SelfMerge:
    """Merges one Delivery's pull request, and knows what its Base branch asks for."""

    stages: Stages
    github: GitHub
    conventions: Conventions
    _rules: RuleSet | None = field(default=None, init=False)

    @property
    def rules(self) -> RuleSet:
        """What the Base branch asks of a merge, as far as the token may read it; read once."""
        if self._rules is None:
            try:
                self._rules = self.github.merges.rules(self.stages.plan.base)
            except GitHubError:
                self._rules = RuleSet(is_whole=False)
        return self._rules

    def merge(self, pull: PullRequest, head: str) -> PullRequest:
        """Merge at `head`, and return the pull request as it is then.

        Raises MergeRefusedError when GitHub refuses, GitHubUnavailableError when it does not say.
        """
        method, stages = self.conventions.merge_method, self.stages
        how = "by the merge queue" if self.rules.needs_queue else f"by {method}"
        stages.report(f"merging {pull.url} at {head[:12]} {how}")
        stages.enter(Stage.MERGE, "merge", number=pull.number, head=head)
        try:
            if self.rules.needs_queue:
                return self._by_queue(pull, head)
            return self.github.merges.merge(pull.number, head, method)
        except GitHubUnavailableError:
            raise
        except GitHubError as error:
            raise MergeRefusedError(str(error)) from error

    def _by_queue(self, pull: PullRequest, head: str) -> PullRequest:
        self.github.merges.enqueue(pull, head)
        try:
            merged = self._await_queue(pull)
        except Exception:
            # What nobody waits for any more must not be merged later, without what comes after a merge.
            with suppress(GitHubError):
                self.github.merges.dequeue(pull)
            raise
        if merged is None:
            raise MergeRefusedError("the merge queue took the pull request out without merging it")
        return merged

    def _await_queue(self, pull: PullRequest) -> PullRequest | None:
        """Wait until the queue has merged it; None when it was taken out."""
        patience = self.conventions.patience
        deadline = time.monotonic() + patience.limit
        while self.github.merges.is_queued(pull):
            seen = self.github.pull_request(pull.number)
            if seen.is_merged:
                return seen
            if time.monotonic() > deadline:
                raise RunFailureError(f"the merge queue did not merge {pull.url} in time", Code.CHECKS_PENDING)
            self.stages.sleep(patience.poll)
        return None

    def refusal(self, why: str) -> str:
        """Say what forbids the merge: the rules, as far as the token may read them, and GitHub's words."""
        if not self.rules.rules:
            return why
        rest = "" if self.rules.is_whole else ", as far as the token may read"
        return f"{self.stages.plan.base} asks for{rest}: {', '.join(self.rules.rules)} ({why.rstrip('.')})"
