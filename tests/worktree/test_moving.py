"""A directory comes from one file system to another as it is, or stays where it is."""

import hashlib
import os
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.worktree.permissions import bound_by_permissions
from worktree.moving import LeftBehindError, move

_SHARED_MEMORY = Path("/dev/shm")
_MTIME = 1_600_000_000_123_456_789
_MOVE = (
    "import sys; from pathlib import Path; from worktree.moving import move; move(Path(sys.argv[1]), Path(sys.argv[2]))"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system than `tmp_path`."""
    if _SHARED_MEMORY.is_dir() and _SHARED_MEMORY.stat().st_dev != tmp_path.stat().st_dev:
        directory = Path(tempfile.mkdtemp(dir=_SHARED_MEMORY))
        yield directory
        shutil.rmtree(directory)
    elif os.geteuid() == 0:
        with _mounted(tmp_path / "elsewhere", "512m") as directory:
            yield directory
    else:
        pytest.fail("these tests need two file systems: put the temporary directory on another one than /dev/shm")


@contextmanager
def _mounted(directory: Path, size: str) -> Iterator[Path]:
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def _grow(top: Path) -> Path:
    """Make a directory with an entry of each kind in it, and return it."""
    (top / "deep" / "er").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "deep" / "plain.txt").write_text("plain\n")
    (top / "deep" / "er" / "-n \n\udcff").write_bytes(b"odd\0name")
    (top / "nothing").touch()
    os.link(top / "deep" / "plain.txt", top / "second name")
    (top / "dangling").symlink_to("no/where")
    (top / "to a directory").symlink_to("deep")
    os.mkfifo(top / "fifo", 0o640)
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(os.path.relpath(top / "socket"))
    _make_sparse(top / "sparse")
    for name, mode in {"deep/er/-n \n\udcff": 0o600, "nothing": 0o4755, "deep/er": 0o555, "empty": 0o1777}.items():
        (top / name).chmod(mode)
    for path in sorted([*top.rglob("*"), top], reverse=True):
        os.utime(path, ns=(_MTIME, _MTIME + len(path.name)), follow_symlinks=False)
    return top


def _make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        for start in (5 << 20, 40 << 20):
            file.seek(start)
            file.write(b"island")
        file.truncate(64 << 20)


def _picture(top: Path) -> dict[str, tuple[object, ...]]:
    """Return all that tells one tree from another: by path the status, what is in it, and its other names."""
    paths = [top, *top.rglob("*")]
    names: dict[int, list[str]] = {}
    for path in paths:
        names.setdefault(path.lstat().st_ino, []).append(str(path.relative_to(top)))
    return {str(path.relative_to(top)): (*_look(path), sorted(names[path.lstat().st_ino])) for path in paths}


def _look(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    content: str | None = None
    if stat.S_ISREG(status.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    return status.st_mode, status.st_mtime_ns, status.st_uid, status.st_gid, content


def _partial(target: Path) -> Path:
    return target.with_name(f"{target.name}.partial")


def _untouched(source: Path, before: dict[str, tuple[object, ...]], target: Path) -> bool:
    return _picture(source) == before and not os.path.lexists(target) and not os.path.lexists(_partial(target))


def _start(source: Path, target: Path, before: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-c", _MOVE, str(source), str(target)]
    return subprocess.Popen(command, preexec_fn=before, stderr=subprocess.PIPE, text=True)


def _fill(top: Path, directories: int) -> None:
    for number in range(directories):
        (top / f"d{number}").mkdir(parents=True)
        for file in range(50):
            (top / f"d{number}" / f"f{file}").write_text(f"{number} {file}\n")


def test_a_directory_on_the_same_file_system_is_renamed(tmp_path: Path) -> None:
    source = _grow(tmp_path / "source")
    before, inode = _picture(source), source.stat().st_ino
    move(source, tmp_path / "target")
    assert (_picture(tmp_path / "target"), (tmp_path / "target").stat().st_ino) == (before, inode)
    assert not source.exists()


def test_a_directory_comes_to_another_file_system_as_it_is(tmp_path: Path, elsewhere: Path) -> None:
    source = _grow(tmp_path / "source")
    before = _picture(source)
    move(source, elsewhere / "target")
    assert _picture(elsewhere / "target") == before
    assert (elsewhere / "target" / "sparse").stat().st_blocks * 512 < 1 << 20
    assert not source.exists()
    assert list(elsewhere.iterdir()) == [elsewhere / "target"]


def test_a_directory_comes_back(tmp_path: Path, elsewhere: Path) -> None:
    source = _grow(elsewhere / "source")
    before = _picture(source)
    move(source, tmp_path / "target")
    move(tmp_path / "target", source)
    assert _picture(source) == before
    assert not (tmp_path / "target").exists()


def test_a_directory_that_may_not_be_written_in_is_moved_as_well(tmp_path: Path, elsewhere: Path) -> None:
    source = _grow(tmp_path / "source")
    source.chmod(0o555)
    before = _picture(source)
    bound_by_permissions(lambda: move(source, elsewhere / "target"))
    assert _picture(elsewhere / "target") == before
    assert not source.exists()


def test_extended_attributes_are_kept(tmp_path: Path, elsewhere: Path) -> None:
    source = _grow(tmp_path / "source")
    for path in (source, source / "deep" / "plain.txt"):
        os.setxattr(path, "user.nightkeep", b"kept\0")
    move(source, elsewhere / "target")
    for path in (elsewhere / "target", elsewhere / "target" / "deep" / "plain.txt"):
        assert os.getxattr(path, "user.nightkeep") == b"kept\0"


@needs_root
def test_root_keeps_the_owners(tmp_path: Path, elsewhere: Path) -> None:
    source = _grow(tmp_path / "source")
    for number, path in enumerate([source, *source.rglob("*")]):
        os.chown(path, 1000 + number % 2, 1002, follow_symlinks=False)
    before = _picture(source)
    move(source, elsewhere / "target")
    assert _picture(elsewhere / "target") == before


def test_a_tree_may_be_deeper_than_a_path_can_say(tmp_path: Path, elsewhere: Path) -> None:
    source, target = tmp_path / "source", elsewhere / "target"
    for top in (source, _partial(target)):
        top.mkdir()
        _descend(top, lambda name, directory: os.mkdir(name, dir_fd=directory))
    move(source, target)
    assert list(tmp_path.glob("source")) + list(elsewhere.iterdir()) == [target]
    _descend(target, lambda name, directory: os.stat(name, dir_fd=directory))


def _descend(top: Path, act: Callable[[str, int], object]) -> None:
    """Go down into a directory that no path is long enough for, and do something on each step."""
    name = "deeper" * 40
    descriptor = os.open(top, os.O_RDONLY)
    for _ in range(20):
        act(name, descriptor)
        above, descriptor = descriptor, os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(above)
    os.close(descriptor)


_PLACE: dict[str, Callable[[Path], None]] = {
    "file": Path.touch,
    "empty directory": Path.mkdir,
    "dangling link": lambda path: path.symlink_to("no/where"),
}


@pytest.mark.parametrize("place", ["same", "other"])
@pytest.mark.parametrize("kind", _PLACE)
def test_nothing_is_replaced(tmp_path: Path, elsewhere: Path, place: str, kind: str) -> None:
    source, target = _grow(tmp_path / "source"), (tmp_path if place == "same" else elsewhere) / "target"
    _PLACE[kind](target)
    before, there = _picture(source), target.lstat()
    with pytest.raises(FileExistsError):
        move(source, target)
    assert (_picture(source), target.lstat()) == (before, there)
    assert not _partial(target).exists()


@pytest.mark.parametrize("place", ["same", "other"])
def test_a_link_to_a_directory_is_not_followed(tmp_path: Path, elsewhere: Path, place: str) -> None:
    source, target = _grow(tmp_path / "source"), (tmp_path if place == "same" else elsewhere) / "target"
    before = _picture(source)
    (tmp_path / "link").symlink_to(source)
    with pytest.raises(NotADirectoryError):
        move(tmp_path / "link", target)
    assert _untouched(source, before, target)


@pytest.mark.parametrize("path", ["deep", "deep/plain.txt"])
def test_what_cannot_be_read_stays_with_all_the_rest(tmp_path: Path, elsewhere: Path, path: str) -> None:
    source, target = _grow(tmp_path / "source"), elsewhere / "target"
    (source / path).chmod(0)
    before = _picture(source)
    with pytest.raises(PermissionError):
        bound_by_permissions(lambda: move(source, target))
    assert _untouched(source, before, target)


@needs_root
def test_what_is_mounted_inside_is_not_emptied(tmp_path: Path, elsewhere: Path) -> None:
    source, target = _grow(tmp_path / "source"), elsewhere / "target"
    with _mounted(source / "mounted", "1m") as mounted:
        (mounted / "theirs.txt").write_text("theirs\n")
        before = _picture(source)
        with pytest.raises(OSError, match="mounted is mounted there"):
            move(source, target)
        assert _untouched(source, before, target)


@needs_root
def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    source = _grow(tmp_path / "source")
    (source / "large").write_bytes(os.urandom(8 << 20))
    before = _picture(source)
    with _mounted(tmp_path / "small", "4m") as small:
        with pytest.raises(OSError, match="No space left"):
            move(source, small / "target")
        assert _untouched(source, before, small / "target")


def test_a_limit_on_files_changes_nothing(tmp_path: Path, elsewhere: Path) -> None:
    source, target = _grow(tmp_path / "source"), elsewhere / "target"
    (source / "large").write_bytes(os.urandom(8 << 20))
    before = _picture(source)
    child = _start(source, target, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20)))
    assert "File too large" in child.communicate()[1]
    assert child.returncode == 1
    assert _untouched(source, before, target)


def test_nothing_is_open_to_others_while_it_is_copied(tmp_path: Path, elsewhere: Path) -> None:
    source, target = tmp_path / "source", elsewhere / "target"
    _fill(source, 20)
    child = _start(source, target)
    seen = set()
    while child.poll() is None:
        with suppress(FileNotFoundError):
            seen.add(stat.S_IMODE(_partial(target).stat().st_mode))
    assert child.communicate()[1] == ""
    assert 0o700 in seen
    assert stat.S_IMODE(target.stat().st_mode) == 0o755


def test_what_is_written_while_it_is_moved_stays_and_is_named(tmp_path: Path, elsewhere: Path) -> None:
    source, target = tmp_path / "source", elsewhere / "target"
    _fill(source, 60)
    (source / "edited.txt").write_text("early\n")
    child = _start(source, target)
    while not (_partial(target) / "edited.txt").exists():
        assert child.poll() is None
    child.send_signal(signal.SIGSTOP)
    (source / "edited.txt").write_text("later\n")
    (source / "new.txt").write_text("new\n")
    assert not target.exists(), "the copy was quicker than this test"
    child.send_signal(signal.SIGCONT)
    said = child.communicate()[1]
    assert f"LeftBehindError: {target} is whole, but {source} still holds edited.txt, new.txt" in said
    assert [path.read_text() for path in sorted(source.iterdir())] == ["later\n", "new\n"]
    assert len(list(target.rglob("f*"))) == 60 * 50


def test_what_cannot_be_deleted_stays_and_is_named(tmp_path: Path, elsewhere: Path) -> None:
    source, target = _grow(tmp_path / "held" / "source"), elsewhere / "target"
    before = _picture(source)
    source.parent.chmod(0o555)
    with pytest.raises(LeftBehindError, match="still holds itself"):
        bound_by_permissions(lambda: move(source, target))
    source.parent.chmod(0o755)
    assert _picture(target) == before
    assert not list(source.iterdir())


def test_after_a_kill_everything_is_there_and_a_second_attempt_works(tmp_path: Path, elsewhere: Path) -> None:
    moments = random.Random("kill -9")
    source, target = tmp_path / "source", elsewhere / "target"
    _fill(source, 20)
    (source / "d0" / "closed").mkdir(mode=0o555)
    before = _picture(source)
    interrupted = 0
    for moment in (0, *(moments.uniform(0, 0.1) for _ in range(5))):
        child = _start(source, target)
        while not _partial(target).exists():
            assert child.poll() is None
        time.sleep(moment)
        child.kill()
        child.communicate()
        if not target.exists():
            assert _picture(source) == before
            interrupted += 1
            move(source, target)
        assert _picture(target) == before
        assert not _partial(target).exists()
        shutil.rmtree(source, ignore_errors=True)
        move(target, source)
    assert interrupted
