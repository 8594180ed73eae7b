"""A stage for each scenario."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.hub import Exchange, Hub, Permission
from tests.scenarios.stage import NAME, READER, WRITER, Stage
from tests.world import World, git, make_world


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
    tokens = {WRITER: Permission.WRITE, READER: Permission.READ}
    repositories = {NAME: world.origin}
    with Hub(tmp_path / "hub", repositories=repositories, tokens=tokens, observe=exchanges.append) as hub:
        git(world.launch, "remote", "set-url", "origin", f"{hub.url}/{NAME}.git")
        yield Stage(tmp_path, world, hub)
