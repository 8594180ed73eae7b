"""Merge queues: one pull request of each base at a time, merged by the commit whose checks have passed.

https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue.
Like the checks they go on while somebody looks: each `GET …/pulls/N`, and each query for a pull request, is a step,
and a poll of the checks of the commit that is about to be merged.
"""

from runner.hub.access import Visitor
from runner.hub.bare import BareRepository
from runner.hub.checks import Source
from runner.hub.merging import MergeOrder, candidate, merged_commit
from runner.hub.pull_requests import record_merge
from runner.hub.refusal import Refusal
from runner.hub.requirements import has_failed, unmet
from runner.hub.site import Site
from runner.hub.store import Issue, QueueEntry, Repository


def method_of(site: Site, repository: Repository, base: str) -> str | None:
    """Return how the merge queue of a base merges, or None where there is no queue."""
    demands = site.store.rules.demands(repository.id, base)
    return next((one.queue for one in demands if one.queue is not None), None)


def entry_of(site: Site, issue: Issue) -> QueueEntry | None:
    """Return the place of a pull request in a queue."""
    return next((one for one in site.store.queue.waiting(issue.repository) if one.issue == issue.id), None)


def position(site: Site, repository: Repository, entry: QueueEntry) -> int:
    """Return an entry's place in its queue, counted from one."""
    before = [one for one in site.store.queue.waiting(repository.id) if one.base == entry.base]
    return before.index(entry) + 1 if entry in before else 1


def enqueue(
    site: Site, repository: Repository, issue: Issue, visitor: Visitor, expected_head: str | None
) -> QueueEntry:
    """Put a pull request that `follow` has returned into the queue, or raise the Refusal with GitHub's message."""
    pull = issue.pull
    if pull is None or not issue.open:
        raise Refusal(422, "Pull request is closed")
    if pull.draft:
        raise Refusal(422, "Pull request is in draft state")
    if method_of(site, repository, pull.base) is None:
        raise Refusal(422, "Merge queue is not enabled for the base branch")
    if expected_head not in (None, pull.head_id):
        raise Refusal(422, "expectedHeadOid does not match the current head")
    with site.queue_lock:
        if entry_of(site, issue) is not None:
            raise Refusal(422, "Pull request is already in the merge queue")
        shown = candidate(site, repository, issue, pull.head_id)
        for demands in site.store.rules.demands(repository.id, pull.base):
            if missing := unmet(demands, shown):
                raise Refusal(422, f"Pull request {' '.join(missing)}")
        return site.store.queue.add(repository.id, issue.id, pull.base, pull.head_id, visitor.login)


def dequeue(site: Site, issue: Issue) -> QueueEntry:
    """Take a pull request out of its queue and return the place that it had; raises Refusal when it had none."""
    with site.queue_lock:
        entry = entry_of(site, issue)
        if entry is None:
            raise Refusal(422, "Pull request is not in the merge queue")
        repository = site.store.repositories.get(issue.repository)
        if repository is not None:
            _leave(site, repository, entry, "manual")
        return entry


def go_on(site: Site, repository: Repository) -> None:
    """Do what there is to do for the first pull request in each queue of a repository."""
    if not site.store.queue.waiting(repository.id):
        return
    with site.queue_lock:
        first: dict[str, QueueEntry] = {}
        for entry in site.store.queue.waiting(repository.id):
            first.setdefault(entry.base, entry)
        for entry in first.values():
            _go_on(site, repository, entry)


def _go_on(site: Site, repository: Repository, entry: QueueEntry) -> None:
    issue, branches = site.store.issues.get(entry.issue), BareRepository(repository.path).refs()
    base_id = branches.get(entry.base)
    if not issue.open or base_id is None or branches.get(issue.pull.head if issue.pull else "") != entry.head_id:
        # GitHub lets nobody push to a branch that is queued; here a test can.
        _leave(site, repository, entry, "manual")
    elif entry.base_id != base_id or entry.group_id is None:
        _build(site, repository, issue, entry, base_id)
    else:
        _judge(site, repository, issue, entry, entry.group_id)


def _build(site: Site, repository: Repository, issue: Issue, entry: QueueEntry, base_id: str) -> None:
    """Make the commit that would be merged, on a branch of its own, so that it is checked."""
    bare, order = BareRepository(repository.path), MergeOrder(method=method_of(site, repository, entry.base) or "merge")
    _drop_branch(site, repository, entry)
    group_id = merged_commit(repository, issue, entry.enqueuer, order, base_id)
    if group_id is None:
        _leave(site, repository, entry, "merge_conflict")
        return
    bare.create_ref(_branch(issue, entry.base, base_id), group_id)
    site.store.queue.build(entry, base_id, group_id)
    site.ci.look(repository)


def _judge(site: Site, repository: Repository, issue: Issue, entry: QueueEntry, group_id: str) -> None:
    for source in (Source.ACTIONS, Source.STATUS):
        site.store.checks.count_poll(repository.id, group_id, source)
    shown = candidate(site, repository, issue, group_id)
    demands = site.store.rules.demands(repository.id, entry.base)
    if any(has_failed(one, shown.checks) for one in demands):
        _leave(site, repository, entry, "failed_checks")
    elif not any(unmet(one, shown) for one in demands):
        _merge(site, repository, issue, entry, group_id)


def _merge(site: Site, repository: Repository, issue: Issue, entry: QueueEntry, group_id: str) -> None:
    why = f"merge pull request #{issue.number}"
    # Somebody may have pushed to the base meanwhile: the next look builds anew.
    if BareRepository(repository.path).move_branch(entry.base, group_id, entry.base_id or "", why):
        record_merge(site.store, repository, issue, entry.enqueuer, group_id)
        _leave(site, repository, entry, "merged")


def _leave(site: Site, repository: Repository, entry: QueueEntry, reason: str) -> None:
    _drop_branch(site, repository, entry)
    site.store.queue.leave(entry, reason)


def _drop_branch(site: Site, repository: Repository, entry: QueueEntry) -> None:
    if entry.group_id is not None and entry.base_id is not None:
        issue = site.store.issues.get(entry.issue)
        name = f"refs/heads/{_branch(issue, entry.base, entry.base_id)}"
        BareRepository(repository.path).delete_ref(name, entry.group_id)


def _branch(issue: Issue, base: str, base_id: str) -> str:
    return f"gh-readonly-queue/{base}/pr-{issue.number}-{base_id}"
