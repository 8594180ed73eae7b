"""What the process's exit status says."""

from enum import IntEnum
from signal import Signals

from delivery.outcome import Outcome, Result
from worktree import Preserved


class ExitCode(IntEnum):
    """The exit statuses of every command; 128 + n stands for signal n."""

    DELIVERED = 0
    FAILED = 1
    NOT_BEGUN = 2
    FAILED_KEPT_HERE = 3
    POLICY_REFUSAL = 4
    BUG = 70
    DEFERRED = 75


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


def signal_exit_code(signum: Signals) -> int:
    """Return the exit status of a command that a signal ended."""
    return 128 + signum
