"""Ignored files that a task needs are copied into its worktree, and known again afterwards."""

import itertools
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.worktree.permissions import bound_by_permissions
from tests.world import World, commit, git
from worktree import Interrupted, Interruption
from worktree.git import Git
from worktree.inclusion import Included, include, unchanged

IGNORED = "secret.env\nscratch/\n__pycache__/\n*.local\nconfig/*.json\n:odd\n"
NOT_IGNORED = "git does not ignore it in the worktree, so it would be committed there"
NESTED = "it belongs to a repository of its own"
ODD_NAMES = (":odd", "-n.local", "*.local", " \n\udcff.local", '"ü".local', "a b/[c]\\.local")


@pytest.fixture
def checkout(world: World) -> Path:
    """A new worktree of the clone, on a branch of its own; more than usual is ignored in both."""
    (world.launch / ".gitignore").write_text(IGNORED)
    commit(world.launch, "ignore more")
    path = world.launch.with_name("widget-issue-7")
    git(world.launch, "worktree", "add", "-q", "-b", "issue-7", str(path))
    return path


def put(world: World, *paths: str) -> None:
    """Write files into the Launch directory; each holds its own name."""
    for path in paths:
        (world.launch / path).parent.mkdir(parents=True, exist_ok=True)
        (world.launch / path).write_bytes(os.fsencode(path))


def select(world: World, *patterns: str) -> None:
    (world.launch / ".worktreeinclude").write_text("".join(f"{pattern}\n" for pattern in patterns))


def included(world: World, checkout: Path) -> Included:
    return include(Git(directory=world.launch), world.launch, checkout)


def left(world: World, checkout: Path) -> dict[str, str]:
    return dict(included(world, checkout).left)


# What is selected


def test_without_a_list_nothing_is_copied_and_no_git_is_started(world: World, checkout: Path) -> None:
    put(world, "secret.env")
    missing = Git(directory=world.launch / "nowhere")
    assert include(missing, world.launch, checkout) == Included((), ())
    assert not (checkout / "secret.env").exists()


def test_two_git_commands_are_enough(world: World, checkout: Path) -> None:
    put(world, "secret.env", *(f"scratch/{n}/file" for n in range(20)))
    select(world, "*")
    started = itertools.count()

    def count() -> tuple[str, ...]:
        next(started)
        return ()

    assert len(include(Git(directory=world.launch, sweep=count), world.launch, checkout).paths) == 21
    assert next(started) == 2


SELECTIONS = {
    "a name, at any depth": (["secret.env"], {"secret.env", "scratch/secret.env"}),
    "only at the top": (["/secret.env"], {"secret.env"}),
    "a directory": (["scratch/"], {"scratch/secret.env", "scratch/deep/a.local", "scratch/deep/b.local"}),
    "a negation": (["scratch/deep/*", "!b.local"], {"scratch/deep/a.local"}),
    "a path": (["scratch/deep/b.local"], {"scratch/deep/b.local"}),
    "a comment and blanks": (["# secret.env", "", "config/db.json  "], {"config/db.json"}),
    "nothing that is there": (["*.none"], set()),
}


@pytest.mark.parametrize(("patterns", "expected"), SELECTIONS.values(), ids=SELECTIONS)
def test_patterns_mean_what_they_mean_in_gitignore(
    world: World, checkout: Path, patterns: list[str], expected: set[str]
) -> None:
    put(world, "secret.env", "scratch/secret.env", "scratch/deep/a.local", "scratch/deep/b.local", "config/db.json")
    select(world, *patterns)
    assert included(world, checkout) == Included(tuple(sorted(expected)), ())
    there = git(checkout, "ls-files", "--others", "--ignored", "--exclude-standard").splitlines()
    assert set(there) == expected
    assert all((checkout / path).read_text() == path for path in expected)
    assert not git(checkout, "status", "--porcelain")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names(world: World, checkout: Path, name: str) -> None:
    put(world, name)
    select(world, "*.local", ":odd")
    assert included(world, checkout) == Included((name,), ())
    assert unchanged(world.launch, checkout, [name]) == {name}


def test_the_list_is_taken_as_it_lies_there(world: World, checkout: Path) -> None:
    put(world, "secret.env", "a.local")
    (checkout / ".worktreeinclude").write_text("a.local\n")
    select(world, "secret.env")
    assert included(world, checkout).paths == ("secret.env",)


def test_a_list_that_is_a_link_is_not_read(world: World, checkout: Path) -> None:
    put(world, "secret.env")
    (world.launch / ".worktreeinclude").symlink_to("secret.env")
    assert left(world, checkout) == {".worktreeinclude": "it is no regular file, so it is not read"}


