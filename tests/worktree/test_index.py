"""Git's index is read as git itself would read it, and what is not understood is no answer."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worktree.runs import contents, create, gone, reasons, stored
from tests.world import World, commit, git
from worktree import Worktree
from worktree.index import Entry, UnreadIndexError, read_index

ODD_NAMES = ["a", "ü", "new\nline", "bytes \udcff", "deep/er/x", "with blank ", "8 bytes!", "tab\t", "x" * 200]


def _repository(top: Path, *options: str) -> Path:
    """Make a repository whose index has files of many names; return its index."""
    git(top.parent, "init", "-q", *options, str(top))
    for name in ODD_NAMES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name[:3])
    (top / "a").chmod(0o755)
    (top / "link").symlink_to("a")
    git(top, "add", "-A")
    return top / ".git" / "index"


def _version(index: Path) -> int:
    found: int = struct.unpack_from(">4sI", index.read_bytes())[1]
    return found


def _seen(path: Path) -> Entry:
    """What the index must say of a file that nobody touched since."""
    status = path.lstat()
    oid = bytes.fromhex(git(path.parent, "hash-object", "--no-filters", "--", path.name))
    mode = 0o120000 if path.is_symlink() else 0o100755 if status.st_mode & 0o100 else 0o100644
    inode = status.st_ino & 0xFFFFFFFF
    return Entry(
        status.st_ctime_ns,
        status.st_mtime_ns,
        inode,
        mode,
        status.st_size,
        oid,
        hidden=False,
    )


@pytest.mark.parametrize(("object_format", "hash_size"), [("sha1", 20), ("sha256", 32)])
@pytest.mark.parametrize("version", [2, 3])
def test_every_entry_is_what_git_saw(tmp_path: Path, object_format: str, hash_size: int, version: int) -> None:
    top = tmp_path / "r"
    index = _repository(top, f"--object-format={object_format}")
    if version == 3:
        (top / "intended").write_text("soon")
        git(top, "add", "--intent-to-add", "intended")
    assert _version(index) == version
    entries = read_index(index, hash_size)
    assert {name: entries[name] for name in [*ODD_NAMES, "link"]} == {
        name: _seen(top / name) for name in [*ODD_NAMES, "link"]
    }
    assert len(entries) == len(ODD_NAMES) + version - 1


@pytest.mark.parametrize(("flag", "version"), [("--assume-unchanged", 2), ("--skip-worktree", 3)])
def test_hidden_flags_are_told(tmp_path: Path, flag: str, version: int) -> None:
    top = tmp_path / "r"
    index = _repository(top)
    git(top, "update-index", flag, "--", "ü", "deep/er/x")
    assert _version(index) == version
    assert {path for path, entry in read_index(index, 20).items() if entry.hidden} == {"ü", "deep/er/x"}
    git(top, "update-index", flag.replace("--", "--no-"), "--", "ü", "deep/er/x")
    assert not any(entry.hidden for entry in read_index(index, 20).values())


@pytest.mark.parametrize("length", [4094, 4095, 4096, 5000])
def test_names_longer_than_their_field_can_say(tmp_path: Path, length: int) -> None:
    index = _repository(tmp_path / "r")
    long = ("d" * 99 + "/") * 60
    paths = [long[: length - 2] + "/" + last for last in "pq"]
    oid = git(tmp_path / "r", "rev-parse", ":a")
    for path in paths:
        git(tmp_path / "r", "update-index", "--add", "--cacheinfo", f"100644,{oid},{path.replace('//', '/x')}")
    listed = git(tmp_path / "r", "ls-files", "-z").removesuffix("\0").split("\0")
    assert list(read_index(index, 20)) == listed
    assert any(len(path) == length for path in listed)


def test_stages_and_submodules_are_entries(tmp_path: Path) -> None:
    index = _repository(tmp_path / "r")
    git(tmp_path / "r", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    assert read_index(index, 20)["lib"].mode == 0o160000


def test_an_empty_index_has_no_entries(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "r")
    git(tmp_path / "r", "read-tree", "--empty")
    assert read_index(tmp_path / "r" / ".git" / "index", 20) == {}


def _shorten(top: Path) -> None:
    git(top, "update-index", "--index-version=4")


def _split(top: Path) -> None:
    git(top, "update-index", "--split-index")


def _sparse(top: Path) -> None:
    git(top, "commit", "-q", "-m", "all")
    git(top, "sparse-checkout", "set", "--sparse-index", "nothing")


@pytest.mark.parametrize("rewrite", [_shorten, _split, _sparse])
def test_other_forms_are_refused(tmp_path: Path, rewrite: object) -> None:
    assert callable(rewrite)
    index = _repository(tmp_path / "r")
    before = index.read_bytes()
    rewrite(tmp_path / "r")
    assert index.read_bytes() != before
    with pytest.raises(UnreadIndexError):
        read_index(index, 20)


def test_version_4_is_not_mistaken_where_only_one_name_is_shortened(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "r")
    (tmp_path / "r" / "name").write_text("x")
    git(tmp_path / "r", "add", "name")
    _shorten(tmp_path / "r")
    with pytest.raises(UnreadIndexError):
        read_index(tmp_path / "r" / ".git" / "index", 20)


def test_a_missing_index_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_index(tmp_path / "index", 20)


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "index")
    with pytest.raises(OSError, match="no regular file"):
        read_index(tmp_path / "index", 20)


def _refused(file: Path, content: bytes) -> bool:
    file.write_bytes(content)
    try:
        read_index(file, 20)
    except UnreadIndexError:
        return True
    return False


def test_an_index_cut_before_its_last_entry_is_refused(tmp_path: Path) -> None:
    whole = _repository(tmp_path / "r").read_bytes()
    last = whole.index(b"\xc3\xbc\0") - 62
    assert [end for end in range(last + 62) if not _refused(tmp_path / "index", whole[:end])] == []


def test_an_index_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = _repository(tmp_path / "r").read_bytes()
    assert [end for end in range(len(whole)) if not _refused(tmp_path / "index", whole[:end])] == []


def test_a_long_name_without_an_end_is_refused(tmp_path: Path) -> None:
    entry = struct.pack(">10I20sH", *[1] * 10, b"\1" * 20, 0x0FFF) + b"x" * 5000
    assert _refused(tmp_path / "index", struct.pack(">4sII", b"DIRC", 2, 1) + entry)


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=200), version=st.integers(0, 5), count=st.integers(0, 2**32 - 1))
def test_garbage_is_never_an_answer(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, version: int, count: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "garbage"
    assert _refused(file, content)
    if count * 62 > len(content):
        assert _refused(file, struct.pack(">4sII", b"DIRC", version, count) + b"\1" * len(content))


def _manage_many(wt: Worktree) -> None:
    git(wt.path, "update-index", "--index-version=4")


def _split_index(wt: Worktree) -> None:
    git(wt.path, "update-index", "--split-index")


def _sparse_index(wt: Worktree) -> None:
    git(wt.path, "sparse-checkout", "set", "--sparse-index", "in")
    assert "out/" in git(wt.path, "ls-files", "--sparse").splitlines()


@pytest.mark.parametrize("fails", [False, True], ids=["ended", "failed"])
@pytest.mark.parametrize("act", [_manage_many, _split_index, _sparse_index])
def test_a_worktree_with_another_form_of_index_is_taken_apart_all_the_same(
    world: World, act: object, *, fails: bool
) -> None:
    assert callable(act)
    for name in ("in", "out"):
        (world.launch / name).mkdir()
        (world.launch / name / "f.txt").write_text(f"{name}\n")
    commit(world.launch, "folders")
    git(world.launch, "push", "-q", "origin", "main")
    with create(world) as wt:
        (wt.path / "n.txt").write_text("the Launch directory has no such file\n")
        commit(wt.path, "n")
        wt.push()
        (wt.path / "in" / "f.txt").write_text("staged\n")
        act(wt)
        git(wt.path, "add", "in")
        (wt.path / "secret.env").write_text("k\n")
        before = contents(wt.path, "in", "secret.env")
        if fails:
            wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    left = ["secret.env"] if fails else ["in", "in/f.txt", "secret.env"]
    assert contents(stored(world, wt)) == {name: before[name] for name in left}
    assert reasons(world, wt).keys() == {name for name in left if "/" not in name}
    if fails:
        assert [world.origin_file("issue-7", f"{name}/f.txt") for name in ("in", "out")] == ["staged", "out"]
