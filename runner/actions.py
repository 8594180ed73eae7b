"""What a step of a GitHub workflow tells the steps after it, and the people who look at the job."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from delivery.causes import Code
from delivery.outcome import Outcome, Result
from delivery.text import fenced

# Written before anything else: what holds when the process is killed and can say no more.
_AT_FIRST = {
    "outcome": "killed",
    "failure-cause": "Nightkeep was killed before it could say how it ended",
    "failure-code": Code.KILLED,
    "failure-stage": "",
    "pull-request-url": "",
    "branch": "",
    "work-preserved": "machine",
    "preserved-ref": "",
    "preserved-sha": "",
    "session-log": "",
    "duration-seconds": "",
}


class WorkflowStep:
    """The files of one step. Does nothing where the environment names none, as outside of Actions.

    A file that cannot be written changes nothing about how the Run ends.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._output = environment.get("GITHUB_OUTPUT")
        self._summary = environment.get("GITHUB_STEP_SUMMARY")

    def begin(self) -> None:
        """Set the outputs that a killed process leaves behind."""
        self._set(_AT_FIRST)

    def not_begun(self, cause: str, seconds: float) -> None:
        """Set the outputs of a Run that could not start."""
        self._set(
            {
                "outcome": "not-begun",
                "failure-cause": cause,
                "failure-code": "",
                "failure-stage": "preflight",
                "work-preserved": "nothing-made",
                "duration-seconds": f"{seconds:.0f}",
            }
        )
        self._summarise(f"### Nightkeep did not begin\n\n{fenced(cause)}\n")

    def skipped(self, why: str, seconds: float) -> None:
        """Set the outputs of a pass that had nothing to do; it is no failure."""
        self._set(
            {
                "outcome": "skipped",
                "failure-cause": "",
                "failure-code": "",
                "work-preserved": "nothing-made",
                "duration-seconds": f"{seconds:.0f}",
            }
        )
        self._summarise(f"Nightkeep had nothing to do:\n\n{fenced(why)}\n")

    def broken(self, cause: str, seconds: float) -> None:
        """Set the outputs of a Run that ended by a bug outside of its Delivery: nobody knows what is where."""
        self._set(
            {"outcome": "bug", "failure-cause": cause, "failure-code": Code.BUG, "duration-seconds": f"{seconds:.0f}"}
        )
        self._summarise(f"### Nightkeep broke\n\n{fenced(cause)}\n\nThe step's log says what is where.\n")

    def end(self, outcome: Outcome, seconds: float) -> None:
        """Set the outputs of a Run that ended, and write the summary."""
        self._set(_step_outputs(outcome, seconds))
        url = outcome.pull_request.url if outcome.pull_request else "none"
        heading = "### Nightkeep delivered\n\n" if outcome.result is Result.DELIVERED else ""
        self._summarise(f"{heading}Pull request: {url}\n\n{outcome.note}")

    def _set(self, outputs: Mapping[str, str]) -> None:
        if not self._output:
            return
        # A delimiter that nobody can guess: a value cannot end early and set other outputs.
        fence = secrets.token_hex(16)
        _append(self._output, "".join(f"{name}<<{fence}\n{value}\n{fence}\n" for name, value in outputs.items()))

    def _summarise(self, text: str) -> None:
        if self._summary:
            _append(self._summary, text)


def _append(file: str, text: str) -> None:
    # A path may have a name that is no text, and is then written as standard error shows it.
    with suppress(OSError), Path(file).open("a", encoding="utf-8", errors="backslashreplace") as opened:
        opened.write(text)


def _step_outputs(outcome: Outcome, seconds: float) -> dict[str, str]:
    """Return the Action's outputs; every name is set in every ending."""
    branch_ref = f"refs/heads/{outcome.branch}"
    ref = branch_ref if branch_ref in outcome.refs else next(reversed(list(outcome.refs)), "")
    return {
        "outcome": outcome.result,
        "failure-cause": outcome.cause or "",
        "failure-code": outcome.code or "",
        "failure-stage": outcome.stage or "",
        "pull-request-url": outcome.pull_request.url if outcome.pull_request else "",
        "branch": outcome.branch,
        "work-preserved": outcome.preserved,
        "preserved-ref": ref,
        "preserved-sha": outcome.refs.get(ref, ""),
        "session-log": str(outcome.session_log or ""),
        "duration-seconds": f"{seconds:.0f}",
    }


def error_annotation(cause: str) -> str:
    """Return the workflow command that shows the cause of a failure on the job's page."""
    text = cause.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::error title=Nightkeep could not finish this::{text}"
