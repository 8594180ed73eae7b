"""Git's smart HTTP protocol, by git's own server programs.

https://git-scm.com/docs/http-protocol. The bodies are passed on as they come, in both directions; the hooks of the
bare repository run, and what they say reaches the client.
"""

import asyncio
import os
import signal
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from runner.hub.access import Permission, Visitor
from runner.hub.bare import CONFIGURATION, environment
from runner.hub.lfs import checking_hooks
from runner.hub.site import Site
from runner.hub.store import Repository

_CHUNK = 64 * 1024  # bytes
_END_GRACE = 1  # seconds for git to end after its answer
_NEEDED = {"git-upload-pack": Permission.READ, "git-receive-pack": Permission.WRITE}
# As on GitHub: a commit may be asked for by its id, and blobs may be left out.
_SERVED = ("-c", "uploadpack.allowReachableSHA1InWant=true", "-c", "uploadpack.allowFilter=true")


def git_routes(site: Site) -> list[BaseRoute]:
    """Return the three addresses that a git client asks."""
    advertised = Route("/{owner}/{name}/info/refs", _Service(site), methods=["GET"])
    services = (Route(f"/{{owner}}/{{name}}/{name}", _Service(site, name), methods=["POST"]) for name in _NEEDED)
    return [advertised, *services]


class _Service:
    """The ASGI application behind those addresses.

    Not an ordinary endpoint, because Starlette's streaming answers read the request to notice a client that
    leaves: they would eat the body that git is still to get.
    """

    def __init__(self, site: Site, service: str | None = None) -> None:
        self._site = site
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        service = self._service or request.query_params.get("service", "")
        visitor = self._site.door.visitor(request.headers.get("authorization", ""))
        repository = await run_in_threadpool(self._find, request)
        refusal = _refusal(visitor, repository, service)
        if refusal is not None or visitor is None or repository is None:
            await (refusal or _not_found())(scope, receive, send)
            return
        await self._serve(request, send, service, repository, visitor)

    def _find(self, request: Request) -> Repository | None:
        name = request.path_params["name"].removesuffix(".git")
        return self._site.store.repositories.find(request.path_params["owner"], name)

    async def _serve(
        self, request: Request, send: Send, service: str, repository: Repository, visitor: Visitor
    ) -> None:
        advertise = self._service is None
        kind = "advertisement" if advertise else "result"
        prelude = _packet(f"# service={service}\n") + b"0000" if advertise else b""
        words = ["--http-backend-info-refs"] if advertise else []
        with checking_hooks(repository) as options:
            words = [*options, service.removeprefix("git-"), "--stateless-rpc", *words]
            process = await _start(words, repository, visitor, request.headers.get("git-protocol", ""))
            with self._site.children.running(process.pid):
                feeding = asyncio.create_task(_feed(process, request))
                try:
                    await _answer(send, f"application/x-{service}-{kind}", prelude, process)
                finally:
                    feeding.cancel()
                    await _end(process)
        if _NEEDED[service] is Permission.WRITE and not advertise:
            await run_in_threadpool(self._site.ci.look, repository)


def _refusal(visitor: Visitor | None, repository: Repository | None, service: str) -> Response | None:
    if visitor is None:
        challenge = {"WWW-Authenticate": 'Basic realm="GitHub"'}
        return PlainTextResponse("Bad credentials\n", 401, challenge)
    if repository is None:
        return _not_found()
    if service not in _NEEDED:
        return PlainTextResponse("Please upgrade your git client.\n", 403)
    if not visitor.may(_NEEDED[service]):
        return PlainTextResponse(f"Permission to {repository.full_name}.git denied to {visitor.login}.\n", 403)
    if repository.archived and _NEEDED[service] is Permission.WRITE:
        return PlainTextResponse("This repository was archived so it is read-only.\n", 403)
    return None


def _not_found() -> Response:
    return PlainTextResponse("Repository not found.\n", 404)


async def _start(
    words: list[str], repository: Repository, visitor: Visitor, protocol: str
) -> asyncio.subprocess.Process:
    address = f"{visitor.login}@users.noreply.github.com"
    own = {"REMOTE_USER": visitor.login, "GIT_COMMITTER_NAME": visitor.login, "GIT_COMMITTER_EMAIL": address}
    if protocol:
        own["GIT_PROTOCOL"] = protocol
    command = [*CONFIGURATION, *_SERVED, *words]
    return await asyncio.create_subprocess_exec(
        *("git", *command, str(repository.path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment() | own,
        start_new_session=True,
    )


async def _feed(process: asyncio.subprocess.Process, request: Request) -> None:
    """Give git the request's body, as fast as it takes it."""
    if process.stdin is None:
        return
    # Git may stop reading early, and its answer says why; a client that leaves gives git a body that ends too soon.
    with suppress(BrokenPipeError, ConnectionResetError, ClientDisconnect, zlib.error):
        async for chunk in _plain(request.stream(), request.headers):
            process.stdin.write(chunk)
            await process.stdin.drain()
    process.stdin.close()


async def _plain(body: AsyncIterator[bytes], headers: Headers) -> AsyncIterator[bytes]:
    """Undo the compression that git uses for long requests."""
    if headers.get("content-encoding", "").lower() not in ("gzip", "x-gzip"):
        async for chunk in body:
            yield chunk
        return
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
    async for chunk in body:
        yield decompressor.decompress(chunk)


async def _answer(send: Send, content_type: str, prelude: bytes, process: asyncio.subprocess.Process) -> None:
    """Send what git writes while it writes it."""
    headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": prelude, "more_body": True})
    while process.stdout is not None and (chunk := await process.stdout.read(_CHUNK)):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _end(process: asyncio.subprocess.Process) -> None:
    """Leave no process behind, also when the client's request was given up."""
    try:
        await asyncio.wait_for(process.wait(), _END_GRACE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _packet(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()
