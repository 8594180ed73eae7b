"""The one module that imports PyGithub: what the others of this package use of it."""

from github import Auth, Github, GithubException, RateLimitExceededException
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository
from github.Requester import Requester

__all__ = [
    "Auth",
    "Github",
    "GithubException",
    "Issue",
    "IssueComment",
    "RateLimitExceededException",
    "Repository",
    "Requester",
]
