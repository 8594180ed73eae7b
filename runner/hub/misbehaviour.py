"""Doing what the drills say."""

import asyncio
import time

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runner.hub.drills import Drill, Trouble
from runner.hub.observation import observed
from runner.hub.site import Site

CONTROL = "/_hub/"  # no drill is ever applied here, or none could be ended
_TICK = 0.02  # seconds between looks whether a delay is over


class Misbehaviour:
    """Middleware that applies drills to requests for the API, for git and for pages."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(CONTROL):
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith("/api/"):
            receive = _replayed(body := await _whole(receive), receive)
        else:
            body = b""  # git's bodies may be large, and say nothing that a drill looks for
        query = scope["query_string"].decode("latin-1")
        drill = self._site.drills.take(scope["method"], scope["path"], query, body.decode("utf-8", "replace"))
        if drill is None:
            await self._app(scope, receive, send)
            return
        await _delay(drill)
        await self._apply(drill.trouble, scope, receive, send)

    async def _apply(self, trouble: Trouble, scope: Scope, receive: Receive, send: Send) -> None:
        if not trouble.answers:
            await self._app(scope, receive, send)
            return
        body = _ending(receive)
        if trouble.work:
            await self._app(scope, body, _nowhere)
        if trouble.drop:
            await self._hang_up(scope, receive)
        else:
            observe = self._site.observe if trouble.genuine else None
            await observed(_canned(trouble), observe)(scope, body, send)

    async def _hang_up(self, scope: Scope, receive: Receive) -> None:
        self._site.connections.abort(scope["client"])
        while (await receive())["type"] != "http.disconnect":
            pass


async def _delay(drill: Drill) -> None:
    end = time.monotonic() + drill.trouble.delay
    while time.monotonic() < end and not drill.removed:
        await asyncio.sleep(_TICK)


def _canned(trouble: Trouble) -> ASGIApp:
    """Return the application that answers what the drill says."""
    status, headers = trouble.status or 200, dict(trouble.headers)
    body = trouble.body
    response = (
        PlainTextResponse(body, status, headers) if isinstance(body, str) else JSONResponse(body, status, headers)
    )

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await _whole(receive)  # a client that is still sending would miss the answer
        await response(scope, receive, send)

    return answer


async def _whole(receive: Receive) -> bytes:
    """Return what is left of the request's body."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body.extend(message.get("body", b""))
        more = message.get("more_body", False)
    return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body which was read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def _ending(receive: Receive) -> Receive:
    """Return a `receive` that may be asked for the body again, and then says that it has ended."""
    ended = False

    async def receive_until_the_end() -> Message:
        nonlocal ended
        if ended:
            return {"type": "http.request", "body": b"", "more_body": False}
        message = await receive()
        ended = not message.get("more_body", False)
        return message

    return receive_until_the_end


async def _nowhere(_message: Message) -> None:
    """Send nothing."""
