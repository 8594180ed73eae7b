"""Sub-issues, and issues that block others.

https://docs.github.com/rest/issues/sub-issues and https://docs.github.com/rest/issues/issue-dependencies
"""

from starlette.routing import BaseRoute

from runner.hub.access import Permission
from runner.hub.refusal import custom, not_found
from runner.hub.rest.bodies import Blocker, NewSubIssue, SubIssue
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.store import Issue

_ISSUE = "/repos/{owner}/{repo}/issues/{number:int}"
_BLOCKED_BY = _ISSUE + "/dependencies/blocked_by"


def link_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        api.route("GET", _ISSUE + "/parent", get_parent),
        api.route("GET", _ISSUE + "/sub_issues", list_sub_issues),
        api.route("POST", _ISSUE + "/sub_issues", add_sub_issue, Permission.TRIAGE),
        api.route("DELETE", _ISSUE + "/sub_issue", remove_sub_issue, Permission.TRIAGE),
        api.route("GET", _BLOCKED_BY, list_blockers),
        api.route("POST", _BLOCKED_BY, add_blocker, Permission.TRIAGE),
        api.route("DELETE", _BLOCKED_BY + "/{blocker:int}", remove_blocker, Permission.TRIAGE),
    ]


def get_parent(call: Call) -> Answer:
    """The issue of which this is a sub-issue."""
    parent = call.store.links.parent(call.issue(call.repository()).id)
    if parent is None:
        raise not_found()
    return Answer(body=_shape(call, call.store.issues.get(parent)))


def list_sub_issues(call: Call) -> Answer:
    """The sub-issues, in their order."""
    children = call.store.links.children(call.issue(call.repository()).id)
    return call.paged([_shape(call, call.store.issues.get(child)) for child in children])


def add_sub_issue(call: Call) -> Answer:
    """Make an issue, which may be another repository's, a sub-issue of this one."""
    parent, wanted = call.issue(call.repository()), call.read(NewSubIssue, "Issue")
    child = _linked(call, wanted.sub_issue_id)
    if child.id == parent.id:
        raise custom("Issue", "An issue cannot be its own sub-issue")
    before = call.store.links.parent(child.id)
    if before is not None and not wanted.replace_parent:
        raise custom("Issue", "Sub issue may only have one parent")
    call.store.links.add_child(parent.id, child.id, call.visitor.login)
    return Answer(201, _shape(call, parent))


def remove_sub_issue(call: Call) -> Answer:
    """Make an issue a sub-issue of this one no more."""
    parent, wanted = call.issue(call.repository()), call.read(SubIssue, "Issue")
    if call.store.links.parent(wanted.sub_issue_id) != parent.id:
        raise not_found()
    call.store.links.remove_child(parent.id, wanted.sub_issue_id, call.visitor.login)
    return Answer(body=_shape(call, parent))


def list_blockers(call: Call) -> Answer:
    """What blocks this issue, open or closed."""
    blockers = call.store.links.blockers(call.issue(call.repository()).id)
    return call.paged([_shape(call, call.store.issues.get(blocker)) for blocker in blockers])


def add_blocker(call: Call) -> Answer:
    """Let an issue, which may be another repository's, block this one."""
    issue, blocker = call.issue(call.repository()), _linked(call, call.read(Blocker, "Issue").issue_id)
    call.store.links.block(issue.id, blocker.id, call.visitor.login)
    return Answer(201, _shape(call, issue))


def remove_blocker(call: Call) -> Answer:
    """Let an issue block this one no more."""
    issue, blocker = call.issue(call.repository()), int(call.path["blocker"])
    if blocker not in call.store.links.blockers(issue.id):
        raise not_found()
    call.store.links.unblock(issue.id, blocker, call.visitor.login)
    return Answer(body=_shape(call, issue))


def _linked(call: Call, issue: int) -> Issue:
    found = call.store.issues.by_id(issue)
    if found is None or found.pull is not None:
        raise not_found()
    return found


def _shape(call: Call, issue: Issue) -> dict[str, object]:
    repository = call.store.repositories.get(issue.repository)
    if repository is None:
        raise LookupError(f"issue {issue.id} has no repository")
    return call.shapes.issue(repository, issue)
