"""Each issue is worked on by one machine, whatever happens to machines and answers; and nothing is lost by it."""

import time

import pytest

from tests.proof import full, seed
from tests.scenarios.claiming import claims
from tests.scenarios.racing import PUSHES, Race, machines
from tests.scenarios.stage import Stage

pytestmark = pytest.mark.drawn

# Contenders, machines, issues, and the seconds that they have.
_RACES = [(8, 4, 24, 1800), (16, 4, 50, 3600)] if full() else [(3, 2, 3, 90)]


@pytest.mark.timeout(5400)
@pytest.mark.parametrize(("contenders", "clones", "issues", "seconds"), _RACES)
def test_each_issue_comes_to_one_end(
    stage: Stage, contenders: int, clones: int, issues: int, seconds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    log = stage.root / "pushes"
    log.touch()
    stage.world.hook("post-receive", PUSHES.format(log=log))
    race = Race(
        stage=stage,
        seed=seed(),
        clones=machines(stage, clones),
        issues=[stage.issue(f"Lamp {number}") for number in range(issues)],
        deadline=time.monotonic() + seconds,
    )
    race.run(contenders)
    race.recover()
    said = "\n\n".join(race.said)
    with capsys.disabled():
        print(f"\nclaims: {dict(sorted(race.tally.items()))}")  # noqa: T201
    assert race.tally["bug"] == 0, said
    assert race.without_pull_request() == [], said
    assert race.twice() == {}, said
    assert race.unfenced(log) == [], said
    assert race.came_back(log) == [], said
    assert race.lost_work() == set(), said
    assert claims(stage.world) == [], said
