"""The door to GitHub, opened to whatever hub a test has."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from delivery.github import GitHub
from runner.hub import Hub

NAME, TOKEN = "acme/widget", "writer-token-0001"


@pytest.fixture
def github(hub: Hub) -> Iterator[GitHub]:
    with closing(GitHub(api_url=f"{hub.url}/api/v3", token=TOKEN, repository=NAME)) as made:
        yield made
