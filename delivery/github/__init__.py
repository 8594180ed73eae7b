"""The only door to GitHub: one repository, whatever is asked of it. Only this package imports PyGithub.

`door` is what a Run works with, `checks` and `merges` what its Repair loop needs besides, `issues` what
pickup and Spec runs do; `transport` sends and has the
one retry policy, `failures` tells refusals apart, `answers` are values.
"""

from delivery.github.answers import Check, CheckState, Issue, PullRequest, Repository, RuleSet
from delivery.github.checks import Checks
from delivery.github.door import GitHub
from delivery.github.issue_answers import Comment, Deed, Linked, Queue, QueuedIssue, Role, Ticket, Word
from delivery.github.issues import Issues
from delivery.github.merges import Merges
from delivery.github.transport import graphql_url

__all__ = [
    "Check",
    "CheckState",
    "Checks",
    "Comment",
    "Deed",
    "GitHub",
    "Issue",
    "Issues",
    "Linked",
    "Merges",
    "PullRequest",
    "Queue",
    "QueuedIssue",
    "Repository",
    "Role",
    "RuleSet",
    "Ticket",
    "Word",
    "graphql_url",
]
