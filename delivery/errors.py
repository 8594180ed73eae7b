"""What can go wrong in a delivery. How a Run ended is a value, see `delivery.outcome`."""

from collections.abc import Sequence

from delivery.causes import Code


class DeliveryError(Exception):
    """Anything that this package raises on purpose. Its text is fit for a person."""


class PreflightError(DeliveryError):
    """A Run that cannot start. Nothing was made or claimed; the text says the remedy."""


class TakenError(PreflightError):
    """Another run has the issue: nothing is wrong, and there is nothing to do."""


class RunFailureError(DeliveryError):
    """What makes a Run a Failed run; its text is the cause, in one sentence, `code` what kind of cause it is.

    `failing` are the checks that failed, by name and address.
    """

    def __init__(self, message: str, code: Code, failing: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.failing = tuple(failing)


class PolicyRefusal(RunFailureError):  # noqa: N818 - the name is the domain's
    """A Self-merge that GitHub's rules refuse, or what people did to the issue, with nothing left to fix.

    The pull request stays ready.
    """

    def __init__(self, message: str, code: Code = Code.POLICY_REFUSAL) -> None:
        super().__init__(message, code)


class GitHubError(DeliveryError):
    """GitHub said no, or said nothing. `status` is the HTTP status, 0 when there was no answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class GitHubNotFoundError(GitHubError):
    """What was asked for is not there, or the token may not see it."""


class GitHubForbiddenError(GitHubError):
    """The token may not do what was asked for."""


class DraftsUnsupportedError(GitHubError):
    """The plan of the repository's owner has no draft pull requests."""


class GitHubUnavailableError(GitHubError):
    """GitHub could not be reached, was overloaded or asked for patience: trying again may help.

    `wait` is how many seconds it asked for, None when it named none.
    """

    def __init__(self, message: str, status: int, wait: float | None = None) -> None:
        super().__init__(message, status)
        self.wait = wait


def is_for_later(error: Exception) -> bool:
    """Whether GitHub may take later what it did not take now: it was not there, asked for patience, or for a token."""
    return isinstance(error, GitHubUnavailableError) or (isinstance(error, GitHubError) and error.status == 401)
