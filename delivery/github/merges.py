"""Merging on GitHub: at exactly one commit, by a method or by the queue, under the rules of the Base branch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from delivery.errors import GitHubError, GitHubForbiddenError, GitHubNotFoundError
from delivery.github.answers import PullRequest, RuleSet, read_pull_request
from delivery.github.transport import Transport

_QUEUE = "merge_queue"
_CHECKS = "required_status_checks"
_SENTENCES = {
    "pull_request": "changes come by pull request",
    "required_linear_history": "the history is linear",
    "required_signatures": "commits are signed",
    "required_deployments": "deployments succeed first",
    "code_scanning": "code scanning passes",
    "update": "nobody without leave updates the branch",
    _QUEUE: "merges go through the merge queue",
}
_SWITCHES = {
    "required_linear_history": "the history is linear",
    "required_signatures": "commits are signed",
    "required_conversation_resolution": "conversations are resolved",
    "lock_branch": "the branch is locked",
}
_ENQUEUE = "mutation($input: EnqueuePullRequestInput!) { enqueuePullRequest(input: $input) { mergeQueueEntry { id } } }"
_DEQUEUE = "mutation($input: DequeuePullRequestInput!) { dequeuePullRequest(input: $input) { mergeQueueEntry { id } } }"
_ENTRY = "query($id: ID!) { node(id: $id) { __typename ... on PullRequest { merged mergeQueueEntry { id } } } }"


class Merges:
    """The merges of one repository's pull requests."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def merge(self, number: int, head: str, method: str) -> PullRequest:
        """Merge a pull request at `head` and return it as it is then. `method`: merge, squash or rebase.

        One that was merged all the same, though the answer said otherwise or was lost, is returned as merged. Raises
        GitHubError when it is not.
        """

        def write() -> PullRequest | None:
            self._transport.send("PUT", f"pulls/{number}/merge", {"sha": head, "merge_method": method})
            return None

        def look() -> PullRequest | None:
            seen = read_pull_request(self._transport.send("GET", f"pulls/{number}"))
            return seen if seen.is_merged else None

        try:
            merged = self._transport.write(write, look)
        except GitHubError:
            merged = self._transport.patiently(look)
            if merged is None:
                raise
        merged = merged or self._transport.patiently(look)
        if merged is None:
            raise GitHubError(f"GitHub took the merge of #{number}, but did not merge it", 0)
        return merged

    def enqueue(self, pull: PullRequest, head: str) -> None:
        """Put a pull request into its Base branch's merge queue, to be merged at `head`. Raises GitHubError."""

        def write() -> bool:
            wanted = {"pullRequestId": pull.node_id, "expectedHeadOid": head}
            self._transport.query(_ENQUEUE, {"input": wanted})
            return True

        self._transport.write(write, lambda: self._is_queued(pull) or None)

    def dequeue(self, pull: PullRequest) -> None:
        """Take a pull request out of the merge queue. Raises GitHubError."""
        self._transport.patiently(lambda: self._transport.query(_DEQUEUE, {"input": {"id": pull.node_id}}))

    def is_queued(self, pull: PullRequest) -> bool:
        """Whether a pull request waits in a merge queue, or was merged by it."""
        return self._transport.patiently(lambda: self._is_queued(pull))

    def _is_queued(self, pull: PullRequest) -> bool:
        seen = self._transport.query(_ENTRY, {"id": pull.node_id})["node"]
        return bool(seen["merged"]) or seen["mergeQueueEntry"] is not None

    def rules(self, branch: str) -> RuleSet:
        """Return what a branch asks of a merge, as far as the token may read it."""
        name = quote(branch, safe="")
        by_ruleset = self._maybe(f"rules/branches/{name}?per_page=100", _by_ruleset)
        protection = self._maybe(f"branches/{name}/protection", _by_protection)
        parts = [part for part in (by_ruleset, protection) if part is not None]
        checks = frozenset(check for part in parts for check in part.checks)
        rules = dict.fromkeys(rule for part in parts for rule in part.rules)
        named = (f"checks pass: {', '.join(sorted(checks))}",) if checks else ()
        return RuleSet(
            rules=(*rules, *named),
            checks=checks,
            needs_queue=any(part.needs_queue for part in parts),
            is_whole=len(parts) == 2,
        )

    def _maybe(self, path: str, read: Callable[[Any], RuleSet]) -> RuleSet | None:
        """Return what GitHub answers, None for what the token may not see; what is not there is told the same way."""
        try:
            return self._transport.get(path, read)
        except (GitHubForbiddenError, GitHubNotFoundError):
            return None


def _by_ruleset(found: Sequence[Mapping[str, Any]]) -> RuleSet:
    rules: list[str] = []
    checks: set[str] = set()
    for rule in found:
        given = rule.get("parameters") or {}
        checks |= {check["context"] for check in given.get(_CHECKS, [])}
        if count := given.get("required_approving_review_count"):
            rules.append(_approvals(count))
        elif rule["type"] in _SENTENCES:
            rules.append(_SENTENCES[rule["type"]])
    queued = any(rule["type"] == _QUEUE for rule in found)
    return RuleSet(rules=tuple(rules), checks=frozenset(checks), needs_queue=queued)


def _by_protection(found: Mapping[str, Any]) -> RuleSet:
    reviews = found.get("required_pull_request_reviews") or {}
    count = reviews.get("required_approving_review_count")
    rules = [_approvals(count)] if count else []
    if reviews.get("require_code_owner_reviews"):
        rules.append("code owners approve")
    rules += [sentence for name, sentence in _SWITCHES.items() if (found.get(name) or {}).get("enabled")]
    checks = (found.get(_CHECKS) or {}).get("contexts", [])
    return RuleSet(rules=tuple(rules), checks=frozenset(checks))


def _approvals(count: int) -> str:
    return "1 approving review" if count == 1 else f"{count} approving reviews"
