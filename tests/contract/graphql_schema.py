"""Holding GraphQL exchanges to GitHub's schema."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    build_schema,
    execute_sync,
    extend_schema,
    parse,
    validate,
)

from runner.hub import Exchange

_ERROR_FIELDS = {"type": str, "message": str, "path": list, "locations": list}


class Schema:
    """The excerpt in the file `excerpt`, with what `additions` extend it by."""

    def __init__(self, excerpt: Path, additions: Path) -> None:
        self.graphql: GraphQLSchema = extend_schema(build_schema(excerpt.read_text()), parse(additions.read_text()))

    def problems(self, exchange: Exchange) -> Iterator[str]:
        """Say what is wrong with a query and its answer."""
        asked, answered = exchange.asked, exchange.answered
        if exchange.method != "POST" or not isinstance(asked, dict) or not isinstance(asked.get("query"), str):
            yield "request: not a query"
            return
        if exchange.status != 200:
            if exchange.status not in (400, 401, 403):
                yield f"undocumented status {exchange.status}"
            return
        try:
            query = parse(asked["query"])
        except GraphQLError as error:
            yield f"request: {error.message}"
            return
        wrong = validate(self.graphql, query)
        yield from (f"request: {error.message}" for error in wrong)
        if not isinstance(answered, dict):
            yield "answer: no JSON object"
        elif not wrong:
            yield from self._answer_problems(query, asked, answered)

    def _answer_problems(self, query: DocumentNode, asked: dict[str, Any], answered: dict[str, Any]) -> Iterator[str]:
        for error in answered.get("errors", []):
            yield from (
                f"answer: an error without {name}, or with a wrong one"
                for name, kind in _ERROR_FIELDS.items()
                if not isinstance(error.get(name), kind)
            )
        if "data" not in answered:
            if not answered.get("errors"):
                yield "answer: neither data nor errors"
            return
        # The query is run once more, with the answer as the world that it asks.
        again = execute_sync(
            self.graphql,
            query,
            root_value=answered["data"] or {},
            variable_values=asked.get("variables"),
            operation_name=asked.get("operationName"),
            field_resolver=_given,
        )
        yield from (error.message for error in again.errors or [])
        if not again.errors and answered["data"] is not None and again.data != answered["data"]:
            yield f"answer: {answered['data']} is not exactly what was asked: {again.data}"


def _given(source: Any, info: GraphQLResolveInfo[Any], **_arguments: object) -> Any:
    """Return what an answer has for a field, under its name in the answer."""
    return source.get(info.path.key)
