"""A small GitHub on loopback: real HTTP, real bare repositories, issues and pull requests in SQLite.

It serves `nightkeep demo` and the tests, and misbehaves on demand: see `drills`. Importing this package loads neither
Starlette nor uvicorn.
"""

from runner.hub import drills
from runner.hub.access import Permission, Token, TokenKind
from runner.hub.checks import NEVER, Check, Source, Wait
from runner.hub.observation import Exchange
from runner.hub.server import Hub, serve

__all__ = [
    "NEVER",
    "Check",
    "Exchange",
    "Hub",
    "Permission",
    "Source",
    "Token",
    "TokenKind",
    "Wait",
    "drills",
    "serve",
]
