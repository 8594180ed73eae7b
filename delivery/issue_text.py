"""What an agent is told of an issue: what people read on its page who may decide about it."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delivery.errors import GitHubForbiddenError
from delivery.github import GitHub, Issue
from delivery.hidden import visible_characters, visible_markdown
from delivery.ready_facts import worn
from delivery.text import fenced, one_line

_OURS = "<!-- nightkeep:"  # how everything begins that we write on GitHub ourselves
_TITLE_LIMIT = 500  # characters
_MOST_TEXT = 200_000  # characters of all comments together


@dataclass(frozen=True, slots=True)
class Said:
    """A comment of somebody who may write to the repository."""

    author: str
    text: str


@dataclass(frozen=True, slots=True)
class IssueText:
    """Title, text and comments, without what GitHub does not show."""

    title: str
    body: str
    comments: tuple[Said, ...] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it, by which it is known again."""
        whole = [self.title, self.body, *([one.author, one.text] for one in self.comments)]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    def changes_to(self, later: "IssueText") -> tuple[str, ...]:
        """Say what has become another one since; nothing when all is the same."""
        parts = {
            "its title": (self.title, later.title),
            "its text": (self.body, later.body),
            "its comments": (self.comments, later.comments),
        }
        return tuple(what for what, (before, after) in parts.items() if before != after)

    def as_prompt(self) -> tuple[str, str]:
        """Return the title in a line, and the rest as blocks that nothing in them can end."""
        blocks = [fenced(self.body or "(no text)")]
        if self.comments:
            blocks.append("Comments on it, by people who may write to the repository, the oldest first:")
        blocks += [f"@{one.author}:\n\n{fenced(one.text)}" for one in self.comments]
        return one_line(self.title, _TITLE_LIMIT), "\n\n".join(blocks)


def text_of(issue: Issue, comments: Sequence[Said] = ()) -> IssueText:
    """Return what is to be told of an issue with those comments."""
    return IssueText(title=visible_characters(issue.title), body=visible_markdown(issue.body), comments=tuple(comments))


def read_text(github: GitHub, issue: Issue, bots: Sequence[str], report: Callable[[str], None]) -> IssueText:
    """Read the comments of an issue, and what their authors may do. Raises GitHubError.

    Comments count of those who may write there, and of `bots`; when GitHub does not say, they do not.
    """
    listed = {bot.lower() for bot in bots}
    roles: dict[str, bool] = {}
    said, left, room = [], 0, _MOST_TEXT
    for comment in github.issues.comments(issue.number):
        author = comment.author.lower()
        if comment.body.startswith(_OURS):
            continue
        if author not in roles:
            roles[author] = author in listed if author.endswith("[bot]") else _may_write(github, author)
        text = visible_markdown(comment.body) if roles[author] else ""
        if roles[author] and len(text) <= room:
            room -= len(text)
            said.append(Said(comment.author, text))
        else:
            left += 1
    if left:
        report(
            f"{left} comment(s) on #{issue.number} are not told to the agent: not by people who may write, or too long"
        )
    return text_of(issue, said)


def changes_since(
    github: GitHub, issue: Issue, told: IssueText, bots: Sequence[str], unready: Sequence[str]
) -> tuple[str, ...]:
    """Say what became of an issue since the agent was told of it: what people decided, and what changed in its text.

    They decide by closing it, or by a label of `unready`. Raises GitHubError.
    """
    now = github.issue(issue.number)
    changed = tuple(f"{what} changed" for what in told.changes_to(read_text(github, now, bots, lambda _: None)))
    return (*decided_since(issue, now, unready), *changed)


def decided_since(issue: Issue, now: Issue, unready: Sequence[str]) -> tuple[str, ...]:
    """Say what people have decided about an issue since it was read: that it is closed, or that it is for people."""
    closed = () if now.is_open else ("it was closed",)
    labels = set(worn(now.labels, *unready)) - set(worn(issue.labels, *unready))
    return (*closed, *(f"it was labelled {label}" for label in sorted(labels)))


def _may_write(github: GitHub, login: str) -> bool:
    try:
        return bool(login) and github.issues.role(login).may_write
    except GitHubForbiddenError:
        return False
