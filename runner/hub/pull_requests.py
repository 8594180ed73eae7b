"""What happens to pull requests: opening, following the branches, having been merged."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from runner.hub.access import Visitor
from runner.hub.bare import BareRepository
from runner.hub.refusal import NO_DRAFTS, Refusal, custom, invalid
from runner.hub.store import Issue, Pull, Repository, Store
from runner.hub.store.database import now
from runner.hub.store.issues import closed

# https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]+#(\d+)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A pull request that somebody wants to open."""

    title: str
    body: str | None
    head: str
    base: str
    draft: bool


def open_pull_request(store: Store, repository: Repository, visitor: Visitor, proposal: Proposal) -> Issue:
    """Open a pull request, or raise the Refusal that GitHub would answer."""
    owner, _, name = proposal.head.rpartition(":")
    if owner and owner.casefold() != repository.owner.casefold():
        raise invalid("PullRequest", "head")
    if proposal.draft and not repository.drafts:
        raise Refusal(422, NO_DRAFTS)
    pull = _pull(BareRepository(repository.path), replace(proposal, head=name))
    with store.transaction():
        _refuse_second(store.issues.all(repository.id), repository, pull)
        return store.issues.open(
            repository.id, title=proposal.title, body=proposal.body, author=visitor.login, pull=pull
        )


def follow(store: Store, repository: Repository, issue: Issue, branches: Mapping[str, str] | None = None) -> Issue:
    """Bring an open pull request up to date with its branches and return it; other issues stay as they are.

    `branches` are the repository's, when they are known already.
    """
    if issue.pull is None or not issue.open:
        return issue
    seen = BareRepository(repository.path).refs() if branches is None else branches
    if followed(issue, seen) == issue:
        return issue
    if _was_merged(repository, issue, seen):
        commit = seen[issue.pull.base]
        return record_merge(store, repository, issue, repository.owner, commit)
    return store.issues.change(issue.id, lambda before: followed(before, seen))


def followed(issue: Issue, branches: Mapping[str, str]) -> Issue:
    """Return an open pull request as its branches stand: one that lost a branch is closed, as on GitHub."""
    if issue.pull is None or not issue.open:
        return issue
    head, base = branches.get(issue.pull.head), branches.get(issue.pull.base)
    if head is None or base is None:
        return closed(issue, issue.author)
    return replace(issue, pull=replace(issue.pull, head_id=head, base_id=base))


def record_merge(store: Store, repository: Repository, issue: Issue, login: str, commit: str) -> Issue:
    """Say that the user `login` merged a pull request by `commit`, which its base holds; close what it closes."""

    def merged(before: Issue) -> Issue:
        pull = before.pull and replace(before.pull, merged_at=now(), merged_by=login, merge_id=commit)
        return replace(closed(before, login), pull=pull)

    bare = BareRepository(repository.path)
    with store.transaction():
        after = store.issues.change(issue.id, merged)
        if after.pull and after.pull.base == bare.default_branch():
            _close_named(store, repository, after, login)
    if after.pull and store.rules.settings(repository.id).delete_branch_on_merge:
        bare.delete_ref(f"refs/heads/{after.pull.head}", after.pull.head_id)
    return after


def closing_numbers(body: str | None) -> list[int]:
    """Return the issues that merging a pull request with this body closes."""
    return [int(number) for number in _CLOSING.findall(body or "")]


def _pull(bare: BareRepository, proposal: Proposal) -> Pull:
    branches = bare.refs()
    for field in ("head", "base"):
        if getattr(proposal, field) not in branches:
            raise invalid("PullRequest", field)
    head_id, base_id = branches[proposal.head], branches[proposal.base]
    if not bare.related(base_id, head_id):
        raise custom("PullRequest", f"The {proposal.head} branch has no history in common with {proposal.base}")
    if bare.difference(base_id, head_id).commits == 0:
        raise custom("PullRequest", f"No commits between {proposal.base} and {proposal.head}")
    return Pull(draft=proposal.draft, head=proposal.head, base=proposal.base, head_id=head_id, base_id=base_id)


def _refuse_second(issues: list[Issue], repository: Repository, pull: Pull) -> None:
    ends = (pull.head, pull.base)
    if any(other.open and other.pull and (other.pull.head, other.pull.base) == ends for other in issues):
        raise custom("PullRequest", f"A pull request already exists for {repository.owner}:{pull.head}.")


def _was_merged(repository: Repository, issue: Issue, branches: Mapping[str, str]) -> bool:
    """Tell whether somebody has pushed to the base what the pull request proposes, which merges it."""
    if issue.pull is None or branches.get(issue.pull.head, issue.pull.head_id) != issue.pull.head_id:
        return False
    base_id = branches.get(issue.pull.base, issue.pull.base_id)
    return base_id != issue.pull.base_id and BareRepository(repository.path).is_ancestor(issue.pull.head_id, base_id)


def _close_named(store: Store, repository: Repository, issue: Issue, login: str) -> None:
    for number in closing_numbers(issue.body):
        named = store.issues.find(repository.id, number)
        if named is not None and named.pull is None:
            store.issues.close(named.id, login)
