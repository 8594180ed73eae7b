"""What a Delivery is for."""

from dataclasses import dataclass

from delivery.github import PullRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a Delivery came to: a pull request that is ready, or was `merged`."""

    pull_request: PullRequest
    merged: bool
