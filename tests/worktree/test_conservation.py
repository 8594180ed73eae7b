"""Whatever an agent does, and in whatever order, nothing that it left behind or committed is lost."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests import proof
from tests.worktree.conservation import Bystanders, lost, made
from tests.worktree.deeds import DEEDS
from tests.worktree.endings import ENDINGS, FAILED, PLAIN, TROUBLED
from tests.worktree.holdings import HOLDINGS
from tests.worktree.scene import Act, Scene, copy_ground, play
from worktree import WorktreeError

_SEED = proof.seed()
# Half of them are such that most is taken away, and half of the agents tidy up: a worktree that stays proves little.
_FINISHES = st.sampled_from([*PLAIN, *FAILED]) | st.sampled_from(
    sorted(name for name, finish in TROUBLED.items() if not finish.bound)
)

_HOLDINGS = sorted(name for name, holding in HOLDINGS.items() if not holding.bound)

Step = tuple[str, int] | str  # a deed with its number, or a holding
_NUMBERS = st.integers(0, 2)
_STEPS = st.tuples(st.sampled_from(sorted(DEEDS)), _NUMBERS) | st.sampled_from(_HOLDINGS)
_LAST: st.SearchStrategy[list[Step]] = st.lists(st.tuples(st.just("tidy"), _NUMBERS), max_size=1)


def _do(steps: list[Step]) -> Act:
    def plant(scene: Scene) -> None:
        for step in steps:
            _take(scene, step)
        scene.marks.keep(made(scene.world, scene.top, scene.admin))

    return plant


def _take(scene: Scene, step: Step) -> None:
    if isinstance(step, tuple):
        DEEDS[step[0]](scene, step[1])
        return
    # It was written for an untouched worktree: after other steps its commands may fail half-way, as an agent's do.
    with suppress(AssertionError, OSError, WorktreeError, ValueError):
        HOLDINGS[step].plant(scene)


@pytest.mark.timeout(7200 if proof.full() else 600)
@seed(_SEED)
@settings(
    max_examples=1000 if proof.full() else 15,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(_STEPS, min_size=1, max_size=10), last=_LAST, ending=_FINISHES)
def test_what_an_agent_leaves_behind_is_found_again(
    ground: Path, tmp_path: Path, steps: list[Step], last: list[Step], ending: str
) -> None:
    world = copy_ground(ground, tmp_path / "world")
    try:
        before = Bystanders.of(world)
        finish = ENDINGS[ending]
        aftermath = play(world, _do([*steps, *last]), finish.act, f"{_SEED} {steps}", resumes=finish.resumes)
        report = (lost(world, aftermath), before.harmed(world, aftermath))
        assert report == ({}, []), f"seed {_SEED}: {aftermath.ending} {aftermath.ending.places}"
    finally:
        shutil.rmtree(world.origin.parent)
