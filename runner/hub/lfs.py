"""Git LFS: the batch API with basic transfers, and the check that a push brings no pointer to nothing.

https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md. The objects are in the bare repository, where git-lfs
itself keeps them: `lfs/objects/AA/BB/ID`. Once there are any, each push is held against them, as on GitHub.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from runner.hub.access import Permission, Visitor
from runner.hub.refusal import Refusal, not_found
from runner.hub.site import Site
from runner.hub.store import Repository

Model = TypeVar("Model", bound=BaseModel)

_MEDIA_TYPE = "application/vnd.git-lfs+json"
_CHALLENGE = {"LFS-Authenticate": 'Basic realm="GitHub"'}
_NO_OBJECT = "Object does not exist on the server"
_PLACE = "/{owner}/{name}/info/lfs"

# Runs before the repository's own hook, which gets the same input. Of the small blobs that are new it takes those that
# begin as pointers do.
_PRE_RECEIVE = """#!/bin/sh
updates=$(cat)
missing=$(
    printf '%s\\n' "$updates" | cut -d ' ' -f 2 | grep -v '^0*$' |
        git rev-list --objects --no-object-names --filter=object:type=blob --filter=blob:limit=1024 \\
            --filter-provided-objects --stdin --not --all |
        git cat-file --batch |
        awk 'pointer && /^oid sha256:/ { print substr($2, 8) } { pointer = /^version https:..git-lfs.github.com/ }' |
        while read -r id; do
            two=${id#??}
            test -e "lfs/objects/${id%"$two"}/$(echo "$two" | cut -c 1-2)/$id" || echo "    $id"
        done
)
if [ -n "$missing" ]; then
    count=$(echo "$missing" | wc -l)
    objects=object$(test "$count" = 1 || echo s)
    echo "error: GH008: Your push referenced at least $count unknown Git LFS $objects:" >&2
    echo "$missing" >&2
    echo "Try to push them with 'git lfs push --all'." >&2
    exit 1
fi
if [ -x hooks/pre-receive ]; then printf '%s\\n' "$updates" | hooks/pre-receive; fi
"""


class _Object(BaseModel):
    oid: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(ge=0)


class _Batch(BaseModel):
    operation: str
    objects: list[_Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One request, with its sender known and allowed. `address` is where the repository's LFS addresses begin."""

    repository: Repository
    visitor: Visitor
    address: str
    headers: Mapping[str, str]
    oid: str
    body: bytes

    def read(self, model: type[Model]) -> Model:
        try:
            return model.model_validate_json(self.body)
        except ValidationError as error:
            raise Refusal(422, str(error)) from None

    def place(self, oid: str) -> Path:
        return self.repository.path / "lfs" / "objects" / oid[:2] / oid[2:4] / oid

    def holds(self, asked: _Object) -> bool:
        path = self.place(asked.oid)
        return path.is_file() and path.stat().st_size == asked.size


def lfs_routes(site: Site) -> list[BaseRoute]:
    """Return the addresses that git-lfs asks, below a repository's."""
    one = f"{_PLACE}/objects/{{oid}}"
    return [
        _route(site, "POST", f"{_PLACE}/objects/batch", _batch, Permission.READ),
        _route(site, "POST", f"{_PLACE}/verify", _verify, Permission.WRITE),
        _route(site, "PUT", one, _upload, Permission.WRITE),
        _route(site, "GET", one, _download, Permission.READ),
    ]


def checking_hooks(repository: Repository) -> AbstractContextManager[tuple[str, ...]]:
    """Yield the options with which `git receive-pack` refuses pointers to objects that the hub does not have.

    None where LFS is not used. The repository's own hooks run as ever.
    """
    return _hooks(repository.path) if (repository.path / "lfs").is_dir() else nullcontext(())


@contextmanager
def _hooks(bare: Path) -> Iterator[tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="nightkeep-hooks-") as name:
        for hook in bare.glob("hooks/*"):
            (Path(name) / hook.name).symlink_to(hook)
        ours = Path(name) / "pre-receive"
        ours.unlink(missing_ok=True)
        ours.write_text(_PRE_RECEIVE)
        ours.chmod(0o755)
        yield ("-c", f"core.hooksPath={name}")


def _route(site: Site, method: str, path: str, handler: Callable[[_Call], Response], needs: Permission) -> Route:
    def respond(request: Request, body: bytes) -> Response:
        try:
            return handler(_admit(site, request, body, needs))
        except Refusal as refusal:
            return _json({"message": refusal.message}, refusal.status, _CHALLENGE if refusal.status == 401 else None)

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(respond, request, await request.body())

    return Route(path, endpoint, methods=[method])


def _admit(site: Site, request: Request, body: bytes, needs: Permission) -> _Call:
    visitor = site.door.visitor(request.headers.get("authorization", ""))
    if visitor is None:
        raise Refusal(401, "Bad credentials")
    repository = site.store.repositories.find(
        request.path_params["owner"], request.path_params["name"].removesuffix(".git")
    )
    if repository is None:
        raise not_found()
    _check(visitor, needs)
    return _Call(
        repository=repository,
        visitor=visitor,
        address=f"{site.url}/{repository.full_name}.git/info/lfs",
        # What an answer names is asked with the same credential.
        headers={"Authorization": request.headers["authorization"]},
        oid=request.path_params.get("oid", ""),
        body=body,
    )


def _check(visitor: Visitor, needs: Permission) -> None:
    if not visitor.may(needs):
        raise Refusal(403, "You must have push access to this repository")


def _batch(call: _Call) -> Response:
    """Say for each object where it is to be sent to, or got from."""
    asked = call.read(_Batch)
    _check(call.visitor, Permission.WRITE if asked.operation == "upload" else Permission.READ)
    answer = _to_send if asked.operation == "upload" else _to_get
    objects = [one.model_dump() | {"authenticated": True} | answer(call, one) for one in asked.objects]
    return _json({"transfer": "basic", "objects": objects})


def _to_send(call: _Call, asked: _Object) -> dict[str, Any]:
    if call.holds(asked):
        return {}
    links = {"upload": f"objects/{asked.oid}", "verify": "verify"}
    return {"actions": {name: _link(call, path) for name, path in links.items()}}


def _to_get(call: _Call, asked: _Object) -> dict[str, Any]:
    if not call.holds(asked):
        return {"error": {"code": 404, "message": _NO_OBJECT}}
    return {"actions": {"download": _link(call, f"objects/{asked.oid}")}}


def _link(call: _Call, path: str) -> dict[str, Any]:
    return {"href": f"{call.address}/{path}", "header": dict(call.headers)}


def _upload(call: _Call) -> Response:
    """Store an object, unless it is another than its name says."""
    if hashlib.sha256(call.body).hexdigest() != call.oid:
        raise Refusal(400, "The object is not the one that its name says")
    path = call.place(call.oid)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(call.body)
    Path(file.name).replace(path)
    return Response()


def _verify(call: _Call) -> Response:
    if not call.holds(call.read(_Object)):
        raise Refusal(404, _NO_OBJECT)
    return _json({})


def _download(call: _Call) -> Response:
    path = call.place(call.oid)
    if not path.is_file():
        raise Refusal(404, _NO_OBJECT)
    return FileResponse(path)


def _json(document: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(document, status, headers, media_type=_MEDIA_TYPE)
