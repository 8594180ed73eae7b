"""Issues as values, with their links and what was done to them by whom; and how they are read from GitHub's answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What somebody may do in a repository; roles of an organization's own count as what they build on."""

    ADMIN = "admin"
    WRITE = "write"
    READ = "read"
    NONE = "none"

    @property
    def may_write(self) -> bool:
        """Whether that is write access, or more."""
        return self in (Role.ADMIN, Role.WRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """An issue at the other end of a link, perhaps another repository's; `parent` is whose sub-issue it is.

    A Ticket's blockers come without their labels.
    """

    repository: str
    number: int
    title: str
    url: str
    is_open: bool
    labels: frozenset[str] = frozenset()
    parent: tuple[str, int] | None = None

    def is_in(self, repository: str) -> bool:
        """Whether it is one of that repository's."""
        return self.repository.lower() == repository.lower()

    def name_in(self, repository: str) -> str:
        """Return how it is called in texts about another issue of that repository."""
        return f"#{self.number}" if self.is_in(repository) else f"{self.repository}#{self.number}"


class Word(StrEnum):
    """What somebody did to an issue's labels, title or text."""

    LABELED = "labeled"
    UNLABELED = "unlabeled"
    RENAMED = "renamed"
    EDITED = "edited"

    @property
    def part(self) -> str:
        """What of an issue is another one by that."""
        return {Word.RENAMED: "title", Word.EDITED: "text"}.get(self, "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Who did what to an issue, and when. `actor` is "" for an account that is gone; bots end in `[bot]`."""

    what: Word
    actor: str
    at: datetime
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket(Linked):
    """A sub-issue, and how many it has itself; `unseen_blockers` are those that the token may not see.

    `wording` is who gave it its text, and its title if that was another one before.
    """

    tickets: int = 0
    blockers: tuple[Linked, ...] = ()
    unseen_blockers: int = 0
    wording: tuple[Deed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedIssue:
    """An issue with all that decides whether it may be taken.

    `deeds` are the last ones on labels and title, the oldest first.
    `linked_at` is when a sub-issue or a blocker was last added or removed. `edited_by` changed the text last, at
    `edited_at`; both are None for a text that is as it was first, and `edited_by` is "" when the account is gone.
    """

    number: int
    title: str
    body: str
    url: str
    author: str
    is_open: bool
    labels: frozenset[str]
    created_at: datetime
    edited_by: str | None = None
    edited_at: datetime | None = None
    parent: Linked | None = None
    tickets: int = 0
    tickets_closed: int = 0
    blockers: tuple[Linked, ...] = ()
    unseen_blockers: int = 0
    deeds: tuple[Deed, ...] = ()
    linked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What a repository's labels say at one moment.

    `ready` are the open issues labelled as ready, by number; `working` the titles of the open ones that are being
    worked on, the first hundred of `working_count`; `done` the closed ones that are still labelled so, each with its
    labels. `viewer` is whose token it is.
    """

    viewer: str
    ready: tuple[QueuedIssue, ...]
    working: Mapping[int, str]
    working_count: int
    done: Mapping[int, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on an issue. `author` is "" for an account that is gone."""

    author: str
    body: str
    created_at: datetime
    updated_at: datetime


_WORDS = {"LabeledEvent": Word.LABELED, "UnlabeledEvent": Word.UNLABELED, "RenamedTitleEvent": Word.RENAMED}


def read_deed(node: Mapping[str, Any]) -> Deed:
    """Read what somebody did."""
    label = str(node["label"]["name"]) if "label" in node else ""
    return Deed(
        what=_WORDS[node["__typename"]], actor=read_login(node["actor"]), at=read_time(node["createdAt"]), label=label
    )


def read_wording(node: Mapping[str, Any]) -> tuple[Deed, ...]:
    """Read who gave an issue its text, and its title if that was another one before."""
    edited = node["lastEditedAt"]
    actor, moment = (node["editor"], edited) if edited else (node["author"], node["createdAt"])
    written = Deed(what=Word.EDITED, actor=read_login(actor), at=read_time(moment))
    return (written, *(read_deed(one) for one in node["renames"]["nodes"] if one))


def read_linked(node: Mapping[str, Any]) -> Linked:
    """Read an issue at the other end of a link."""
    parent = node.get("parent")
    return Linked(
        repository=node["repository"]["nameWithOwner"],
        number=node["number"],
        title=node["title"],
        url=node["url"],
        is_open=node["state"] == "OPEN",
        labels=read_labels(node),
        parent=(parent["repository"]["nameWithOwner"], parent["number"]) if parent else None,
    )


def read_labels(node: Mapping[str, Any]) -> frozenset[str]:
    """Read the names of an issue's labels, as far as they were asked for."""
    return frozenset(label["name"] for label in (node.get("labels") or {}).get("nodes", []) if label)


def read_login(actor: Mapping[str, Any] | None) -> str:
    """Return a login as REST writes it: GraphQL names bots without what stands behind there."""
    if actor is None:
        return ""
    return f"{actor['login']}[bot]" if actor["__typename"] == "Bot" else str(actor["login"])


def read_comment(seen: Mapping[str, Any]) -> Comment:
    """Read a comment."""
    return Comment(
        author=seen["user"]["login"] if seen["user"] else "",
        body=seen["body"] or "",
        created_at=read_time(seen["created_at"]),
        updated_at=read_time(seen["updated_at"]),
    )


def read_time(text: str) -> datetime:
    """Read a time."""
    return datetime.fromisoformat(text)
