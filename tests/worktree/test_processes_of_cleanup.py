"""How many git processes a clean-up starts does not depend on how many files there are."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.worktree.runs import create
from tests.world import commit, git, make_world
from worktree import Worktree

FEW, MANY = 10, 2_000

_SHIM = """\
#!/bin/sh
printf '%s\\n' "$*" | tr '\\n' ' ' >>'{log}'
echo >>'{log}'
exec '{git}' "$@"
"""


@contextmanager
def _git_commands(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Write down each git command that is found by PATH in the block; the list is filled at its end."""
    log, shim = directory / "log", directory / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(_SHIM.format(log=log, git=shutil.which("git")))
    shim.chmod(0o755)
    commands: list[str] = []
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(shim.parent), prepend=os.pathsep)
        yield commands
    commands += log.read_text().splitlines()


def _write(top: Path, number: int, text: str = "text\n") -> None:
    for at in range(number):
        path = top / str(at % 20) / f"{at}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def _preserved(wt: Worktree, number: int) -> None:
    _write(wt.path, number, "changed\n")
    wt.preserve_failed_run("main", "agent exited 3")


def _converted(wt: Worktree, number: int) -> None:
    """Files that are written anew as git would write them: their bytes are not those that git has."""
    (wt.path / ".gitattributes").write_text("*.txt eol=crlf\n")
    _write(wt.path, number, "other\r\n")
    wt.settle("Change files")
    wt.push()
    _age(wt)


def _age(wt: Worktree) -> None:
    """Let git look after the second in which the files were written: then it need not look again."""
    time.sleep(1.1)
    git(wt.path, "status")


def _left(wt: Worktree, number: int) -> None:
    """Changed, untracked and ignored files."""
    _write(wt.path, number, "changed\n")
    _write(wt.path / "new", number)
    _write(wt.path / "scratch", number)
    for at in range(number):
        (wt.path / str(at % 20) / "secret.env").write_text(f"{at}\n")


def _submodule(wt: Worktree, number: int) -> None:
    library = wt.path.with_name("library")
    git(wt.path, "init", "-q", "-b", "main", str(library))
    _write(library, number)
    commit(library, "library")
    git(wt.path, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    wt.settle("Add a library")
    wt.push()
    _write(wt.path / "lib", number, "changed\n")


@pytest.mark.parametrize("leave", [_left, _preserved, _converted, _submodule])
def test_clean_up_starts_as_many_processes_for_many_files_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leave: Callable[[Worktree, int], None]
) -> None:
    few, many = (_clean_up(tmp_path / str(number), monkeypatch, leave, number) for number in (FEW, MANY))
    assert len(few) == len(many) > 0, (few, many)


def _clean_up(
    root: Path, monkeypatch: pytest.MonkeyPatch, leave: Callable[[Worktree, int], None], number: int
) -> list[str]:
    """Take away a worktree in a repository of that many files, with what was left in it; return the git commands."""
    root.mkdir()
    world = make_world(root)
    _write(world.launch, number)
    commit(world.launch, "files")
    git(world.launch, "push", "-q", "origin", "main")
    with ExitStack() as stack:
        wt = stack.enter_context(create(world))
        leave(wt, number)
        block = stack.pop_all()
    with _git_commands(root, monkeypatch) as commands:
        block.close()
    assert not wt.ending.kept, wt.ending
    return commands
