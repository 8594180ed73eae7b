"""How it stands with an issue, in one word."""

from enum import StrEnum


class State(StrEnum):
    """How it stands with an issue, in the order in which a person wants to know."""

    RUNNING = "runs"
    FAILED = "failed"
    NOT_MERGED = "not merged"
    DELIVERED = "delivered"
    STARTED = "started"
    READY = "ready"
    WAITING = "waits"
    BLOCKED = "blocked"
    FOR_PEOPLE = "for people"
    SUB_ISSUE = "sub-issue"
    DONE = "done"
