"""The only door to GitHub, and the only module that imports PyGithub."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import requests
from github import Auth, Github, GithubException, RateLimitExceededException
from github.Issue import Issue as _Issue
from github.IssueComment import IssueComment as _IssueComment
from github.PullRequest import PullRequest as _PullRequest
from github.Requester import Requester
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from delivery.errors import (
    DraftsUnsupportedError,
    GitHubError,
    GitHubForbiddenError,
    GitHubNotFoundError,
    GitHubUnavailableError,
)
from worktree import Interruption

T = TypeVar("T")

_ATTEMPTS = 4
_LONGEST_WAIT = 60.0  # seconds; a server that asks for more gets an error with its reason instead
# https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
_UNNAMED_WAIT = 60.0  # seconds after a secondary limit whose answer names none
_GLANCE = 0.1  # seconds between looks, while waiting, whether a signal has come
_TIMEOUT = 15  # seconds for one answer
_MOVES = 3  # redirects that one request follows
_APP_TOKEN = "ghs_"  # noqa: S105 - how the tokens of apps begin, the built-in one of a workflow among them
_WORKFLOW_LOGIN = "github-actions[bot]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository, as the token sees it."""

    full_name: str
    may_push: bool
    archived: bool
    is_private: bool
    default_branch: str


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
    labels: frozenset[str] = frozenset()


def _latest(body: str, _earlier: str) -> str:
    return body


