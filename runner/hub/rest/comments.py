"""Comments on issues and pull requests."""

from starlette.routing import BaseRoute

from runner.hub.access import Permission
from runner.hub.refusal import custom, forbidden, invalid, not_found
from runner.hub.rest.bodies import CommentText
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.store import Comment, Repository

_COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment:int}"
_COMMENTS = "/repos/{owner}/{repo}/issues/{number:int}/comments"
LONGEST_BODY = 65536  # characters


def comment_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        api.route("GET", _COMMENTS, list_comments),
        api.route("POST", _COMMENTS, create_comment),
        api.route("GET", _COMMENT, get_comment),
        api.route("PATCH", _COMMENT, edit_comment),
        api.route("DELETE", _COMMENT, delete_comment),
    ]


def list_comments(call: Call) -> Answer:
    """The comments of one issue, oldest first."""
    repository = call.repository()
    comments = call.store.comments.all(call.issue(repository).id)
    since = call.query.get("since", "")
    return call.paged([_shape(call, repository, comment) for comment in comments if comment.updated_at >= since])


def create_comment(call: Call) -> Answer:
    """A new comment; everybody who can read may write one."""
    repository = call.repository()
    issue = call.issue(repository)
    comment = call.store.comments.add(issue.id, call.visitor.login, _text(call))
    return Answer(201, _shape(call, repository, comment))


def get_comment(call: Call) -> Answer:
    """One comment."""
    repository = call.repository()
    return Answer(body=_shape(call, repository, _comment(call, repository)))


def edit_comment(call: Call) -> Answer:
    """Another text for a comment."""
    repository = call.repository()
    call.store.comments.edit(_own(call, repository), _text(call))
    return get_comment(call)


def delete_comment(call: Call) -> Answer:
    """Remove a comment."""
    call.store.comments.delete(_own(call, call.repository()))
    return Answer(204)


def check_body(resource: str, body: str | None) -> None:
    """Raise the Refusal for a text that GitHub would find too long."""
    if body is not None and len(body) > LONGEST_BODY:
        raise custom(resource, f"body is too long (maximum is {LONGEST_BODY} characters)")


def _text(call: Call) -> str:
    body = call.read(CommentText, "IssueComment").body
    if not body.strip():
        raise invalid("IssueComment", "body", "missing_field")
    check_body("IssueComment", body)
    return body


def _comment(call: Call, repository: Repository) -> Comment:
    comment = call.store.comments.find(repository.id, int(call.path["comment"]))
    if comment is None:
        raise not_found()
    return comment


def _own(call: Call, repository: Repository) -> Comment:
    """Return the comment when the visitor may change it: its author, and everybody who may write."""
    comment = _comment(call, repository)
    if comment.author != call.visitor.login and not call.visitor.may(Permission.WRITE):
        raise forbidden(call.visitor.kind)
    return comment


def _shape(call: Call, repository: Repository, comment: Comment) -> dict[str, object]:
    found = call.store.issues.find(repository.id, comment.number)
    return call.shapes.comment(repository, comment, pull=found is not None and found.pull is not None)
