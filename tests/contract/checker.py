"""Whether an exchange is one that GitHub could have had, by its own description."""

import re
from pathlib import Path

from runner.hub import Exchange
from tests.contract.allowed import is_allowed
from tests.contract.graphql_schema import Schema
from tests.contract.openapi import Description

_HERE = Path(__file__).parent
# GitHub sends clients of what has moved there; it is not described, and the operations are the same.
_BY_ID = re.compile(r"/repositories/\d+(?=/|$)")


class Contract:
    """GitHub's OpenAPI description and its GraphQL schema. Made once, it checks any number of exchanges."""

    def __init__(self) -> None:
        self._description = Description(_HERE / "github-openapi.json")
        self.schema = Schema(_HERE / "github-schema.graphql", _HERE / "github-schema-additions.graphql")

    def check(self, exchange: Exchange) -> list[str]:
        """Return what is wrong with an exchange, in sentences that name it; nothing for a right one."""
        if exchange.path == "/graphql":
            return [f"{exchange}: {problem}" for problem in self.schema.problems(exchange)]
        operation = self.operation(exchange.method, exchange.path)
        if operation is None:
            return [f"{exchange}: GitHub has no such operation, or tests/contract/excerpt.py left it out"]
        problems = self._description.problems(operation, exchange)
        return [f"{exchange}: {problem}" for problem in problems if not is_allowed(operation, problem)]

    def operation(self, method: str, path: str) -> str | None:
        """Return the operation `METHOD /path/{with}/{names}` that a request is for, if there is one."""
        return self._description.operation(method, _BY_ID.sub("/repos/owner/repo", path, count=1))
