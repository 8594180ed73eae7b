"""What the process's exit status says."""

from enum import IntEnum
from signal import Signals


class ExitCode(IntEnum):
    """The exit statuses of every command; 128 + n stands for signal n."""

    DELIVERED = 0
    FAILED = 1
    NOT_BEGUN = 2
    FAILED_KEPT_HERE = 3
    POLICY_REFUSAL = 4
    BUG = 70
    DEFERRED = 75


def signal_exit_code(signum: Signals) -> int:
    """Return the exit status of a command that a signal ended."""
    return 128 + signum
