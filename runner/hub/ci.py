"""Scripted continuous integration: it looks at the heads of branches, and does with them what it was told.

There is no clock behind it. Whoever pushes over HTTP, or asks for a check or a pull request, makes it look at the
branches and go on, so that a test sees the same each time. Only a check's command runs beside that, in a thread.
"""

import os
import signal
import subprocess
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from tempfile import TemporaryDirectory

from runner.hub.bare import BareRepository, environment
from runner.hub.checks import Check, Source, Stage, stage
from runner.hub.children import Children
from runner.hub.store import CheckRun, Repository, Store

_AT_ONCE = 4  # commands
_QUICK = 0.3  # seconds that whoever makes commands start waits for them, so that most are over at the first look


class CI:
    """What a test tells the hub about checks, and what the hub's other parts ask about them.

    A commit is seen when it is the head of a branch then; one that git put there and replaced behind the hub's back is
    not.
    """

    def __init__(self, store: Store, children: Children, everywhere: tuple[Check, ...] = ()) -> None:
        self._store = store
        self._children = children
        self._everywhere = everywhere
        self._commands = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="nightkeep-hub-check")
        self._lock = threading.Lock()
        self._at_work: set[int] = set()

    def close(self) -> None:
        """Wait for the commands at work, which are killed by then; a hub of the same root carries them out again."""
        self._commands.shutdown(cancel_futures=True)

    def add(self, full_name: str, check: Check) -> None:
        """Do `check` with every head in the repository OWNER/NAME, the present ones too. Raises ValueError."""
        self._store.checks.add_plan(self._store.repositories.named(full_name).id, check)

    def end(self, full_name: str) -> None:
        """Check nothing that is pushed to the repository OWNER/NAME from now on. Raises ValueError."""
        repository = self._store.repositories.named(full_name)
        self.look(repository)
        self._store.checks.end_plans(repository.id)

    def look(self, repository: Repository) -> None:
        """Start what is to be done with the heads of all branches."""
        for check in self._everywhere:
            self._store.checks.keep_plan(repository.id, check)
        plans = self._store.checks.plans(repository.id)
        if not plans:
            return
        bare = BareRepository(repository.path)
        with self._store.transaction():
            for branch, commit in bare.refs().items():
                self._start(repository, bare, branch, commit, plans)

    def listed(self, repository: Repository, commit: str, polled: Source | None = None) -> list[CheckRun]:
        """Return the newest attempt that can be seen of every check of a commit, in the order of their start.

        `polled` counts this as a client's list of what comes from there.
        """
        self.look(repository)
        if polled is not None:
            self._store.checks.count_poll(repository.id, commit, polled)
        newest: dict[tuple[int, int], CheckRun] = {}
        for run in self.attempts(repository, commit):
            newest[run.suite.id, run.plan] = run
        return [run for run in newest.values() if self._stage(run) is not Stage.GONE]

    def attempts(self, repository: Repository, commit: str) -> list[CheckRun]:
        """Return every attempt of every check of a commit that has appeared, those that are over concluded.

        What has a command is pending until that ends.
        """
        with self._lock:
            begun = [self._command(repository, run) for run in self._due(repository, commit)]
        for command in wait(begun, _QUICK).done:
            command.result()
        runs = self._store.checks.of_commit(repository.id, commit)
        return [run for run in runs if self._stage(run) is not Stage.UNSEEN]

    def run_again(self, repository: Repository, runs: list[CheckRun]) -> None:
        """Start another attempt of each of these; until it appears, clients are shown the one before."""
        with self._store.transaction():
            for run in runs:
                self._begin(repository, run.suite.id, run.plan, run.suite.commit_id, run.check, run.attempt + 1)

    def _start(
        self, repository: Repository, bare: BareRepository, branch: str, commit: str, plans: dict[int, Check]
    ) -> None:
        started = self._store.checks.started(repository.id, commit)
        waiting = {plan: check for plan, check in plans.items() if plan not in started}
        has_paths = any(check.paths for check in waiting.values())
        changed = bare.changed_files(bare.fork_point(commit), commit) if has_paths else []
        for plan, check in waiting.items():
            if check.is_for(branch, changed):
                suite = self._store.checks.suite(repository.id, commit, branch, check)
                self._begin(repository, suite, plan, commit, check, attempt=1)

    def _begin(self, repository: Repository, suite: int, plan: int, commit: str, check: Check, attempt: int) -> None:
        polls = self._store.checks.polls(repository.id, commit, _listed_with(check.source))
        self._store.checks.start(suite, plan, attempt=attempt, polls=polls, began=time.time())

    def _stage(self, run: CheckRun) -> Stage:
        source = _listed_with(run.check.source)
        polls = self._store.checks.polls(run.suite.repository, run.suite.commit_id, source)
        return stage(run.check, polls - run.polls, time.time() - run.began)

    def _due(self, repository: Repository, commit: str) -> list[CheckRun]:
        """Conclude the attempts that are over, and return those whose command is to start."""
        runs = self._store.checks.of_commit(repository.id, commit)
        due = [run for run in runs if run.conclusion is None and self._stage(run) is Stage.DUE]
        for run in due:
            conclusion = run.check.conclusion(run.attempt) if run.check.command is None else None
            if conclusion is not None:
                self._store.checks.conclude(run.id, conclusion, run.check.log)
        return [run for run in due if run.check.command is not None and run.id not in self._at_work]

    def _command(self, repository: Repository, run: CheckRun) -> Future[None]:
        self._at_work.add(run.id)
        return self._commands.submit(self._carry_out, repository, run)

    def _carry_out(self, repository: Repository, run: CheckRun) -> None:
        try:
            with TemporaryDirectory(prefix="nightkeep-hub-") as directory:
                files = Path(directory) / "files"
                BareRepository(repository.path).write_files(run.suite.commit_id, files)
                conclusion, log = _run(run.check, files, self._children)
            if not self._children.are_killed:
                self._store.checks.conclude(run.id, conclusion, log)
        finally:
            with self._lock:
                self._at_work.discard(run.id)


def _listed_with(source: Source) -> Source:
    """Return the source whose list shows it: check runs come in one list, whoever makes them."""
    return source if source is Source.STATUS else Source.ACTIONS


def _run(check: Check, directory: Path, children: Children) -> tuple[str, str]:
    """Return the conclusion of a check's shell command, and what it wrote."""
    with (
        subprocess.Popen(
            ["sh", "-c", check.command or ""],
            cwd=directory,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process,
        children.running(process.pid),
    ):
        try:
            output, _ = process.communicate(timeout=check.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "timed_out", f"still at work after {check.limit:g} seconds\n"
    return "success" if process.returncode == 0 else "failure", output
