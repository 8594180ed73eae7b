"""`nightkeep prompt`: what an agent would be told."""

import os
import sys
from collections.abc import Mapping

from delivery.branches import Continuation
from delivery.issue_text import read_text
from delivery.prompt import opening_prompt
from runner.access import known_secrets
from runner.actions import WorkflowStep
from runner.conclusion import Conclusion
from runner.progress import Progress
from runner.wiring import RunOptions, conventions, wire
from worktree import Interruption, Redactor


def print_prompt(options: RunOptions, held: Mapping[str, str]) -> int:
    """Print the prompt of a Run that would start now, and return the exit status. Claims and makes nothing."""
    progress = Progress(sys.stderr, os.environ)
    redact = Redactor(known_secrets(held))
    # No Run: a workflow's outputs are not for this.
    conclusion = Conclusion(progress=progress, step=WorkflowStep({}), as_json=False)
    return conclusion.of(lambda interruption: _print(_prompt(options, held, progress, interruption)), redact)


def _prompt(options: RunOptions, held: Mapping[str, str], progress: Progress, interruption: Interruption) -> str:
    wiring = wire(options, held, progress, interruption)
    try:
        plan = wiring.run.plan()
        rules = conventions(wiring.settings(plan))
        return opening_prompt(
            plan.issue,
            base=plan.base,
            branch=plan.branch,
            continued=isinstance(plan.choice, Continuation),
            vanished=plan.checkpoint is not None,
            instructions=rules.instructions,
            told=read_text(wiring.run.github, plan.issue, rules.bots, wiring.run.report),
        )
    finally:
        wiring.run.github.close()
        wiring.launch.close()


def _print(prompt: str) -> int:
    sys.stdout.buffer.write(prompt.encode(errors="replace"))
    sys.stdout.flush()
    return 0
