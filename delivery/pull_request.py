"""The pull request of a Run: opened, ready, or turned back into a draft."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from delivery.causes import Code
from delivery.errors import (
    DraftsUnsupportedError,
    GitHubError,
    GitHubForbiddenError,
    RunFailureError,
    is_for_later,
)
from delivery.github import GitHub, Issue, PullRequest
from delivery.hidden import visible_characters
from delivery.text import as_subject

_TITLE_LIMIT = 250
_BODY_LIMIT = 60_000  # characters; GitHub takes 65,536
# Marks a description that Nightkeep wrote, which a later Run may therefore replace.
_OURS = "<!-- nightkeep:description -->"
# What may begin a block of code or of HTML. It may be left open, as text that was cut is, and takes all that follows.
_SWALLOWS = re.compile(r"`{3}|~{3}|<(?:[!?]|(?:pre|script|style|textarea)\b)", re.IGNORECASE)
# Marks the pull request of a Failed run where it cannot be a draft.
RUN_FAILED = "run-failed"


@dataclass(frozen=True, slots=True)
class Description:
    """A pull request's title and body."""

    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A Failed run's pull request, if it has one; `trouble` is what could not be done about it.

    `pending` says that GitHub was not there for it, so that it can be done later.
    """

    pull_request: PullRequest | None
    trouble: tuple[str, ...] = ()
    pending: bool = False


def describe(issue: Issue, pull_request_text: str, final_text: str) -> Description:
    """Choose title and body: what the agent wrote for that, else the issue's title and the agent's last words."""
    title, _, body = pull_request_text.strip().partition("\n")
    titles = (as_subject(text, _TITLE_LIMIT) for text in (title, issue.title))
    # GitHub takes no title that is blank, and nobody reads one without a picture.
    chosen = next((text for text in titles if visible_characters(text).strip()), f"Issue #{issue.number}")
    return Description(chosen, _closing(issue.number, body.strip() if title else final_text.strip()))


def _closing(number: int, body: str) -> str:
    """Return the body with the words that let GitHub close the issue on a merge: once, and where GitHub reads them."""
    body = body if len(body) <= _BODY_LIMIT else f"{body[:_BODY_LIMIT]}…"
    swallows = _SWALLOWS.search(body)
    read = body[: swallows.start()] if swallows else body
    is_said = re.search(rf"(?<!`)\b(close[sd]?|fix(e[sd])?|resolve[sd]?):? #{number}\b", read, re.IGNORECASE)
    closes = "" if is_said else f"Closes #{number}"
    parts = (closes, _OURS, body) if swallows else (body, closes, _OURS)
    return "\n\n".join(part for part in parts if part)


class PullRequests:
    """Brings one Issue branch's pull request to where it should be.

    `complete` makes of each body that is written here what GitHub gets.
    """

    def __init__(
        self,
        github: GitHub,
        issue: Issue,
        *,
        base: str,
        branch: str,
        report: Callable[[str], None],
        complete: Callable[[str], str] = str,
    ) -> None:
        self._github = github
        self._issue = issue
        self._base = base
        self._branch = branch
        self._report = report
        self._complete = complete
        self._known: PullRequest | None = None

    def take_up(self, found: PullRequest) -> None:
        """Take an open pull request for the one of this Run: no other is opened in its place."""
        self._known = found

    def find(self) -> PullRequest | None:
        """Return the open pull request from the branch, or None."""
        return next(iter(self._github.pull_requests(self._branch, state="open")), None)

    def make_ready(self, description: Description) -> PullRequest:
        """Open the pull request unless there is one, make it ready, and see that it is what was asked for.

        Which commit it shows is not looked at: others may push at any moment. Raises RunFailureError when it targets
        another branch, is closed or stays a draft; GitHubError when GitHub says no.
        """
        found = self.find()
        if found is None and self._known is not None:
            raise RunFailureError(f"pull request {self._known.url} is closed, not open", Code.PULL_REQUEST)
        if found is None:
            self._report(f"opening the pull request for {self._branch}")
            found = self._open(description, draft=False)
        else:
            self.describe(found, description)
        self._known = found
        self._expect(found.base == self._base, f"pull request {found.url} targets {found.base}, not {self._base}")
        if found.is_draft:
            self._mark_ready(found)
        seen = self._github.pull_request(found.number)
        self._expect(seen.is_open, f"pull request {seen.url} is closed, not open")
        self._expect(not seen.is_draft, f"pull request {seen.url} is still a draft")
        if RUN_FAILED in seen.labels:
            self._take_label_off(seen)
        return seen

    def describe(self, pull_request: PullRequest, description: Description) -> None:
        """Give the pull request that title and body, unless a person wrote its own. Raises GitHubError."""
        if _OURS in pull_request.body:
            body = self._complete(description.body)
            self._github.edit_pull_request(pull_request.number, title=description.title, body=body)

    def _mark_ready(self, found: PullRequest) -> None:
        self._report(f"marking {found.url} ready for review")
        try:
            self._github.mark_ready(found.number)
        except GitHubForbiddenError as error:
            why = f"{error}; {self._missing('make a draft ready')}"
            raise RunFailureError(f"{found.url} could not be made ready for review: {why}", Code.PERMISSION) from error

    def _take_label_off(self, found: PullRequest) -> None:
        try:
            self._github.remove_label(found.number, RUN_FAILED)
        except GitHubError as error:
            self._report(f"the label {RUN_FAILED} could not be taken off {found.url}: {error}")

    def mark_failed(self, found: PullRequest | None, *, may_open: bool) -> Marked:
        """Turn the open pull request `found` into a draft; with `may_open` open one as a draft where there is none.

        In place of one that this Run had none is opened: somebody has closed that, or merged it. One that cannot be a
        draft gets the label `run-failed` instead, and the trouble says why. Raises GitHubError when no pull request
        could be opened.
        """
        if found is None and self._known is not None:
            return Marked(None, (f"{self._known.url} is not open any more, and no other is opened in its place",))
        if found is None:
            return self._open_failed() if may_open else Marked(None)
        return Marked(found) if found.is_draft else self._convert(found)

    def _open_failed(self) -> Marked:
        return self.open_draft(describe(self._issue, "", ""))

    def open_draft(self, description: Description) -> Marked:
        """Open the pull request as a draft, with the label `run-failed` where it cannot be one. Raises GitHubError."""
        self._report(f"opening a draft pull request for {self._branch}")
        try:
            opened = self._open(description, draft=True)
        except DraftsUnsupportedError as error:
            opened = self._open(description, draft=False)
            return self._label(opened, f"{opened.url} is no draft, because there are none here: {error}")
        return Marked(opened) if opened.is_draft else self._convert(opened)

    def _convert(self, found: PullRequest) -> Marked:
        self._report(f"turning {found.url} into a draft")
        try:
            self._github.convert_to_draft(found.number)
            seen = self._github.pull_request(found.number)
        except GitHubForbiddenError as error:
            why = f"{error}; {self._missing('turn a pull request into a draft')}"
            return self._label(found, f"{found.url} could not be turned into a draft: {why}")
        except GitHubError as error:
            return self._label(found, f"{found.url} could not be turned into a draft: {error}")
        if seen.is_open and not seen.is_draft:
            return self._label(seen, f"{seen.url} is still no draft, though GitHub took the request")
        return Marked(seen)

    def _label(self, found: PullRequest, why: str) -> Marked:
        try:
            self._github.add_label(found.number, RUN_FAILED)
        except GitHubError as error:
            trouble = (why, f"the label {RUN_FAILED} could not be put on {found.url} either: {error}")
            return Marked(found, trouble, pending=is_for_later(error))
        return Marked(found, (f"{why}; it is labelled {RUN_FAILED} instead",))

    def _missing(self, what: str) -> str:
        """Say which permission is missing to do `what`."""
        wanted = "use the token of a user or of an app with pull requests: write"
        if self._github.is_workflow_token():
            return f"the built-in workflow token cannot {what}; {wanted}"
        return f"the token may not {what}; {wanted}"

    def _open(self, description: Description, *, draft: bool) -> PullRequest:
        return self._github.open_pull_request(
            title=description.title,
            body=self._complete(description.body),
            base=self._base,
            branch=self._branch,
            draft=draft,
        )

    def _expect(self, holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
        if not holds:
            raise RunFailureError(otherwise, Code.PULL_REQUEST)
