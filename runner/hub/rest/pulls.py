"""Pull requests."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.routing import BaseRoute

from runner.hub import pull_requests
from runner.hub.access import Permission
from runner.hub.bare import BareRepository
from runner.hub.merge_queue import go_on
from runner.hub.merging import MergeOrder, answered, merge
from runner.hub.pull_requests import Proposal
from runner.hub.refusal import custom, invalid, not_found
from runner.hub.rest import issues
from runner.hub.rest.bodies import MergeBody, NewPull, PullEdit
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.rest.comments import check_body
from runner.hub.store import Issue, Repository

_PULLS = "/repos/{owner}/{repo}/pulls"
_PULL = _PULLS + "/{number:int}"


def pull_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        api.route("GET", _PULLS, list_pulls),
        api.route("POST", _PULLS, create_pull, Permission.WRITE),
        api.route("GET", _PULL, get_pull),
        api.route("PATCH", _PULL, edit_pull, Permission.WRITE),
        api.route("PUT", _PULL + "/merge", merge_pull, Permission.WRITE),
    ]


def list_pulls(call: Call) -> Answer:
    """Pull requests, newest first unless asked otherwise."""
    repository = call.repository()
    branches = BareRepository(repository.path).refs()
    pulls = [issue for issue in call.store.issues.all(repository.id) if issue.pull is not None]
    current = [pull_requests.follow(call.store, repository, pull, branches) for pull in pulls]
    selected = _select_pulls(current, repository.owner, call.query)
    return call.paged([call.shapes.pull(repository, pull) for pull in selected])


def create_pull(call: Call) -> Answer:
    """A new pull request."""
    repository, wanted = call.repository(), call.read(NewPull, "PullRequest")
    _check_text(wanted.title, wanted.body)
    proposal = Proposal(
        title=wanted.title, body=wanted.body or None, head=wanted.head, base=wanted.base, draft=wanted.draft
    )
    issue = pull_requests.open_pull_request(call.store, repository, call.visitor, proposal)
    return Answer(201, _whole(call, repository, issue))


def get_pull(call: Call) -> Answer:
    """One pull request, with what git says about merging it; the merge queue goes on."""
    repository = call.repository()
    go_on(call.site, repository)
    return Answer(body=_whole(call, repository, _pull(call, repository)))


def edit_pull(call: Call) -> Answer:
    """Change title, body, state or base."""
    repository, edit = call.repository(), call.read(PullEdit, "PullRequest")
    issue, branches = _pull(call, repository), BareRepository(repository.path).refs()
    _check_edit(issue, edit, branches)
    issue = call.store.issues.change(issue.id, lambda before: edited(before, edit, branches, call.visitor.login))
    return Answer(body=_whole(call, repository, issue))


def merge_pull(call: Call) -> Answer:
    """Merge into the base branch of the bare repository."""
    repository, body = call.repository(), call.read(MergeBody, "PullRequest")
    order = MergeOrder(method=body.merge_method, head_id=body.sha, title=body.commit_title, message=body.commit_message)
    issue = merge(call.site, repository, _pull(call, repository), call.visitor, order)
    sha = issue.pull and issue.pull.merge_id
    return Answer(body={"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def _select_pulls(pulls: list[Issue], owner: str, query: Mapping[str, str]) -> list[Issue]:
    """Return what a query selects, in its order: `state`, `head` (OWNER:BRANCH), `base`, `sort` and `direction`."""
    state, head, base = query.get("state", "open"), query.get("head", ""), query.get("base", "")
    selected = [
        issue
        for issue in pulls
        if issue.pull
        and state in ("all", issue.state)
        and base in ("", issue.pull.base)
        # A head without an owner selects nothing out: https://docs.github.com/rest/pulls/pulls#list-pull-requests
        and (":" not in head or head == f"{owner}:{issue.pull.head}")
    ]
    sort = query.get("sort", "created")
    return issues.ordered(selected, sort, query.get("direction", "desc" if sort == "created" else "asc"))


def edited(issue: Issue, edit: PullEdit, branches: Mapping[str, str], by: str) -> Issue:
    """Return a pull request with the fields that were sent."""
    if edit.sends("base") and issue.pull is not None:
        issue = replace(issue, pull=replace(issue.pull, base=edit.base, base_id=branches[edit.base]))
    return issues.edited(issue, edit, by)


def _check_edit(issue: Issue, edit: PullEdit, branches: Mapping[str, str]) -> None:
    _check_text(edit.title if edit.sends("title") else issue.title, edit.body)
    if edit.sends("base") and edit.base not in branches:
        raise invalid("PullRequest", "base")
    if edit.sends("state") and edit.state == "open" and not issue.open:
        _check_reopening(issue, branches)


def _check_reopening(issue: Issue, branches: Mapping[str, str]) -> None:
    if issue.pull is None or issue.pull.merged_at is not None:
        raise custom("PullRequest", "state cannot be changed. The pull request cannot be reopened.")
    if issue.pull.head not in branches:
        raise custom("PullRequest", f"state cannot be changed. The {issue.pull.head} branch has been deleted.")


def _check_text(title: str, body: str | None) -> None:
    if not title.strip():
        raise invalid("PullRequest", "title", "missing_field")
    check_body("PullRequest", body)


def _pull(call: Call, repository: Repository) -> Issue:
    issue = call.issue(repository)
    if issue.pull is None:
        raise not_found()
    return issue


def _whole(call: Call, repository: Repository, issue: Issue) -> dict[str, object]:
    return call.shapes.whole_pull(repository, issue, answered(call.site, repository, issue))
