"""What a Run works with: the issues, labels, comments and pull requests of one repository on GitHub."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

from delivery.errors import GitHubError
from delivery.github.answers import (
    Issue,
    PullRequest,
    Repository,
    identified,
    is_from,
    read_issue,
    read_pull_request,
)
from delivery.github.checks import Checks
from delivery.github.issues import Issues
from delivery.github.merges import Merges
from delivery.github.pygithub import GithubException
from delivery.github.pygithub import IssueComment as _IssueComment
from delivery.github.transport import Transport
from worktree import Interruption, ServerTime

_APP_TOKEN = "ghs_"  # noqa: S105 - how the tokens of apps begin, the built-in one of a workflow among them
_WORKFLOW_LOGIN = "github-actions[bot]"


def _allow() -> None:
    """Forbid nothing."""


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
        self._transport = Transport(
            api_url=api_url,
            token=token,
            renew=renew,
            repository=repository,
            interruption=interruption or Interruption(),
            report=report,
            patience=patience,
        )
        self._workflow_token: bool | None = None
        self.checks = Checks(self._transport)
        self.merges = Merges(self._transport)
        self.issues = Issues(self._transport)

    @property
    def server_time(self) -> ServerTime:
        """The time as GitHub's answers have it."""
        return self._transport.server_time

    @contextmanager
    def guarded(self, guard: Callable[[], object] | None) -> Iterator[None]:
        """Have `guard`, and no other, called before each request that changes something, to forbid it by raising.

        None lets all pass. After the block it is as it was before.
        """
        before, self._transport.guard = self._transport.guard, guard or _allow
        try:
            yield
        finally:
            self._transport.guard = before

    @contextmanager
    def unguarded(self) -> Iterator[None]:
        """Let requests that change something pass while the block runs."""
        with self.guarded(None):
            yield

    def close(self) -> None:
        """Close the connections."""
        self._transport.client.close()

    @property
    def token_is_refused(self) -> bool:
        """Whether GitHub no longer takes the token, and there is none in its place."""
        return self._transport.token_is_refused

    def repository(self) -> Repository:
        """Return the repository under its present name, which is used from then on."""

        def read() -> Repository:
            seen = self._transport.client.get_repo(self._transport.repository.full_name)
            seen.complete()
            if seen.permissions is None:
                raise GitHubError("GitHub's answer is no repository; is the address of its API right?", 0)
            self._transport.repository = self._transport.client.get_repo(seen.full_name)
            self._transport.server_time.hear(str(seen.raw_headers.get("date")))
            return Repository(
                full_name=seen.full_name,
                may_push=seen.permissions.push,
                archived=seen.archived,
                is_private=seen.private,
                default_branch=seen.default_branch,
            )

        return self._transport.patiently(read)

    def is_workflow_token(self) -> bool:
        """Tell whether the token is the built-in one of a workflow; an answer that cannot be had means no."""
        if self._workflow_token is None:
            self._workflow_token = self._transport.token.startswith(_APP_TOKEN) and self._login() == _WORKFLOW_LOGIN
        return self._workflow_token

    def _login(self) -> str:
        try:
            return self.viewer()
        except GitHubError:
            return ""

    def viewer(self) -> str:
        """Return whose token it is."""

        def read() -> str:
            return str(self._transport.query("query { viewer { login } }", {})["viewer"]["login"])

        return self._transport.patiently(read)

    def issue(self, number: int) -> Issue:
        """Return an issue."""
        return self._transport.patiently(lambda: read_issue(self._transport.repository.get_issue(number)))

    def close_issue(self, number: int) -> bool:
        """Close an issue as done; False when it was closed already. Raises GitHubError."""
        if not self.issue(number).is_open:
            return False
        wanted = {"state": "closed", "state_reason": "completed"}
        self._transport.patiently(
            lambda: identified(self._transport.send("PATCH", f"issues/{number}", wanted), "number", "issue")
        )
        return True

    def labels(self) -> frozenset[str]:
        """Return the names of the labels that the repository has."""
        return self._transport.patiently(
            lambda: frozenset(label.name for label in self._transport.bounded(self._transport.repository.get_labels()))
        )

    def create_label(self, name: str, color: str, description: str) -> None:
        """Give the repository a label; one of that name that somebody else makes meanwhile stays as it is."""
        wanted = {"name": name, "color": color, "description": description}

        def create() -> None:
            try:
                identified(self._transport.send("POST", "labels", wanted), "id", "label")
            except GithubException as error:
                if error.status != 422 or name.lower() not in {label.lower() for label in self.labels()}:
                    raise

        self._transport.patiently(create)  # a label whose answer was lost is there when it is made again

    def add_label(self, number: int, label: str) -> frozenset[str]:
        """Put a label on an issue, leaving the others alone; return all that it has then, in small letters."""

        def add() -> frozenset[str]:
            answer = self._transport.send("POST", f"issues/{number}/labels", {"labels": [label]})
            labels = frozenset(str(one["name"]).lower() for one in answer)
            if label.lower() not in labels:
                raise GitHubError(f"GitHub took the label {label} for #{number}, but did not put it on", 0)
            return labels

        return self._transport.patiently(add)  # adding it again changes nothing, so a lost answer needs no look

    def remove_label(self, number: int, label: str) -> None:
        """Take a label off an issue, leaving the others alone; it may be gone already."""

        def remove() -> None:
            try:
                self._transport.send("DELETE", f"issues/{number}/labels/{quote(label, safe='')}")
            except GithubException as error:
                if error.status != 404:
                    raise

        self._transport.patiently(remove)

    def pull_requests(self, branch: str, *, state: str = "all") -> list[PullRequest]:
        """Return the pull requests from a branch of this repository, newest first. `state`: open, closed or all."""

        owner = self._transport.repository.full_name.split("/")[0]
        head = quote(f"{owner}:{branch}", safe="")
        return self._transport.pages(
            f"pulls?state={state}&head={head}&sort=created&direction=desc&per_page=100",
            # A renamed repository is followed to without the query, and all pull requests come.
            lambda page: [read_pull_request(pull) for pull in page if is_from(pull, branch, state)],
        )

    def open_pull_requests(self) -> list[PullRequest]:
        """Return the open pull requests from branches of this repository, newest first."""
        return self._transport.pages(
            "pulls?state=open&per_page=100",
            lambda page: [read_pull_request(pull) for pull in page if is_from(pull, pull["head"]["ref"], "open")],
        )

    def merged_pull_requests(self, base: str) -> list[PullRequest]:
        """Return the pull requests from branches of this repository that were merged into a branch, newest first."""
        return self._transport.pages(
            f"pulls?state=closed&base={quote(base, safe='')}&per_page=100",
            lambda page: [
                read_pull_request(pull)
                for pull in page
                if pull["merged_at"] and pull["base"]["ref"] == base and is_from(pull, pull["head"]["ref"], "closed")
            ],
        )

    def pull_request(self, number: int) -> PullRequest:
        """Return a pull request as it is now."""
        return self._transport.get(f"pulls/{number}", read_pull_request)

    def open_pull_request(self, *, title: str, body: str, base: str, branch: str, draft: bool) -> PullRequest:
        """Open a pull request from `branch`; one that a lost answer hides is found again rather than opened twice."""

        wanted = {"title": title, "body": body, "base": base, "head": branch, "draft": draft}

        def write() -> PullRequest:
            made = identified(self._transport.send("POST", "pulls", wanted), "number", "pull request")
            return read_pull_request(made)

        def look() -> PullRequest | None:
            return next(iter(self.pull_requests(branch, state="open")), None)

        try:
            return self._transport.write(write, look)
        except GitHubError as error:
            # https://docs.github.com/rest/pulls/pulls#create-a-pull-request: only the words tell this 422 from others.
            found = look() if error.status == 422 and "already exists" in str(error) else None
            if found is None:
                raise
            return found

    def edit_pull_request(self, number: int, *, body: str, title: str | None = None) -> None:
        """Replace a pull request's body, and its title where one is given."""
        wanted = {"body": body} if title is None else {"title": title, "body": body}
        self._transport.patiently(
            lambda: identified(self._transport.send("PATCH", f"pulls/{number}", wanted), "number", "pull request")
        )

    def mark_ready(self, number: int) -> None:
        """Make a draft ready for review."""
        self._transport.guard()
        self._transport.patiently(lambda: self._transport.repository.get_pull(number).mark_ready_for_review())

    def convert_to_draft(self, number: int) -> None:
        """Turn a pull request back into a draft."""
        self._transport.guard()
        self._transport.patiently(lambda: self._transport.repository.get_pull(number).convert_to_draft())

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
            made = self._transport.send("POST", f"issues/{number}/comments", {"body": body})
            return str(identified(made, "id", f"comment on #{number}")["html_url"])

        def look() -> str | None:
            happened = self._find_comment(number, marker)
            return None if happened is None else happened.html_url

        return self._transport.write(write, look)

    def edit_comment(self, number: int, marker: str, body: str, merge: Callable[[str, str], str] = _latest) -> bool:
        """Edit the comment that bears `marker`, as `comment` does; False when there is none."""
        found = self._find_comment(number, marker)
        if found is not None:
            self._edit(found, merge(body, found.body))
        return found is not None

    def _edit(self, comment: _IssueComment, body: str) -> None:
        path = f"issues/comments/{comment.id}"
        self._transport.patiently(
            lambda: identified(self._transport.send("PATCH", path, {"body": body}), "id", "comment")
        )

    def _find_comment(self, number: int, marker: str) -> _IssueComment | None:
        def read() -> _IssueComment | None:
            for comment in self._transport.bounded(self._transport.repository.get_issue(number).get_comments()):
                if comment.body.startswith(marker) and self._is_own(comment):
                    return comment
            return None

        return self._transport.patiently(read)

    def _is_own(self, comment: _IssueComment) -> bool:
        # Asked by GraphQL, because the token of a workflow may not ask who it is.
        query = "query($id: ID!) { node(id: $id) { __typename ... on IssueComment { viewerDidAuthor } } }"
        return bool(self._transport.query(query, {"id": comment.node_id})["node"]["viewerDidAuthor"])
