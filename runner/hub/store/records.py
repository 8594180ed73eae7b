"""What is stored, as frozen values. Times are UTC in GitHub's form, `2026-01-31T12:00:00Z`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from runner.hub.checks import Check, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A bare repository at `path` and the name it is served under. `drafts`: it may have draft pull requests."""

    id: int
    owner: str
    name: str
    path: Path
    description: str | None
    private: bool
    archived: bool
    drafts: bool
    created_at: str

    @property
    def full_name(self) -> str:
        """OWNER/NAME."""
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a repository is set, under GitHub's names.

    `mergeability_answers` is ours: so many answers about a pull request say first that GitHub is still finding out.
    """

    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True
    delete_branch_on_merge: bool = False
    mergeability_answers: int = 1

    def allows(self, method: str) -> bool:
        """Tell whether pull requests may be merged by `merge`, `squash` or `rebase`."""
        allowed = {
            "merge": self.allow_merge_commit,
            "squash": self.allow_squash_merge,
            "rebase": self.allow_rebase_merge,
        }
        return allowed[method]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A label of one repository."""

    id: int
    name: str
    color: str
    description: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on the issue or pull request `number`."""

    id: int
    number: int
    author: str
    body: str
    created_at: str
    updated_at: str

    @property
    def node_id(self) -> str:
        """The id by which GraphQL knows it."""
        return f"IC_{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """What a pull request has beyond an issue.

    `head_id` and `base_id` are the last ones seen while it was open: they outlive the branches.
    """

    draft: bool
    head: str
    base: str
    head_id: str
    base_id: str
    merged_at: str | None = None
    merged_by: str | None = None
    merge_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue, or a pull request when it has a `pull`: on GitHub the two share their numbers."""

    id: int
    repository: int
    number: int
    title: str
    body: str | None
    open: bool
    author: str
    labels: tuple[Label, ...]
    comments: int
    created_at: str
    updated_at: str
    closed_at: str | None
    closed_by: str | None
    pull: Pull | None

    @property
    def node_id(self) -> str:
        """The id that REST and GraphQL both use."""
        return f"{'I' if self.pull is None else 'PR'}_{self.id}"

    @property
    def state(self) -> str:
        """`open` or `closed`."""
        return "open" if self.open else "closed"


class EventKind(StrEnum):
    """What can happen to an issue, under REST's names; GraphQL writes `LabeledEvent` for `labeled`."""

    LABELED = "labeled"
    UNLABELED = "unlabeled"
    RENAMED = "renamed"
    SUB_ISSUE_ADDED = "sub_issue_added"
    SUB_ISSUE_REMOVED = "sub_issue_removed"
    BLOCKED_BY_ADDED = "blocked_by_added"
    BLOCKED_BY_REMOVED = "blocked_by_removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What `actor` did to an issue. `what` is the label, or the title before; `other` the linked issue's id."""

    id: int
    kind: EventKind
    actor: str
    what: str
    other: int | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Who changed an issue's text last, and when."""

    editor: str
    edited_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The checks of one commit from one source; a run of `workflow`, when that is GitHub Actions.

    `branch` is the one on which the commit was seen first.
    """

    id: int
    repository: int
    commit_id: str
    source: Source
    workflow: str
    branch: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One attempt of a check, of any source. `conclusion` is None until it is known.

    It started in the list number `polls` that a client got, at `began` seconds since the epoch.
    """

    id: int
    suite: Suite
    plan: int
    check: Check
    attempt: int
    polls: int
    began: float
    started_at: str
    conclusion: str | None
    completed_at: str | None
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A pull request's stay in the merge queue of `base`, at the head `head_id`.

    `group_id` is the commit that would be merged, made on `base_id`, once there is one. `reason` is why it left.
    """

    id: int
    issue: int
    base: str
    head_id: str
    enqueuer: str
    enqueued_at: str
    base_id: str | None
    group_id: str | None
    left_at: str | None
    reason: str | None

    @property
    def node_id(self) -> str:
        """The id by which GraphQL knows it."""
        return f"MQE_{self.id}"
