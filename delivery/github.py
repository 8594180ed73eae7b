"""The only door to GitHub, and the only module that imports PyGithub."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import requests
from github import Auth, Github, GithubException, RateLimitExceededException
from github.Issue import Issue as _Issue
from github.IssueComment import IssueComment as _IssueComment
from github.PullRequest import PullRequest as _PullRequest
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential

from delivery.errors import GitHubError, GitHubNotFoundError, GitHubUnavailableError
from worktree import Interruption

T = TypeVar("T")

_ATTEMPTS = 4
_LONGEST_WAIT = 60.0  # seconds; a server that asks for more gets an error with its reason instead
_TIMEOUT = 15  # seconds for one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository, as the token sees it."""

    full_name: str
    may_push: bool
    archived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue; `url` is where it is now, which is elsewhere after a transfer."""

    number: int
    title: str
    body: str
    is_open: bool
    labels: frozenset[str]
    is_pull_request: bool
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request. `head` is the commit that GitHub knows as its head."""

    number: int
    url: str
    is_open: bool
    is_draft: bool
    base: str
    branch: str
    head: str
    body: str


class GitHub:
    """One repository on GitHub.

    What may be done twice is repeated after trouble that may pass; what must happen once (a comment, a pull request)
    is repeated only after a look whether the lost one happened. `report` is told of each wait; once `interruption`
    is recorded nothing is repeated. Raises GitHubError and its subclasses, whose class says whether trying again may
    help.
    """

    def __init__(
        self,
        *,
        api_url: str,
        token: str,
        repository: str,
        interruption: Interruption | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        # PyGithub would repeat POSTs on its own, and wait as long as the server likes: the policy is here instead.
        self._client = Github(
            base_url=api_url,
            auth=Auth.Token(token),
            retry=None,
            timeout=_TIMEOUT,
            per_page=100,
            lazy=True,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )
        self._repository = self._client.get_repo(repository)
        self._interruption = interruption or Interruption()
        self._report = report

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def repository(self) -> Repository:
        """Return the repository under its present name."""

        def read() -> Repository:
            seen = self._client.get_repo(self._repository.full_name)
            seen.complete()
            if seen.permissions is None:
                raise GitHubError("GitHub's answer is no repository; is the address of its API right?", 0)
            return Repository(full_name=seen.full_name, may_push=seen.permissions.push, archived=seen.archived)

        return self._read(read)

    def issue(self, number: int) -> Issue:
        """Return an issue."""
        return self._read(lambda: _issue(self._repository.get_issue(number)))

    def add_label(self, number: int, label: str) -> None:
        """Put a label on an issue, leaving the others alone."""
        # Adding it again changes nothing, so a lost answer needs no look.
        self._read(lambda: self._repository.get_issue(number).add_to_labels(label))

    def remove_label(self, number: int, label: str) -> None:
        """Take a label off an issue, leaving the others alone; it may be gone already."""

        def remove() -> None:
            try:
                self._repository.get_issue(number).remove_from_labels(label)
            except GithubException as error:
                if error.status != 404:
                    raise

        self._read(remove)

    def pull_requests(self, branch: str, *, state: str = "all") -> list[PullRequest]:
        """Return the pull requests from a branch of this repository, newest first. `state`: open, closed or all."""
        owner = self._repository.full_name.split("/")[0]

        def read() -> list[PullRequest]:
            found = self._repository.get_pulls(state=state, head=f"{owner}:{branch}", sort="created", direction="desc")
            return [_pull_request(pull) for pull in found]

        return self._read(read)

    def pull_request(self, number: int) -> PullRequest:
        """Return a pull request as it is now."""
        return self._read(lambda: _pull_request(self._repository.get_pull(number)))

    def open_pull_request(self, *, title: str, body: str, base: str, branch: str, draft: bool) -> PullRequest:
        """Open a pull request from `branch`; one that a lost answer hides is found again rather than opened twice."""

        def write() -> PullRequest:
            made = self._repository.create_pull(title=title, body=body, base=base, head=branch, draft=draft)
            return _pull_request(made)

        def look() -> PullRequest | None:
            return next(iter(self.pull_requests(branch, state="open")), None)

        return self._write(write, look)

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        """Replace a pull request's title and body."""
        self._read(lambda: self._repository.get_pull(number).edit(title=title, body=body))

    def mark_ready(self, number: int) -> None:
        """Make a draft ready for review."""
        self._read(lambda: self._repository.get_pull(number).mark_ready_for_review())

    def convert_to_draft(self, number: int) -> None:
        """Turn a pull request back into a draft."""
        self._read(lambda: self._repository.get_pull(number).convert_to_draft())

    def comment(self, number: int, marker: str, body: str) -> str:
        """Write the one comment that bears `marker`, or edit it where it stands already; return its URL.

        `body` must begin with `marker`. Only a comment that the token's own user wrote is edited.
        """
        found = self._find_comment(number, marker)
        if found is not None:
            self._read(lambda: found.edit(body))
            return found.html_url
        issue = self._repository.get_issue(number)
        made = self._write(lambda: issue.create_comment(body), lambda: self._find_comment(number, marker))
        if not made.id:
            raise GitHubError(f"GitHub took the comment on #{number} but gave it no id", 0)
        return made.html_url

    def edit_comment(self, number: int, marker: str, body: str) -> bool:
        """Edit the comment that bears `marker`; False when there is none."""
        found = self._find_comment(number, marker)
        if found is not None:
            self._read(lambda: found.edit(body))
        return found is not None

    def _find_comment(self, number: int, marker: str) -> _IssueComment | None:
        def read() -> _IssueComment | None:
            for comment in self._repository.get_issue(number).get_comments():
                if comment.body.startswith(marker) and self._is_own(comment):
                    return comment
            return None

        return self._read(read)

    def _is_own(self, comment: _IssueComment) -> bool:
        # Asked by GraphQL, because the token of a workflow may not ask who it is.
        query = "query($id: ID!) { node(id: $id) { __typename ... on IssueComment { viewerDidAuthor } } }"
        _, answer = self._client.requester.graphql_query(query, {"id": comment.node_id})
        return bool(answer["data"]["node"]["viewerDidAuthor"])

    def _read(self, action: Callable[[], T]) -> T:
        """Do something that may be done twice, patiently; once a signal is recorded, only once."""

        def attempt() -> T:
            with _translated():
                return action()

        retrying = Retrying(
            retry=retry_if_exception_type(GitHubUnavailableError),
            stop=lambda state: state.attempt_number >= (1 if self._interruption.recorded else _ATTEMPTS),
            wait=_wait,
            before_sleep=self._tell,
            reraise=True,
        )
        return retrying(attempt)

    def _write(self, action: Callable[[], T], look: Callable[[], T | None]) -> T:
        """Do something that must happen once: before it is repeated, `look` tells whether it happened."""
        attempts = 0

        def attempt() -> T:
            nonlocal attempts
            attempts += 1
            happened = look() if attempts > 1 else None
            return action() if happened is None else happened

        return self._read(attempt)

    def _tell(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self._report(f"{error}; trying again in {state.upcoming_sleep:.1f} s")


def _issue(seen: _Issue) -> Issue:
    return Issue(
        number=seen.number,
        title=seen.title,
        body=seen.body or "",
        is_open=seen.state == "open",
        labels=frozenset(label.name for label in seen.labels),
        is_pull_request=seen.pull_request is not None,
        url=seen.html_url,
    )


def _pull_request(seen: _PullRequest) -> PullRequest:
    return PullRequest(
        number=seen.number,
        url=seen.html_url,
        is_open=seen.state == "open",
        is_draft=seen.draft,
        base=seen.base.ref,
        branch=seen.head.ref,
        head=seen.head.sha,
        body=seen.body or "",
    )


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    named = error.wait if isinstance(error, GitHubUnavailableError) else None
    return named if named is not None else wait_exponential(multiplier=0.5, max=8)(state)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except GithubException as error:
        raise _error(error) from error
    except requests.RequestException as error:
        raise GitHubUnavailableError(_unreachable(error), 0) from error
    except (TypeError, AttributeError, LookupError, ValueError, AssertionError) as error:
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


def _error(error: GithubException) -> GitHubError:
    message = f"GitHub answered {error.status}: {_message(error)}"
    named = _named_wait(error)
    patience = error.status == 429 or isinstance(error, RateLimitExceededException) or named is not None
    if error.status >= 500 or (patience and (named or 0) <= _LONGEST_WAIT):
        return GitHubUnavailableError(message, error.status, named)
    if error.status == 404:
        return GitHubNotFoundError(message, error.status)
    return GitHubError(message, error.status)


def _named_wait(error: GithubException) -> float | None:
    named = (error.headers or {}).get("retry-after", "")
    return float(named) if named.isdigit() else None


def _message(error: GithubException) -> str:
    data = error.data if isinstance(error.data, dict) else {}
    details = [str(detail.get("message", "")) for detail in data.get("errors") or [] if isinstance(detail, dict)]
    said = [part for part in (data.get("message") or error.message or "", *details) if part]
    return "; ".join(said) or "no reason given"
