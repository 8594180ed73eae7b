"""Whatever a worktree holds and however its run ends, every byte is where the ending says, and nobody else's moved."""

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import proof
from tests.worktree.conservation import Aftermath, Bystanders, lost
from tests.worktree.endings import ENDINGS
from tests.worktree.holdings import HOLDINGS
from tests.worktree.permissions import bound_by_permissions
from tests.worktree.scene import copy_ground, play

pytestmark = pytest.mark.drawn

_SEED = proof.seed()


def _cases() -> list[tuple[str, str]]:
    if proof.full():
        return list(itertools.product(HOLDINGS, ENDINGS))
    deck = _deck([*ENDINGS])
    return [(holding, next(deck)) for holding in HOLDINGS]


def _deck(names: list[str]) -> Iterator[str]:
    """Yield the names in a random order, and again when all had their turn."""
    chance = random.Random(_SEED)
    while True:
        yield from chance.sample(names, len(names))


@pytest.mark.parametrize(("holding", "ending"), _cases())
def test_nothing_is_lost(ground: Path, tmp_path: Path, holding: str, ending: str) -> None:
    held, finish = HOLDINGS[holding], ENDINGS[ending]
    world = copy_ground(ground, tmp_path / "world")
    before = Bystanders.of(world)
    seed = f"{_SEED} {holding} {ending}"

    def run() -> Aftermath:
        return play(world, held.plant, finish.act, seed, resumes=finish.resumes, limits=held.limits)

    aftermath = bound_by_permissions(run) if held.bound or finish.bound else run()
    assert aftermath.owed or aftermath.protected or holding == "nothing"
    report = (lost(world, aftermath), before.harmed(world, aftermath))
    assert report == ({}, []), f"seed {_SEED}: {aftermath.ending} {aftermath.ending.places}"
    shutil.rmtree(world.origin.parent, ignore_errors=True)  # there are thousands
