"""Merge runs in a world where anything may happen while checks run: drawn at random, the same each time."""

import random
import re
import shlex

import pytest

from runner.hub import Check, drills
from tests.proof import full, seed
from tests.scenarios.repairing import COMMITS, QUICKLY, pushes
from tests.scenarios.stage import NAME, Stage

pytestmark = pytest.mark.drawn

_SCHEDULES = range(seed(), seed() + (20 if full() else 2))
_LOOKS = 6  # of the checks, with something of their own; later ones pass
_LIMIT = 2
_PASSES = "true"
# It resolves what conflicts, and now and then changes something.
_REPAIRS = """\
for file in $(git diff --name-only --diff-filter=U); do echo both > $file; git add $file; done
git rev-parse -q --verify MERGE_HEAD && git commit -q --no-edit
test $(($(od -An -N1 -tu1 {draw}) % 4)) = 0 || { echo more >> more.txt; git add more.txt; git commit -qm more; }"""


def happenings(stage: Stage, chance: random.Random) -> list[str]:
    """Draw what each look at the branch's checks brings, as shell commands that succeed or fail as the check does."""
    possible = [
        _PASSES,
        _PASSES,
        "false",
        f"{pushes(stage, 'main', 'moved.txt', '$(date +%s%N)')}; true",
        f"{pushes(stage, 'main', 'lamp.txt', '$(date +%s%N)')}; true",
        f"{pushes(stage, 'issue-1', 'theirs.txt', '$(date +%s%N)')}; true",
        f"{pushes(stage, 'issue-1', 'theirs.txt', '$(date +%s%N)')}; false",
    ]
    return [chance.choice(possible) for _ in range(_LOOKS)]


@pytest.mark.parametrize("number", _SCHEDULES)
def test_a_schedule_ends_and_merges_only_what_was_watched(stage: Stage, number: int) -> None:
    chance = random.Random(number)
    looks = stage.root / "looks"
    looks.mkdir()
    cases = "\n".join(f"{n}) {what};;" for n, what in enumerate(happenings(stage, chance)))
    script = stage.root / "check.sh"
    script.write_text(f"n=$(ls {looks} | wc -l); touch {looks}/$n; case $n in\n{cases}\nesac\n")
    stage.hub.ci.add(NAME, Check("test", command=f"sh {shlex.quote(str(script))}", branches="issue-*"))
    for _ in range(chance.choice([0, 0, 1, 2])):
        stage.hub.drill("PUT", "*/merge", drills.answer(405, {"message": "Not now"}))
    draw = stage.root / "draw"
    draw.write_bytes(chance.randbytes(1))
    repairs = _REPAIRS.replace("{draw}", str(draw))
    agent = stage.agent(f"case $NIGHTKEEP_SESSION in implement) {COMMITS};; *) {repairs};; esac")
    limits = {"NIGHTKEEP_REPAIR_LIMIT": str(_LIMIT), "NIGHTKEEP_REPAIR_MOVES": str(_LIMIT)}
    result = stage.run(stage.issue(), agent, "--merge", **limits, **QUICKLY)
    pull = stage.pull()
    assert result.status in (0, 1, 3, 4), result
    assert (result.status == 0) is (pull["merged_at"] is not None), result
    assert len(re.findall(r"starting Repair \d", result.stderr)) <= _LIMIT, result
    asked = sum(path.endswith("/merge") for method, path in stage.hub.requests if method == "PUT")
    assert asked <= 1 + _LIMIT + _LIMIT, result
    if pull["merged_at"]:
        checks = stage.api("GET", f"commits/{pull['head']['sha']}/check-runs")["check_runs"]
        assert [check["conclusion"] for check in checks] == ["success"], result
        assert f"merging {pull['html_url']} at {pull['head']['sha'][:12]}" in result.stderr
    assert pull["draft"] is (result.status in (1, 3)), result
