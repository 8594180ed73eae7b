"""`nightkeep run`: one issue, from the command line to the exit status."""

import os
import sys
from collections.abc import Mapping

from delivery.outcome import Outcome
from delivery.spec.run import spec_run
from runner.access import known_secrets
from runner.actions import WorkflowStep
from runner.conclusion import Conclusion
from runner.logs import CommandLog
from runner.progress import Progress
from runner.run_options import RunOptions
from runner.signals import end_without_parent
from runner.wiring import conventions, wire
from worktree import Interruption, Redactor


def run_issue(options: RunOptions, held: Mapping[str, str]) -> int:
    """Run one issue and return the exit status. `held` are the tokens that the environment had."""
    log = CommandLog()
    environment = {} if options.is_child else os.environ
    progress = Progress(sys.stderr, environment, log)
    # What is said before the token is read; a URL with a credential in it is masked by its shape.
    redact = Redactor(known_secrets(held))
    conclusion = Conclusion(progress=progress, step=WorkflowStep(environment), as_json=options.as_json, log=log)
    conclusion.step.begin()
    return conclusion.of(
        lambda interruption: conclusion.ended(work_on(options, held, progress, log, interruption)),
        redact,
    )


def work_on(
    options: RunOptions, held: Mapping[str, str], progress: Progress, log: CommandLog, interruption: Interruption
) -> Outcome:
    """Run one issue to its end. Raises PreflightError, NotReadyError and Interrupted, with nothing begun."""
    if options.is_child:
        end_without_parent(sys.stdin.fileno())
    wiring = wire(options, held, progress, interruption)
    try:
        wiring = wiring if options.is_child else wiring.recovered()
        plan = wiring.plan()
        if options.found is not None:
            options.found.check(plan.issue)
        loaded = wiring.loaded(plan)
        settings = loaded.settings
        let_at = options.found.let_at if options.found else None
        if options.checks_starter:
            let_at = wiring.check_starter(settings, plan)
        place = wiring.log_place(settings)
        run, rules = wiring.begun(settings, place), conventions(settings)
        sessions = wiring.sessions(loaded, plan, place)
        if trouble := log.begin(place, wiring.redact):
            progress.say(trouble)
        work = spec_run(run, let_at) if plan.issue.sub_issues else run
        return wiring.explained(work.execute(plan, rules, sessions))
    finally:
        wiring.run.github.close()
        wiring.launch.close()
