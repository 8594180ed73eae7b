"""What clients send. Unknown fields are ignored, as GitHub does."""

from typing import Literal

from pydantic import BaseModel


class NewRepository(BaseModel):
    """POST /user/repos."""

    name: str
    description: str | None = None
    private: bool = False


class LabelName(BaseModel):
    """A label given as an object."""

    name: str


class LabelNames(BaseModel):
    """Labels for an issue."""

    labels: list[str | LabelName] = []

    def names(self) -> list[str]:
        """Return the names, however they were given."""
        return [label if isinstance(label, str) else label.name for label in self.labels]


class NewIssue(LabelNames):
    """POST /repos/…/issues."""

    title: str
    body: str | None = None


class Edit(BaseModel):
    """What issues and pull requests have in common; only the fields that were sent count."""

    title: str = ""
    body: str | None = None
    state: Literal["open", "closed"] = "open"

    def sends(self, field: str) -> bool:
        """Tell whether the client sent `field`."""
        return field in self.model_fields_set


class IssueEdit(Edit, LabelNames):
    """PATCH /repos/…/issues/…."""


class NewLabel(BaseModel):
    """POST /repos/…/labels."""

    name: str
    color: str = "ededed"
    description: str | None = None


class CommentText(BaseModel):
    """POST and PATCH of comments."""

    body: str


class SubIssue(BaseModel):
    """DELETE /repos/…/issues/…/sub_issue."""

    sub_issue_id: int


class NewSubIssue(SubIssue):
    """POST /repos/…/issues/…/sub_issues."""

    replace_parent: bool = False


class Blocker(BaseModel):
    """POST /repos/…/issues/…/dependencies/blocked_by."""

    issue_id: int


class NewPull(BaseModel):
    """POST /repos/…/pulls."""

    title: str
    head: str
    base: str
    body: str | None = None
    draft: bool = False


class PullEdit(Edit):
    """PATCH /repos/…/pulls/…."""

    base: str = ""


class MergeBody(BaseModel):
    """PUT /repos/…/pulls/…/merge."""

    sha: str | None = None
    merge_method: Literal["merge", "squash", "rebase"] = "merge"
    commit_title: str | None = None
    commit_message: str | None = None


class RequiredCheck(BaseModel):
    """A check that a branch demands."""

    context: str


class RequiredStatusChecks(BaseModel):
    """The checks that a branch demands, and whether of the latest state of both branches."""

    strict: bool
    contexts: list[str] = []
    checks: list[RequiredCheck] = []


class RequiredReviews(BaseModel):
    """The reviews that a branch demands."""

    required_approving_review_count: int = 1


class Restrictions(BaseModel):
    """Who may push to a branch."""

    users: list[str]


class ProtectionBody(BaseModel):
    """PUT /repos/…/branches/…/protection."""

    required_status_checks: RequiredStatusChecks | None
    enforce_admins: bool | None
    required_pull_request_reviews: RequiredReviews | None
    restrictions: Restrictions | None
    required_linear_history: bool | None = None