def test_tracked_files_are_no_business_of_the_list(world: World, checkout: Path) -> None:
    (world.launch / "a.txt").write_text("edited\n")
    put(world, "forced.local")
    git(world.launch, "add", "--force", "forced.local")
    git(world.launch, "commit", "-q", "-m", "force")
    git(checkout, "merge", "-q", "main")
    (world.launch / "forced.local").write_text("edited\n")
    select(world, "a.txt", "forced.local")
    assert included(world, checkout) == Included((), ())
    assert (checkout / "a.txt").read_text() == "a\n"


def test_what_a_commit_in_the_worktree_would_take_is_not_copied(world: World, checkout: Path) -> None:
    put(world, "untracked", "here.env")
    (world.launch / ".gitignore").write_text("here.env\n")
    select(world, "untracked", "here.env")
    assert left(world, checkout) == {"untracked": NOT_IGNORED, "here.env": NOT_IGNORED}
    assert not git(checkout, "status", "--porcelain", "--ignored")


def test_a_link_that_only_directories_are_ignored_for_is_not_copied(world: World, checkout: Path) -> None:
    (world.launch / "scratch").symlink_to("..")
    select(world, "scratch")
    assert left(world, checkout) == {"scratch": NOT_IGNORED}


# How it is copied


def test_modes_and_times_are_kept(world: World, checkout: Path) -> None:
    put(world, "secret.env", "scratch/tool", "scratch/private/read-only")
    (world.launch / "secret.env").chmod(0o600)
    (world.launch / "scratch" / "tool").chmod(0o775)
    (world.launch / "scratch" / "private" / "read-only").chmod(0o444)
    (world.launch / "scratch" / "private").chmod(0o500)
    os.utime(world.launch / "secret.env", ns=(1, 1_000_000_000_000_000_001))
    select(world, "secret.env", "scratch/")
    copied = included(world, checkout).paths
    modes = {path: (checkout / path).stat().st_mode & 0o777 for path in (*copied, "scratch/private")}
    assert modes == {
        "secret.env": 0o600,
        "scratch/tool": 0o775,
        "scratch/private/read-only": 0o444,
        "scratch/private": 0o700,  # a directory from which nothing can be removed would outlive the worktree
    }
    assert (checkout / "secret.env").stat().st_mtime_ns == 1_000_000_000_000_000_001


def test_links_are_copied_as_links(world: World, checkout: Path) -> None:
    put(world, "scratch/deep/file")
    for name, target in (("gone", "nowhere"), ("up", "../.."), ("far", "/etc"), ("deep2", "deep")):
        (world.launch / "scratch" / name).symlink_to(target)
    select(world, "scratch/")
    assert included(world, checkout).paths == tuple(f"scratch/{n}" for n in ("deep/file", "deep2", "far", "gone", "up"))
    assert {path.name: str(path.readlink()) for path in (checkout / "scratch").iterdir() if path.is_symlink()} == {
        "gone": "nowhere",
        "up": "../..",
        "far": "/etc",
        "deep2": "deep",
    }


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A directory on another file system than the tests'."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        pytest.skip("there is no second file system to write to")
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        yield Path(directory)


def test_a_worktree_on_another_file_system(world: World, elsewhere: Path) -> None:
    content = os.urandom(3_000_001)
    (world.launch / "secret.env").write_bytes(content)
    git(world.launch, "worktree", "add", "-q", str(elsewhere / "wt"))
    select(world, "secret.env")
    assert included(world, elsewhere / "wt").paths == ("secret.env",)
    assert (elsewhere / "wt" / "secret.env").read_bytes() == content
    assert unchanged(world.launch, elsewhere / "wt", ["secret.env"]) == {"secret.env"}


# What stays away


def _file(checkout: Path) -> None:
    (checkout / "scratch").mkdir()
    (checkout / "scratch" / "x").write_text("theirs\n")


def _dangling_link(checkout: Path) -> None:
    (checkout / "scratch").mkdir()
    (checkout / "scratch" / "x").symlink_to("../../outside")


def _directory(checkout: Path) -> None:
    (checkout / "scratch" / "x").mkdir(parents=True)


def _link_in_the_way(checkout: Path) -> None:
    outside = checkout.with_name("outside")
    outside.mkdir()
    (checkout / "scratch").symlink_to(outside)


def _file_in_the_way(checkout: Path) -> None:
    (checkout / "scratch").write_text("theirs\n")


