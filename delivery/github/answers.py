"""What GitHub tells, as values; and how they are read from PyGithub's objects and from plain answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from delivery.errors import GitHubError
from delivery.github.pygithub import Issue as _Issue

_PARENT = re.compile(r"/repos/([^/]+/[^/]+)/issues/(\d+)$")


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
    """An issue; `url` is where it is now, which is elsewhere after a transfer. `sub_issues` says how many it has.

    `parent` is the repository and number of the issue that it is a sub-issue of.
    """

    number: int
    title: str
    body: str
    is_open: bool
    labels: frozenset[str]
    is_pull_request: bool
    url: str
    sub_issues: int = 0
    parent: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request. `head` is the commit that GitHub knows as its head.

    `mergeable` says whether it merges without a conflict; None when GitHub has not worked that out, or was asked for a
    list. `merge_commit` is what the Base branch got of one that `is_merged`; `node_id` is its name in
    GraphQL.
    """

    number: int
    url: str
    is_open: bool
    is_draft: bool
    base: str
    branch: str
    head: str
    body: str
    labels: frozenset[str] = frozenset()
    is_merged: bool = False
    mergeable: bool | None = None
    merge_commit: str | None = None
    node_id: str = ""


class CheckState(StrEnum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "failed"
    PENDING = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check run or a status of a commit.

    `id` is a check run's, None for a status. `run` and `job` are those of GitHub Actions, None for a check of somebody
    else. `url` is where a person reads about it. `timed_out` says that it failed by taking too long.
    """

    name: str
    state: CheckState
    url: str
    id: int | None = None
    run: int | None = None
    job: int | None = None
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """What a branch asks of a merge, as far as the token may read it; `rules` are for a person, a phrase each.

    `checks` are the names of those required. `needs_queue` says that only its merge queue merges. `is_whole` is False
    when some of it could not be read.
    """

    rules: tuple[str, ...] = ()
    checks: frozenset[str] = frozenset()
    needs_queue: bool = False
    is_whole: bool = True


def read_issue(seen: _Issue) -> Issue:
    """Read an issue."""
    return Issue(
        number=seen.number,
        title=seen.title,
        body=seen.body or "",
        is_open=seen.state == "open",
        labels=frozenset(label.name for label in seen.labels),
        is_pull_request=seen.pull_request is not None,
        url=seen.html_url,
        # Servers that know no sub-issues do not say.
        sub_issues=(seen.raw_data.get("sub_issues_summary") or {}).get("total", 0),
        parent=_read_parent(seen.raw_data.get("parent_issue_url")),
    )


def _read_parent(url: str | None) -> tuple[str, int] | None:
    found = _PARENT.search(url or "")
    return (found[1], int(found[2])) if found else None


def read_pull_request(seen: Mapping[str, Any]) -> PullRequest:
    """Read a pull request from GitHub's answer, in a list or alone."""
    return PullRequest(
        number=seen["number"],
        url=seen["html_url"],
        is_open=seen["state"] == "open",
        is_draft=bool(seen.get("draft")),
        base=seen["base"]["ref"],
        branch=seen["head"]["ref"],
        head=seen["head"]["sha"],
        body=seen["body"] or "",
        labels=frozenset(label["name"] for label in seen["labels"]),
        is_merged=seen.get("merged_at") is not None,
        mergeable=seen.get("mergeable"),
        node_id=seen["node_id"],
        merge_commit=seen.get("merge_commit_sha") if seen.get("merged_at") else None,
    )


def is_from(seen: Mapping[str, Any], branch: str, state: str) -> bool:
    """Whether a pull request of a list is from that branch of this repository, and in that state."""
    head, base = seen["head"], seen["base"]
    own = head["repo"] is not None and head["repo"]["id"] == base["repo"]["id"]
    return own and head["ref"] == branch and state in ("all", seen["state"])


def identified(answer: Any, key: str, what: str) -> dict[str, Any]:
    """Return GitHub's answer to a write, whose effect is certain only by the id that it was given."""
    if not isinstance(answer, dict) or not isinstance(answer.get(key), int):
        raise GitHubError(f"GitHub took the {what}, but gave it no {key}", 0)
    return answer
