"""How answers look: GitHub's JSON for what the store and git know.

Every address begins with the hub's own. GitHub's many addresses of things that the hub does not have are given all
the same: its description requires them.
"""

import zlib
from typing import Any
from urllib.parse import quote

from runner.hub.access import Permission, Visitor
from runner.hub.merging import Mergeability
from runner.hub.rest.addresses import account_addresses, repository_addresses
from runner.hub.store import Comment, Issue, Label, Pull, Repository, Settings

Shape = dict[str, Any]


class Shapes:
    """Makes the documents of the hub at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._api = f"{url}/api/v3"

    def user(self, login: str) -> Shape:
        """A user, as other documents name one."""
        number = zlib.crc32(login.casefold().encode())  # the same for every answer, without a table
        named = {"login": login, "id": number, "node_id": f"U_{number}", "gravatar_id": ""}
        kind = "Bot" if login.endswith("[bot]") else "User"
        return named | account_addresses(self._url, login) | {"type": kind, "site_admin": False}

    def account(self, login: str) -> Shape:
        """The user behind the token."""
        unknown = dict.fromkeys(("name", "company", "blog", "location", "email", "hireable", "bio"))
        counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
        epoch = "1970-01-01T00:00:00Z"
        rest = {"created_at": epoch, "updated_at": epoch, "user_view_type": "public"}
        return self.user(login) | unknown | counts | rest

    def repository(self, repository: Repository, default_branch: str = "main", *, open_issues: int = 0) -> Shape:
        """A repository, as other documents name one."""
        zeros = ("forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size")
        switches = ("fork", "has_projects", "has_wiki", "has_pages", "has_discussions", "disabled")
        return {
            "id": repository.id,
            "node_id": f"R_{repository.id}",
            "name": repository.name,
            "full_name": repository.full_name,
            "owner": self.user(repository.owner),
            "private": repository.private,
            "archived": repository.archived,
            "description": repository.description,
            **repository_addresses(self._url, self._repo(repository), repository.full_name),
            **dict.fromkeys(("homepage", "language", "license", "mirror_url")),
            **dict.fromkeys(zeros, 0),
            **dict.fromkeys(switches, False),
            **dict.fromkeys(("has_issues", "has_downloads"), True),
            **dict.fromkeys(("open_issues", "open_issues_count"), open_issues),
            **dict.fromkeys(("created_at", "updated_at", "pushed_at"), repository.created_at),
            "default_branch": default_branch,
        }

    def full_repository(
        self, repository: Repository, branch: str, visitor: Visitor, settings: Settings, *, open_issues: int
    ) -> Shape:
        """A repository asked for by its name, with what the visitor may do in it."""
        roles = {
            "admin": Permission.ADMIN,
            "maintain": Permission.ADMIN,
            "push": Permission.WRITE,
            "triage": Permission.TRIAGE,
            "pull": Permission.READ,
        }
        return self.repository(repository, branch, open_issues=open_issues) | {
            "permissions": {role: visitor.may(needed) for role, needed in roles.items()},
            "network_count": 0,
            "subscribers_count": 0,
            "allow_merge_commit": settings.allow_merge_commit,
            "allow_squash_merge": settings.allow_squash_merge,
            "allow_rebase_merge": settings.allow_rebase_merge,
            "allow_auto_merge": False,
            "delete_branch_on_merge": settings.delete_branch_on_merge,
        }

    def label(self, repository: Repository, label: Label) -> Shape:
        """A label."""
        return {
            "id": label.id,
            "node_id": f"LA_{label.id}",
            "url": f"{self._repo(repository)}/labels/{quote(label.name, safe='')}",
            "name": label.name,
            "color": label.color,
            "description": label.description,
            "default": False,
        }

    def comment(self, repository: Repository, comment: Comment, *, pull: bool) -> Shape:
        """A comment on an issue, or on a pull request."""
        kind = "pull" if pull else "issues"
        repo = self._repo(repository)
        return {
            "id": comment.id,
            "node_id": comment.node_id,
            "url": f"{repo}/issues/comments/{comment.id}",
            "issue_url": f"{repo}/issues/{comment.number}",
            "html_url": f"{self._url}/{repository.full_name}/{kind}/{comment.number}#issuecomment-{comment.id}",
            "user": self.user(comment.author),
            "body": comment.body,
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
            "author_association": "OWNER",
        }

    def issue(self, repository: Repository, issue: Issue) -> Shape:
        """An issue, or a pull request seen as one."""
        url = f"{self._repo(repository)}/issues/{issue.number}"
        shape = self._both(repository, issue) | {
            "url": url,
            "repository_url": self._repo(repository),
            "labels_url": f"{url}/labels{{/name}}",
            "events_url": f"{url}/events",
            "comments": issue.comments,
            "closed_by": self.user(issue.closed_by) if issue.closed_by else None,
            "state_reason": None if issue.open or issue.pull else "completed",
        }
        if issue.pull is not None:
            shape |= {"pull_request": self._link(repository, issue, issue.pull), "draft": issue.pull.draft}
        return shape

    def pull(self, repository: Repository, issue: Issue) -> Shape:
        """A pull request in a list; `issue` must be one."""
        pull = _pull(issue)
        url = f"{self._repo(repository)}/pulls/{issue.number}"
        html_url = self._html(repository, issue)
        return self._both(repository, issue) | {
            "url": url,
            "diff_url": f"{html_url}.diff",
            "patch_url": f"{html_url}.patch",
            "issue_url": f"{self._repo(repository)}/issues/{issue.number}",
            "commits_url": f"{url}/commits",
            "review_comments_url": f"{url}/comments",
            "review_comment_url": f"{self._repo(repository)}/pulls/comments{{/number}}",
            "statuses_url": f"{self._repo(repository)}/statuses/{pull.head_id}",
            "draft": pull.draft,
            "merged_at": pull.merged_at,
            "merge_commit_sha": pull.merge_id,
            "head": self._end(repository, pull.head, pull.head_id),
            "base": self._end(repository, pull.base, pull.base_id),
            "requested_reviewers": [],
            "requested_teams": [],
            "auto_merge": None,
            "_links": self._links(repository, issue, pull),
        }

    def whole_pull(self, repository: Repository, issue: Issue, mergeability: Mergeability) -> Shape:
        """A pull request asked for by its number."""
        pull = _pull(issue)
        difference = mergeability.difference
        return self.pull(repository, issue) | {
            "merged": pull.merged_at is not None,
            "merged_by": self.user(pull.merged_by) if pull.merged_by else None,
            "mergeable": mergeability.mergeable,
            "mergeable_state": mergeability.state,
            "rebaseable": mergeability.mergeable,
            "comments": issue.comments,
            "review_comments": 0,
            "maintainer_can_modify": False,
            "commits": difference.commits,
            "additions": difference.additions,
            "deletions": difference.deletions,
            "changed_files": difference.files,
        }

    def _both(self, repository: Repository, issue: Issue) -> Shape:
        """Return what issues and pull requests have in common."""
        return {
            "id": issue.id,
            "node_id": issue.node_id,
            "number": issue.number,
            "html_url": self._html(repository, issue),
            "comments_url": f"{self._repo(repository)}/issues/{issue.number}/comments",
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "locked": False,
            "active_lock_reason": None,
            "user": self.user(issue.author),
            "author_association": "OWNER",
            "labels": [self.label(repository, label) for label in issue.labels],
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "created_at": issue.created_at,
            "updated_at": issue.updated_at,
            "closed_at": issue.closed_at,
        }

    def _end(self, repository: Repository, branch: str, object_id: str) -> Shape:
        return {
            "label": f"{repository.owner}:{branch}",
            "ref": branch,
            "sha": object_id,
            "user": self.user(repository.owner),
            "repo": self.repository(repository),
        }

    def _link(self, repository: Repository, issue: Issue, pull: Pull) -> Shape:
        html_url = self._html(repository, issue)
        return {
            "url": f"{self._repo(repository)}/pulls/{issue.number}",
            "html_url": html_url,
            "diff_url": f"{html_url}.diff",
            "patch_url": f"{html_url}.patch",
            "merged_at": pull.merged_at,
        }

    def _links(self, repository: Repository, issue: Issue, pull: Pull) -> Shape:
        repo = self._repo(repository)
        targets = {
            "self": f"{repo}/pulls/{issue.number}",
            "html": self._html(repository, issue),
            "issue": f"{repo}/issues/{issue.number}",
            "comments": f"{repo}/issues/{issue.number}/comments",
            "review_comments": f"{repo}/pulls/{issue.number}/comments",
            "review_comment": f"{repo}/pulls/comments{{/number}}",
            "commits": f"{repo}/pulls/{issue.number}/commits",
            "statuses": f"{repo}/statuses/{pull.head_id}",
        }
        return {name: {"href": target} for name, target in targets.items()}

    def _repo(self, repository: Repository) -> str:
        return f"{self._api}/repos/{repository.full_name}"

    def _html(self, repository: Repository, issue: Issue) -> str:
        kind = "issues" if issue.pull is None else "pull"
        return f"{self._url}/{repository.full_name}/{kind}/{issue.number}"


def _pull(issue: Issue) -> Pull:
    if issue.pull is None:
        raise ValueError(f"#{issue.number} is an issue")
    return issue.pull
