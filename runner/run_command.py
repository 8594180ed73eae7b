"""`nightkeep run`: one issue, from the command line to the exit status."""

import os
import sys
import traceback
from collections.abc import Mapping

from delivery.errors import PreflightError
from delivery.outcome import Outcome
from runner.actions import WorkflowStep
from runner.conclusion import Conclusion
from runner.exit_codes import ExitCode, signal_exit_code
from runner.processes import stop_strays
from runner.progress import Progress
from runner.signals import recorded_signals
from runner.wiring import RunOptions, conventions, wire
from worktree import Interrupted, Interruption, LaunchError, Redactor, secrets_in


def run_issue(options: RunOptions, held: Mapping[str, str]) -> int:
    """Run one issue and return the exit status. `held` are the tokens that the environment had."""
    progress = Progress(sys.stderr, os.environ)
    # What is said before the token is read; a URL with a credential in it is masked by its shape.
    redact = Redactor([*held.values(), *secrets_in(os.environ)])
    conclusion = Conclusion(progress=progress, step=WorkflowStep(os.environ), as_json=options.as_json)
    conclusion.step.begin()
    with recorded_signals() as interruption:
        try:
            return conclusion.ended(_run(options, held, progress, interruption))
        except (PreflightError, LaunchError) as error:
            return conclusion.not_begun(redact(str(error)), ExitCode.NOT_BEGUN)
        except Interrupted:
            assert interruption.recorded is not None  # noqa: S101 - that is what raised it
            return conclusion.not_begun("interrupted", signal_exit_code(interruption.recorded))
        except Exception as error:
            traceback.print_exc()
            return conclusion.broken(redact(f"a bug in Nightkeep: {type(error).__name__}: {error}"))
        finally:
            progress.close()


def _run(options: RunOptions, held: Mapping[str, str], progress: Progress, interruption: Interruption) -> Outcome:
    wiring = wire(options, held, progress, interruption)
    try:
        plan = wiring.run.plan()
        settings = wiring.settings(plan)
        return wiring.limited_run(settings).execute(plan, conventions(settings), wiring.sessions(settings))
    finally:
        wiring.run.github.close()
        stop_strays()
