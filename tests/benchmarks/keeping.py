"""Keeping ignored files of a worktree that is taken away, against moving them without a look."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.large import Large, age, create
from tests.benchmarks.measure import Laps, Row, interleaved, more, timed
from tests.world import git

_IGNORED = "scratch"
_FOLDERS, _IN_EACH = 100, 100
_SMALL, _BIG, _CHUNK = 4 << 10, 1 << 30, 1 << 20  # bytes
_WHAT = "clean-up: what 10,000 ignored files and one of 1 GiB add"


def keeping_rows(large: Large, rounds: int) -> list[Row]:
    """The rows for one file system, where what is kept is renamed."""
    kept = large.place / "kept"
    _write(kept)

    def keep() -> float:
        took, store = _clean_up(large, lambda path: kept.rename(path / _IGNORED))
        assert store is not None
        (store / "tree" / _IGNORED).rename(kept)
        return took

    def rename() -> float:
        aside = large.place / "aside"
        aside.mkdir()
        with large.bare_worktree() as path:
            kept.rename(path / _IGNORED)
            took = timed(lambda: _rename_each(path, aside))()
        (aside / _IGNORED).rename(kept)
        aside.rmdir()
        return took

    def link() -> float:
        links = large.place / "links"
        took = timed(lambda: _link_each(kept, links))()
        shutil.rmtree(links)
        return took

    with_them, without, renamed, linked = interleaved(rounds, keep, lambda: _clean_up(large)[0], rename, link)
    shutil.rmtree(kept)
    return [
        more(f"{_WHAT}; `ls-files --directory`, renames", with_them, without, renamed, at_most=3),
        more(f"{_WHAT}; an `os.link` loop", with_them, without, linked, at_most=0.5),
    ]


def across_rows(large: Large, rounds: int) -> list[Row]:
    """The row for a worktree on another file system than its repository, where what is kept is copied."""
    what = f"{_WHAT} across file systems; a copying loop"
    if large.place.stat().st_dev == large.launch.stat().st_dev:
        return [Row(what, "not measured: TMPDIR is on the same file system")]
    kept, copied = large.place / "kept", large.launch.with_name("copied")
    _write(kept)

    def keep() -> float:
        took, store = _clean_up(large, lambda path: _write(path / _IGNORED))
        assert store is not None
        shutil.rmtree(store)
        return took

    def copy() -> float:
        took = timed(lambda: _copy_each(kept, copied))()
        shutil.rmtree(copied)
        return took

    with_them, without, bare = interleaved(rounds, keep, lambda: _clean_up(large)[0], copy)
    shutil.rmtree(kept)
    return [more(what, with_them, without, bare, at_most=1.5)]


def _clean_up(large: Large, fill: Callable[[Path], object] = lambda path: None) -> tuple[float, Path | None]:
    """Take away a worktree with what `fill` puts there; return the seconds, and the place in the rescue store."""
    laps = Laps()
    with create(large.opened(), large.next_branch()) as wt:
        age(wt.path)
        fill(wt.path)
        laps.skip()
    laps.lap()
    assert not wt.ending.kept, wt.ending
    return laps.taken[0], wt.ending.rescued


def _write(top: Path) -> None:
    piece = os.urandom(_CHUNK)
    for folder in range(_FOLDERS):
        (top / str(folder)).mkdir(parents=True)
        for number in range(_IN_EACH):
            (top / str(folder) / str(number)).write_bytes(piece[:_SMALL])
    with (top / "big").open("wb") as file:
        for _ in range(_BIG // _CHUNK):
            file.write(piece)


def _rename_each(path: Path, target: Path) -> None:
    listed = git(path, "ls-files", "-z", "--directory", "--others", "--ignored", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        (path / name).rename(target / name.rstrip("/"))


def _link_each(source: Path, target: Path) -> None:
    for one, other in _pairs(source, target):
        os.link(one, other)


def _copy_each(source: Path, target: Path) -> None:
    for one, other in _pairs(source, target):
        with open(one, "rb") as original, open(other, "wb") as copy:  # noqa: PTH123 - as quick as it can be
            _copy_all(original.fileno(), copy.fileno())


def _copy_all(original: int, copy: int) -> None:
    try:
        while os.copy_file_range(original, copy, _CHUNK):
            pass
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        while os.sendfile(copy, original, None, _CHUNK):
            pass


def _pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Make the directories of `source` at `target`, and yield each file with where it goes."""
    for directory, _, files in os.walk(source):
        there = f"{target}{directory.removeprefix(str(source))}"
        os.mkdir(there)  # noqa: PTH102 - as quick as it can be
        for name in files:
            yield f"{directory}/{name}", f"{there}/{name}"
