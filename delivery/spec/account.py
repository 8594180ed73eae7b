"""The pull request of a Spec while its Tickets are worked on: a draft, with the checklist of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from delivery.causes import Code
from delivery.errors import GitHubError, RunFailureError
from delivery.github import GitHub, Issue, PullRequest
from delivery.outcome import Outcome
from delivery.parts import Parts
from delivery.pull_request import Description, PullRequests, describe
from delivery.spec.checklist import checklist, with_checklist
from delivery.spec.reading import read_graph, read_merged
from worktree import WorktreeError


@dataclass(slots=True, kw_only=True)
class Account:
    """Keeps the checklist on one pull request, known by its number.

    Before each write it is looked at: what somebody has closed, or pointed elsewhere, is written to no more, and no
    other is opened in its place. Trouble with it stops no Ticket. `pull` is the pull request as it was taken up.
    """

    github: GitHub
    spec: Issue
    base: str
    branch: str
    report: Callable[[str], None]
    number: int | None = None
    pull: PullRequest | None = field(default=None, init=False)
    block: str = field(default="", init=False)
    pull_requests: PullRequests = field(init=False)
    _shown: str = field(default="", init=False)
    _changed: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.pull_requests = PullRequests(
            self.github,
            self.spec,
            base=self.base,
            branch=self.branch,
            report=self.report,
            complete=self._completed,
        )

    def begin(self, found: PullRequest | None) -> None:
        """Take the open pull request of an earlier Spec run, and make it a draft while Tickets are worked on."""
        if found is None:
            return
        self._take_up(found)
        if not found.is_draft:
            self.report(f"turning {found.url} into a draft, until its Tickets are done")
            try:
                self.github.convert_to_draft(found.number)
            except GitHubError as error:
                self.report(f"{found.url} could not be turned into a draft: {error}")

    def _take_up(self, pull: PullRequest) -> None:
        self.number, self.pull = pull.number, pull
        self.pull_requests.take_up(pull)

    def show(self, block: str, *, has_landed: bool) -> None:
        """Have the pull request show the checklist; open it as a draft once a Ticket `has_landed`."""
        self.block = block
        try:
            if self.number is not None:
                self._rewrite(self.number)
            elif has_landed:
                self._open()
        except (GitHubError, WorktreeError) as error:  # when the claim is lost it is not ours to write
            self.report(f"the checklist of Tickets could not be written: {error}")

    def check(self) -> PullRequest | None:
        """See that the pull request is still the Spec's, and return it; None where none could be opened yet.

        Raises RunFailureError for one that was closed or pointed elsewhere, GitHubError.
        """
        if self.number is None:
            return None
        pull = self.github.pull_request(self.number)
        changed = self._changed or self._what_changed(pull)
        if changed:
            raise RunFailureError(changed, Code.PULL_REQUEST)
        return pull

    def description(self, title_and_body: str, words: str) -> Description:
        """Return the pull request's description: what a session wrote for it, or its last `words` below our own."""
        if title_and_body.strip():
            return describe(self.spec, title_and_body, words)
        return describe(self.spec, "", "\n\n".join(part for part in (self._gathered(), words.strip()) if part))

    def _gathered(self) -> str:
        return f"The work on #{self.spec.number} is gathered here, Ticket by Ticket."

    def _completed(self, body: str) -> str:
        return with_checklist(body, self.block) if self.block else body

    def _open(self) -> None:
        marked = self.pull_requests.open_draft(self.description("", ""))
        self._shown = self.block
        for line in marked.trouble:
            self.report(line)
        if marked.pull_request is not None:
            self._take_up(marked.pull_request)
            self.report(f"the Tickets are gathered in {marked.pull_request.url}")

    def _rewrite(self, number: int) -> None:
        if self._shown == self.block or self._changed:
            return
        pull = self.github.pull_request(number)
        self._changed = self._what_changed(pull)
        if self._changed:
            self.report(f"{self._changed}; nothing more is written to it")
            return
        body = self._completed(pull.body)
        if body != pull.body:
            self.github.edit_pull_request(number, body=body)
        self._shown = self.block

    def _what_changed(self, pull: PullRequest) -> str | None:
        if not pull.is_open:
            return f"{pull.url} is {'merged' if pull.is_merged else 'closed'}, though Tickets were still worked on"
        if (pull.base, pull.branch) != (self.base, self.branch):
            return f"{pull.url} is from {pull.branch} to {pull.base}, not from {self.branch} to {self.base}"
        return None


def show_as_it_is(parts: Parts, spec: Issue, outcome: Outcome) -> None:
    """Have the pull request of a Spec run that was killed show its Tickets as they are; trouble is only reported."""
    if outcome.pull_request is None or not outcome.pull_request.is_open:
        return
    account = Account(
        github=parts.github,
        spec=spec,
        base=outcome.base,
        branch=outcome.branch,
        report=parts.report,
        number=outcome.pull_request.number,
    )
    try:
        merged = read_merged(parts.github, outcome.branch)
        standings = replace(read_graph(parts.github, parts.url), merged=merged).standings({})
    except GitHubError as error:
        parts.report(f"the Tickets of {parts.url} could not be read: {error}")
    else:
        account.show(checklist(standings), has_landed=False)
