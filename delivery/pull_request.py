"""The pull request of a Run: opened, ready, or turned back into a draft."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from delivery.errors import GitHubError, RunFailureError
from delivery.github import GitHub, Issue, PullRequest
from delivery.text import one_line

_TITLE_LIMIT = 250
_BODY_LIMIT = 60_000  # characters; GitHub takes 65,536
# Marks a description that Nightkeep wrote, which a later Run may therefore replace.
_OURS = "<!-- nightkeep:description -->"


@dataclass(frozen=True, slots=True)
class Description:
    """A pull request's title and body."""

    title: str
    body: str


def describe(issue: Issue, pull_request_text: str, final_text: str) -> Description:
    """Choose title and body: what the agent wrote for that, else the issue's title and the agent's last words."""
    title, _, body = pull_request_text.strip().partition("\n")
    chosen = one_line(title, _TITLE_LIMIT) or one_line(issue.title, _TITLE_LIMIT) or f"Issue #{issue.number}"
    return Description(chosen, _closing(issue.number, body.strip() if title else final_text.strip()))


def _closing(number: int, body: str) -> str:
    """Return the body with the words that let GitHub close the issue on a merge, once."""
    body = body if len(body) <= _BODY_LIMIT else f"{body[:_BODY_LIMIT]}…"
    if re.search(rf"\b(close[sd]?|fix(e[sd])?|resolve[sd]?):? #{number}\b", body, re.IGNORECASE):
        return f"{body}\n\n{_OURS}"
    return f"{body}\n\nCloses #{number}\n\n{_OURS}".strip()


class PullRequests:
    """Brings one Issue branch's pull request to where it should be."""

    def __init__(self, github: GitHub, issue: Issue, *, base: str, branch: str, report: Callable[[str], None]) -> None:
        self._github = github
        self._issue = issue
        self._base = base
        self._branch = branch
        self._report = report

    def find(self) -> PullRequest | None:
        """Return the open pull request from the branch, or None."""
        return next(iter(self._github.pull_requests(self._branch, state="open")), None)

    def make_ready(self, description: Description, head: str) -> PullRequest:
        """Open the pull request unless there is one, make it ready, and see that it is what was asked for.

        `head` is the commit that was pushed. Raises RunFailureError when the pull request targets another branch,
        is closed, stays a draft or does not show that commit; GitHubError when GitHub says no.
        """
        found = self.find()
        if found is None:
            self._report(f"opening the pull request for {self._branch}")
            found = self._open(description, draft=False)
        elif _OURS in found.body:
            self._github.edit_pull_request(found.number, title=description.title, body=description.body)
        self._expect(found.base == self._base, f"pull request {found.url} targets {found.base}, not {self._base}")
        if found.is_draft:
            self._report(f"marking {found.url} ready for review")
            self._github.mark_ready(found.number)
        seen = self._github.pull_request(found.number)
        self._expect(seen.is_open, f"pull request {seen.url} is closed, not open")
        self._expect(not seen.is_draft, f"pull request {seen.url} is still a draft")
        self._expect(seen.head == head, f"pull request {seen.url} shows {seen.head}, but {head} was pushed")
        return seen

    def make_draft(self, found: PullRequest | None, *, may_open: bool) -> PullRequest | None:
        """Turn the open pull request `found` into a draft; with `may_open` open one as a draft where there is none.

        Returns the pull request, or None. Raises GitHubError; the pull request may then be as it was.
        """
        if found is None:
            if not may_open:
                return None
            self._report(f"opening a draft pull request for {self._branch}")
            return self._open(describe(self._issue, "", ""), draft=True)
        if not found.is_draft:
            self._report(f"turning {found.url} into a draft")
            self._github.convert_to_draft(found.number)
        seen = self._github.pull_request(found.number)
        if seen.is_open and not seen.is_draft:
            raise GitHubError(f"{seen.url} is still no draft", 0)
        return seen

    def _open(self, description: Description, *, draft: bool) -> PullRequest:
        return self._github.open_pull_request(
            title=description.title, body=description.body, base=self._base, branch=self._branch, draft=draft
        )

    def _expect(self, holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
        if not holds:
            raise RunFailureError(otherwise)
