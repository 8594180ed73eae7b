"""Temporary directories go with who made them, or are swept; nobody else's are touched."""

import tempfile
import threading
from pathlib import Path

from worktree import sweep_temporary, temporary_directory


def test_what_a_killed_process_left_is_swept_and_nothing_else() -> None:
    top = Path(tempfile.gettempdir())
    with temporary_directory() as (ours, _):
        marked, theirs, other = top / "nightkeep-aaaaaaaa", top / "nightkeep-bbbbbbbb", top / "nightkeep-demo-cccccccc"
        for directory in (marked, theirs, other, top / "nightkeep-dddddddd"):
            directory.mkdir()
        (marked / ".made-by-nightkeep").touch()
        (theirs / "work").touch()
        sweep_temporary()
        assert {path.name for path in top.iterdir()} == {ours.name, theirs.name, other.name}
    (theirs / "work").unlink()
    theirs.rmdir()
    other.rmdir()


def test_who_makes_one_is_not_disturbed_by_who_sweeps() -> None:
    done = threading.Event()

    def sweep() -> None:
        while not done.is_set():
            sweep_temporary()

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for _ in range(2000):
            with temporary_directory() as (directory, _):
                assert [path.name for path in directory.iterdir()] == [".made-by-nightkeep"]
    finally:
        done.set()
        sweeper.join()
