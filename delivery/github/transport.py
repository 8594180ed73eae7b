"""Sending requests to GitHub: the token, the one retry policy, pages, and answers that are still the same."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import requests
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from delivery.errors import GitHubError, GitHubUnavailableError
from delivery.github.failures import LONGEST_WAIT, translated
from delivery.github.pygithub import Auth, Github, Repository, Requester
from worktree import Interruption, ServerTime

T = TypeVar("T")

_ATTEMPTS = 4
_TIMEOUT = 15  # seconds for one answer
_MOVES = 3  # redirects that one request follows
_NEXT = re.compile(r'<([^>]+)>\s*;[^,]*\brel="?next\b')
_CHUNK = 1 << 16  # bytes


class Transport:
    """Asks GitHub about one repository; see `delivery.github.door.GitHub` for what it promises."""

    def __init__(
        self,
        *,
        api_url: str,
        token: str,
        renew: Callable[[], str | None],
        repository: str,
        interruption: Interruption,
        report: Callable[[str], None],
        patience: float,
    ) -> None:
        # PyGithub would repeat POSTs on its own, and wait as long as the server likes: the policy is here instead.
        self._token = _Token(token)
        self.client = Github(
            base_url=api_url,
            auth=self._token,
            retry=None,
            timeout=_TIMEOUT,
            per_page=100,
            lazy=True,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )
        self.repository: Repository = self.client.get_repo(repository)
        self._renew = renew
        self._refused: str | None = None
        self._accepted = False
        self._interruption = interruption
        self._report = report
        self._patience = patience
        self._remembered: dict[str, _Page] = {}
        self.server_time = ServerTime()
        # Called before each request that changes something; raises to forbid it.
        self.guard: Callable[[], object] = lambda: None

    @property
    def token(self) -> str:
        """The token as it is by now."""
        return self._token.token

    @property
    def token_is_refused(self) -> bool:
        """Whether GitHub no longer takes the token, and there is none in its place."""
        return self._refused is not None

    def send(self, method: str, path: str, body: object = None) -> Any:
        """Ask for a change, and return GitHub's answer. Follows the repository, or the issue, to where it has moved.

        PyGithub takes the 307 that GitHub then answers for a success, and makes an empty object of it. To be called
        by what `patiently` or `write` is given.
        """
        if method != "GET":
            self.guard()
        status, headers, text = self._request(method, self._address(path), body, {})
        return self._answer(status, headers, text)

    def query(self, query: str, variables: Mapping[str, object]) -> Any:
        """Ask GraphQL, and return the data. To be called by what `patiently` or `write` is given."""
        if query.startswith("mutation"):
            self.guard()
        headers, answer = self.client.requester.graphql_query(query, dict(variables))
        self.server_time.hear(headers.get("date"))
        return answer["data"]

    def get(self, path: str, read: Callable[[Any], T]) -> T:
        """Return what `read` makes of GitHub's answer; one that is still the same does not count against the limit."""
        return self.patiently(lambda: read(self._page(self._address(path)).data))

    def pages(self, path: str, read: Callable[[Any], Iterable[T]]) -> list[T]:
        """Return what `read` finds on all pages of a list, asked for as `get` does."""

        def look() -> list[T]:
            pages = self.bounded(self._following(self._address(path)))
            return [item for page in pages for item in read(page.data)]

        return self.patiently(look)

    def _following(self, url: str | None) -> "Iterator[_Page]":
        while url:
            page = self._page(url)
            yield page
            url = page.following

    def download_tail(self, path: str, size: int) -> bytes:
        """Return the last `size` bytes of a file that GitHub sends to be fetched elsewhere; the token stays here."""

        def read() -> bytes:
            requester = self.client.requester
            status, headers, text = requester.requestJson("GET", self._address(path))
            if not 300 <= status < 400:
                self._answer(status, headers, text)
                return text.encode()[-size:]
            place = str(headers.get("location", ""))
            if urlsplit(place).scheme not in ("https", urlsplit(requester.base_url).scheme):
                raise GitHubError(f"GitHub sends for {path} to {place or 'nowhere'}", status)
            return self._end_of(place, size)

        return self.patiently(read)

    def _end_of(self, place: str, size: int) -> bytes:
        end = b""
        with requests.get(place, timeout=_TIMEOUT, stream=True) as answer:
            answer.raise_for_status()
            for chunk in self.bounded(answer.iter_content(_CHUNK)):
                end = (end + chunk)[-size:]
        return end

    def _page(self, url: str) -> "_Page":
        before = self._remembered.get(url)
        asked = {"If-None-Match": before.tag} if before and before.tag else {}
        status, headers, text = self._request("GET", url, None, asked)
        if status == 304 and before:
            return before
        data = self._answer(status, headers, text)
        following = _NEXT.search(str(headers.get("link", "")))
        page = _Page(str(headers.get("etag", "")), following[1] if following else None, data)
        self._remembered[url] = page
        return page

    def _address(self, path: str) -> str:
        return f"{self.repository.url}/{path}"

    def _request(
        self, method: str, url: str, body: object, asked: Mapping[str, str]
    ) -> tuple[int, dict[str, Any], str]:
        for _ in range(_MOVES):
            status, headers, text = self.client.requester.requestJson(method, url, headers=dict(asked), input=body)
            self.server_time.hear(headers.get("date"))
            if status == 304 or not 300 <= status < 400:
                return status, headers, text
            url = self._moved_to(status, headers)
        raise GitHubError(f"GitHub answered {status} again and again: {urlsplit(url).path} moves in circles", status)

    def _answer(self, status: int, headers: dict[str, Any], text: str) -> Any:
        if status < 400:
            return json.loads(text) if text else None
        try:
            said = json.loads(text)
        except ValueError:
            said = None  # a proxy's page
        raise self.client.requester.createException(status, headers, said if isinstance(said, dict) else {})

    def _moved_to(self, status: int, headers: Mapping[str, Any]) -> str:
        place = str(headers.get("location", ""))
        if urlsplit(place)[:2] != urlsplit(self.client.requester.base_url)[:2]:
            raise GitHubError(
                f"GitHub answered {status}: what was to be changed has moved to {place or 'nowhere'}", status
            )
        return place

    def patiently(self, action: Callable[[], T]) -> T:
        """Do something that may be done twice, patiently; once a signal is recorded, only once."""

        def attempt() -> T:
            done = self._authorized(action)
            self._accepted = True
            return done

        retrying = Retrying(
            retry=retry_if_exception(_is_worth_waiting_for),
            stop=lambda state: state.attempt_number >= (1 if self._interruption.recorded else _ATTEMPTS),
            wait=_wait,
            sleep=self._interruption.wait,
            before_sleep=self._tell,
            reraise=True,
        )
        return retrying(attempt)

    def write(self, action: Callable[[], T], look: Callable[[], T | None]) -> T:
        """Do something that must happen once: before it is repeated, `look` tells whether it happened."""
        attempts = 0

        def attempt() -> T:
            nonlocal attempts
            attempts += 1
            happened = look() if attempts > 1 else None
            return action() if happened is None else happened

        return self.patiently(attempt)

    def _authorized(self, action: Callable[[], T], *, may_renew: bool = True) -> T:
        """Do it with the token, and once more with a new one when that is refused; then never again."""
        if self._refused is not None:
            raise GitHubError(self._refused, 401)
        try:
            with translated(accepted=self._accepted):
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

    def bounded(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items of all pages; pages without an end, as of one that names itself as the next, are an error."""
        began = time.monotonic()
        for item in items:
            if time.monotonic() - began > (_TIMEOUT if self._interruption.recorded else self._patience):
                raise GitHubError("a list of GitHub's was given up before its end", 0)
            yield item

    def _tell(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self._report(f"{error}; trying again in {state.upcoming_sleep:.1f} s")


class _Page:
    """One answer, by which tag GitHub knows it again, and where the page after it is."""

    __slots__ = ("data", "following", "tag")

    def __init__(self, tag: str, following: str | None, data: Any) -> None:
        self.tag = tag
        self.following = following
        self.data = data


class _Token(Auth.Token):
    """The token that each request gets when it is sent, see `github.Auth.Auth.authentication`."""

    def replace(self, token: str) -> None:
        """Give later requests another one."""
        self._token = token


def graphql_url(api_url: str) -> str:
    """Return the address of GraphQL that goes with the API's: the one that is asked."""
    parts = urlsplit(api_url)
    return urlunsplit(parts._replace(path=Requester.get_graphql_prefix(parts.path)))


def _is_worth_waiting_for(error: BaseException) -> bool:
    return isinstance(error, GitHubUnavailableError) and (error.wait or 0) <= LONGEST_WAIT


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    named = error.wait if isinstance(error, GitHubUnavailableError) else None
    return named if named is not None else wait_exponential(multiplier=0.5, max=8)(state)
