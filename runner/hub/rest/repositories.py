"""Users, repositories, and what git has in them."""

import re

from starlette.routing import BaseRoute

from runner.hub.access import Permission, TokenKind
from runner.hub.bare import BareRepository
from runner.hub.refusal import Refusal, custom, forbidden, not_found
from runner.hub.rest import git_shapes
from runner.hub.rest.bodies import NewRepository
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.store import Settings

_REPO = "/repos/{owner}/{repo}"
_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")


def repository_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        api.route("GET", "/user", get_user),
        api.route("POST", "/user/repos", create_repository, Permission.ADMIN),
        api.route("POST", "/orgs/{org}/repos", create_repository, Permission.ADMIN),
        api.route("GET", _REPO, get_repository),
        api.route("GET", _REPO + "/git/ref/{ref:path}", get_ref),
        api.route("DELETE", _REPO + "/git/refs/{ref:path}", delete_ref, Permission.WRITE),
        api.route("GET", _REPO + "/branches/{branch:path}", get_branch),
    ]


def get_user(call: Call) -> Answer:
    """The user behind the token."""
    if call.visitor.kind is TokenKind.ACTIONS:  # it belongs to no user
        raise forbidden(call.visitor.kind)
    return Answer(body=call.shapes.account(call.visitor.login))


def create_repository(call: Call) -> Answer:
    """Make an empty bare repository under the hub's root."""
    wanted = call.read(NewRepository, "Repository")
    owner, name = call.path.get("org", call.visitor.login), wanted.name.removesuffix(".git")
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(owner):
        raise custom("Repository", "name can only contain ASCII letters, digits, and the characters ., -, and _")
    path = call.site.root / "repositories" / owner / f"{name}.git"
    with call.store.transaction():
        if call.store.repositories.find(owner, name) is not None or path.exists():
            raise custom("Repository", "name already exists on this account")
        BareRepository.create(path)
        repository = call.store.repositories.add(
            owner, name, path, description=wanted.description, private=wanted.private
        )
    return Answer(201, call.shapes.full_repository(repository, "main", call.visitor, Settings(), open_issues=0))


def get_repository(call: Call) -> Answer:
    """One repository, with what this token may do in it."""
    repository = call.repository()
    branch = BareRepository(repository.path).default_branch()
    open_issues = sum(issue.open for issue in call.store.issues.all(repository.id))
    settings = call.store.rules.settings(repository.id)
    shape = call.shapes.full_repository(repository, branch, call.visitor, settings, open_issues=open_issues)
    return Answer(body=shape)


def get_ref(call: Call) -> Answer:
    """One ref, by its name after `refs/`."""
    repository, name = call.repository(), call.path["ref"]
    bare = BareRepository(repository.path)
    object_id = bare.refs(f"refs/{name}").get("")
    if object_id is None:
        raise not_found()
    return Answer(body=git_shapes.ref(call.api(repository), f"refs/{name}", bare.object_type(object_id), object_id))


def delete_ref(call: Call) -> Answer:
    """Delete a ref, by its name after `refs/`; a protected branch stays."""
    repository, name = call.repository(), call.path["ref"]
    bare = BareRepository(repository.path)
    object_id = bare.refs(f"refs/{name}").get("")
    if object_id is None or not name.startswith(("heads/", "tags/")):
        raise Refusal(422, "Reference does not exist")
    if call.store.rules.protection(repository.id, name.removeprefix("heads/")) is not None:
        raise Refusal(422, "Cannot delete this branch")
    bare.delete_ref(f"refs/{name}", object_id)
    return Answer(204)


def get_branch(call: Call) -> Answer:
    """One branch and its commit."""
    repository, name = call.repository(), call.path["branch"]
    bare = BareRepository(repository.path)
    object_id = bare.refs().get(name)
    if object_id is None:
        raise Refusal(404, "Branch not found")
    api, html_url = call.api(repository), f"{call.site.url}/{repository.full_name}"
    commit = git_shapes.commit(api, html_url, object_id, bare.show(object_id))
    demands = call.store.rules.demands(repository.id, name)
    return Answer(body=git_shapes.branch(api, html_url, name, commit, demands))
