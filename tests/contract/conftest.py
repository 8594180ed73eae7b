"""A hub whose every exchange is checked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.hub import Exchange, Hub
from tests.world import World


@pytest.fixture
def hub(world: World, tmp_path: Path, exchanges: list[Exchange]) -> Iterator[Hub]:
    with Hub(tmp_path / "hub", repositories={"acme/widget": world.origin}, observe=exchanges.append) as served:
        yield served
