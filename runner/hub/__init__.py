"""A small GitHub on loopback: real HTTP, real bare repositories, issues and pull requests in SQLite.

It serves `nightkeep demo` and the tests. Importing this package loads neither Starlette nor uvicorn.
"""

from runner.hub.access import Permission
from runner.hub.server import Hub, serve

__all__ = ["Hub", "Permission", "serve"]
