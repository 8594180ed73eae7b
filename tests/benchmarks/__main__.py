"""`python -m tests.benchmarks [N] [GROUP…]`: one table, each time the median of N (10), with the least and the most.

Each row goes to standard error as soon as it is there. Groups: runs, specs, picking, waiting, reclaim, large; all of
them unless some are named. With PROCESSOR_TIME in the environment the time that processors worked is taken, and what
has no such time is left out. What is kept across file systems is measured where TMPDIR is on another one than the
benchmarks' files.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from tests.benchmarks.checkpoints import checkpoint_rows
from tests.benchmarks.keeping import across_rows, keeping_rows
from tests.benchmarks.large import Large
from tests.benchmarks.measure import Row, counts_processor_time, table
from tests.benchmarks.owning import reclaim_rows
from tests.benchmarks.picking import picking_rows
from tests.benchmarks.runs import run_rows, start_rows
from tests.benchmarks.snapshots import snapshot_rows
from tests.benchmarks.specs import spec_rows
from tests.benchmarks.waiting import waiting_rows
from tests.benchmarks.worktrees import worktree_rows

_MEMORY = Path("/dev/shm")
_BY_CLOCK = ("runs", "specs", "waiting")  # of these a processor's time says nothing


def main(rounds: int, groups: Sequence[str]) -> None:
    """Measure what is named and print it."""
    place = _MEMORY if _MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="nightkeep-benchmarks-", dir=place) as name,
        tempfile.TemporaryDirectory(prefix="nightkeep-benchmarks-") as elsewhere,
    ):
        root = Path(name)
        _seal(root)
        load = os.getloadavg()[0]
        rows = []
        for row in _rows(root, Path(elsewhere), rounds, groups):
            print(" | ".join(row.cells()), file=sys.stderr, flush=True)  # noqa: T201
            rows.append(row)
    print(table(rows))  # noqa: T201
    print(  # noqa: T201
        f"\nMedian of {rounds} in turn with the other side, after one that does not count (least to most). "
        f"{os.cpu_count()} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after; "
        f"files in {'memory (/dev/shm)' if place else 'the temporary directory'}; Python {sys.version.split()[0]}."
    )


def _rows(root: Path, elsewhere: Path, rounds: int, groups: Sequence[str]) -> Iterator[Row]:
    measured: dict[str, Callable[[Path], Iterable[Row]]] = {
        "runs": lambda place: chain(start_rows(rounds), run_rows(place, rounds)),
        "specs": spec_rows,
        "picking": lambda place: picking_rows(place, rounds),
        "waiting": waiting_rows,
        "reclaim": lambda place: reclaim_rows(place, rounds),
        "large": lambda place: _large_rows(place, elsewhere, rounds),
    }
    for group in groups or measured:
        if not (group in _BY_CLOCK and counts_processor_time()):
            yield from measured[group](_made(root / group))


def _large_rows(root: Path, elsewhere: Path, rounds: int) -> Iterator[Row]:
    large = Large(root)
    for rows in (worktree_rows, snapshot_rows, checkpoint_rows, keeping_rows):
        yield from rows(large, rounds)
    yield from across_rows(large.with_worktrees_in(elsewhere), rounds)


def _seal(root: Path) -> None:
    """Leave nothing of the caller's settings to this process and its children."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "PROCESSOR_TIME") if name in os.environ}
    os.environ.clear()
    os.environ |= {**kept, "HOME": str(_made(root / "home")), "TMPDIR": str(_made(root / "tmp")), "NO_COLOR": "1"}
    tempfile.tempdir = None


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


if __name__ == "__main__":
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    main(int(*numbers or ["10"]), [word for word in sys.argv[1:] if not word.isdigit()])
