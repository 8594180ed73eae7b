"""`python -m tests.benchmarks [N]`: one table, each time the median of N (10), with the least and the most.

With PROCESSOR_TIME in the environment: the rows of the large repository alone, and the time that processors worked.
What is kept across file systems is measured where TMPDIR is on another one than the benchmarks' files.
"""

import os
import sys
import tempfile
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


def main(rounds: int = 10) -> None:
    """Measure everything and print it."""
    place = _MEMORY if _MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="nightkeep-benchmarks-", dir=place) as name,
        tempfile.TemporaryDirectory(prefix="nightkeep-benchmarks-") as elsewhere,
    ):
        root = Path(name)
        _seal(root)
        load = os.getloadavg()[0]
        rows = [] if counts_processor_time() else [*start_rows(rounds), *run_rows(_made(root / "runs"), rounds)]
        rows += [] if counts_processor_time() else spec_rows(_made(root / "specs"))
        rows += picking_rows(_made(root / "picking"), rounds)
        rows += [] if counts_processor_time() else waiting_rows(_made(root / "waiting"))
        rows += reclaim_rows(_made(root / "reclaim"), rounds)
        rows += _large_rows(root, Path(elsewhere), rounds)
    print(table(rows))  # noqa: T201
    print(  # noqa: T201
        f"\nMedian of {rounds} in turn with the other side, after one that does not count (least to most). "
        f"{os.cpu_count()} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after; "
        f"files in {'memory (/dev/shm)' if place else 'the temporary directory'}; Python {sys.version.split()[0]}."
    )


def _large_rows(root: Path, elsewhere: Path, rounds: int) -> list[Row]:
    large = Large(_made(root / "large"))
    rows = [*worktree_rows(large, rounds), *snapshot_rows(large, rounds), *checkpoint_rows(large, rounds)]
    rows += keeping_rows(large, rounds)
    return rows + across_rows(large.with_worktrees_in(elsewhere), rounds)


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
    main(*map(int, sys.argv[1:]))
