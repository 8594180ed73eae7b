"""A hub whose every exchange is checked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.hub import Exchange, Hub
from tests.delivery.conftest import NAME, github
from tests.world import World

__all__ = ["github", "hub"]


@pytest.fixture
def hub(world: World, tmp_path: Path, exchanges: list[Exchange]) -> Iterator[Hub]:
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}, observe=exchanges.append) as served:
        yield served
