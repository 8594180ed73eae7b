"""What can go wrong below. Infrastructure trouble is an exception; how a run ended is a value."""

from collections.abc import Sequence
from pathlib import Path

from worktree.refusal import Refusal, RefusalKind, read_refusal

_MOST_SHOWN = 4000  # characters of an output in an error's text; its field has all of it


class WorktreeError(Exception):
    """Anything that this package raises on purpose. Its text is redacted and fit for a person."""


class LaunchError(WorktreeError):
    """The Launch directory cannot be worked from as it stands. Nothing was done; the text says the remedy."""


class BranchTakenError(LaunchError):
    """Somebody else made the local branch just before we could. Nothing was done."""


class AcquisitionError(WorktreeError):
    """A worktree could not be made. `left` says what is there all the same, None when nothing is."""

    def __init__(self, message: str, left: str | None) -> None:
        super().__init__(message if left is None else f"{message}; {left}")
        self.left = left


class DeferredError(WorktreeError):
    """Not now: somebody else is at work there. Nothing was done, and trying again later may help."""


class PrivateWorkError(WorktreeError):
    """A push was not made, because it would have published what was a person's alone."""


class FenceLostError(WorktreeError):
    """The ref that a run must move with each push is no longer its own, so nothing was pushed."""


class TransferError(WorktreeError):
    """Origin did not take what was sent, or was not seen to hold it. The text is for a person, and has no token.

    `is_refusal` says that it refused one of the refs.
    """

    def __init__(self, message: str, *, is_refusal: bool = False) -> None:
        super().__init__(message)
        self.is_refusal = is_refusal


class UnsettledError(WorktreeError):
    """A session left the worktree such that nobody can say what belongs to the pull request."""


class PreservationError(WorktreeError):
    """A Failed run's work could not be preserved whole. The worktree and its branch stay where they are."""


class GitError(WorktreeError):
    """A git command that failed, did not end in time, or could not be started.

    `argv` begins with "git" and leaves out what every command of ours carries. `status` is the exit status,
    negative for a signal, None when the command never ran. Every text in it is redacted.
    """

    def __init__(
        self, argv: Sequence[str], directory: Path, *, status: int | None, stdout: str = "", stderr: str = ""
    ) -> None:
        self.argv = tuple(argv)
        self.directory = directory
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        super().__init__(self._text())

    def _text(self) -> str:
        said = "\n".join(_end(part.strip()) for part in (self.stderr, self.stdout) if part.strip())
        return f"{' '.join(self.argv)} failed{self._how()} in {self.directory}" + (f": {said}" if said else "")

    @property
    def is_outage(self) -> bool:
        """Whether origin could not be reached, or failed: that may pass, and nothing was refused."""
        return read_refusal(self.stdout, self.stderr).kind is RefusalKind.TRANSIENT

    @property
    def refused_credential(self) -> str | None:
        """What origin said of the credential when it did not take that, in one line; None when it was not that."""
        refusal = read_refusal(self.stdout, self.stderr)
        return str(refusal) if refusal.kind is RefusalKind.UNAUTHORIZED else None

    def _how(self) -> str:
        if self.status is None:
            return ""
        return f" (exit {self.status})" if self.status >= 0 else f" (killed by signal {-self.status})"


def _end(output: str) -> str:
    return output if len(output) <= _MOST_SHOWN else "…" + output[-_MOST_SHOWN:]


class GitTimeoutError(GitError):
    """A git command that was stopped at its deadline."""

    def _how(self) -> str:
        return " (stopped at its deadline)"


class PushRefused(GitError):  # noqa: N818 - it says what happened, as `Interrupted` does
    """Origin did not take a push: no ref is what it was to be. `refs` are those that it refused, `refusal` says why.

    Its text is one line for a person; what git said is in the fields.
    """

    def __init__(self, failed: GitError, refusal: Refusal, refs: Sequence[str]) -> None:
        self.refusal = refusal
        self.refs = tuple(refs)
        super().__init__(
            failed.argv, failed.directory, status=failed.status, stdout=failed.stdout, stderr=failed.stderr
        )

    @property
    def is_behind(self) -> bool:
        """Whether origin holds commits on the branch that are not here."""
        return self.refusal.kind is RefusalKind.NON_FAST_FORWARD

    def _text(self) -> str:
        refs = ", ".join(self.refs)
        if self.refusal.kind is RefusalKind.TRANSIENT:
            return f"{self.refusal.kind}, so {refs} did not get there: {self.refusal.words}"
        return f"origin did not take {refs}: {self.refusal}"


class BranchRewrittenError(WorktreeError):
    """Somebody took commits off a branch of origin that this run builds on, or the branch itself.

    Nothing is pushed to the Issue branch from then on: it would bring back what was taken off.
    """


class Interrupted(GitError):  # noqa: N818 - the name is part of the published contract
    """An ordinary command was refused or stopped, because a signal is recorded."""

    def _text(self) -> str:
        return "interrupted"
