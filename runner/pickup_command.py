"""`nightkeep pickup`: the lowest Ready issue of the clone's repository, once or again and again."""

import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from delivery.errors import GitHubError, PreflightError, TakenError
from delivery.pickup import Skipped
from delivery.preflight import unanswered
from delivery.text import as_name
from runner.access import Access, Start, known_secrets, place_of
from runner.actions import WorkflowStep
from runner.conclusion import Conclusion
from runner.exit_codes import signal_exit_code
from runner.logs import CommandLog
from runner.pass_lock import only_pass
from runner.picking import picking
from runner.progress import Progress
from runner.recover_command import recovery_of
from runner.run_command import work_on
from runner.run_options import FoundIssue, RunOptions
from runner.signals import recorded_signals
from runner.token_source import LearningRedactor
from worktree import GitError, Interrupted, Interruption, Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class PickupOptions:
    """What the user asked for, as typed. `every` is how many seconds lie between passes; None for one."""

    agent: str | None
    base: str | None
    token_file: Path | None
    merge: bool | None
    parallel: int | None
    as_json: bool
    every: float | None = None

    def run(self, issue_url: str, *, is_spec: bool = False) -> RunOptions:
        """Return how an issue is run, as `nightkeep run` would be told it; `parallel` is about sub-issues only."""
        return RunOptions(
            issue_url=issue_url,
            agent=self.agent,
            base=self.base,
            token_file=self.token_file,
            as_json=self.as_json,
            merge=self.merge,
            parallel=self.parallel if is_spec else None,
        )


def pick_up(options: PickupOptions, held: Mapping[str, str]) -> int:
    """Take what is ready, and return the exit status: the last pass's, or the signal's that ended the loop."""
    with recorded_signals() as interruption:
        while True:
            status = _pass(options, held, interruption)
            if options.every is None:
                return status
            interruption.wait(options.every)
            if interruption.recorded:
                return status if status > 128 else signal_exit_code(interruption.recorded)


def _pass(options: PickupOptions, held: Mapping[str, str], interruption: Interruption) -> int:
    log = CommandLog()
    progress = Progress(sys.stderr, os.environ, log)
    redact = LearningRedactor(known_secrets(held))
    conclusion = Conclusion(progress=progress, step=WorkflowStep(os.environ), as_json=options.as_json, log=log)
    conclusion.step.begin()

    def work(interruption: Interruption) -> int:
        start = Start.here(
            options.run("").settings(), held, redact, lambda line: progress.say(redact(line)), interruption
        )
        launch = start.open_clone(remedy="run this in a clone of the repository")
        with closing(launch), only_pass(place_of(launch)) as is_alone:
            if not is_alone:
                return conclusion.skipped("another pass over this repository is going on here")
            found = _look(options, start, launch)
            if isinstance(found, Skipped):
                return conclusion.skipped(redact(found.why))
            try:
                return conclusion.ended(work_on(found, held, progress, log, interruption))
            except TakenError as error:
                return conclusion.skipped(redact(str(error)))

    return conclusion.within(interruption, work, redact)


def _look(options: PickupOptions, start: Start, launch: Launch) -> RunOptions | Skipped:
    """Finish what killed runners left, and find what is to be done."""
    place = place_of(launch)
    signed_in = start.sign_in(place)
    with closing(signed_in.github) as github:
        access = Access(start=start, launch=launch, remote=launch.remote(signed_in.origin), github=github)
        try:
            looking = picking(access, options.base, options.run("").settings())
            recovery_of(access, place).recover()
            found = looking.pickup.choose()
        except GitHubError as error:
            raise unanswered(error) from error
        except Interrupted:
            raise
        except GitError as error:
            raise PreflightError(str(error)) from error
    if isinstance(found, Skipped):
        return found
    issue = found.issue
    start.report(f'taking the Ready issue #{issue.number} "{as_name(issue.title)}", as: nightkeep run {issue.url}')
    labels = {label.lower() for label in issue.labels}
    ready = looking.settings.labels.ready
    as_found = FoundIssue.of(found, ready if ready.lower() in labels else None)
    return replace(options.run(issue.url, is_spec=issue.tickets > 0), found=as_found)
