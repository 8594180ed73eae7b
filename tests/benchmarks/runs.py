"""A whole Failed run against its bare git commands and API calls, and what Runs start and ask."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.ground import DELIVERED, FAILED, Ground
from tests.benchmarks.measure import Row, Timed, Times, count, difference, interleaved, ratio, timed
from tests.benchmarks.owning import owning_row
from tests.benchmarks.recording import executed, record
from tests.benchmarks.waiting import repaired_rows
from tests.scenarios.stage import NIGHTKEEP, WRITER

# What a Run has imported when it ends.
_IMPORTS = "import runner.__main__, runner.cli, runner.run_command, worktree.git; worktree.git._gitpython()"


def start_rows(rounds: int) -> list[Row]:
    """`nightkeep --help`, and the start of a Run, against an interpreter that does nothing."""
    shown, begun, nothing = interleaved(
        rounds,
        _process(*NIGHTKEEP, "--help"),
        _process(sys.executable, "-P", "-c", _IMPORTS),
        _process(sys.executable, "-c", "pass"),
    )
    return [
        difference("`nightkeep --help`; `python -c pass`", shown, nothing, at_most=0.35),
        difference("start of a Run: interpreter and imports; `python -c pass`", begun, nothing),
    ]


def run_rows(root: Path, rounds: int) -> list[Row]:
    """The rows of whole Runs."""
    ground = Ground(root)
    steps = root / "steps.json"
    recorded = record(ground, FAILED)
    steps.write_text(json.dumps(recorded.steps))
    endings: set[str] = set()

    def run() -> float:
        with ground.renewed():
            return ground.run(FAILED)

    def run_bare() -> float:
        with ground.renewed():
            command = [sys.executable, str(Path(__file__).with_name("bare.py")), str(steps), WRITER]
            took = float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            endings.add(ground.ending())
        return took

    whole, bare, started = interleaved(rounds, run, run_bare, _process(sys.executable, "-P", "-c", _IMPORTS))
    assert endings == {recorded.ending}, (endings, recorded.ending)
    rest = Times(tuple(one - started.median for one in whole.seconds))
    return [
        ratio("Failed run, whole; its git commands and API calls", whole, bare, at_most=2),
        ratio("Failed run, less interpreter and imports; the same", rest, bare),
        owning_row(ground, rounds),
        *(row for name in (DELIVERED, FAILED) for row in _counts(ground, name)),
        *repaired_rows(ground),
    ]


def _counts(ground: Ground, name: str) -> list[Row]:
    steps = record(ground, name).steps
    rows = [
        count(f"{name} Run: git commands that we start", sum("argv" in step for step in steps), at_most=30),
        count(f"{name} Run: API calls", sum("url" in step for step in steps), at_most=20),
    ]
    if shutil.which("strace") is None:
        return [*rows, Row(f"{name} Run: processes", "not counted: no strace")]
    programs = executed(ground, name)
    ours = sum(times for program, times in programs.items() if program.startswith("git"))
    others = {program: times for program, times in programs.items() if not program.startswith("git")}
    listed = ", ".join(f"{times} {program}" for program, times in sorted(others.items()))
    return [
        *rows,
        count(f"{name} Run: git programs by execve (strace)", ours, at_most=45),
        Row(f"{name} Run: other programs by execve, the agent too", listed),
    ]


def _process(*command: str) -> Timed:
    return timed(lambda: subprocess.run(command, capture_output=True, check=True))
