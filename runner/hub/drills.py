"""Drills: what the hub is told to do wrong, and for which requests.

    with hub.drill("POST", "*/issues/*/comments", drills.lost_answer()) as drill:
        ...                                     # the comment is stored, and the client gets a 502
    assert drill.hits == 1

The path may be a shell pattern, in which `*` stands for slashes too: `/api/v3/repos/acme/widget/pulls`,
`*/info/refs?service=git-receive-pack` (with or without the query), `/acme/widget.git/git-receive-pack`.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Self

from runner.hub.access import TokenKind
from runner.hub.refusal import FORBIDDEN, NO_DRAFTS, Refusal

ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What happens to a request.

    `delay` seconds pass first. With neither `status` nor `drop` the hub then answers as ever. Otherwise it does what
    was asked only if `work` is true, and gives this `status`, these `headers` and this `body` (JSON, or text when it is
    a string), or drops the connection without an answer. `genuine`: GitHub itself would answer so, and whoever observes
    the hub is told.
    """

    delay: float = 0.0
    work: bool = False
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    drop: bool = False
    genuine: bool = False

    @property
    def answers(self) -> bool:
        """Whether the client gets something other than the hub's own answer."""
        return self.drop or self.status is not None


def answer(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> Trouble:
    """Do nothing of what was asked, and answer this."""
    return Trouble(status=status, body=body, headers=headers or {})


def delay(seconds: float) -> Trouble:
    """Answer as ever, later. Removing the drill lets go what it holds."""
    return Trouble(delay=seconds)


def server_error(status: int = 502) -> Trouble:
    """Do nothing of what was asked, and fail."""
    return Trouble(status=status, body={"message": "Server Error"})


def lost_answer(status: int = 502) -> Trouble:
    """Do what was asked, and claim to have failed."""
    return Trouble(work=True, status=status, body={"message": "Server Error"})


def dropped_connection(*, work: bool = True) -> Trouble:
    """Do what was asked, unless `work` is false, and end the connection without a word."""
    return Trouble(work=work, drop=True)


def secondary_rate_limit(retry_after: int | None = None) -> Trouble:
    """Answer 403 for too many requests at once; GitHub does not always say how many seconds to wait."""
    message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Trouble(status=403, body=Refusal(403, message).body(), headers=headers)


def primary_rate_limit(reset_in: int) -> Trouble:
    """Answer 403 for a used-up hour that ends in `reset_in` seconds."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + reset_in)}
    message = "API rate limit exceeded for user ID 1."
    return Trouble(status=403, body=Refusal(403, message).body(), headers=headers)


def too_many_requests(retry_after: int) -> Trouble:
    """Answer 429, to be tried again after so many seconds."""
    message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    return Trouble(status=429, body=Refusal(429, message).body(), headers={"retry-after": str(retry_after)})


def bad_credentials() -> Trouble:
    """Answer 401 as for a token that has expired."""
    challenge = {"www-authenticate": 'Basic realm="GitHub"'}
    return Trouble(status=401, body=Refusal(401, "Bad credentials").body(), headers=challenge, genuine=True)


def drafts_unsupported() -> Trouble:
    """Answer 422 as for a draft in a private repository on a free plan."""
    return Trouble(status=422, body=Refusal(422, NO_DRAFTS).body(), genuine=True)


def moved(url: str, status: int = 307) -> Trouble:
    """Send the client to `url`, as for a repository that was renamed."""
    body = {"message": "Moved Permanently" if status == 301 else "Temporary Redirect", "url": url}
    manual = {"documentation_url": "https://docs.github.com/rest"}
    return Trouble(status=status, body=body | manual, headers={"location": url}, genuine=True)


def graphql_error(name: str, kind: str = "FORBIDDEN", message: str = FORBIDDEN[TokenKind.ACTIONS]) -> Trouble:
    """Answer 200 with an error of the type `kind` for the query or mutation `name`; drill with `contains=name`."""
    error = {"type": kind, "path": [name], "locations": [{"line": 1, "column": 1}], "message": message}
    return Trouble(status=200, body={"data": {name: None}, "errors": [error]}, genuine=True)


class Drill:
    """A trouble for requests of one kind. Leaving it as a context, or `remove`, ends it."""

    def __init__(self, *, method: str, path: str, trouble: Trouble, times: int | None, contains: str) -> None:
        self.method = method
        self.path = path
        self.trouble = trouble
        self.times = times
        self.contains = contains
        self.hits = 0
        """How many requests it was applied to."""
        self.removed = False

    def matches(self, method: str, path: str, query: str, body: str) -> bool:
        """Tell whether it is to be applied to one more request, this one."""
        if self.removed or (self.times is not None and self.hits >= self.times):
            return False
        paths = (path, f"{path}?{query}")
        named = self.method in (ANY, method) and any(fnmatchcase(one, self.path) for one in paths)
        return named and self.contains in body

    def remove(self) -> None:
        """Apply it no more, and let go what it delays."""
        self.removed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class Drills:
    """The drills of one hub, in the order in which they were added; the first that matches is applied."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drills: list[Drill] = []

    def add(self, method: str, path: str, trouble: Trouble, *, times: int | None = 1, contains: str = "") -> Drill:
        """Apply `trouble` to the next `times` requests (None: to all) that match and whose body has `contains`."""
        drill = Drill(method=method, path=path, trouble=trouble, times=times, contains=contains)
        with self._lock:
            self._drills.append(drill)
        return drill

    def take(self, method: str, path: str, query: str, body: str) -> Drill | None:
        """Return the drill to apply to this request, counted as one of its hits."""
        with self._lock:
            for drill in self._drills:
                if drill.matches(method, path, query, body):
                    drill.hits += 1
                    return drill
        return None

    def all(self) -> list[Drill]:
        """Return every drill that was ever added; its place in the list is its id."""
        with self._lock:
            return list(self._drills)

    def remove_all(self) -> None:
        """Remove every drill."""
        for drill in self.all():
            drill.remove()
