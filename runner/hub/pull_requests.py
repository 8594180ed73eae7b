"""What happens to pull requests: opening, following the branches, merging."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from runner.hub.access import Visitor
from runner.hub.bare import BareRepository, Difference, GitError, Signature
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOrder:
    """How somebody wants a pull request merged; `head_id` None means whatever its head is."""

    method: str
    head_id: str | None
    title: str | None
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mergeability:
    """GitHub's two fields, and how far the head is from the base."""

    mergeable: bool | None
    state: str
    difference: Difference


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
    return store.issues.change(issue.id, lambda before: followed(before, seen))


def followed(issue: Issue, branches: Mapping[str, str]) -> Issue:
    """Return an open pull request as its branches stand: one that lost a branch is closed, as on GitHub."""
    if issue.pull is None or not issue.open:
        return issue
    head, base = branches.get(issue.pull.head), branches.get(issue.pull.base)
    if head is None or base is None:
        return closed(issue, issue.author)
    return replace(issue, pull=replace(issue.pull, head_id=head, base_id=base))


def mergeability(repository: Repository, issue: Issue) -> Mergeability:
    """Ask git whether the pull request merges cleanly."""
    if issue.pull is None:
        raise ValueError(f"#{issue.number} is an issue")
    bare = BareRepository(repository.path)
    try:
        difference = bare.difference(issue.pull.base_id, issue.pull.head_id)
    except GitError:
        difference = Difference()  # the commits of a pull request that was closed long ago may be gone
    if not issue.open:
        return Mergeability(mergeable=None, state="unknown", difference=difference)
    mergeable = bare.merged_tree(issue.pull.base_id, issue.pull.head_id) is not None
    return Mergeability(mergeable=mergeable, state=_merge_state(issue.pull, mergeable=mergeable), difference=difference)


def merge(store: Store, repository: Repository, issue: Issue, visitor: Visitor, order: MergeOrder) -> Issue:
    """Merge a pull request that `follow` has returned, or raise the Refusal that GitHub would answer."""
    pull = _mergeable_pull(issue, order)
    bare = BareRepository(repository.path)
    tree = bare.merged_tree(pull.base_id, pull.head_id)
    if tree is None:
        raise Refusal(405, "Pull Request is not mergeable")
    parents = (pull.base_id,) if order.method == "squash" else (pull.base_id, pull.head_id)
    message = merge_message(repository.owner, issue, order)
    commit = bare.write_commit(tree, parents, message, _signature(visitor))
    if not bare.move_branch(pull.base, commit, pull.base_id, f"merge pull request #{issue.number}"):
        raise Refusal(405, "Base branch was modified. Review and try the merge again.")
    return _record_merge(store, repository, issue, visitor, commit)


def merge_message(owner: str, issue: Issue, order: MergeOrder) -> str:
    """Return the whole message of the commit that a merge makes."""
    branch = issue.pull.head if issue.pull else ""
    if order.method == "squash":
        title, message = f"{issue.title} (#{issue.number})", issue.body or ""
    else:
        title, message = f"Merge pull request #{issue.number} from {owner}/{branch}", issue.title
    parts = (order.title or title, message if order.message is None else order.message)
    return "\n\n".join(part for part in parts if part) + "\n"


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


def _mergeable_pull(issue: Issue, order: MergeOrder) -> Pull:
    if issue.pull is None or not issue.open:
        raise Refusal(405, "Pull Request is not mergeable")
    if issue.pull.draft:
        raise Refusal(405, "Pull Request is still a draft")
    if order.head_id is not None and order.head_id != issue.pull.head_id:
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    if order.method not in ("merge", "squash"):
        raise Refusal(405, f"{order.method.capitalize()} merges are not allowed on this repository.")
    return issue.pull


def _record_merge(store: Store, repository: Repository, issue: Issue, visitor: Visitor, commit: str) -> Issue:
    def merged(before: Issue) -> Issue:
        pull = before.pull and replace(before.pull, merged_at=now(), merged_by=visitor.login, merge_id=commit)
        return replace(closed(before, visitor.login), pull=pull)

    with store.transaction():
        after = store.issues.change(issue.id, merged)
        if after.pull and after.pull.base == BareRepository(repository.path).default_branch():
            _close_named(store, repository, after, visitor)
    return after


def _close_named(store: Store, repository: Repository, issue: Issue, visitor: Visitor) -> None:
    for number in closing_numbers(issue.body):
        named = store.issues.find(repository.id, number)
        if named is not None and named.pull is None:
            store.issues.close(named.id, visitor.login)


def _merge_state(pull: Pull, *, mergeable: bool) -> str:
    if not mergeable:
        return "dirty"
    return "draft" if pull.draft else "clean"


def _signature(visitor: Visitor) -> Signature:
    return Signature(name=visitor.login, email=f"{visitor.login}@users.noreply.github.com")
