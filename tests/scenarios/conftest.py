"""A stage for each scenario."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.hub import Exchange
from tests.scenarios.repairing import QUICKLY
from tests.scenarios.stage import Stage, staged
from tests.world import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A bare origin and a clone of it in a directory of its own, where nothing else stands beside it."""
    made = make_world(tmp_path)
    place = tmp_path / "place"
    place.mkdir()
    return World(made.origin, made.launch.rename(place / "widget"))


@pytest.fixture
def stage(tmp_path: Path, world: World, exchanges: list[Exchange]) -> Iterator[Stage]:
    """A hub that serves the world's origin as acme/widget, and the clone with the hub as its origin."""
    with staged(tmp_path, world, exchanges.append) as made:
        yield made


@pytest.fixture
def quickly(stage: Stage) -> None:
    """Nobody waits long for checks that never come."""
    stage.environment |= QUICKLY
