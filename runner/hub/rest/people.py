"""What users may do in a repository: https://docs.github.com/rest/collaborators/collaborators."""

from starlette.routing import BaseRoute

from runner.hub.access import Permission
from runner.hub.people import role_of
from runner.hub.refusal import Refusal
from runner.hub.rest.call import Answer, Api, Call

_PERMISSION = "/repos/{owner}/{repo}/collaborators/{username}/permission"
# The older, coarser names; `role_name` has the finer ones.
_COARSE = {"maintain": "write", "triage": "read"}
_ALLOWED = {
    "admin": ("admin", "maintain", "push", "triage", "pull"),
    "maintain": ("maintain", "push", "triage", "pull"),
    "write": ("push", "triage", "pull"),
    "triage": ("triage", "pull"),
    "read": ("pull",),
    "none": (),
}


def people_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module."""
    return [api.route("GET", _PERMISSION, get_permission)]


def get_permission(call: Call) -> Answer:
    """What one user may do; only who may push is told."""
    repository, login = call.repository(), call.path["username"]
    if not call.visitor.may(Permission.WRITE):
        raise Refusal(403, "Must have push access to view collaborator permission.")
    role = role_of(call.site, repository, login)
    allowed = {one: one in _ALLOWED[role] for one in _ALLOWED["admin"]}
    user = call.shapes.user(login) | {"role_name": role, "permissions": allowed}
    return Answer(body={"permission": _COARSE.get(role, role), "role_name": role, "user": user})
