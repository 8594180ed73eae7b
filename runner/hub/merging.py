"""Whether a pull request can be merged, and merging it."""

from dataclasses import dataclass, replace

from runner.hub.access import Permission, Visitor
from runner.hub.bare import BareRepository, Difference, GitError, Signature
from runner.hub.pull_requests import record_merge
from runner.hub.refusal import Refusal
from runner.hub.requirements import Candidate, is_settled, refusal, unmet, words
from runner.hub.site import Site
from runner.hub.store import Issue, Pull, Repository, Settings

_NOT_ALLOWED = {
    "merge": "Merge commits are not allowed on this repository.",
    "squash": "Squash merges are not allowed on this repository.",
    "rebase": "Rebase merges are not allowed on this repository.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOrder:
    """How somebody wants a pull request merged; `head_id` None means whatever its head is."""

    method: str
    head_id: str | None = None
    title: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mergeability:
    """GitHub's two fields, and how far the head is from the base."""

    mergeable: bool | None
    state: str
    difference: Difference


def answered(site: Site, repository: Repository, issue: Issue) -> Mergeability:
    """Return what the API answers about merging a pull request that `follow` has returned.

    The first answers about a head and a base say that it is not known yet, as many as the repository's settings want.
    """
    pull, rules = _pull(issue), site.store.rules
    answers = rules.count_answer(issue.id, f"{pull.base_id}..{pull.head_id}")
    found = mergeability(site, repository, issue)
    if answers > rules.settings(repository.id).mergeability_answers:
        return found
    return replace(found, mergeable=None, state="unknown")


def mergeability(site: Site, repository: Repository, issue: Issue) -> Mergeability:
    """Return what git and the base branch say about merging a pull request that `follow` has returned."""
    pull, bare = _pull(issue), BareRepository(repository.path)
    try:
        difference = bare.difference(pull.base_id, pull.head_id)
    except GitError:
        difference = Difference()  # the commits of a pull request that was closed long ago may be gone
    if not issue.open:
        return Mergeability(mergeable=None, state="unknown", difference=difference)
    mergeable = bare.merged_tree(pull.base_id, pull.head_id) is not None
    state = _merge_state(site, repository, issue, mergeable=mergeable)
    return Mergeability(mergeable=mergeable, state=state, difference=difference)


def missing(site: Site, repository: Repository, issue: Issue) -> list[str]:
    """Return GitHub's sentences for what the base branch still demands of a pull request."""
    pull = _pull(issue)
    shown = candidate(site, repository, issue, pull.head_id)
    demands = site.store.rules.demands(repository.id, pull.base)
    return [sentence for one in demands for sentence in unmet(one, shown)]


def candidate(site: Site, repository: Repository, issue: Issue, head_id: str) -> Candidate:
    """Return what a pull request has to show when `head_id` is what would be merged."""
    runs = site.ci.listed(repository, head_id)
    return Candidate(
        checks=words((run.check.name, run.suite.source, run.conclusion) for run in runs),
        approvals=site.store.rules.approvals(issue.id),
        behind=not BareRepository(repository.path).is_ancestor(_pull(issue).base_id, head_id),
    )


def merge(site: Site, repository: Repository, issue: Issue, visitor: Visitor, order: MergeOrder) -> Issue:
    """Merge a pull request that `follow` has returned, or raise the Refusal that GitHub would answer."""
    pull = _mergeable_pull(issue, order, site.store.rules.settings(repository.id))
    if any(entry.issue == issue.id for entry in site.store.queue.waiting(repository.id)):
        raise Refusal(405, "Pull Request is in the merge queue")
    _check_demands(site, repository, issue, visitor, order.method)
    commit = merged_commit(repository, issue, visitor.login, order, pull.base_id)
    if commit is None:
        raise Refusal(405, "Pull Request is not mergeable")
    bare = BareRepository(repository.path)
    if not bare.move_branch(pull.base, commit, pull.base_id, f"merge pull request #{issue.number}"):
        raise Refusal(405, "Base branch was modified. Review and try the merge again.")
    return record_merge(site.store, repository, issue, visitor.login, commit)


def merged_commit(repository: Repository, issue: Issue, login: str, order: MergeOrder, onto: str) -> str | None:
    """Write the commit that merges a pull request onto `onto` for the user `login`; None when they conflict."""
    pull, bare = _pull(issue), BareRepository(repository.path)
    if order.method == "rebase":
        return bare.rebased(pull.head_id, onto, _signature(login))
    tree = bare.merged_tree(onto, pull.head_id)
    if tree is None:
        return None
    parents = (onto,) if order.method == "squash" else (onto, pull.head_id)
    return bare.write_commit(tree, parents, _merge_message(repository.owner, issue, order), _signature(login))


def _merge_message(owner: str, issue: Issue, order: MergeOrder) -> str:
    """Return the whole message of the commit that a merge makes."""
    branch = issue.pull.head if issue.pull else ""
    if order.method == "squash":
        title, message = f"{issue.title} (#{issue.number})", issue.body or ""
    else:
        title, message = f"Merge pull request #{issue.number} from {owner}/{branch}", issue.title
    parts = (order.title or title, message if order.message is None else order.message)
    return "\n\n".join(part for part in parts if part) + "\n"


def _pull(issue: Issue) -> Pull:
    if issue.pull is None:
        raise ValueError(f"#{issue.number} is an issue")
    return issue.pull


def _mergeable_pull(issue: Issue, order: MergeOrder, settings: Settings) -> Pull:
    if issue.pull is None or not issue.open:
        raise Refusal(405, "Pull Request is not mergeable")
    if issue.pull.draft:
        raise Refusal(405, "Pull Request is still a draft")
    if order.head_id is not None and order.head_id != issue.pull.head_id:
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    if not settings.allows(order.method):
        raise Refusal(405, _NOT_ALLOWED[order.method])
    return issue.pull


def _check_demands(site: Site, repository: Repository, issue: Issue, visitor: Visitor, method: str) -> None:
    pull = _pull(issue)
    shown = candidate(site, repository, issue, pull.head_id)
    is_admin = visitor.may(Permission.ADMIN)
    for demands in site.store.rules.demands(repository.id, pull.base):
        refused = refusal(demands, shown, login=visitor.login, is_admin=is_admin, method=method)
        if refused is not None:
            raise Refusal(*refused)


def _merge_state(site: Site, repository: Repository, issue: Issue, *, mergeable: bool) -> str:
    pull = _pull(issue)
    if not mergeable:
        return "dirty"
    if pull.draft:
        return "draft"
    shown = candidate(site, repository, issue, pull.head_id)
    if missing(site, repository, issue):
        return "blocked"
    if shown.behind and any(one.strict for one in site.store.rules.demands(repository.id, pull.base)):
        return "behind"
    return "clean" if is_settled(shown.checks) else "unstable"


def _signature(login: str) -> Signature:
    return Signature(name=login, email=f"{login}@users.noreply.github.com")
