"""Everything that delivery asks GitHub, and every answer, is as GitHub describes it."""

from collections.abc import Callable, Iterator

import pytest

from delivery.errors import GitHubError
from delivery.github import GitHub
from runner.hub import Exchange, Hub, drills
from tests.runner.hub.conftest import push_branch
from tests.world import World

NAME, MARKER = "acme/widget", "<!-- marker -->"


@pytest.fixture
def github(hub: Hub) -> Iterator[GitHub]:
    made = GitHub(api_url=f"{hub.url}/api/v3", token="any", repository=NAME)
    yield made
    made.close()


@pytest.fixture
def pull(github: GitHub, world: World) -> int:
    """A pull request from `topic`; an issue with a label has a number too."""
    push_branch(world, "topic", "topic\n")
    return github.open_pull_request(title="Topic", body="", base="main", branch="topic", draft=True).number


def test_every_method_is_as_described(github: GitHub, pull: int, exchanges: list[Exchange]) -> None:
    calls: dict[str, Callable[[], object]] = {
        "repository": github.repository,
        "is_workflow_token": github.is_workflow_token,
        "issue": lambda: github.issue(pull),
        "labels": github.labels,
        "create_label": lambda: github.create_label("ready", "0e8a16", "An agent may take it"),
        "add_label": lambda: github.add_label(pull, "area/api"),
        "remove_label": lambda: github.remove_label(pull, "area/api"),
        "pull_requests": lambda: github.pull_requests("topic"),
        "pull_request": lambda: github.pull_request(pull),
        "open_pull_request": lambda: pull,  # the fixture did
        "edit_pull_request": lambda: github.edit_pull_request(pull, title="Better", body="Said."),
        "mark_ready": lambda: github.mark_ready(pull),
        "convert_to_draft": lambda: github.convert_to_draft(pull),
        "comment": lambda: github.comment(pull, MARKER, f"{MARKER} one"),
        "edit_comment": lambda: github.edit_comment(pull, MARKER, f"{MARKER} two"),
        "close": github.close,
    }
    for call in calls.values():
        call()
    methods = {name for name, value in vars(GitHub).items() if not name.startswith("_") and callable(value)}
    assert methods == set(calls), "every method of GitHub is to be called here"
    assert {exchange.path for exchange in exchanges} >= {"/graphql", f"/repos/{NAME}/issues/{pull}/comments"}


def test_every_refusal_is_as_described(github: GitHub, pull: int, hub: Hub) -> None:
    refusals: list[Callable[[], object]] = [
        lambda: github.issue(99),
        lambda: github.comment(pull, MARKER, "x" * 70_000),
        lambda: github.open_pull_request(title="T", body="", base="nowhere", branch="topic", draft=False),
    ]
    for refused in refusals:
        with pytest.raises(GitHubError):
            refused()
    hub.facts.make_private_on_free_plan(NAME)
    with pytest.raises(GitHubError, match="Draft pull requests are not supported"):
        github.open_pull_request(title="T", body="", base="main", branch="topic", draft=True)
    hub.facts.archive(NAME)
    with pytest.raises(GitHubError, match="archived"):
        github.add_label(pull, "bug")
    with hub.drill("*", "/api/*", drills.bad_credentials(), times=None), pytest.raises(GitHubError, match="401"):
        github.issue(pull)
