"""How a Run that ended, or did not begin, is told: to a person, to a program, to a workflow."""

import json
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from delivery.causes import Code
from delivery.errors import PreflightError, TakenError
from delivery.note import before_going_on, show_command
from delivery.outcome import Outcome, Result
from delivery.pickup import NotReadyError
from delivery.untold import RECOVER
from runner.actions import WorkflowStep, error_annotation
from runner.exit_codes import ExitCode, signal_exit_code
from runner.logs import CommandLog
from runner.progress import Progress
from runner.signals import recorded_signals
from worktree import Interrupted, Interruption, LaunchError, Preserved, Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Tells one ending on every channel; each method returns the exit status."""

    progress: Progress
    step: WorkflowStep
    as_json: bool
    log: CommandLog = field(default_factory=CommandLog)
    began: float = field(default_factory=time.monotonic)

    def of(self, work: Callable[[Interruption], int], redact: Redactor) -> int:
        """Do the work of a command, which tells of its own end, and tell of what keeps it from getting there."""
        with recorded_signals() as interruption:
            return self.within(interruption, work, redact)

    def within(self, interruption: Interruption, work: Callable[[Interruption], int], redact: Redactor) -> int:
        """Do the same for a command that records signals itself."""
        try:
            return work(interruption)
        except NotReadyError as error:
            return self.skipped(redact(str(error)))
        except (PreflightError, LaunchError) as error:
            return self.not_begun(redact(str(error)), ExitCode.NOT_BEGUN, taken=isinstance(error, TakenError))
        except Interrupted:
            assert interruption.recorded is not None  # noqa: S101 - that is what raised it
            return self.not_begun("interrupted", signal_exit_code(interruption.recorded))
        except Exception as error:
            self.progress.say(redact(traceback.format_exc()))
            return self.broken(redact(f"a bug in Nightkeep: {type(error).__name__}: {error}"))
        finally:
            self.progress.close()

    def skipped(self, why: str) -> int:
        """Tell that there was nothing to do, in one line."""
        self.progress.say(f"skipped: {why}")
        self.log.discard()
        self.step.skipped(why, self._seconds())
        if self.as_json:
            _print(json.dumps({"result": "skipped", "exit_code": 0, "cause": why}))
        return 0

    def not_begun(self, why: str, status: int, *, taken: bool = False) -> int:
        """Tell that nothing was begun, as the issue is `taken` by another run, perhaps."""
        self.progress.say(why)
        self.progress.say("nothing was begun or claimed")
        self.log.discard()
        self.progress.command(error_annotation(why))
        self.step.not_begun(why, self._seconds())
        if self.as_json:
            _print(json.dumps({"result": "not-begun", "exit_code": int(status), "cause": why, "taken": taken}))
        return status

    def broken(self, cause: str) -> int:
        """Tell that we broke outside of a Delivery; what was made is where the lines before this one say."""
        self.progress.say(f"{cause}; please report it with the lines above")
        self.progress.command(error_annotation(cause))
        self.step.broken(cause, self._seconds())
        self._end_log(Result.BUG, ExitCode.BUG)
        if self.as_json:
            _print(json.dumps({"result": Result.BUG, "exit_code": int(ExitCode.BUG), "cause": cause}))
        return ExitCode.BUG

    def ended(self, outcome: Outcome) -> int:
        """Tell how a Run ended."""
        url = outcome.pull_request.url if outcome.pull_request else None
        for line in _lines(outcome, url, self.log):
            self.progress.say(line)
        if outcome.result is not Result.DELIVERED:
            self.progress.command(error_annotation(outcome.cause or "unknown"))
        self.step.end(outcome, self._seconds())
        if self.as_json:
            command_log = str(self.log.path) if self.log.path else None
            _print(json.dumps(as_document(outcome) | {"command_log": command_log}, indent=2))
        elif url:
            _print(url)
        self._end_log(outcome.result, exit_code(outcome))
        return exit_code(outcome)

    def _end_log(self, result: Result, status: int) -> None:
        if trouble := self.log.end(f"{result}, exit status {int(status)}"):
            self.progress.say(trouble)

    def _seconds(self) -> float:
        return time.monotonic() - self.began


def exit_code(outcome: Outcome) -> int:
    """Decide the exit status of a Run that ended so."""
    match outcome.result:
        case Result.DELIVERED:
            return ExitCode.DELIVERED
        case Result.BUG:
            return ExitCode.BUG
        case _ if outcome.interruption:
            return signal_exit_code(outcome.interruption)
        case Result.POLICY_REFUSAL:
            return ExitCode.POLICY_REFUSAL
        case Result.FAILED:
            return ExitCode.FAILED_KEPT_HERE if outcome.preserved is Preserved.MACHINE else ExitCode.FAILED


def _lines(outcome: Outcome, url: str | None, command_log: CommandLog) -> list[str]:
    delivered = outcome.result is Result.DELIVERED
    reached = f"{url} is merged" if outcome.merged else f"{url} is ready for review"
    verdict = "not merged" if outcome.result is Result.POLICY_REFUSAL else "failed"
    first = reached if delivered else f"{verdict}: {outcome.cause}"
    places = [f"{what}: {where}" for what, where in outcome.places]
    if show := show_command(outcome):
        places.append(f"what was rescued: {show}")
    logs = (("Session log", outcome.session_log), ("Command log", command_log.path))
    return [first, *places, *(f"{what}: {path}" for what, path in logs if path), *to_go_on(outcome)]


def to_go_on(outcome: Outcome) -> list[str]:
    """Return what a person does to go on after a Run, in order; nothing where no Run is needed for that."""
    if not outcome.continue_command:
        return []
    mends = f", with {outcome.base} mended first by a Run of its own" if outcome.code is Code.CHECKS_INHERITED else ""
    on = [f"to go on{mends}: {outcome.continue_command}"]
    if before := before_going_on(outcome):
        push, release = before
        on = [
            f"before you go on, if its commits may go to origin by now: {push}",
            f"and release the worktree: {release}",
            *on,
        ]
    return on


def _print(text: str) -> None:
    with suppress(OSError):  # a reader that went away changes nothing about how the Run ended
        print(text, flush=True)  # noqa: T201 - the only two things that go to standard output


def as_document(outcome: Outcome) -> dict[str, object]:
    """Return the outcome as `--json` prints it."""
    return {
        "result": outcome.result,
        "exit_code": int(exit_code(outcome)),
        "issue": outcome.issue_url,
        "pull_request": outcome.pull_request.url if outcome.pull_request else None,
        "merged": outcome.merged,
        "merge_commit": outcome.pull_request.merge_commit if outcome.pull_request else None,
        "base": outcome.base,
        "branch": outcome.branch,
        "cause": outcome.cause,
        "code": outcome.code,
        "stage": outcome.stage,
        "secondary": list(outcome.secondary),
        "preserved": outcome.preserved,
        "places": [{"what": what, "where": where} for what, where in outcome.places],
        "retained": outcome.retained,
        "rescued": str(outcome.rescued) if outcome.rescued else None,
        "session_log": str(outcome.session_log) if outcome.session_log else None,
        "continue": outcome.continue_command or None,
        "untold": {"file": str(outcome.untold), "command": RECOVER} if outcome.untold else None,
        "run": outcome.run_id,
        "interrupted_by": outcome.interruption.name if outcome.interruption else None,
    }
