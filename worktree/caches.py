"""Directories that prove by themselves that they can be made again."""

import os
from pathlib import Path

_CACHEDIR_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"  # https://bford.info/cachedir/


def is_cache(directory: Path) -> bool:
    """Whether `directory` (not a link) is a tagged cache, a virtual environment, installed packages or bytecode."""
    if directory.is_symlink() or not directory.is_dir():
        return False
    if directory.name == "node_modules":
        return (directory.parent / "package.json").is_file()
    if directory.name == "__pycache__":
        with os.scandir(directory) as entries:
            return all(entry.is_file(follow_symlinks=False) and entry.name.endswith(".pyc") for entry in entries)
    return (directory / "pyvenv.cfg").is_file() or _is_tagged(directory / "CACHEDIR.TAG")


def _is_tagged(tag: Path) -> bool:
    if tag.is_symlink() or not tag.is_file():
        return False
    with tag.open("rb") as file:
        return file.read(len(_CACHEDIR_SIGNATURE)) == _CACHEDIR_SIGNATURE