class GitHub:
    """One repository on GitHub.

    What may be done twice is repeated after trouble that may pass; what must happen once (a comment, a pull
    request) is repeated only after a look whether the lost one happened. A wait that GitHub names is kept when it
    is no longer than a minute, and is an error at once when it is. `report` is told of each wait; once
    `interruption` is recorded nothing is waited for or repeated. A list may take `patience` seconds. A repository
    that was renamed meanwhile is followed to its new address. Raises GitHubError and its subclasses, whose class
    says whether trying again may help.

    When GitHub does not know the token (401), `renew` is asked for the one to use now, and a call is repeated once with
    one that is new. Where there is none, or it is refused as well, `token_is_refused` holds, and every later call fails
    at once, without asking.
    """

    def __init__(
        self,
        *,
        api_url: str,
        token: str,
        renew: Callable[[], str | None] = lambda: None,
        repository: str,
        interruption: Interruption | None = None,
        report: Callable[[str], None] = lambda _: None,
        patience: float = 120,
    ) -> None:
        # PyGithub would repeat POSTs on its own, and wait as long as the server likes: the policy is here instead.
        self._token = _Token(token)
        self._client = Github(
            base_url=api_url,
            auth=self._token,
            retry=None,
            timeout=_TIMEOUT,
            per_page=100,
            lazy=True,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )
        self._repository = self._client.get_repo(repository)
        self._renew = renew
        self._refused: str | None = None
        self._accepted = False
        self._workflow_token: bool | None = None
        self._interruption = interruption or Interruption()
        self._report = report
        self._patience = patience

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @property
    def token_is_refused(self) -> bool:
        """Whether GitHub no longer takes the token, and there is none in its place."""
        return self._refused is not None

    def repository(self) -> Repository:
        """Return the repository under its present name, which is used from then on."""

        def read() -> Repository:
            seen = self._client.get_repo(self._repository.full_name)
            seen.complete()
            if seen.permissions is None:
                raise GitHubError("GitHub's answer is no repository; is the address of its API right?", 0)
            self._repository = self._client.get_repo(seen.full_name)
            return Repository(
                full_name=seen.full_name,
                may_push=seen.permissions.push,
                archived=seen.archived,
                is_private=seen.private,
                default_branch=seen.default_branch,
            )

        return self._read(read)

    def is_workflow_token(self) -> bool:
        """Tell whether the token is the built-in one of a workflow; an answer that cannot be had means no."""
        if self._workflow_token is None:
            self._workflow_token = self._token.token.startswith(_APP_TOKEN) and self._login() == _WORKFLOW_LOGIN
        return self._workflow_token

    def _login(self) -> str:
        def read() -> str:
            _, answer = self._client.requester.graphql_query("query { viewer { login } }", {})
            return str(answer["data"]["viewer"]["login"])

        try:
            return self._read(read)
        except GitHubError:
            return ""

    def issue(self, number: int) -> Issue:
        """Return an issue."""
        return self._read(lambda: _issue(self._repository.get_issue(number)))

    def labels(self) -> frozenset[str]:
        """Return the names of the labels that the repository has."""
        return self._read(lambda: frozenset(label.name for label in self._bounded(self._repository.get_labels())))

    def create_label(self, name: str, color: str, description: str) -> None:
        """Give the repository a label; one of that name that somebody else makes meanwhile stays as it is."""
        wanted = {"name": name, "color": color, "description": description}

        def create() -> None:
            try:
                _identified(self._send("POST", "labels", wanted), "id", "label")
            except GithubException as error:
                if error.status != 422 or name.lower() not in {label.lower() for label in self.labels()}:
                    raise

        self._read(create)  # a label whose answer was lost is there when it is made again

    def add_label(self, number: int, label: str) -> None:
        """Put a label on an issue, leaving the others alone."""

        def add() -> None:
            labels = self._send("POST", f"issues/{number}/labels", {"labels": [label]})
            if label.lower() not in {str(one["name"]).lower() for one in labels}:
                raise GitHubError(f"GitHub took the label {label} for #{number}, but did not put it on", 0)

        self._read(add)  # adding it again changes nothing, so a lost answer needs no look

    def remove_label(self, number: int, label: str) -> None:
        """Take a label off an issue, leaving the others alone; it may be gone already."""

        def remove() -> None:
            try:
                self._send("DELETE", f"issues/{number}/labels/{quote(label, safe='')}")
            except GithubException as error:
                if error.status != 404:
                    raise

        self._read(remove)

    def pull_requests(self, branch: str, *, state: str = "all") -> list[PullRequest]:
        """Return the pull requests from a branch of this repository, newest first. `state`: open, closed or all."""

        def read() -> list[PullRequest]:
            owner = self._repository.full_name.split("/")[0]
            found = self._repository.get_pulls(state=state, head=f"{owner}:{branch}", sort="created", direction="desc")
            # PyGithub follows a rename without the query, and all pull requests come.
            return [_pull_request(pull) for pull in self._bounded(found) if _is_from(pull, branch, state)]

        return self._read(read)

    def pull_request(self, number: int) -> PullRequest:
        """Return a pull request as it is now."""
        return self._read(lambda: _pull_request(self._repository.get_pull(number)))

    def open_pull_request(self, *, title: str, body: str, base: str, branch: str, draft: bool) -> PullRequest:
        """Open a pull request from `branch`; one that a lost answer hides is found again rather than opened twice."""

        wanted = {"title": title, "body": body, "base": base, "head": branch, "draft": draft}

        def write() -> PullRequest:
            made = _identified(self._send("POST", "pulls", wanted), "number", "pull request")
            return _pull_request(_PullRequest(self._client.requester, {}, made, completed=True))

        def look() -> PullRequest | None:
            return next(iter(self.pull_requests(branch, state="open")), None)

        try:
            return self._write(write, look)
        except GitHubError as error:
            # https://docs.github.com/rest/pulls/pulls#create-a-pull-request: only the words tell this 422 from others.
            found = look() if error.status == 422 and "already exists" in str(error) else None
            if found is None:
                raise
            return found

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        """Replace a pull request's title and body."""
        wanted = {"title": title, "body": body}
        self._read(lambda: _identified(self._send("PATCH", f"pulls/{number}", wanted), "number", "pull request"))

    def mark_ready(self, number: int) -> None:
        """Make a draft ready for review."""
        self._read(lambda: self._repository.get_pull(number).mark_ready_for_review())

    def convert_to_draft(self, number: int) -> None:
        """Turn a pull request back into a draft."""
        self._read(lambda: self._repository.get_pull(number).convert_to_draft())

    def comment(self, number: int, marker: str, body: str, merge: Callable[[str, str], str] = _latest) -> str:
        """Write the one comment that bears `marker`, or edit it where it stands already; return its URL.

        `body` must begin with `marker`; of a comment that stands there already `merge` makes, with its text, the new
        one. Only a comment that the token's own user wrote is edited.
        """
        found = self._find_comment(number, marker)
        if found is not None:
            self._edit(found, merge(body, found.body))
            return found.html_url

        def write() -> str:
            made = self._send("POST", f"issues/{number}/comments", {"body": body})
            return str(_identified(made, "id", f"comment on #{number}")["html_url"])

        def look() -> str | None:
            happened = self._find_comment(number, marker)
            return None if happened is None else happened.html_url

        return self._write(write, look)

    def edit_comment(self, number: int, marker: str, body: str, merge: Callable[[str, str], str] = _latest) -> bool:
        """Edit the comment that bears `marker`, as `comment` does; False when there is none."""
        found = self._find_comment(number, marker)
        if found is not None:
            self._edit(found, merge(body, found.body))
        return found is not None

    def _edit(self, comment: _IssueComment, body: str) -> None:
        path = f"issues/comments/{comment.id}"
        self._read(lambda: _identified(self._send("PATCH", path, {"body": body}), "id", "comment"))

    def _find_comment(self, number: int, marker: str) -> _IssueComment | None:
        def read() -> _IssueComment | None:
            for comment in self._bounded(self._repository.get_issue(number).get_comments()):
                if comment.body.startswith(marker) and self._is_own(comment):
                    return comment
            return None

        return self._read(read)

    def _is_own(self, comment: _IssueComment) -> bool:
        # Asked by GraphQL, because the token of a workflow may not ask who it is.
        query = "query($id: ID!) { node(id: $id) { __typename ... on IssueComment { viewerDidAuthor } } }"
        _, answer = self._client.requester.graphql_query(query, {"id": comment.node_id})
        return bool(answer["data"]["node"]["viewerDidAuthor"])

    def _send(self, method: str, path: str, body: object = None) -> Any:
        """Ask for a change, and return GitHub's answer. Follows the repository, or the issue, to where it has moved.

        PyGithub takes the 307 that GitHub then answers for a success, and makes an empty object of it.
        """
        url = f"{self._repository.url}/{path}"
        for _ in range(_MOVES):
            status, headers, text = self._client.requester.requestJson(method, url, input=body)
            if not 300 <= status < 400:
                return self._answer(status, headers, text)
            url = self._moved_to(status, headers)
        raise GitHubError(f"GitHub answered {status} again and again: {path} moves in circles", status)

    def _answer(self, status: int, headers: dict[str, Any], text: str) -> Any:
        if status < 400:
            return json.loads(text) if text else None
        try:
            said = json.loads(text)
        except ValueError:
            said = None  # a proxy's page
        raise self._client.requester.createException(status, headers, said if isinstance(said, dict) else {})

    def _moved_to(self, status: int, headers: Mapping[str, Any]) -> str:
        place = str(headers.get("location", ""))
        if urlsplit(place)[:2] != urlsplit(self._client.requester.base_url)[:2]:
            raise GitHubError(
                f"GitHub answered {status}: what was to be changed has moved to {place or 'nowhere'}", status
            )
        return place

    def _read(self, action: Callable[[], T]) -> T:
        """Do something that may be done twice, patiently; once a signal is recorded, only once."""

        def attempt() -> T:
            done = self._authorized(action)
            self._accepted = True
            return done

        retrying = Retrying(
            retry=retry_if_exception(_is_worth_waiting_for),
            stop=lambda state: state.attempt_number >= (1 if self._interruption.recorded else _ATTEMPTS),
            wait=_wait,
            sleep=self._sleep,
            before_sleep=self._tell,
            reraise=True,
        )
        return retrying(attempt)

    def _authorized(self, action: Callable[[], T], *, may_renew: bool = True) -> T:
        """Do it with the token, and once more with a new one when that is refused; then never again."""
        if self._refused is not None:
            raise GitHubError(self._refused, 401)
        try:
            with _translated(accepted=self._accepted):
                return action()
        except GitHubError as error:
            if error.status != 401:
                raise
            if may_renew and self._renewed():
                return self._authorized(action, may_renew=False)
            self._refused = str(error)
            raise

    def _renewed(self) -> bool:
        """Take the token as it is now, and tell whether that is another."""
        token = None if self._refused else self._renew()
        if token is None or token == self._token.token:
            return False
        self._report("GitHub no longer takes the token; going on with the one that was read afresh")
        self._token.replace(token)
        return True

    def _bounded(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items of all pages; pages without an end, as of one that names itself as the next, are an error."""
        began = time.monotonic()
        for item in items:
            if time.monotonic() - began > (_TIMEOUT if self._interruption.recorded else self._patience):
                raise GitHubError("a list of GitHub's was given up before its end", 0)
            yield item

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._interruption.recorded and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _GLANCE))

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


class _Token(Auth.Token):
    """The token that each request gets when it is sent, see `github.Auth.Auth.authentication`."""

    def replace(self, token: str) -> None:
        """Give later requests another one."""
        self._token = token


def graphql_url(api_url: str) -> str:
    """Return the address of GraphQL that goes with the API's: the one that is asked."""
    parts = urlsplit(api_url)
    return urlunsplit(parts._replace(path=Requester.get_graphql_prefix(parts.path)))


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
        labels=frozenset(label.name for label in seen.labels),
    )


def _is_from(pull: _PullRequest, branch: str, state: str) -> bool:
    own = pull.head.repo is not None and pull.head.repo.id == pull.base.repo.id
    return own and pull.head.ref == branch and state in ("all", pull.state)


def _identified(answer: Any, key: str, what: str) -> dict[str, Any]:
    """Return GitHub's answer to a write, whose effect is certain only by the id that it was given."""
    if not isinstance(answer, dict) or not isinstance(answer.get(key), int):
        raise GitHubError(f"GitHub took the {what}, but gave it no {key}", 0)
    return answer


def _is_worth_waiting_for(error: BaseException) -> bool:
    return isinstance(error, GitHubUnavailableError) and (error.wait or 0) <= _LONGEST_WAIT


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    named = error.wait if isinstance(error, GitHubUnavailableError) else None
    return named if named is not None else wait_exponential(multiplier=0.5, max=8)(state)


@contextmanager
def _translated(*, accepted: bool) -> Iterator[None]:
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
    if wait is not None and wait > _LONGEST_WAIT:
        message += f"; it asks for a wait of {wait:.0f} s, and a Run waits for {_LONGEST_WAIT:.0f} s at most"
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
