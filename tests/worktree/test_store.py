"""The rescue store: what is put there is whole, private, told of, and never in the place of anything."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.worktree.runs import contents
from worktree.store import Manifest, Row, Store, read_manifest, write_manifest

ODD_NAMES = ["new\nline", 'quo"te', "bytes \udcff", "-n", "ü", "\x01", "back\\slash"]


def _tree(top: Path) -> Path:
    """Make what is left of a worktree: files of odd names, a link, a fifo, something closed and something empty."""
    (top / "deep").mkdir(parents=True)
    for name in ODD_NAMES:
        (top / name).write_text(f"content of {name!a}")
    (top / "deep" / "program").write_text("x")
    (top / "deep" / "program").chmod(0o751)
    (top / "deep" / "link").symlink_to("nowhere")
    os.mkfifo(top / "deep" / "pipe")
    (top / "empty").mkdir(mode=0o700)
    return top


def _manifest(*rows: Row) -> Manifest:
    path = "/somewhere/widget-issue-7"
    moment = "2026-11-30T01:02:03Z"
    return Manifest(run_id="run-1", branch="issue-7", path=path, head="1" * 40, failed=True, moment=moment, rows=rows)


def _store(tmp_path: Path) -> Store:
    return Store(tmp_path / "git", "run-1")


def test_nothing_is_made_before_something_is_put_there(tmp_path: Path) -> None:
    assert not _store(tmp_path).path.exists()


def test_what_is_taken_is_there_whole_and_for_this_user_alone(tmp_path: Path) -> None:
    tree, modules, store = _tree(tmp_path / "wt"), _tree(tmp_path / "modules"), _store(tmp_path)
    before, inode = contents(tree), tree.stat().st_ino
    store.take(tree, modules, _manifest(Row("deep", "untracked")))
    assert (contents(store.tree), store.tree.stat().st_ino) == (before, inode)
    assert contents(store.modules) == before
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o700
    assert not tree.exists()
    assert not modules.exists()
    assert {path.name for path in store.path.iterdir()} == {"manifest.json", "tree", "modules"}


def test_without_submodules_there_is_no_place_for_them(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.take(_tree(tmp_path / "wt"), None, _manifest())
    assert not store.modules.exists()


def test_opening_it_twice_changes_nothing(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.open()
    store.open()
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o700


def test_the_manifest_says_it_back_whatever_the_names(tmp_path: Path) -> None:
    said = _manifest(*(Row(name, f"why {name}") for name in ODD_NAMES))
    write_manifest(tmp_path, said)
    assert read_manifest(tmp_path) == said
    text = (tmp_path / "manifest.json").read_bytes()
    assert text.isascii()
    assert json.loads(text)["rows"][2] == {"entry": "bytes \udcff", "why": "why bytes \udcff"}
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json"}


@pytest.mark.parametrize("there", ["tree", "modules"])
@pytest.mark.parametrize("what", ["directory", "file", "broken link"])
def test_nothing_is_put_in_the_place_of_anything(tmp_path: Path, there: str, what: str) -> None:
    tree, modules, store = _tree(tmp_path / "wt"), _tree(tmp_path / "modules"), _store(tmp_path)
    store.open()
    write_manifest(store.path, _manifest(Row("first", "untracked")))
    occupied = store.path / there
    match what:
        case "directory":
            occupied.mkdir()
        case "file":
            occupied.write_text("first\n")
        case _:
            occupied.symlink_to("nowhere")
    before = contents(tree), contents(modules), contents(store.path)
    with pytest.raises(FileExistsError, match="holds something already"):
        store.take(tree, modules, _manifest(Row("second", "untracked")))
    assert (contents(tree), contents(modules), contents(store.path)) == before


def test_when_the_tree_cannot_be_taken_its_git_directory_gets_all_back(tmp_path: Path) -> None:
    admin, store = tmp_path / "admin", _store(tmp_path)
    admin.mkdir()
    modules, beside = _tree(admin / "modules"), [_tree(admin / "rebase-merge"), admin / "notes"]
    beside[1].write_text("somebody's\n")
    before = contents(admin)
    with pytest.raises(NotADirectoryError):
        store.take(tmp_path / "missing", modules, _manifest(), {path.name: path for path in beside})
    assert contents(admin) == before
    assert not store.modules.exists()


def test_a_link_in_the_place_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    tree, store = _tree(tmp_path / "wt"), _store(tmp_path)
    (tmp_path / "link").symlink_to(tree)
    with pytest.raises(NotADirectoryError):
        store.take(tmp_path / "link", None, _manifest())
    assert tree.is_dir()


@pytest.mark.parametrize("garbage", ["", "[]", "{}", "{", '{"rows": [1]}', '{"rows": [{"entry": "x"}]}', "null"])
def test_what_is_no_manifest_is_told_so(tmp_path: Path, garbage: str) -> None:
    (tmp_path / "manifest.json").write_text(garbage)
    with pytest.raises(ValueError, match=r"manifest|Expecting"):
        read_manifest(tmp_path)


def test_a_missing_manifest_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_manifest(tmp_path)
