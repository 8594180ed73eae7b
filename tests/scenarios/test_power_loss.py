"""A loss of power: what a step relies on is on the disk before the step, seen by the system calls of a whole Run."""

import os
import re
import shutil
import subprocess

import pytest

from tests.scenarios.stage import NIGHTKEEP, Stage
from tests.world import git

_CALLS = "fsync,write,rename,renameat,renameat2,link,unlink,unlinkat,rmdir,execve,sendto"
# A commit that is on no branch and looks like it holds a secret stays on this machine alone, and so does the file.
_SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
_AGENT = f"""\
git checkout -q --detach; echo token={_SECRET} > t.txt; git add t.txt; git commit -qm aside
git checkout -q issue-1; echo work > work.txt; echo k > secret.env; exit 3"""


class Trace:
    """The system calls of a command and of all that it started, in their order: `name(arguments`, with paths."""

    def __init__(self, lines: list[str]) -> None:
        self.calls = [line.partition(" ")[2].lstrip() for line in lines]

    def first(self, pattern: str, after: int = 0) -> int:
        """Return where the first call is, from a place on, that begins so."""
        found = (at for at in range(after, len(self.calls)) if re.match(pattern, self.calls[at]))
        at = next(found, None)
        assert at is not None, f"{pattern} is never called after {self.calls[after]}"
        return at

    def in_order(self, *patterns: str) -> None:
        """Assert that there are such calls, each after the one before."""
        at = -1
        for pattern in patterns:
            at = self.first(pattern, at + 1)


@pytest.fixture
def trace(stage: Stage) -> Trace:
    """A Failed run, traced, that leaves a commit and files on this machine alone."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("without strace nobody can see what is made durable")
    log = stage.root / "trace"
    agent = stage.agent(_AGENT)
    words = ["run", stage.url(stage.issue()), "--agent", agent, "--token-file", str(stage.token_file)]
    done = subprocess.run(
        [strace, "-f", "-y", "-s", "300", "-e", f"trace={_CALLS}", "-e", "signal=none", "-o", log, *NIGHTKEEP, *words],
        cwd=stage.clone,
        env={**os.environ, **stage.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert git(stage.clone, "for-each-ref", "refs/nightkeep/rescue"), done.stderr
    return Trace(log.read_text(errors="replace").splitlines())


def test_what_a_step_relies_on_is_on_the_disk_before_it(trace: Trace) -> None:
    _check_journal(trace)
    _check_record(trace)
    _check_removal(trace)
    _check_store(trace)


def _check_journal(trace: Trace) -> None:
    trace.in_order(r"fsync\(\d+</\S*/logs/acme/widget>", r"write\(\d+<\S*journal\.jsonl>", r"sendto\(.*POST")
    entries = [at for at, call in enumerate(trace.calls) if re.match(r"write\(\d+<\S*-journal\.jsonl>", call)]
    assert len(entries) > 5
    for at in entries:
        assert re.match(r"fsync\(\d+<\S*-journal\.jsonl>", trace.calls[at + 1]), trace.calls[at : at + 2]


def _check_record(trace: Trace) -> None:
    trace.in_order(
        r"fsync\(\d+<\S*/runs/\.new-\S*/before\.json\.partial>",
        r"fsync\(\d+<\S*/runs/\.new-\S*/record\.json\.partial>",
        r'rename\("\S*/record\.json\.partial"',
        r"fsync\(\d+<\S*/runs/\.new-[^/]*>",
        r'rename\("\S*/runs/\.new-',
        r"fsync\(\d+<\S*/runs>",
        r'execve\(.*"update-ref", "--no-deref", "-m", "nightkeep 2',
        r'execve\(.*"worktree", "add"',
        r"fsync\(\d+<\S*/checkout\.json\.partial>",
    )


def _check_removal(trace: Trace) -> None:
    """The commit that this machine alone has, its ref, and the word that files go, before the first of them goes."""
    first = trace.first(r'unlinkat\(\d+<\S*\.removing>, "')
    for relied_on in (
        r"fsync\(\d+<\S*/refs/nightkeep/rescue/\S*/made\.lock>",
        r"fsync\(\d+<\S*/refs/nightkeep/rescue/2[^/]*>",
        r"fsync\(\d+<\S*/refs>",
        r"fsync\(\d+<\S*/objects/pack/\S*pack\S*>",
        r"fsync\(\d+<\S*/objects/pack>",
        r"fsync\(\d+<\S*/clearing\.partial>",
    ):
        assert trace.first(relied_on) < first, relied_on


def _check_store(trace: Trace) -> None:
    """The word on what is kept, and that it is there, before git is told to forget the worktree."""
    trace.in_order(
        r"fsync\(\d+<\S*/nightkeep>",
        r"fsync\(\d+<\S*/manifest\.json\.partial>",
        r'rename\("\S*/manifest\.json\.partial"',
        r"fsync\(\d+<\S*/nightkeep/rescue/2[^/]*>",
        r'renameat2\(\S+ "\S*\.removing"',
        r"fsync\(\d+<\S*/nightkeep/rescue/2[^/]*>",
        r"fsync\(\d+<\S*/place>",
        r'execve\(.*"worktree", "remove"',
        r'unlink\("\S*/record\.json"',
    )
