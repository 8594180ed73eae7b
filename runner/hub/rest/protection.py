"""Protected branches, and the rules for a branch."""

from typing import Any
from urllib.parse import quote

from starlette.routing import BaseRoute

from runner.hub.access import Area, Permission
from runner.hub.bare import BareRepository
from runner.hub.refusal import Refusal
from runner.hub.requirements import Demands
from runner.hub.rest import git_shapes
from runner.hub.rest.bodies import ProtectionBody
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.store import Repository

_PROTECTION = "/repos/{owner}/{repo}/branches/{branch:path}/protection"
_SWITCHES = (
    "allow_force_pushes",
    "allow_deletions",
    "block_creations",
    "required_conversation_resolution",
    "lock_branch",
    "allow_fork_syncing",
)


def protection_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module. Everybody may read rules; protection is for administrators."""
    administrators = (Permission.ADMIN, Area.ADMINISTRATION)
    return [
        api.route("GET", _PROTECTION, get_protection, *administrators),
        api.route("PUT", _PROTECTION, set_protection, *administrators),
        api.route("DELETE", _PROTECTION, delete_protection, *administrators),
        api.route("GET", "/repos/{owner}/{repo}/rules/branches/{branch:path}", list_rules),
    ]


def get_protection(call: Call) -> Answer:
    """How a branch is protected."""
    repository, branch = _branch(call)
    demands = call.store.rules.protection(repository.id, branch)
    if demands is None:
        raise Refusal(404, "Branch not protected")
    return Answer(body=_shape(call, repository, branch, demands))


def set_protection(call: Call) -> Answer:
    """Protect a branch so, and no longer as before."""
    (repository, branch), body = _branch(call), call.read(ProtectionBody, "BranchProtection")
    call.store.rules.protect(repository.id, branch, _demands_of_body(body))
    return get_protection(call)


def delete_protection(call: Call) -> Answer:
    """Protect a branch no more."""
    repository, branch = _branch(call)
    get_protection(call)
    call.store.rules.unprotect(repository.id, branch)
    return Answer(204)


def list_rules(call: Call) -> Answer:
    """The rules that hold for a branch, whether there is one of that name or not."""
    repository = call.repository()
    source = {"ruleset_source_type": "Repository", "ruleset_source": repository.full_name, "ruleset_id": 1}
    rules = call.store.rules.rules(repository.id, call.path["branch"])
    return call.paged([_with_parameters(rule.type, dict(rule.parameters)) | source for rule in rules])


def _demands_of_body(body: ProtectionBody) -> Demands:
    """Return what a branch demands that is protected so."""
    required, reviews = body.required_status_checks, body.required_pull_request_reviews
    contexts = [] if required is None else [*required.contexts, *(check.context for check in required.checks)]
    return Demands(
        contexts=tuple(dict.fromkeys(contexts)),
        strict=required is not None and required.strict,
        approvals=0 if reviews is None else reviews.required_approving_review_count,
        linear=bool(body.required_linear_history),
        pushers=None if body.restrictions is None else tuple(body.restrictions.users),
        everyone=bool(body.enforce_admins),
    )


def _branch(call: Call) -> tuple[Repository, str]:
    repository, branch = call.repository(), call.path["branch"]
    if branch not in BareRepository(repository.path).refs():
        raise Refusal(404, "Branch not found")
    return repository, branch


def _with_parameters(kind: str, parameters: dict[str, Any]) -> dict[str, object]:
    return {"type": kind, "parameters": parameters} if parameters else {"type": kind}


def _shape(call: Call, repository: Repository, branch: str, demands: Demands) -> dict[str, object]:
    url = f"{call.api(repository)}/branches/{quote(branch)}/protection"
    shape: dict[str, object] = {
        "url": url,
        "enforce_admins": {"url": f"{url}/enforce_admins", "enabled": demands.everyone},
        "required_linear_history": {"enabled": demands.linear},
        "required_signatures": {"url": f"{url}/required_signatures", "enabled": False},
        **{switch: {"enabled": False} for switch in _SWITCHES},
    }
    if demands.contexts or demands.strict:
        checks = f"{url}/required_status_checks"
        shape["required_status_checks"] = {
            "url": checks,
            "strict": demands.strict,
            "contexts": list(demands.contexts),
            "contexts_url": f"{checks}/contexts",
            "checks": git_shapes.checks(demands.contexts),
        }
    if demands.approvals:
        shape["required_pull_request_reviews"] = {
            "url": f"{url}/required_pull_request_reviews",
            "dismiss_stale_reviews": False,
            "require_code_owner_reviews": False,
            "require_last_push_approval": False,
            "required_approving_review_count": demands.approvals,
        }
    if demands.pushers is not None:
        restrictions = f"{url}/restrictions"
        shape["restrictions"] = {
            "url": restrictions,
            "users": [call.shapes.user(login) for login in demands.pushers],
            "teams": [],
            "apps": [],
            **{f"{kind}_url": f"{restrictions}/{kind}" for kind in ("users", "teams", "apps")},
        }
    return shape
