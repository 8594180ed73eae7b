"""A Spec of many Tickets with links at random, several at once, of which some fail in their own ways.

In the gate a few Tickets, with NIGHTKEEP_PROOF=full forty; NIGHTKEEP_PROOF_SEED draws other links and failures.
"""

import random
from collections.abc import Collection, Mapping, Sequence

import pytest

from tests import proof
from tests.scenarios.spec import agent, order, pull_of, rows, run, spec, states
from tests.scenarios.stage import Stage

_TICKETS = 40 if proof.full() else 7
_PARALLEL = 4
_LINKS = 1.5  # blockers of a Ticket, on average
_FAILING = 0.2
# Also on a busy machine GitHub has worked out by then whether a pull request merges.
_PATIENTLY = {"NIGHTKEEP_CHECKS_GRACE": "4s"}
# Agents that fail: with nothing, with half of the work, and by killing the runner above their supervisor.
_FAILURES = (
    "exit 3",
    "echo half > half-$number.txt; exit 3",
    "echo half > half-$number.txt; kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat); sleep 20",
)


def drawn(chance: random.Random) -> tuple[dict[int, list[int]], dict[int, str]]:
    """Draw the blockers of each Ticket, in a graph without a cycle, and how some fail."""
    numbers = list(range(2, _TICKETS + 2))
    chance.shuffle(numbers)
    blockers = {
        number: [one for one in numbers[:at] if chance.random() < 2 * _LINKS / _TICKETS]
        for at, number in enumerate(numbers)
    }
    failing = [number for number in numbers if chance.random() < _FAILING] or numbers[:1]
    return blockers, {number: chance.choice(_FAILURES) for number in failing}


def reached(blockers: Mapping[int, Sequence[int]], failing: Mapping[int, str]) -> set[int]:
    """Return the Tickets that can land: neither failing, nor blocked by what cannot land."""
    landing: set[int] = set()
    while more := {n for n in blockers if n not in landing | failing.keys() and landing >= set(blockers[n])}:
        landing |= more
    return landing


@pytest.mark.drawn
@pytest.mark.timeout(7200 if proof.full() else 600)
@pytest.mark.parametrize("seed", [proof.seed()])
def test_order_is_respected_it_ends_and_the_checklist_is_true(stage: Stage, seed: int) -> None:
    stage.patience = 3600 if proof.full() else 300
    blockers, failing = drawn(random.Random(seed))
    landing = reached(blockers, failing)
    spec(stage, [blockers[number] for number in range(2, _TICKETS + 2)])
    script = agent(stage, **{f"t{number}": failure for number, failure in failing.items()})
    result = run(stage, script, "--parallel", str(_PARALLEL), **_PATIENTLY)
    assert result.status == 1, result
    in_order(order(stage), blockers, [number for number, failure in failing.items() if "kill" in failure])
    tried = {int(line.split()[1]) for line in order(stage)}
    assert tried == landing | {number for number in failing if landing >= set(blockers[number])}
    assert len(rows(stage)) == _TICKETS
    for number, row in enumerate(rows(stage), start=2):
        assert row.startswith(f"- [{'x' if number in landing else ' '}] #{number} `A part`: "), row
        assert ("merged," in row, ": failed" in row, "blocked by" in row) == (
            number in landing,
            number in tried - landing,
            number not in tried,
        ), row
    assert {number for number, state in states(stage).items() if state == "closed"} == landing
    parts = {int(file[5:-4]) for file in stage.files("issue-1") if file.startswith("part-")}
    assert (parts, pull_of(stage, "issue-1")["draft"], stage.worktrees()) == (landing, True, [])
    kept = {number for number in tried - landing if "half" in failing[number]}
    assert all(f"half-{number}.txt" in stage.files(f"issue-{number}") for number in kept)

    (stage.root / "order").unlink()
    again = run(stage, agent(stage), "--parallel", str(_PARALLEL), **_PATIENTLY)
    assert again.status == 0, again
    in_order(order(stage), {number: set(blockers[number]) - landing for number in blockers.keys() - landing})
    assert set(states(stage).items()) == {(1, "open"), *((number, "closed") for number in blockers)}
    assert [row[:6] for row in rows(stage)] == ["- [x] "] * _TICKETS
    assert order(stage)[-2:] == ["begin 1", "end 1"]


def in_order(lines: Sequence[str], blockers: Mapping[int, Collection[int]], killed: Collection[int] = ()) -> None:
    """Assert that none began before what blocks it had ended, each once, and no more at once than allowed.

    Those that were `killed` may have said nothing at their end.
    """
    ended: set[int] = set()
    begun: list[int] = []
    for line in lines:
        what, number = line.split()[0], int(line.split()[1])
        if what == "end":
            ended.add(number)
            continue
        assert ended >= set(blockers.get(number, ())), f"#{number} began too early: {lines}"
        begun.append(number)
        assert len(set(begun) - ended - set(killed)) <= _PARALLEL, lines
    assert len(begun) == len(set(begun)), lines
