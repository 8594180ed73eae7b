"""Which Issue branch a Run works on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from delivery.github import PullRequest


@dataclass(frozen=True, slots=True)
class Fresh:
    """Start a new Issue branch of that name."""

    branch: str


@dataclass(frozen=True, slots=True)
class Continuation:
    """Go on from an Issue branch on origin with an open pull request, or with none."""

    branch: str
    pull_request: PullRequest | None


@dataclass(frozen=True, slots=True)
class Blocked:
    """No branch can be chosen; `why` says the remedy."""

    why: str


@dataclass(frozen=True, slots=True)
class AskForNewest:
    """The newest pull request of the issue's n-th branch must be known first."""

    number: int


Choice = Fresh | Continuation | Blocked | AskForNewest


def branch_name(issue: int, number: int) -> str:
    """Return the name of an issue's n-th Issue branch, counted from 1."""
    return f"issue-{issue}" if number == 1 else f"issue-{issue}-branch-{number}"


def branch_number(issue: int, branch: str) -> int | None:
    """Return which Issue branch of that issue `branch` is, or None when it is none."""
    if branch == f"issue-{issue}":
        return 1
    match = re.fullmatch(rf"issue-{issue}-branch-([1-9]\d*)", branch)
    return int(match[1]) if match and match[1] != "1" else None


def issue_of(branch: str) -> int | None:
    """Return of which issue `branch` is an Issue branch, None when it is of none."""
    match = re.match(r"issue-([1-9][0-9]{0,17})(?![0-9])", branch)
    number = int(match[1]) if match else None
    return number if number is not None and branch_number(number, branch) is not None else None


def choose_branch(issue: int, on_origin: frozenset[int], newest: Mapping[int, PullRequest | None]) -> Choice:
    """Choose the Issue branch: finished work is never reopened, unfinished work is gone on from.

    `on_origin` holds the numbers of the issue's branches there, `newest` the newest pull request from each branch
    looked at so far (None: there is none).
    """
    number = max(on_origin | newest.keys(), default=1)
    if number not in newest:
        return AskForNewest(number)
    branch, pull_request = branch_name(issue, number), newest[number]
    if pull_request is None:
        return Continuation(branch, None) if number in on_origin else Fresh(branch)
    if not pull_request.is_open:
        return AskForNewest(number + 1)
    if number in on_origin:
        return Continuation(branch, pull_request)
    return Blocked(
        f"{branch} has an open pull request ({pull_request.url}) but is gone from origin; "
        "close the pull request or restore the branch, then run again"
    )
