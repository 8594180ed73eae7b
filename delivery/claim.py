"""The claim on an issue, as people see it: labels."""

from collections.abc import Callable

from delivery.errors import GitHubError
from delivery.github import GitHub, Issue

READY = "ready-for-agent"
IN_PROGRESS = "in-progress"


class Claim:
    """Labels an issue as being worked on; other labels are left alone."""

    def __init__(self, github: GitHub, issue: Issue, report: Callable[[str], None]) -> None:
        self._github = github
        self._issue = issue
        self._report = report
        labels = {label.lower(): label for label in issue.labels}
        self._was_ready = labels.get(READY)
        self._was_in_progress = IN_PROGRESS in labels

    def make(self) -> None:
        """Add `in-progress`, take `ready-for-agent` off. Raises GitHubError with the issue as it was, or nearly."""
        number = self._issue.number
        if self._was_in_progress:
            self._report(f"#{number} is labelled {IN_PROGRESS} already; going on")
        else:
            self._report(f"labelling #{number} {IN_PROGRESS}")
            self._github.add_label(number, IN_PROGRESS)
        if self._was_ready:
            self._github.remove_label(number, self._was_ready)

    def release(self) -> None:
        """Put back what `make` changed, for a Run that made nothing; trouble is reported with the remedy."""
        number = self._issue.number
        try:
            if self._was_ready:
                self._github.add_label(number, self._was_ready)
            if not self._was_in_progress:
                self._github.remove_label(number, IN_PROGRESS)
        except GitHubError as error:
            self._report(f"could not release #{number}: {error}; take the label {IN_PROGRESS} off by hand")
