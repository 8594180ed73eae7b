"""What git refuses to stage, or must not stage, stops nothing else, and is named."""

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from tests.worktree.runs import create, gone, names_on_origin, reasons, stored
from tests.world import World, commit, git
from worktree.errors import GitError
from worktree.files import list_files, stage_all
from worktree.git import Git, Limits

LONG = "x" * 200


def put(top: Path, path: str, content: str = "made\n") -> str:
    """Write a file and return its path."""
    (top / path).parent.mkdir(parents=True, exist_ok=True)
    (top / path).write_text(content)
    return path


def staged(top: Path) -> set[str]:
    """Return the paths that are in the index."""
    return set(git(top, "ls-files", "-z").split("\0")) - {""}


def stage(top: Path, held_back: Collection[str] = (), limits: Limits | None = None) -> dict[str, str]:
    here = Git(directory=top, limits=limits or Limits(lock=0.3))
    return stage_all(here, list_files(here, top), top, lambda paths: {p: "held back" for p in paths if p in held_back})


def break_filter(top: Path, pattern: str) -> None:
    """Have files of that kind go through a program that is not there: git gives up at the first of them."""
    git(top, "config", "filter.gone.clean", "no-such-program-anywhere")
    git(top, "config", "filter.gone.required", "true")
    put(top, ".gitattributes", f"{pattern} filter=gone\n")


def _file(name: str) -> Callable[[Path], str]:
    return lambda top: put(top, name)


def _link(top: Path) -> str:
    (top / ".gitmodules").symlink_to("/etc/hostname")
    return ".gitmodules"


REFUSED = {
    "a short name of git's directory": _file("git~1"),
    "another case": _file(".GIT/x"),
    "another case, below": _file("sub/.Git/x"),
    "a link": _link,
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_name_stops_no_failed_run(world: World, name: str) -> None:
    with create(world) as wt:
        path = REFUSED[name](wt.path)
        put(wt.path, "made.txt")
        (wt.path / "b.txt").unlink()
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "made.txt"}
    assert ("left out of the commit", f"{path}: invalid path") in wt.ending.places
    assert (stored(world, wt) / path).lstat()
    assert reasons(world, wt).keys() == {path.split("/")[0]}


def test_a_refused_name_stops_no_session_that_ended_well(world: World) -> None:
    with create(world) as wt:
        put(wt.path, "git~1")
        put(wt.path, "made.txt")
        assert wt.settle("Make it") == ("git~1",)
        wt.push()
    assert gone(wt, world)
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "b.txt", "made.txt"}


def test_a_filter_that_fails_holds_back_its_files_alone(world: World) -> None:
    break_filter(world.launch, "*.bin")
    refused = {put(world.launch, f"sub{number}/x.bin"): "clean filter 'gone' failed" for number in range(2)}
    made = {put(world.launch, f"sub{number}/{name}.txt") for number in range(3) for name in "abc"}
    (world.launch / "b.txt").unlink()
    assert stage(world.launch) == refused
    assert staged(world.launch) == {".gitattributes", ".gitignore", "a.txt", *made}


def test_a_filter_that_fails_for_the_only_file_is_no_error(world: World) -> None:
    break_filter(world.launch, "*.bin")
    commit(world.launch, "attributes")
    path = put(world.launch, "x.bin")
    assert stage(world.launch) == {path: "clean filter 'gone' failed"}


def test_of_very_many_refused_ones_not_each_is_tried(world: World) -> None:
    """Some that lie near them may be left out as well."""
    break_filter(world.launch, "*.bin")
    refused = {put(world.launch, f"z/{number:03}.bin") for number in range(200)}
    made = {put(world.launch, f"{number:03}.txt") for number in range(200)}
    left = stage(world.launch)
    assert left.keys() >= refused
    assert "it could not be staged" in left.values()
    assert len(left.keys() - refused) < 10
    assert staged(world.launch) >= made - left.keys()


def test_what_is_held_back_stays_so_in_each_piece(world: World) -> None:
    """The name of a file that was deleted is now that of a directory: it stands for all that is in there."""
    break_filter(world.launch, "*.bin")
    put(world.launch, "x.bin")
    (world.launch / "b.txt").unlink()
    secret, beside = (put(world.launch, f"b.txt/{name}") for name in ("secret", "beside"))
    assert stage(world.launch, [secret]) == {secret: "held back", "x.bin": "clean filter 'gone' failed"}
    assert staged(world.launch) == {".gitattributes", ".gitignore", "a.txt", beside}


@pytest.mark.parametrize("filtered", [False, True])
def test_where_a_link_leads_is_not_looked_at(world: World, tmp_path: Path, *, filtered: bool) -> None:
    put(world.launch, "sub/s")
    commit(world.launch, "sub")
    put(tmp_path, "elsewhere/s", "not ours\n")
    (world.launch / "sub" / "s").unlink()
    (world.launch / "sub").rmdir()
    (world.launch / "sub").symlink_to(tmp_path / "elsewhere")
    if filtered:
        break_filter(world.launch, "*.bin")
        put(world.launch, "x.bin")
    assert stage(world.launch, ["sub/s"]).keys() == ({"x.bin"} if filtered else set())
    assert "sub" in staged(world.launch)
    assert "sub/s" not in staged(world.launch)


def test_an_index_that_cannot_be_written_is_an_error(world: World) -> None:
    put(world.launch, "made.txt")
    (world.launch / ".git" / "index.lock").touch()
    with pytest.raises(GitError, match=r"git update-index .*index\.lock"):
        stage(world.launch)


def test_more_is_held_back_than_an_argument_list_holds(world: World) -> None:
    held_back = {put(world.launch, f"{LONG}/{LONG}/{LONG}/{LONG}/{LONG}{number}") for number in range(2500)}
    made = put(world.launch, "made.txt")
    assert stage(world.launch, held_back) == dict.fromkeys(held_back, "held back")
    assert made in staged(world.launch)
    assert not staged(world.launch) & held_back


ODD = ["two\nlines", "-n", " lead", '"quoted"', "'", ":(top)x", ":x", "*", "a?", "[ab]", "back\\slash", "caf\udce9"]


def test_odd_names_are_held_back_as_they_are_and_nothing_else(world: World) -> None:
    held_back = {put(world.launch, f"{path}{name}") for path in ("", "sub/") for name in ODD}
    made = {put(world.launch, name) for name in ("two", "lines", "x", "quoted", "ab", "a", "b", "sub/ab")}
    assert stage(world.launch, held_back).keys() == held_back
    assert staged(world.launch) == {".gitignore", "a.txt", "b.txt", *made}


def test_odd_names_are_staged_in_pieces_too(world: World) -> None:
    break_filter(world.launch, "*.bin")
    put(world.launch, "x.bin")
    made = {put(world.launch, f"{path}{name}") for path in ("", "sub/") for name in ODD}
    assert stage(world.launch).keys() == {"x.bin"}
    assert staged(world.launch) == {".gitattributes", ".gitignore", "a.txt", "b.txt", *made}


def test_the_reason_does_not_tell_the_name(world: World) -> None:
    """A name can hold a secret of a shape that only screening knows."""
    path = put(world.launch, "gl" + "pat-" + LONG[:20] + "/.GIT/x")
    assert stage(world.launch) == {path: "invalid path"}
