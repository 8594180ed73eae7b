"""Telling somebody about every exchange with the API as it happens, for tests that check them."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

_API = ("/api/v3/", "/api/graphql")
_Message = MutableMapping[str, Any]  # as ASGI has it
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request to the API and its answer. `path` is as on api.github.com, quoted: `/repos/…` or `/graphql`.

    `asked` and `answered` are the JSON documents; None for none, or for a body that is not JSON.
    """

    method: str
    path: str
    query: str = ""
    asked: object = None
    status: int
    answered: object = None

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status}"


Observe = Callable[[Exchange], None]


class Observer:
    """Middleware that gives `observe` each exchange before the client sees its end.

    `observe` is called on the server's thread and must not block; appending to a list is what it is for.
    """

    def __init__(self, app: _App, observe: Observe) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if not scope["path"].startswith(_API):
            await self._app(scope, receive, send)
            return
        asked, answered, status = bytearray(), bytearray(), 0

        async def receive_and_note() -> _Message:
            message = await receive()
            asked.extend(message.get("body", b""))
            return message

        async def note_and_send(message: _Message) -> None:
            nonlocal status
            status = message.get("status", status)
            answered.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self._observe(_exchange(scope, bytes(asked), status, bytes(answered)))
            await send(message)

        await self._app(scope, receive_and_note, note_and_send)


def observed(app: _App, observe: Observe | None) -> _App:
    """Return `app`, watched when there is somebody to tell."""
    return app if observe is None else Observer(app, observe)


def _exchange(scope: _Message, asked: bytes, status: int, answered: bytes) -> Exchange:
    path: str = scope["raw_path"].decode("latin-1")
    return Exchange(
        method=scope["method"],
        path=path.removeprefix("/api/v3") if path.startswith("/api/v3") else "/graphql",
        query=scope["query_string"].decode("latin-1"),
        asked=_document(asked),
        status=status,
        answered=_document(answered),
    )


def _document(body: bytes) -> object:
    try:
        document: object = json.loads(body)
    except ValueError:
        return None
    return document
