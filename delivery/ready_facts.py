"""What is known of an issue that may be taken, and how it is put into words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from delivery.github import Linked, QueuedIssue, Role
from worktree.naming import some

UNREADY = ("ready-for-human", "needs-info", "needs-triage", "wontfix")
"""The labels of issues that are for people, where the settings name no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PickupRules:
    """What the settings say about issues that may be taken. Labels and logins count whatever their case.

    An issue with one of the `unready` labels is a person's. `settle` is how long it must have been left alone, `limit`
    how many may be worked on at a time; `bots` are those whose word counts.
    """

    ready: str = "ready-for-agent"
    in_progress: str = "in-progress"
    unready: Sequence[str] = UNREADY
    settle: timedelta = timedelta(minutes=10)
    limit: int = 3
    bots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A run that has an issue's claim since then, and gives no sign of life any more."""

    run: str
    host: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What is known of an issue at the moment `now`.

    `viewer` is whose token it is. `branches` are those that origin has. `pull_request` is the address of the newest
    pull request from the issue's first branch, "" for none, None while nobody looked. `roles` are what people may do,
    by login in small letters, as far as it was asked. `tries` are when Runs ended that made nothing. `cycle` names the
    issues, this one first, that wait for each other. `holder` says who has the claim, "" for nobody; `vanished` had it.
    `crowd` says why no more issues are taken at all, "" for no such reason.
    """

    issue: QueuedIssue
    repository: str
    rules: PickupRules
    now: datetime
    viewer: str = ""
    branches: frozenset[str] = frozenset()
    pull_request: str | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)
    tries: tuple[datetime, ...] = ()
    cycle: tuple[str, ...] = ()
    holder: str = ""
    vanished: Vanished | None = None
    crowd: str = ""


class Name(StrEnum):
    """The facts, in their order."""

    OPEN = "open"
    LABEL = "label"
    UNREADY = "for people"
    CLAIM = "claim"
    SPEC = "sub-issue"
    BASE_FIX = "base fix"
    BLOCKERS = "blockers"
    STARTED = "started"
    TICKETS = "sub-issues"
    SETTLED = "settled"
    STARTER = "who started it"
    TEXT = "text"
    WAIT = "wait"
    LIMIT = "limit"


class Lets(StrEnum):
    """Whether a fact lets an issue be taken; UNKNOWN while nobody looked, MOOT where another fact makes it idle."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    MOOT = "moot"


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact, and a sentence about it without its subject."""

    name: Name
    lets: Lets
    text: str


def lets(fact: object) -> Lets:
    """Say whether something lets the issue be taken."""
    return Lets.YES if fact else Lets.NO


def worn(labels: Iterable[str], *wanted: str) -> list[str]:
    """Return those of an issue's labels that are wanted, whatever their case, as the issue spells them."""
    named = {label.lower() for label in wanted}
    return sorted(label for label in labels if label.lower() in named)


def listed(prospect: Prospect, linked: Sequence[Linked]) -> str:
    """Name issues, the first ones."""
    return some([one.name_in(prospect.repository) for one in linked], 10)


def crowd_of(busy: Sequence[int], count: int, rules: PickupRules) -> str:
    """Say why no issue is taken while so many are worked on, of which the first are `busy`; "" when one is."""
    if count < rules.limit:
        return ""
    many = "1 issue is" if count == 1 else f"{count} issues are"
    ways = f"merge or close {some([f'#{number}' for number in busy], 10)}, or raise" if busy else "raise"
    return f"{many} labelled {rules.in_progress}, and pickup.limit is {rules.limit}; {ways} pickup.limit"


def who(login: str) -> str:
    """Name an account in a sentence."""
    return f"@{login}" if login else "an account that is gone"


def why_not(login: str) -> str:
    """Say why that account's word does not count."""
    if login.endswith("[bot]"):
        return "a bot that pickup.bots does not name"
    return "who may not write here" if login else "so nobody can tell what it may do"


def clock(moment: datetime) -> str:
    """Write a moment for a person."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"
