"""What GitHub's refusals and silences mean."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import requests

from delivery.errors import (
    DraftsUnsupportedError,
    GitHubError,
    GitHubForbiddenError,
    GitHubNotFoundError,
    GitHubUnavailableError,
)
from delivery.github.pygithub import GithubException, RateLimitExceededException

LONGEST_WAIT = 60.0
"""Seconds; a server that asks for more gets an error with its reason instead."""
# https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
_UNNAMED_WAIT = 60.0  # seconds after a secondary limit whose answer names none


@contextmanager
def translated(*, accepted: bool) -> Iterator[None]:
    """Raise our errors for PyGithub's; `accepted` says whether the token was good before."""
    try:
        yield
    except GithubException as error:
        raise _error(error, accepted=accepted) from error
    except requests.RequestException as error:
        raise GitHubUnavailableError(_unreachable(error), 0) from error
    except (TypeError, AttributeError, LookupError, ValueError, AssertionError, RuntimeError) as error:
        # What PyGithub makes of an answer that is no object of GitHub's: a proxy's page, an empty one.
        raise GitHubError(f"GitHub's answer makes no sense: {error}", 0) from error


def _unreachable(error: requests.RequestException) -> str:
    """Say it in a line: the address, and the operating system's word for it where there is one."""
    request = error.request
    where = f"GitHub at {urlsplit(request.url).netloc}" if request is not None and request.url else "GitHub"
    reason: BaseException | None = error
    while reason is not None and not (isinstance(reason, OSError) and reason.strerror):
        reason = reason.__cause__ or reason.__context__ or getattr(reason, "reason", None) or _inner(reason)
    said = reason.strerror if isinstance(reason, OSError) else type(error).__name__
    return f"{where} cannot be reached: {said}"


def _inner(error: BaseException) -> BaseException | None:
    return next((part for part in error.args if isinstance(part, BaseException)), None)


def _error(error: GithubException, *, accepted: bool) -> GitHubError:
    """Return what an answer means; `accepted` says whether the token was good before."""
    kind = _graphql_kind(error)
    message = f"GitHub answered {kind or error.status}: {_message(error)}"
    if isinstance(error, RateLimitExceededException) or kind == "RATE_LIMITED":
        return _overload(message, error.status, _named_wait(error, otherwise=_UNNAMED_WAIT))
    if error.status == 429 or error.status >= 500 or "retry-after" in (error.headers or {}):
        return _overload(message, error.status, _named_wait(error, otherwise=None))
    if error.status == 401 and accepted:
        return GitHubError(f"{message}; the token has expired or was revoked", error.status)
    if error.status == 404:
        return GitHubNotFoundError(message, error.status)
    # Again only by the words.
    if (error.status == 422 or kind == "UNPROCESSABLE") and "draft pull requests are not supported" in message.lower():
        return DraftsUnsupportedError(message, error.status)
    if error.status == 403 or kind == "FORBIDDEN":
        return GitHubForbiddenError(message, error.status)
    return GitHubError(message, error.status)


def _overload(message: str, status: int, wait: float | None) -> GitHubUnavailableError:
    if wait is not None and wait > LONGEST_WAIT:
        message += f"; it asks for a wait of {wait:.0f} s, and a Run waits for {LONGEST_WAIT:.0f} s at most"
    return GitHubUnavailableError(message, status, wait)


def _graphql_kind(error: GithubException) -> str:
    """Return the type of the first error of a GraphQL query, "" for others: the status is PyGithub's own then."""
    errors = error.data.get("errors") if isinstance(error.data, dict) and "data" in error.data else None
    first = errors[0] if isinstance(errors, list) and errors else None
    return str(first.get("type", "")) if isinstance(first, dict) else ""


def _named_wait(error: GithubException, *, otherwise: float | None) -> float | None:
    """Return the seconds that GitHub asks to wait: by name, or by when the used-up hour ends on its clock."""
    headers = error.headers or {}
    if (named := headers.get("retry-after", "")).isdigit():
        return float(named)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        return max(0.0, float(reset) - _clock(headers)) + 1
    return otherwise


def _clock(headers: Mapping[str, str]) -> float:
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return datetime.now(UTC).timestamp()


def _message(error: GithubException) -> str:
    data = error.data if isinstance(error.data, dict) else {}
    details = [str(detail.get("message", "")) for detail in data.get("errors") or [] if isinstance(detail, dict)]
    said = [part for part in (data.get("message") or error.message or "", *details) if part]
    return "; ".join(said) or "no reason given"
