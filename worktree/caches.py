"""Directories that prove by themselves that they can be made again."""

import os
import re
from pathlib import Path

from worktree.descent import each_below
from worktree.reading import read_regular

_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"  # https://bford.info/cachedir/
_TAGGED = r"CACHEDIR\.TAG|\.gitignore|"

# What their tools make at the top of such directories, written as `_listed` does: the rest is somebody's work.
_MADE = {
    "__pycache__": r".+\.pyc",
    "node_modules": r".+/@|\.(bin|cache|pnpm|store|vite|vite-temp)/"
    r"|\.package-lock\.json|\.modules\.yaml|\.pnpm-workspace-state(-v\d+)?\.json|\.yarn-integrity|\.yarn-state\.yml",
    ".mypy_cache": _TAGGED + r"\d+\.\d+/|missing_stubs",
    ".pytest_cache": _TAGGED + r"README\.md|[dv]/",
    ".ruff_cache": _TAGGED + r"\d+\.\d+\.\d+/",
    "target": _TAGGED + r"(debug|release|doc|package|tmp)/"
    r"|\.(rustc_info|rustdoc_fingerprint|future-incompat-report)\.json",
}
# A virtual environment has any name.
_ENVIRONMENT = _TAGGED + r"pyvenv\.cfg|\.lock|lib64/@|(bin|include|lib|lib64|share|etc|man|Scripts|Include|Lib)/"


def is_cache(directory: Path) -> bool:
    """Whether `directory` (not a link) is bytecode, installed packages, a virtual environment or a tagged cache.

    It is none with anything at its top that its tool does not make there, or with a repository anywhere in it: a mark
    proves no more than what was made with it. Only looks; whatever cannot be told means no.
    """
    try:
        return not directory.is_symlink() and _is_made(directory) and not _holds_repository(directory)
    except OSError:
        return False


def _is_made(directory: Path) -> bool:
    made = re.compile(_MADE.get(directory.name, _ENVIRONMENT))
    others = [name for name in _listed(directory) if not made.fullmatch(name)]
    if directory.name == "node_modules":
        return (directory.parent / "package.json").is_file() and all(_is_package(directory / name) for name in others)
    return not others and _is_marked(directory)


def _is_marked(directory: Path) -> bool:
    if directory.name == "__pycache__":
        return True
    if directory.name in _MADE:
        return read_regular(directory / "CACHEDIR.TAG").startswith(_SIGNATURE)
    python = os.path.lexists(directory / "bin" / "python") or os.path.lexists(directory / "Scripts" / "python.exe")
    return python and re.search(rb"^home *=", read_regular(directory / "pyvenv.cfg"), re.MULTILINE) is not None


def _is_package(path: Path) -> bool:
    """Whether that is an installed package, or a scope with packages and links to them alone."""
    if path.name.startswith("@"):
        return all(name.endswith("/@") or (path / name / "package.json").is_file() for name in _listed(path))
    return (path / "package.json").is_file()


def _listed(directory: Path) -> list[str]:
    """Return the names in a directory: those of directories end in "/", of links in "/@", of devices in "/?"."""
    with os.scandir(directory) as entries:
        return [entry.name + _kind(entry) for entry in entries]


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "/@"
    if entry.is_dir():
        return "/"
    return "" if entry.is_file() else "/?"


def _holds_repository(directory: Path) -> bool:
    names = (found.keys() for found in each_below(directory))
    return any(".git" in found or found >= {"HEAD", "objects", "refs"} for found in names)
