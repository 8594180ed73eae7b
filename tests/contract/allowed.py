"""What GitHub does although its description does not say so. Each row has its reason."""

import re
from dataclasses import dataclass

_ANY = ".*"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Problems of operations like `operation` (METHOD /path) that begin like `problem` are none, for this `reason`."""

    operation: str
    problem: str
    reason: str

    def covers(self, operation: str, problem: str) -> bool:
        """Tell whether a problem is one of these."""
        return bool(re.fullmatch(self.operation, operation) and re.match(self.problem, problem))


ALLOWED = (
    Allowed(
        _ANY, "undocumented status 401", "the manual says it of every operation: docs.github.com/rest/authentication"
    ),
    Allowed(_ANY, "undocumented status 403", "as 401: a token without the permission, an archived repository, a limit"),
    Allowed(
        _ANY, "undocumented status 404", "the manual says it of every operation: what a token may not see is not there"
    ),
    Allowed(
        _ANY,
        "undocumented status (301|307)",
        "docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects",
    ),
    Allowed(
        "(POST|PUT) .*/labels",
        r"request: \[.*\] is not (of type 'object'|valid under any of the given schemas)",
        "GitHub takes a bare list of names, as PyGithub has always sent it; the description has the object alone",
    ),
    Allowed(
        "GET .*/pulls",
        r"answer at \d+/labels/\d+/description: None",
        "a label without a description has null there, as `pull-request` says; `pull-request-simple` forgot it",
    ),
    Allowed(
        "GET .*/(check-runs|jobs)",
        "answer at .*/conclusion: 'stale' is not one of",
        "docs.github.com/rest/checks/runs: GitHub makes a check run stale after 14 days; the description forgot it",
    ),
    Allowed(
        "DELETE .*/git/refs/.*",
        "answer: a body, where none is documented",
        "a 422 says `Reference does not exist`, as every refusal of GitHub's explains itself",
    ),
    Allowed(_ANY, "answer .*None is not one of", "the description says nullable and leaves null out of the enum"),
)


def is_allowed(operation: str, problem: str) -> bool:
    """Tell whether the table covers a problem."""
    return any(row.covers(operation, problem) for row in ALLOWED)
