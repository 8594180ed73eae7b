"""`nightkeep prompt`: what an agent would be told."""

import os
import sys
from collections.abc import Mapping

from delivery.branches import Continuation
from delivery.conventions import Conventions
from delivery.issue_text import IssueText, read_text
from delivery.preflight import Plan
from delivery.prompt import opening_prompt, review_prompt
from delivery.spec.reading import read_graph
from runner.access import known_secrets
from runner.actions import WorkflowStep
from runner.conclusion import Conclusion
from runner.progress import Progress
from runner.run_options import RunOptions
from runner.wiring import Wiring, conventions, wire
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
        told = read_text(wiring.run.github, plan.issue, rules.bots, wiring.run.report)
        if plan.issue.sub_issues:
            return _review_prompt(wiring, plan, rules, told)
        return opening_prompt(
            plan.issue,
            base=plan.base,
            branch=plan.branch,
            continued=isinstance(plan.choice, Continuation),
            vanished=plan.checkpoint is not None,
            instructions=rules.instructions,
            told=told,
        )
    finally:
        wiring.run.github.close()
        wiring.launch.close()


def _review_prompt(wiring: Wiring, plan: Plan, rules: Conventions, told: IssueText) -> str:
    number = plan.issue.number
    wiring.run.report(f"#{number} has sub-issues, whose agents are told of those; this is for who reviews the whole")
    return review_prompt(
        plan.issue,
        base=plan.base,
        branch=plan.branch,
        standings=read_graph(wiring.run.github, wiring.url, rules.unready_labels).standings({}),
        vanished=plan.checkpoint is not None,
        instructions=rules.instructions,
        told=told,
    )


def _print(prompt: str) -> int:
    sys.stdout.buffer.write(prompt.encode(errors="replace"))
    sys.stdout.flush()
    return 0
