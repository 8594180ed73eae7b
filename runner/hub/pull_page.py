"""What the page of a pull request shows of its proposal: whether it can be merged, checks, commits and files."""

from collections.abc import Sequence
from html import escape

from runner.hub import merge_queue
from runner.hub.bare import BareRepository, Change, GitError
from runner.hub.check_addresses import check_page
from runner.hub.checks import PASSING
from runner.hub.layout import link, object_id
from runner.hub.merging import mergeability, missing
from runner.hub.site import Site
from runner.hub.store import CheckRun, Issue, Pull, Repository

_MOST = 100  # commits, and files, that are listed
_STATES = {
    "clean": ("open", "It can be merged."),
    "unstable": ("pending", "It can be merged, though not every check has ended well."),
    "behind": ("pending", "The head branch must be brought up to date with the base branch first."),
    "dirty": ("failed", "It conflicts with the base branch."),
    "draft": ("draft", "It is a draft."),
}


def pull_html(site: Site, repository: Repository, issue: Issue) -> str:
    """Return the part of a page that is about the proposal of a pull request, as `follow` has returned it."""
    if issue.pull is None:
        raise ValueError(f"#{issue.number} is an issue")
    bare = BareRepository(repository.path)
    try:
        commits = bare.log(issue.pull.base_id, issue.pull.head_id)
        changes = bare.changes(issue.pull.base_id, issue.pull.head_id)
    except GitError:
        commits, changes = [], []  # those of a pull request that was closed long ago may be gone
    runs = site.ci.listed(repository, issue.pull.head_id)
    return (
        _section("Merging", _merging(site, repository, issue, issue.pull))
        + _section("Checks", _list([check_line(repository, run) for run in runs], "No check has appeared."))
        + _section("Commits", _list([_commit(*commit) for commit in commits], "None."))
        + _section("Changed files", _files(changes))
    )


def check_line(repository: Repository, run: CheckRun) -> str:
    """Return a check's state, and its name as a link to its page."""
    state = run.conclusion or "pending"
    kind = "pending" if run.conclusion is None else "open" if run.conclusion in PASSING else "failed"
    named = link(check_page(f"/{repository.full_name}", run), run.check.name)
    attempt = f" <span class='quiet'>attempt {run.attempt}</span>" if run.attempt > 1 else ""
    return f"<span class='state {kind}'>{escape(state.replace('_', ' '))}</span> {named}{attempt}"


def _merging(site: Site, repository: Repository, issue: Issue, pull: Pull) -> str:
    if pull.merged_at is not None:
        return (
            f"<p>Merged by {escape(pull.merged_by or '')}, {pull.merged_at}, as {object_id(pull.merge_id or '')}.</p>"
        )
    if not issue.open:
        return "<p>It was closed without being merged.</p>"
    state = mergeability(site, repository, issue).state
    kind, said = _STATES.get(state, ("failed", " ".join(missing(site, repository, issue))))
    entry = merge_queue.entry_of(site, issue)
    queued = (
        "" if entry is None else f" It is number {merge_queue.position(site, repository, entry)} in the merge queue."
    )
    return f"<p><span class='state {kind}'>{state}</span> {escape(said + queued)}</p>"


def _section(title: str, body: str) -> str:
    return f"<article><h2>{title}</h2><div>{body}</div></article>"


def _list(items: Sequence[str], nothing: str) -> str:
    more = [f"and {len(items) - _MOST} more"] if len(items) > _MOST else []
    lines = "".join(f"<li>{item}</li>" for item in [*items[:_MOST], *more])
    return f"<ul>{lines}</ul>" if items else f"<p class='quiet'>{nothing}</p>"


def _commit(commit: str, author: str, subject: str) -> str:
    return f"{object_id(commit)} {escape(subject)} <span class='quiet'>{escape(author)}</span>"


def _files(changes: Sequence[Change]) -> str:
    if not changes:
        return "<p class='quiet'>None.</p>"
    rows = "".join(
        f"<tr><td><code>{escape(change.file)}</code></td>"
        f"<td class='number'>+{change.additions}</td><td class='number'>-{change.deletions}</td></tr>"
        for change in changes[:_MOST]
    )
    more = f"<p>and {len(changes) - _MOST} more</p>" if len(changes) > _MOST else ""
    return f"<table>{rows}</table>{more}"
