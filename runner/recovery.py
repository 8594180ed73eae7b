"""Finishing what killed runners left unfinished in one clone."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from delivery.errors import DeliveryError
from delivery.issue_url import IssueUrl
from delivery.outcome import Outcome
from delivery.run import Run
from delivery.unfinished import Unfinished, read_unfinished
from runner.logs import find_logs
from runner.spool import Follower
from worktree import (
    DeferredError,
    Interrupted,
    Journal,
    Orphan,
    PreservationError,
    Worktree,
    WorktreeError,
    orphans,
    read_journal,
    sweep_temporary,
    sweep_unmade,
)

_NO_CAP = 1 << 40  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What became of one Run: how it ended, or why it is still as it was. `outcome` is None without a journal."""

    run_id: str | None
    branch: str
    issue_url: str | None = None
    outcome: Outcome | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Finishes Runs of one clone, each by itself: trouble with one stops no other.

    `run` is what they are finished with but for issue and journal; `logs` the directory of the repository's logs.
    """

    run: Run
    logs: Path
    repository: str
    report: Callable[[str], None]

    def recover(self) -> list[Recovered]:
        """Finish what nobody is at work on; twice changes nothing. Raises Interrupted."""
        sweep_unmade(self.run.launch.common)
        sweep_temporary()
        done = [self._finish(journal, unfinished) for journal, unfinished in self._unfinished()]
        named = {one.run_id for one in done}
        return done + [self._preserve(orphan) for orphan in orphans(self.run.launch) if orphan.run_id not in named]

    def _fresh(self) -> Run:
        """Return the Run with the clone as it is by now."""
        return replace(self.run, launch=self.run.launch.reopened())

    def _unfinished(self) -> Iterator[tuple[Journal, Unfinished]]:
        for log in sorted(find_logs(self.logs, self.repository), key=lambda log: log.began):
            if log.path.suffix != ".jsonl":
                continue
            with suppress(OSError, ValueError):
                found = self._open(log.path)
                if found is not None:
                    yield found

    def _open(self, file: Path) -> tuple[Journal, Unfinished] | None:
        if read_unfinished(read_journal(file)) is None:
            return None
        journal = Journal.reopen(file, redact=self.run.redact, report=self.report)
        # Read again: it may have been ended while we came.
        unfinished = read_unfinished(read_journal(file)) if journal else None
        return (journal, unfinished) if journal and unfinished else None

    def _finish(self, journal: Journal, unfinished: Unfinished) -> Recovered:
        about = Recovered(run_id=unfinished.run_id, branch=unfinished.branch, issue_url=unfinished.issue_url)
        url = IssueUrl.parse(unfinished.issue_url)
        if url is None:
            return replace(about, trouble=f"its journal names no issue: {journal.file}")
        self.report(f"finishing a run on {unfinished.branch} whose runner was killed ({unfinished.issue_url})")
        again = shlex.join(["nightkeep", "run", str(url)])
        run = replace(self._fresh(), url=url, journal=journal, continue_command=again)
        try:
            if unfinished.run_id:
                self._save_output(unfinished.run_id, journal)
            return replace(about, outcome=run.recover(unfinished))
        except Interrupted:
            raise
        except (DeliveryError, WorktreeError, OSError) as error:
            return replace(about, trouble=self._trouble(error))
        finally:
            journal.close()

    def _preserve(self, orphan: Orphan) -> Recovered:
        """Bring the work of a run without a journal to safety; which issue it was for nobody knows."""
        about = Recovered(run_id=orphan.run_id, branch=orphan.branch)
        self.report(f"preserving the work of run {orphan.run_id} on {orphan.branch}, whose runner was killed")
        try:
            worktree = Worktree.reclaim(self._fresh().launch, orphan.run_id, origin=self.run.origin)
            # What cannot be preserved is retained, and the ending says why.
            with worktree, suppress(PreservationError):
                worktree.preserve_failed_run(orphan.base, "the runner died")
        except Interrupted:
            raise
        except (WorktreeError, OSError) as error:
            return replace(about, trouble=self._trouble(error))
        for what, where in worktree.ending.places:
            self.report(f"{what}: {where}")
        self.report(str(worktree.ending))
        return about

    def _trouble(self, error: Exception) -> str:
        later = "try again: nightkeep recover"
        line = self.run.redact(f"{error}; {later}" if not isinstance(error, DeferredError) else str(error))
        self.report(line)
        return line

    def _save_output(self, run_id: str, journal: Journal) -> None:
        """Redact what is left of a session's raw output into a Session log beside the journal."""
        private = self.run.launch.common / "nightkeep" / "runs" / run_id
        for spool in sorted(private.glob("session-*.raw")):
            kind = spool.name.removeprefix("session-").rsplit("-", 1)[0]
            stem = Path(str(journal.file)).name.split("-journal", 1)[0]
            log = Path(str(journal.file)).with_name(f"{stem}-{kind}.log")
            with Follower(spool, log, redact=self.run.redact, progress=_nothing, cap=_NO_CAP) as follower:
                follower.finish(lambda: 60.0)
            if follower.complete:
                spool.unlink()


def _nothing(_line: str) -> None:
    """Take no notice: nobody follows a session that has ended."""
