"""The headers of every answer of the API: rate limits, and what the token is.

https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api and
https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps. The limits are counted and told, and
never enforced: a drill does that.
"""

import time
from collections import Counter
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runner.hub.access import TokenKind, Visitor
from runner.hub.site import Site

_HOUR = 3600
_LIMIT, _ACTIONS_LIMIT, _STRANGERS_LIMIT = 5000, 1000, 60  # requests an hour


class ApiHeaders:
    """Middleware that counts the API's requests and puts GitHub's headers on their answers."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site
        self._used: Counter[tuple[str, str]] = Counter()
        self._reset = int(time.time()) + _HOUR

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        self._site.requests.append((scope["method"], scope["path"]))
        visitor = self._site.door.visitor(Headers(scope=scope).get("authorization", ""))
        resource = "graphql" if scope["path"].startswith("/api/graphql") else "core"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # "Nothing new" costs nothing, to who has a token.
                is_free = message["status"] == HTTPStatus.NOT_MODIFIED and visitor is not None
                own = self._rate(visitor, resource, cost=0 if is_free else 1) | _token_headers(visitor)
                for name, value in own.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _rate(self, visitor: Visitor | None, resource: str, *, cost: int) -> dict[str, str]:
        if time.time() >= self._reset:
            self._used.clear()
            self._reset = int(time.time()) + _HOUR
        key = (visitor.login if visitor else "", resource)
        self._used[key] += cost
        limit = _limit(visitor)
        used = min(self._used[key], limit)
        numbers = {"limit": limit, "remaining": limit - used, "reset": self._reset, "used": used}
        return {f"x-ratelimit-{name}": str(number) for name, number in numbers.items()} | {
            "x-ratelimit-resource": resource
        }


def _limit(visitor: Visitor | None) -> int:
    if visitor is None:
        return _STRANGERS_LIMIT
    return _ACTIONS_LIMIT if visitor.kind is TokenKind.ACTIONS else _LIMIT


def _token_headers(visitor: Visitor | None) -> dict[str, str]:
    """Only a classic token has scopes; the others are told which permission an address needs."""
    match visitor and visitor.kind:
        case None:
            return {}
        case TokenKind.CLASSIC:
            return {"x-oauth-scopes": "repo, workflow", "x-accepted-oauth-scopes": "repo"}
        case _:
            return {"x-accepted-github-permissions": "metadata=read"}
