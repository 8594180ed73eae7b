"""Issues; pull requests are among them, as on GitHub."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.routing import BaseRoute

from runner.hub.access import Permission, Visitor
from runner.hub.bare import BareRepository
from runner.hub.pull_requests import follow
from runner.hub.refusal import forbidden, invalid
from runner.hub.rest.bodies import Edit, IssueEdit, NewIssue
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.rest.comments import check_body
from runner.hub.rest.labels import check_label_names
from runner.hub.store import Issue
from runner.hub.store.issues import closed

_ISSUES = "/repos/{owner}/{repo}/issues"
_ISSUE = _ISSUES + "/{number:int}"


def issue_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        api.route("GET", _ISSUES, list_issues),
        api.route("POST", _ISSUES, create_issue),
        api.route("GET", _ISSUE, get_issue),
        api.route("PATCH", _ISSUE, edit_issue),
    ]


def list_issues(call: Call) -> Answer:
    """Issues and pull requests, newest first unless asked otherwise."""
    repository = call.repository()
    branches = BareRepository(repository.path).refs()
    issues = [follow(call.store, repository, issue, branches) for issue in call.store.issues.all(repository.id)]
    return call.paged([call.shapes.issue(repository, issue) for issue in _select_issues(issues, call.query)])


def create_issue(call: Call) -> Answer:
    """A new issue; labels of somebody who may not label are dropped without a word, as on GitHub."""
    repository, wanted = call.repository(), call.read(NewIssue, "Issue")
    _check_issue(wanted.title, wanted.body, wanted.names())
    labels = wanted.names() if call.visitor.may(Permission.TRIAGE) else []
    issue = call.store.issues.open(
        repository.id, title=wanted.title, body=wanted.body or None, author=call.visitor.login, labels=labels
    )
    return Answer(201, call.shapes.issue(repository, issue))


def get_issue(call: Call) -> Answer:
    """One issue, with how many sub-issues it has, or pull request."""
    repository = call.repository()
    issue = call.issue(repository)
    return Answer(body=call.shapes.issue(repository, issue) | _sub_issues(call, issue))


def _sub_issues(call: Call, issue: Issue) -> dict[str, object]:
    if issue.pull is not None:
        return {}
    children = call.store.links.children(issue.id)
    closed = sum(not call.store.issues.get(child).open for child in children)
    percent = 100 * closed // len(children) if children else 0
    summary = {"total": len(children), "completed": closed, "percent_completed": percent}
    return {"sub_issues_summary": summary, "parent_issue_url": _parent_url(call, issue)}


def _parent_url(call: Call, issue: Issue) -> object:
    parent = call.store.links.parent(issue.id)
    if parent is None:
        return None
    above = call.store.issues.get(parent)
    repository = call.store.repositories.get(above.repository)
    assert repository is not None  # noqa: S101 - an issue has one
    return call.shapes.issue(repository, above)["url"]


def edit_issue(call: Call) -> Answer:
    """Change title, body, state or labels."""
    repository, edit = call.repository(), call.read(IssueEdit, "Issue")
    issue = call.issue(repository)
    _check_edit(call.visitor, issue, edit)
    with call.store.transaction():
        issue = call.store.issues.rewrite(
            issue.id, lambda before: edited(before, edit, call.visitor.login), call.visitor.login
        )
        if "labels" in edit.model_fields_set:
            call.store.labels.replace(repository.id, issue.id, edit.names(), call.visitor.login)
            issue = call.store.issues.get(issue.id)
    return Answer(body=call.shapes.issue(repository, issue))


def _select_issues(issues: list[Issue], query: Mapping[str, str]) -> list[Issue]:
    """Return what a query selects, in its order: `state`, `labels` (all of them), `sort` and `direction`."""
    state = query.get("state", "open")
    names = {name.strip().casefold() for name in query.get("labels", "").split(",") if name.strip()}
    selected = [
        issue
        for issue in issues
        if state in ("all", issue.state) and names <= {label.name.casefold() for label in issue.labels}
    ]
    return ordered(selected, query.get("sort", "created"), query.get("direction", "desc"))


def ordered(issues: list[Issue], sort: str, direction: str) -> list[Issue]:
    """Return issues in GitHub's order; equal ones by number."""

    def key(issue: Issue) -> tuple[str | int, int]:
        values: dict[str, str | int] = {"updated": issue.updated_at, "comments": issue.comments}
        return values.get(sort, issue.created_at), issue.number

    return sorted(issues, key=key, reverse=direction != "asc")


def edited(issue: Issue, edit: Edit, by: str) -> Issue:
    """Return `issue` with the fields that were sent."""
    if edit.sends("title"):
        issue = replace(issue, title=edit.title)
    if edit.sends("body"):
        issue = replace(issue, body=edit.body or None)
    if edit.sends("state"):
        issue = _with_state(issue, edit.state, by)
    return issue


def _with_state(issue: Issue, state: str, by: str) -> Issue:
    """Return `issue` open or closed; closing a closed one changes nothing."""
    if state == issue.state:
        return issue
    return closed(issue, by) if state == "closed" else replace(issue, open=True, closed_at=None, closed_by=None)


def _check_issue(title: str, body: str | None, names: list[str]) -> None:
    """Raise the Refusal for texts that GitHub would not take."""
    if not title.strip():
        raise invalid("Issue", "title", "missing_field")
    check_body("Issue", body)
    check_label_names(names)


def _check_edit(visitor: Visitor, issue: Issue, edit: IssueEdit) -> None:
    """An author may change their own issue, but not its labels."""
    own = issue.author == visitor.login and not edit.sends("labels")
    if not own and not visitor.may(Permission.TRIAGE):
        raise forbidden(visitor.kind)
    if issue.pull is not None and issue.pull.merged_at and edit.sends("state") and edit.state == "open":
        raise invalid("Issue", "state")
    _check_issue(edit.title if edit.sends("title") else issue.title, edit.body, edit.names())
