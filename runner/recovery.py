"""Finishing what killed runners left unfinished in one clone."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from delivery.claim import fence_of
from delivery.errors import DeliveryError
from delivery.issue_url import IssueUrl
from delivery.outcome import Outcome
from delivery.parts import Parts
from delivery.recovery import recover
from delivery.unfinished import Unfinished, read_unfinished
from delivery.untold import tell
from runner.agents import Agent, agent_named
from runner.conclusion import to_go_on
from runner.logs import find_logs
from runner.spool import Follower
from worktree import (
    Interrupted,
    Journal,
    Orphan,
    PreservationError,
    Preserved,
    Worktree,
    WorktreeError,
    alone,
    host_name,
    orphans,
    read_journal,
    sweep_records,
    sweep_temporary,
)
from worktree.moments import written_now

_NO_CAP = 1 << 40  # bytes
_LAST_OUTPUT = 60.0  # seconds that redacting it may take


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What became of one Run: how it ended, or why it is still as it was. `outcome` is None without a journal.

    `note` is the URL of a Failure note that could not be written when its Run failed.
    """

    run_id: str | None
    branch: str
    issue_url: str | None = None
    outcome: Outcome | None = None
    is_kept_here: bool = False
    note: str | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Finishes Runs of one clone, each by itself: trouble with one stops no other.

    `run` is what they are finished with but for issue and journal; `logs` the directory of the repository's logs.
    """

    run: Parts
    logs: Path
    repository: str
    report: Callable[[str], None]

    def recover(self) -> list[Recovered]:
        """Finish what nobody is at work on, and tell GitHub what Runs of the repository could not.

        Twice changes nothing. Raises Interrupted, or GitError without origin.
        """
        try:
            return [*self._recover(), *self._tell_untold()]
        except OSError as error:
            self.report(f"what killed runners may have left cannot be looked at: {error}")
            return []

    def _recover(self) -> list[Recovered]:
        with alone(self.run.launch.common) as is_alone:
            if not is_alone:
                self.report("another recovery is at work in this clone")
                return []
            for line in sweep_records(self.run.launch.common):
                self.report(line)
            sweep_temporary()
            # What a journal names is finished by that journal, or by whoever has it.
            known = list(self._read())
            named = {unfinished.run_id for _, unfinished in known}
            done = [self._finish(*found) for file, _ in known if (found := self._open(file))]
            return done + [self._preserve(orphan) for orphan in orphans(self.run.launch) if orphan.run_id not in named]

    def _tell_untold(self) -> list[Recovered]:
        named = (place for place in self.logs.glob("*/*") if self._is_repositorys(place))
        return [
            Recovered(
                run_id=told.run.run_id,
                branch=told.run.branch,
                issue_url=str(told.run.url),
                is_kept_here=told.refused is not None,
                note=told.url,
                trouble=told.trouble,
            )
            for place in named
            for told in tell(self.run, place)
        ]

    def _is_repositorys(self, directory: Path) -> bool:
        return directory.relative_to(self.logs).as_posix().lower() == self.repository.lower()

    def _fresh(self) -> Parts:
        """Return the Run with the clone as it is by now."""
        return replace(self.run, launch=self.run.launch.reopened())

    def _read(self) -> Iterator[tuple[Path, Unfinished]]:
        """Read the journals of Runs of this clone that have no end, whoever has them."""
        for log in sorted(find_logs(self.logs, self.repository), key=lambda log: log.began):
            if log.path.suffix == ".jsonl":
                try:
                    unfinished = read_unfinished(read_journal(log.path))
                except (OSError, ValueError, RecursionError) as error:
                    self.report(f"the journal {log.path} cannot be read, so nothing is done about it: {error}")
                    continue
                if unfinished is not None and self._is_ours(unfinished):
                    yield log.path, unfinished

    def _open(self, file: Path) -> tuple[Journal, Unfinished] | None:
        """Take a journal over, unless its Run lives or has been ended while we came."""
        with suppress(OSError, ValueError):
            journal = Journal.reopen(file, redact=self.run.redact, report=self.report)
            unfinished = read_unfinished(read_journal(file)) if journal else None
            return (journal, unfinished) if journal and unfinished else None
        return None

    def _is_ours(self, unfinished: Unfinished) -> bool:
        """Whether a Run was started from this very clone: another one's worktree is not here."""
        return (unfinished.clone, unfinished.host) == (str(self.run.launch.common), host_name())

    def _finish(self, journal: Journal, unfinished: Unfinished) -> Recovered:
        about = Recovered(run_id=unfinished.run_id, branch=unfinished.branch, issue_url=unfinished.issue_url)
        url = IssueUrl.parse(unfinished.issue_url)
        if url is None:
            return replace(about, trouble=f"its journal names no issue: {journal.file}")
        if unfinished.unclaimed:
            self.report(f"ending the claim of a run on {unfinished.branch} that had ended ({unfinished.issue_url})")
        else:
            self.report(f"finishing a run on {unfinished.branch} whose runner was killed ({unfinished.issue_url})")
        run = replace(self._fresh(), url=url, journal=journal, continue_command=unfinished.continue_command)
        try:
            outcome = recover(run, unfinished, lambda run_id: self._save_output(run_id, journal))
            if not unfinished.unclaimed:
                self._tell(outcome, journal)
            return replace(about, outcome=outcome, is_kept_here=outcome.preserved is Preserved.MACHINE)
        except Interrupted:
            raise
        except Exception as error:
            return replace(about, trouble=self._trouble(error))
        finally:
            journal.close()

    def _tell(self, outcome: Outcome, journal: Journal) -> None:
        for what, where in outcome.places:
            self.report(f"{what}: {where}")
        if outcome.pull_request:
            self.report(f"the pull request is {outcome.pull_request.url}")
        for line in to_go_on(outcome):
            self.report(line)
        written = Path(str(journal.file))
        log = written.with_name(written.name.replace("-journal", "-command")).with_suffix(".log")
        # An agent may have put anything there: no link is followed, and nobody waited for.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with suppress(OSError), os.fdopen(os.open(log, flags, 0o600), "a", encoding="utf-8") as file:
            file.write(f"{written_now()} ended: killed, then finished by recovery\n")

    def _preserve(self, orphan: Orphan) -> Recovered:
        """Bring the work of a run without a journal to safety; which issue it was for nobody knows."""
        about = Recovered(run_id=orphan.run_id, branch=orphan.branch)
        self.report(f"preserving the work of run {orphan.run_id} on {orphan.branch}, whose runner was killed")
        try:
            fresh = self._fresh()
            fence = fence_of(fresh, orphan.run_id, orphan.branch)
            worktree = Worktree.reclaim(fresh.launch, orphan.run_id, origin=self.run.origin, fence=fence)
            # What cannot be preserved is retained, and the ending says why.
            with worktree, suppress(PreservationError):
                worktree.preserve_failed_run(orphan.base, "Nightkeep was killed")
            if fence is not None:
                fence.end()
        except Interrupted:
            raise
        except Exception as error:
            return replace(about, trouble=self._trouble(error))
        for what, where in worktree.ending.places:
            self.report(f"{what}: {where}")
        self.report(str(worktree.ending))
        return replace(about, is_kept_here=worktree.ending.preserved is Preserved.MACHINE)

    def _trouble(self, error: Exception) -> str:
        known = isinstance(error, DeliveryError | WorktreeError | OSError)
        what = str(error) if known else f"a bug in Nightkeep: {type(error).__name__}: {error}"
        line = self.run.redact(f"{what}; then finish it: nightkeep recover")
        self.report(line)
        return line

    def _save_output(self, run_id: str, journal: Journal) -> Path | None:
        """Redact what is left of a session's raw output into a Session log beside the journal; return the last one.

        Trouble with that is reported, and keeps no work from being preserved.
        """
        saved = None
        private = self.run.launch.common / "nightkeep" / "runs" / run_id
        for spool in sorted(private.glob("session-*.raw")):
            kind, name, *_ = spool.name.removeprefix("session-").split(".")
            stem = Path(str(journal.file)).name.split("-journal", 1)[0]
            log = Path(str(journal.file)).with_name(f"{stem}-{kind}.log")
            agent = agent_named(name)
            try:
                saved = self._save(spool, log, agent)
            except OSError as error:
                self.report(self.run.redact(f"what a session printed cannot be read: {error}"))
        return saved

    def _save(self, spool: Path, log: Path, agent: Agent) -> Path:
        """Redact one session's raw output into a Session log, and remove it once all of it is there; return the log."""
        with Follower(spool, log, redact=self.run.redact, progress=_nothing, cap=_NO_CAP, agent=agent) as follower:
            follower.finish(lambda: _LAST_OUTPUT)
        if follower.complete:
            spool.unlink()
        return follower.log


def _nothing(_line: str) -> None:
    """Take no notice: nobody follows a session that has ended."""
