"""What proves itself to be a cache, and what only looks like one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.worktree.runs import contents, create, gone, store_of, stored
from tests.world import World, commit, git
from worktree.caches import is_cache

_CONTENT = {
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool\n",
    "pyvenv.cfg": "home = /usr/bin\nversion = 3.11.7\n",
}

# What the tools make: files, and with an arrow links.
_TAGGED = ("CACHEDIR.TAG", ".gitignore")
_CACHES = {
    "__pycache__": ("a.cpython-311.pyc", "b.pyc"),
    "node_modules": (
        *(".package-lock.json", ".bin/tsc", ".cache/babel/1.json", ".vite/deps/a.js"),
        *("left-pad/package.json", "left-pad/index.js", "@types/node/package.json", "@us/library -> ../../library"),
        *(".pnpm/a@1.0.0/node_modules/a/package.json", ".modules.yaml", "a -> .pnpm/a@1.0.0/node_modules/a"),
    ),
    ".mypy_cache": (*_TAGGED, "3.11/os/__init__.meta.json", "missing_stubs"),
    ".pytest_cache": (*_TAGGED, "README.md", "v/cache/lastfailed"),
    ".ruff_cache": (*_TAGGED, "0.17.6/1234"),
    "target": (*_TAGGED, ".rustc_info.json", "debug/.cargo-lock", "debug/deps/a.d", "release/a"),
    "environment": (
        *(*_TAGGED, "pyvenv.cfg", ".lock", "bin/python -> /usr/bin/python3", "lib64 -> lib"),
        *("lib/python3.11/site-packages/a.py", "share/man/man1/a.1"),
    ),
}

_WORK = [
    *(("__pycache__", "notes.txt"), ("__pycache__", "deep/a.pyc"), ("__pycache__", "c.pyc -> /somewhere")),
    *(("node_modules", "my-patch.js"), ("node_modules", "mine/index.js"), ("node_modules", "@us/notes.md")),
    *(("node_modules", "@us/mine/index.js"), ("node_modules", "note@"), ("node_modules", ".hidden")),
    *((".mypy_cache", "handoff.md"), (".pytest_cache", "notes/a"), (".ruff_cache", "note -> /somewhere")),
    *(("target", "release.md"), ("target", "report/index.html"), ("target", "package.json")),
    *(("environment", "handoff.md"), ("environment", "src/a.py"), ("environment", "lib64@")),
]

_MARKS = [
    *((name, "CACHEDIR.TAG") for name in (".mypy_cache", ".pytest_cache", ".ruff_cache", "target")),
    ("environment", "pyvenv.cfg"),
]

_REPOSITORIES = [
    (".git/HEAD",),
    (".git",),
    (".git -> /somewhere",),
    ("HEAD", "objects/info/packs", "refs/heads/main"),
]

_DEEP = {
    "node_modules": "left-pad/deep",
    ".mypy_cache": "3.11/deep",
    ".pytest_cache": "v/deep",
    ".ruff_cache": "0.17.6/deep",
    "target": "debug/deep",
    "environment": "lib/deep",
}


def _lay(directory: Path, *paths: str) -> None:
    for path in paths:
        name, _, target = path.partition(" -> ")
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if target:
            file.symlink_to(target)
        else:
            file.write_text(_CONTENT.get(file.name, "text\n"))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A directory with each of the caches, as their tools leave them."""
    (tmp_path / "package.json").write_text("{}\n")
    for name, paths in _CACHES.items():
        _lay(tmp_path / name, *paths)
    return tmp_path


@pytest.mark.parametrize("name", _CACHES)
def test_what_a_tool_made_is_a_cache(top: Path, name: str) -> None:
    assert is_cache(top / name)


def test_a_virtual_environment_of_this_python_is_a_cache(tmp_path: Path) -> None:
    made = tmp_path / "scratch"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    assert is_cache(made)
    (made / "handoff.md").write_text("note\n")
    assert not is_cache(made)


@pytest.mark.parametrize(("name", "path"), _WORK)
def test_nothing_is_a_cache_with_something_beside_what_its_tool_makes(top: Path, name: str, path: str) -> None:
    _lay(top / name, path)
    assert not is_cache(top / name)


@pytest.mark.parametrize(("name", "mark"), [*_MARKS, ("environment", "bin/python")])
def test_nothing_is_a_cache_without_the_mark_of_its_tool(top: Path, name: str, mark: str) -> None:
    (top / name / mark).unlink()
    assert not is_cache(top / name)


@pytest.mark.parametrize(("name", "mark"), _MARKS)
def test_nothing_is_a_cache_by_a_mark_that_only_has_the_name(top: Path, name: str, mark: str) -> None:
    (top / name / mark).write_text("Another: 1\n")
    assert not is_cache(top / name)


def test_packages_are_installed_where_a_package_is(top: Path) -> None:
    (top / "package.json").unlink()
    assert not is_cache(top / "node_modules")


def test_a_tag_proves_nothing_about_a_directory_that_no_tool_is_known_to_make(top: Path) -> None:
    (top / ".ruff_cache").rename(top / "scratch")
    assert not is_cache(top / "scratch")


@pytest.mark.parametrize("repository", _REPOSITORIES, ids=["clone", "worktree", "link", "bare"])
@pytest.mark.parametrize("name", _DEEP)
def test_nothing_is_a_cache_that_holds_a_repository(top: Path, name: str, repository: tuple[str, ...]) -> None:
    _lay(top / name / _DEEP[name] / "repository", *repository)
    assert not is_cache(top / name)


@pytest.mark.parametrize("name", _CACHES)
def test_a_link_to_a_cache_is_none(top: Path, name: str) -> None:
    link = top / "links" / name
    link.parent.mkdir()
    (link.parent / "package.json").write_text("{}\n")
    link.symlink_to(top / name)
    assert not is_cache(link)


def test_what_is_no_directory_is_no_cache(tmp_path: Path) -> None:
    _lay(tmp_path, "target")
    assert not is_cache(tmp_path / "target")
    assert not is_cache(tmp_path / "missing")


@pytest.fixture
def package(world: World) -> World:
    """The world, with a package whose caches are ignored."""
    (world.launch / ".gitignore").write_text("".join(f"{name}/\n" for name in _CACHES))
    (world.launch / "package.json").write_text("{}\n")
    commit(world.launch, "package")
    git(world.launch, "push", "-q", "origin", "main")
    return world


def test_what_tools_made_goes_with_the_worktree(package: World) -> None:
    with create(package) as wt:
        for name, paths in _CACHES.items():
            _lay(wt.path / name, *paths)
    assert gone(wt, package)
    assert not store_of(package, wt).exists()


@pytest.mark.parametrize(
    ("name", "work"),
    [("environment", "handoff.md"), (".ruff_cache", "handoff.md"), ("node_modules", "my-patch.js")],
)
def test_work_among_what_a_tool_made_goes_to_the_rescue_store_with_it(package: World, name: str, work: str) -> None:
    with create(package) as wt:
        _lay(wt.path / name, *_CACHES[name], work)
        before = contents(wt.path, name)
    assert gone(wt, package)
    assert contents(stored(package, wt)) == before