@pytest.mark.parametrize("occupy", [_file, _dangling_link, _directory, _link_in_the_way, _file_in_the_way])
def test_what_is_there_is_neither_overwritten_nor_followed(
    world: World, checkout: Path, occupy: Callable[[Path], None]
) -> None:
    put(world, "scratch/x", "secret.env")
    select(world, "scratch/", "secret.env")
    occupy(checkout)
    before = sorted((path, path.is_symlink() or path.is_dir() or path.read_text()) for path in checkout.rglob("s*/**"))
    found = included(world, checkout)
    assert (found.paths, [path for path, _ in found.left]) == (("secret.env",), ["scratch/x"])
    assert found.left[0][1] in {"something is there already", "scratch is no directory in the worktree"}
    after = sorted((path, path.is_symlink() or path.is_dir() or path.read_text()) for path in checkout.rglob("s*/**"))
    assert before == after
    outside = checkout.with_name("outside")
    assert not outside.exists() or not list(outside.iterdir())


def test_fifos_are_passed_over(world: World, checkout: Path) -> None:
    put(world, "scratch/file")
    os.mkfifo(world.launch / "scratch" / "pipe")
    os.mkfifo(world.launch / "secret.env")
    select(world, "scratch/", "secret.env")
    assert included(world, checkout) == Included(("scratch/file",), ())


def _clone(world: World, path: Path) -> None:
    git(world.launch, "clone", "-q", str(world.origin), str(path))


def _empty_repository(world: World, path: Path) -> None:
    git(world.launch, "init", "-q", str(path))
    (path / "file").write_text("x\n")


def _worktree(world: World, path: Path) -> None:
    git(world.launch, "worktree", "add", "-q", "--detach", str(path))


@pytest.mark.parametrize("make", [_clone, _empty_repository, _worktree])
def test_repositories_of_their_own_are_named_and_not_copied(
    world: World, checkout: Path, make: Callable[[World, Path], None]
) -> None:
    put(world, "scratch/file")
    make(world, world.launch / "scratch" / "nested")
    select(world, "scratch/")
    assert included(world, checkout) == Included(("scratch/file",), (("scratch/nested/", NESTED),))
    assert not (checkout / "scratch" / "nested").exists()


def test_nothing_is_copied_out_of_a_repository_that_git_does_not_know_any_more(world: World, checkout: Path) -> None:
    put(world, "scratch/broken/deep/file")
    (world.launch / "scratch" / "broken" / ".git").write_text("gitdir: /nowhere\n")
    select(world, "scratch/")
    assert set(left(world, checkout).values()) == {NESTED}
    assert not (checkout / "scratch" / "broken").exists()


def test_a_worktree_inside_the_launch_directory_is_not_copied_into_itself(world: World, checkout: Path) -> None:
    inside = world.launch / "scratch" / "wt"
    put(world, "scratch/file")
    git(world.launch, "worktree", "add", "-q", "--detach", str(inside))
    select(world, "scratch/")
    assert included(world, inside) == Included(("scratch/file",), (("scratch/wt/", NESTED),))
    assert not (inside / "scratch" / "wt").exists()


def test_nothing_is_copied_into_a_submodule(world: World, checkout: Path) -> None:
    put(world, "scratch/sub/a.local")
    git(checkout, "update-index", "--add", "--cacheinfo", f"160000,{git(checkout, 'rev-parse', 'HEAD')},scratch/sub")
    select(world, "scratch/")
    assert included(world, checkout) == Included((), ())


def test_a_tracked_file_outside_a_sparse_checkout_is_not_put_back(world: World, checkout: Path) -> None:
    put(world, "out/forced.local")
    (checkout / "out").mkdir()
    (checkout / "out" / "forced.local").write_text("tracked\n")
    git(checkout, "add", "--force", "out/forced.local")
    git(checkout, "commit", "-q", "-m", "force")
    git(checkout, "sparse-checkout", "set", "in")
    select(world, "*.local")
    assert included(world, checkout) == Included((), ())
    assert not (checkout / "out").exists()


def test_an_unreadable_file_is_named(world: World, checkout: Path) -> None:
    put(world, "a.local", "secret.env")
    (world.launch / "a.local").chmod(0)
    select(world, "a.local", "secret.env")
    found = bound_by_permissions(lambda: included(world, checkout))
    assert found == Included(("secret.env",), (("a.local", "Permission denied"),))
    assert not (checkout / "a.local").exists()


def test_a_recorded_signal_stops_it(world: World, checkout: Path) -> None:
    put(world, "secret.env")
    select(world, "secret.env")
    interruption = Interruption()
    interruption.record(signal.SIGTERM)
    git_view = Git(directory=world.launch, interruption=interruption)
    with pytest.raises(Interrupted):
        include(git_view, world.launch, checkout)
    assert not (checkout / "secret.env").exists()
    assert include(git_view.completing(), world.launch, checkout).paths == ("secret.env",)


