"""Holding REST exchanges to GitHub's OpenAPI description."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jsonschema.exceptions import best_match
from openapi_schema_validator import OAS30Validator
from referencing import Registry
from referencing.jsonschema import DRAFT4

from runner.hub import Exchange

_BASE = "urn:github"
_LONGEST = 200  # characters of a problem; a message quotes the whole document
_NOT_MODIFIED = 304  # every GET may be conditional, says the manual; the description says it of some
_UNJUDGED = (301, 307, 400, 422)
_WITH_SLASHES = ("ref", "branch", "name")  # a label may be called area/api; PyGithub leaves all three unquoted


class Description:
    """The excerpt at `path`."""

    def __init__(self, path: Path) -> None:
        self._description: dict[str, Any] = json.loads(path.read_text())
        self._registry: Any = Registry().with_resource(_BASE, DRAFT4.create_resource(self._description))
        templates = sorted(self._description["paths"], key=lambda path: (path.count("{"), -len(path)))
        self._templates = [(re.compile(_pattern(template)), template) for template in templates]
        self._validator = cache(self._new_validator)

    def operation(self, method: str, path: str) -> str | None:
        """Return `METHOD /path/{with}/{names}` for a request; None when GitHub has no such operation."""
        fitting = (template for pattern, template in self._templates if pattern.fullmatch(path))
        known = (one for one in fitting if method.lower() in self._description["paths"][one])
        return next((f"{method} {template}" for template in known), None)

    def problems(self, operation: str, exchange: Exchange) -> Iterator[str]:
        """Say what is wrong with an exchange of that operation."""
        method, template = operation.split(" ")
        place = ("paths", template, method.lower())
        yield from self._query_problems(place, exchange.query)
        # A request that is refused need not be right, and one that is sent elsewhere is not even read.
        if exchange.status not in _UNJUDGED:
            yield from self._request_problems(place, exchange.asked)
        yield from self._answer_problems(place, exchange)

    def _query_problems(self, place: tuple[str, ...], query: str) -> Iterator[str]:
        known = {}
        for number in range(len(self._at(*place).get("parameters", []))):
            where = self._resolved(*place, "parameters", str(number))
            parameter = self._at(*where)
            if parameter["in"] == "query":
                known[parameter["name"]] = where
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name not in known:
                yield f"query: unknown parameter {name}"
                continue
            schema = self._at(*known[name], "schema")
            given = int(value) if schema.get("type") == "integer" and value.isdecimal() else value
            yield from (f"query {name}{one}" for one in self._faults(given, *known[name], "schema"))

    def _request_problems(self, place: tuple[str, ...], asked: object) -> Iterator[str]:
        body = self._at(*place).get("requestBody")
        if body is None:
            if asked is not None:
                yield "request: a body, where none is documented"
        elif asked is not None:
            schema = (*place, "requestBody", "content", "application/json", "schema")
            yield from (f"request{one}" for one in self._faults(asked, *schema))
        elif body.get("required"):
            yield "request: no body"

    def _answer_problems(self, place: tuple[str, ...], exchange: Exchange) -> Iterator[str]:
        if exchange.status == _NOT_MODIFIED:
            if exchange.method != "GET" or exchange.answered is not None:
                yield "answer: 304 is for a GET, and has no body"
            return
        if str(exchange.status) not in self._at(*place, "responses"):
            yield f"undocumented status {exchange.status}: {json.dumps(exchange.answered)[:_LONGEST]}"
            schema: tuple[str, ...] = ("components", "schemas", "basic-error")
        else:
            response = self._resolved(*place, "responses", str(exchange.status))
            schema = (*response, "content", "application/json", "schema")
            if "application/json" not in self._at(*response).get("content", {}):
                if exchange.answered is not None:
                    yield "answer: a body, where none is documented"
                return
        if exchange.answered is None:
            yield "answer: no JSON"
            return
        yield from (f"answer{one}" for one in self._faults(exchange.answered, *schema))

    def _at(self, *place: str) -> Any:
        found: Any = self._description
        for step in place:
            found = found[int(step)] if isinstance(found, list) else found[step]
        return found

    def _resolved(self, *place: str) -> tuple[str, ...]:
        """Return where the thing at `place` really stands: there is one reference at most."""
        reference = self._at(*place).get("$ref")
        return place if reference is None else tuple(reference.removeprefix("#/").split("/"))

    def _faults(self, document: object, *place: str) -> Iterator[str]:
        """Say what is wrong with a document for the schema at `place`: ` at where: what`."""
        for error in self._validator(place).iter_errors(document):
            cause = best_match([error]) or error
            where = "/".join(map(str, cause.absolute_path))
            yield f"{f' at {where}' if where else ''}: {cause.message[-_LONGEST:]}"

    def _new_validator(self, place: tuple[str, ...]) -> Any:
        pointer = "/".join(step.replace("~", "~0").replace("/", "~1") for step in place)
        return OAS30Validator({"$ref": f"{_BASE}#/{pointer}"}, registry=self._registry)


def _pattern(template: str) -> str:
    def value(name: re.Match[str]) -> str:
        if name[1].endswith(("_number", "_id")):
            return r"\d+"
        return ".+" if name[1] in _WITH_SLASHES else "[^/]+"

    return re.sub(r"\\\{(\w+)\\\}", value, re.escape(template))
