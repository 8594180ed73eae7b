"""Make the excerpts of GitHub's OpenAPI description and GraphQL schema anew: python -m tests.contract.excerpt

It needs npm and its registry. Descriptions and examples are left out; what is kept is unchanged.
"""

import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphql import parse, print_ast

from tests.contract.reduction import reduced

OPENAPI = ("@octokit/openapi", "23.0.2", "generated/api.github.com.json")
GRAPHQL = ("@octokit/graphql-schema", "15.26.1", "schema.graphql")
HERE = Path(__file__).parent

_REPO = "/repos/{owner}/{repo}"
_ISSUE = _REPO + "/issues/{issue_number}"
_PULL = _REPO + "/pulls/{pull_number}"
OPERATIONS: dict[str, tuple[str, ...]] = {
    "/user": ("get",),
    "/user/repos": ("post",),
    "/orgs/{org}/repos": ("post",),
    _REPO: ("get",),
    _REPO + "/git/ref/{ref}": ("get",),
    _REPO + "/git/refs/{ref}": ("delete",),
    _REPO + "/branches/{branch}": ("get",),
    _REPO + "/branches/{branch}/protection": ("get", "put", "delete"),
    _REPO + "/rules/branches/{branch}": ("get",),
    _REPO + "/commits/{ref}/check-runs": ("get",),
    _REPO + "/commits/{ref}/check-suites": ("get",),
    _REPO + "/commits/{ref}/status": ("get",),
    _REPO + "/commits/{ref}/statuses": ("get",),
    _REPO + "/actions/workflows": ("get",),
    _REPO + "/actions/runs": ("get",),
    _REPO + "/actions/runs/{run_id}": ("get",),
    _REPO + "/actions/runs/{run_id}/jobs": ("get",),
    _REPO + "/actions/runs/{run_id}/rerun-failed-jobs": ("post",),
    _REPO + "/actions/jobs/{job_id}/logs": ("get",),
    _REPO + "/labels": ("get", "post"),
    _REPO + "/labels/{name}": ("get", "delete"),
    _REPO + "/issues": ("get", "post"),
    _ISSUE: ("get", "patch"),
    _ISSUE + "/parent": ("get",),
    _ISSUE + "/sub_issues": ("get", "post"),
    _ISSUE + "/sub_issue": ("delete",),
    _ISSUE + "/dependencies/blocked_by": ("get", "post"),
    _ISSUE + "/dependencies/blocked_by/{issue_id}": ("delete",),
    _REPO + "/collaborators/{username}/permission": ("get",),
    _ISSUE + "/labels": ("get", "post", "put"),
    _ISSUE + "/labels/{name}": ("delete",),
    _ISSUE + "/comments": ("get", "post"),
    _REPO + "/issues/comments/{comment_id}": ("get", "patch", "delete"),
    _REPO + "/pulls": ("get", "post"),
    _PULL: ("get", "patch"),
    _PULL + "/merge": ("put",),
}
_NOISE = ("description", "summary", "example", "examples", "externalDocs", "tags", "x-github", "x-octokit", "headers")
_NAMED = ("properties", "parameters", "schemas", "responses", "paths")  # their keys are names, whatever they say


def main() -> None:
    """Write both files."""
    description = json.loads(_fetched(*OPENAPI))
    (HERE / "github-openapi.json").write_text(_lines(openapi_excerpt(description)))
    schema = reduced(parse(_fetched(*GRAPHQL), no_location=True))
    (HERE / "github-schema.graphql").write_text(print_ast(schema) + "\n")


def openapi_excerpt(description: dict[str, Any]) -> dict[str, Any]:
    """Return the operations above with the components that they need."""
    paths = {
        path: {method: _quiet(description["paths"][path][method]) for method in methods}
        for path, methods in OPERATIONS.items()
    }
    components: dict[str, dict[str, Any]] = {}
    waiting = set(_references(paths))
    while waiting:
        kind, name = waiting.pop().removeprefix("#/components/").split("/")
        component = components.setdefault(kind, {})[name] = _quiet(description["components"][kind][name])
        found = (reference.removeprefix("#/components/").split("/") for reference in _references(component))
        waiting |= {f"{kind}/{name}" for kind, name in found if name not in components.get(kind, {})}
    ordered = {kind: dict(sorted(named.items())) for kind, named in sorted(components.items())}
    return {"openapi": description["openapi"], "paths": paths, "components": ordered}


def _quiet(part: Any, *, named: bool = False) -> Any:
    """Return a part of the description without what is meant for readers only."""
    if isinstance(part, list):
        return [_quiet(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {key: _quiet(value, named=key in _NAMED) for key, value in part.items() if named or key not in _NOISE}


def _references(part: Any) -> Iterable[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for one in part:
            yield from _references(one)


def _lines(excerpt: dict[str, Any]) -> str:
    """Return JSON with a line for each path and each component, so that a change can be read."""
    paths = _block(excerpt["paths"])
    components = ",\n".join(f'"{kind}": {_block(named)}' for kind, named in excerpt["components"].items())
    return f'{{"openapi": "{excerpt["openapi"]}",\n"paths": {paths},\n"components": {{{components}}}}}\n'


def _block(named: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in named.items()) + "\n}"


def _fetched(package: str, version: str, file: str) -> str:
    """Return the text of one file of an npm package."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["npm", "pack", "--silent", f"{package}@{version}"]
        archive = subprocess.check_output(command, cwd=directory, text=True).strip()
        with tarfile.open(Path(directory) / archive) as opened:
            member = opened.extractfile(f"package/{file}")
            if member is None:
                raise FileNotFoundError(f"{package}@{version} has no {file}")
            return member.read().decode()


if __name__ == "__main__":
    main()