def test_a_signal_in_the_middle_of_a_file_leaves_no_part_of_it(world: World, checkout: Path) -> None:
    put(world, "scratch/big", "scratch/a")
    os.truncate(world.launch / "scratch" / "big", 1 << 30)
    select(world, "scratch/")
    interruption = Interruption()

    def record_when_it_is_begun() -> None:
        while not (checkout / "scratch" / "big").exists():
            time.sleep(0.001)
        interruption.record(signal.SIGTERM)

    with ThreadPoolExecutor(1) as thread:
        watching = thread.submit(record_when_it_is_begun)
        with pytest.raises(Interrupted):
            include(Git(directory=world.launch, interruption=interruption), world.launch, checkout)
        watching.result()
    assert [path.name for path in (checkout / "scratch").iterdir()] == ["a"]


# What is still the same


def _edit(launch: Path, checkout: Path) -> None:
    (checkout / "scratch" / "deep" / "file").write_text("x" * len("scratch/deep/file"))


def _append(launch: Path, checkout: Path) -> None:
    with (checkout / "scratch" / "deep" / "file").open("a") as file:
        file.write("x")


def _edit_there(launch: Path, checkout: Path) -> None:
    (launch / "scratch" / "deep" / "file").write_text("x" * len("scratch/deep/file"))


def _chmod(launch: Path, checkout: Path) -> None:
    (checkout / "scratch" / "deep" / "file").chmod(0o755)


def _remove_there(launch: Path, checkout: Path) -> None:
    (launch / "scratch" / "deep" / "file").unlink()


def _fifo_there(launch: Path, checkout: Path) -> None:
    _remove_there(launch, checkout)
    os.mkfifo(launch / "scratch" / "deep" / "file")


def _fifo_on_both_sides(launch: Path, checkout: Path) -> None:
    for tree in (launch, checkout):
        (tree / "scratch" / "deep" / "file").unlink()
        os.mkfifo(tree / "scratch" / "deep" / "file")


def _link_to_the_file(launch: Path, checkout: Path) -> None:
    _remove_there(launch, checkout)
    (launch / "scratch" / "deep" / "file").symlink_to(checkout / "scratch" / "deep" / "file")


def _link_to_the_directory(launch: Path, checkout: Path) -> None:
    (launch / "scratch").rename(launch / "moved")
    (launch / "scratch").symlink_to(checkout / "scratch")


def _link_to_a_copy(launch: Path, checkout: Path) -> None:
    (launch / "scratch").rename(launch / "moved")
    (launch / "scratch").symlink_to("moved")


def _link_in_the_worktree(launch: Path, checkout: Path) -> None:
    (checkout / "scratch" / "deep").rename(checkout / "moved")
    (checkout / "scratch" / "deep").symlink_to(checkout / "moved")


def _one_file(launch: Path, checkout: Path) -> None:
    _remove_there(launch, checkout)
    (launch / "scratch" / "deep" / "file").hardlink_to(checkout / "scratch" / "deep" / "file")


CHANGES = [
    _edit,
    _append,
    _edit_there,
    _chmod,
    _remove_there,
    _fifo_there,
    _fifo_on_both_sides,
    _link_to_the_file,
    _link_to_the_directory,
    _link_to_a_copy,
    _link_in_the_worktree,
    _one_file,
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_on_either_side_is_not_the_same(
    world: World, checkout: Path, change: Callable[[Path, Path], None]
) -> None:
    put(world, "scratch/deep/file", "secret.env")
    (world.launch / "a.local").symlink_to("secret.env")
    select(world, "scratch/", "secret.env", "*.local")
    paths = included(world, checkout).paths
    assert unchanged(world.launch, checkout, paths) == {"a.local", "scratch/deep/file", "secret.env"}
    change(world.launch, checkout)
    assert unchanged(world.launch, checkout, paths) == {"a.local", "secret.env"}


def test_a_link_is_the_same_by_its_target(world: World, checkout: Path) -> None:
    put(world, "secret.env")
    (world.launch / "a.local").symlink_to("secret.env")
    (checkout / "a.local").symlink_to("nowhere.en")
    assert unchanged(world.launch, checkout, ["a.local"]) == set()


def test_a_difference_far_into_a_file_is_seen(world: World, checkout: Path) -> None:
    content = bytes(3_000_000)
    (world.launch / "secret.env").write_bytes(content)
    (checkout / "secret.env").write_bytes(content)
    assert unchanged(world.launch, checkout, ["secret.env"]) == {"secret.env"}
    (checkout / "secret.env").write_bytes(content[:-1] + b"x")
    assert unchanged(world.launch, checkout, ["secret.env"]) == set()


def test_what_cannot_be_found_is_not_the_same(world: World, checkout: Path) -> None:
    put(world, "scratch/x")
    assert unchanged(world.launch, checkout, ["scratch/x", "none/y", "a.none", "a.txt"]) == {"a.txt"}
    assert unchanged(world.launch, checkout.with_name("gone"), ["a.txt"]) == set()
