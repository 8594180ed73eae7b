"""Signals at any moment of a Run, one or two: nothing is lost, and the ending is one of those that there are."""

import random
import signal
import subprocess
import time
from dataclasses import dataclass

import pytest

from tests.proof import full, seed
from tests.scenarios.stage import Result, Stage
from tests.scenarios.test_signals import running
from tests.waiting import wait_for

pytestmark = pytest.mark.drawn

_MOMENTS = 100 if full() else 2
# What a Run says at the beginning of each part of it; "" is its very start.
_PARTS = (
    "",
    "working in",
    "starting the agent",
    "starting the agent",
    "pushing",
    "seeing that what",
    "turning",
)
_WORK = """\
for n in 1 2 3 4 5 6 7 8; do
    echo $n > file-$n.txt; git add file-$n.txt; [ $((n % 3)) = 0 ] && git commit -qm "to $n"; echo again >> file-$n.txt
    sleep 0.05
done; exit STATUS"""


@dataclass(frozen=True)
class Moment:
    """How many seconds after the Run says `part` which signals come, and how many lie between two of them."""

    part: str
    after: float
    numbers: tuple[signal.Signals, ...]
    between: float
    status: int

    def __str__(self) -> str:
        names = "+".join(number.name for number in self.numbers)
        where = f"{self.after:.2f} s after {self.part or 'the start'!r}"
        return f"{names} {where}, {self.between:.2f} s between, the agent exits {self.status}"


def moments() -> list[Moment]:
    """Draw them."""
    drawn = random.Random(seed())
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [
        Moment(
            part=drawn.choice(_PARTS),
            after=drawn.choice((0.0, drawn.uniform(0, 1.5))),
            numbers=tuple(drawn.choice(kinds) for _ in range(drawn.choice((1, 2)))),
            between=drawn.choice((0.0, drawn.uniform(0, 1.5))),
            status=drawn.choice((0, 3)),
        )
        for _ in range(_MOMENTS)
    ]


@pytest.mark.parametrize("moment", moments(), ids=str)
def test_any_moment(stage: Stage, moment: Moment) -> None:
    before = stage._clone_as_it_is()
    with running(stage, _WORK.replace("STATUS", str(moment.status))) as run:
        wait_for(lambda: moment.part in run.progress.read_text() or run.process.poll() is not None)
        end = time.monotonic() + moment.after
        for number in moment.numbers:
            try:
                run.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                run.send(number)
            end = time.monotonic() + moment.between
        document = run.end()
        result = Result(run.status, run.stdout, run.stderr)
        stage._check(before, result)
    # Before there are handlers for it a signal ends the command as any other, with nothing begun.
    assert run.status in {0, 1, *(128 + number for number in moment.numbers), *(-number for number in moment.numbers)}
    assert document.get("preserved") != "machine", str(result)  # for origin takes everything
    pulls = stage.pulls()
    assert len(pulls) <= 1
    if run.status == 0:
        assert document["result"] == "delivered", str(result)
        assert not pulls[0]["draft"]
    elif pulls:
        assert pulls[0]["draft"], str(result)
        assert stage.note(pulls[0]["number"])
    if not pulls:
        assert stage.labels(1) == {"ready-for-agent", "bug"}, str(result)
