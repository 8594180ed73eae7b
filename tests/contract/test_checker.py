"""The checker catches what GitHub would not say."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from graphql import build_schema, find_breaking_changes
from starlette.routing import Mount, Route

from runner.hub import Exchange
from runner.hub.access import Door
from runner.hub.children import Children
from runner.hub.ci import CI
from runner.hub.graphql_schema import SCHEMA
from runner.hub.rest import rest_routes
from runner.hub.site import Site
from runner.hub.store import Store
from tests.contract.checker import Contract
from tests.contract.excerpt import OPERATIONS

HERE = Path(__file__).parent
LABEL = {
    "id": 1,
    "node_id": "LA_1",
    "url": "http://127.0.0.1/api/v3/repos/acme/widget/labels/bug",
    "name": "bug",
    "color": "ededed",
    "description": None,
    "default": False,
}
LABELS = Exchange(method="GET", path="/repos/acme/widget/labels", query="per_page=100", status=200, answered=[LABEL])
MADE = Exchange(method="POST", path="/repos/acme/widget/labels", asked={"name": "bug"}, status=201, answered=LABEL)
MUTATION = (
    "mutation M($input: ConvertPullRequestToDraftInput!) { done: convertPullRequestToDraft(input: $input) { %s } }"
)
INPUT = {"input": {"pullRequestId": "PR_1"}}
DRAFTED = Exchange(
    method="POST",
    path="/graphql",
    asked={"query": MUTATION % "pullRequest { isDraft }", "variables": INPUT},
    status=200,
    answered={"data": {"done": {"pullRequest": {"isDraft": True}}}},
)
ERROR = {"type": "FORBIDDEN", "message": "no", "path": ["done"], "locations": []}


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in LABEL.items() if key != name}


@pytest.mark.parametrize(
    "exchange",
    [
        LABELS,
        MADE,
        replace(LABELS, path="/repositories/7/labels"),
        replace(LABELS, status=401, answered={"message": "Bad credentials"}),
        replace(LABELS, status=304, answered=None),
        DRAFTED,
        replace(DRAFTED, answered={"data": {"done": None}, "errors": [ERROR]}),
    ],
)
def test_what_github_says_is_right(contract: Contract, exchange: Exchange) -> None:
    assert contract.check(exchange) == []


@pytest.mark.parametrize(
    ("exchange", "problem"),
    [
        (replace(LABELS, answered=[without("color")]), "answer at 0: 'color' is a required property"),
        (replace(LABELS, answered=[{**LABEL, "id": "1"}]), "answer at 0/id: '1' is not of type 'integer'"),
        (replace(LABELS, answered=None), "answer: no JSON"),
        (replace(LABELS, status=304), "304 is for a GET, and has no body"),
        (replace(MADE, status=304, answered=None), "304 is for a GET, and has no body"),
        (replace(LABELS, status=202), "undocumented status 202"),
        (replace(LABELS, status=502, answered={"message": "Server Error"}), "undocumented status 502"),
        (replace(LABELS, path="/repos/acme/widget/lables"), "GitHub has no such operation"),
        (replace(LABELS, method="PATCH"), "GitHub has no such operation"),
        (replace(LABELS, query="per_pages=1"), "query: unknown parameter per_pages"),
        (replace(LABELS, query="per_page=many"), "query per_page: 'many' is not of type 'integer'"),
        (replace(LABELS, asked={}), "request: a body, where none is documented"),
        (replace(MADE, asked=None), "request: no body"),
        (replace(MADE, asked={"color": "ededed"}), "request: 'name' is a required property"),
        (replace(MADE, asked={"name": 1}), "request at name: 1 is not of type 'string'"),
    ],
)
def test_what_github_does_not_say_over_rest(contract: Contract, exchange: Exchange, problem: str) -> None:
    assert any(problem in one for one in contract.check(exchange)), contract.check(exchange)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"query": MUTATION % "pullRequest { isDrafted }"}, "Cannot query field 'isDrafted' on type 'PullRequest'"),
        ({"query": "mutation {"}, "Syntax Error"),
        ({"variables": {"input": {}}}, "to include required field 'pullRequestId'"),
        ({"variables": {"input": {**INPUT["input"], "id": "1"}}}, "not to include unknown field 'id'"),
    ],
)
def test_a_query_that_github_would_not_take(contract: Contract, changes: Mapping[str, object], problem: str) -> None:
    assert isinstance(DRAFTED.asked, dict)
    problems = contract.check(replace(DRAFTED, asked={**DRAFTED.asked, **changes}))
    assert any(problem in one.replace('"', "'") for one in problems), problems


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"data": {"done": {"pullRequest": {}}}}, "Cannot return null for non-nullable field PullRequest.isDraft"),
        ({"data": {"done": {"pullRequest": {"isDraft": "yes"}}}}, "Boolean cannot represent"),
        ({"data": {"done": {"pullRequest": {"isDraft": True, "id": 1}}}}, "is not exactly what was asked"),
        ({"data": {"done": None}, "errors": [{"message": "no"}]}, "an error without type"),
        ({}, "neither data nor errors"),
    ],
)
def test_an_answer_that_github_would_not_give(contract: Contract, answer: object, problem: str) -> None:
    problems = contract.check(replace(DRAFTED, answered=answer))
    assert any(problem in one for one in problems), problems


def test_the_hub_serves_nothing_that_github_does_not(contract: Contract, tmp_path: Path) -> None:
    store = Store(tmp_path / "hub.sqlite3")
    children = Children()
    site = Site(
        url="http://127.0.0.1",
        root=tmp_path,
        store=store,
        door=Door(None),
        ci=CI(store, children),
        children=children,
    )
    routes = rest_routes(site)
    store.close()
    served = {operation(contract, route) for route in routes if isinstance(route, Route | Mount)}
    assert served == {f"{method.upper()} {path}" for path, methods in OPERATIONS.items() for method in methods}


def operation(contract: Contract, route: Route | Mount) -> str | None:
    assert isinstance(route, Route)
    method = next(one for one in sorted(route.methods or ()) if one != "HEAD")
    return contract.operation(method, route.path_format.format(**dict.fromkeys(route.param_convertors, "1")))


def test_the_hubs_schema_is_part_of_githubs(contract: Contract) -> None:
    assert find_breaking_changes(build_schema(SCHEMA), contract.schema.graphql) == []


def test_the_excerpts_stay_small() -> None:
    assert (HERE / "github-openapi.json").stat().st_size < 200_000
    assert (HERE / "github-schema.graphql").stat().st_size < 50_000
