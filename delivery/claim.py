"""The claim on an issue, as people see it: labels."""

from collections.abc import Callable

from delivery.errors import GitHubError
from delivery.github import GitHub, Issue


class Claim:
    """Labels an issue as being worked on; labels but `ready` and `in_progress` are left alone."""

    def __init__(
        self, github: GitHub, issue: Issue, *, ready: str, in_progress: str, report: Callable[[str], None]
    ) -> None:
        self._github = github
        self._issue = issue
        self._report = report
        labels = {label.lower(): label for label in issue.labels}
        self._in_progress = in_progress
        self._was_ready = labels.get(ready.lower())
        self._was_in_progress = in_progress.lower() in labels

    def make(self) -> None:
        """Add the one label, take the other off. Raises GitHubError with the issue as it was, or nearly."""
        number = self._issue.number
        if self._was_in_progress:
            self._report(f"#{number} is labelled {self._in_progress} already; going on")
        else:
            self._report(f"labelling #{number} {self._in_progress}")
            self._github.add_label(number, self._in_progress)
        if self._was_ready:
            self._github.remove_label(number, self._was_ready)

    def release(self) -> None:
        """Put back what `make` changed, for a Run that made nothing; trouble is reported with the remedy."""
        number = self._issue.number
        try:
            if self._was_ready:
                self._github.add_label(number, self._was_ready)
            if not self._was_in_progress:
                self._github.remove_label(number, self._in_progress)
        except GitHubError as error:
            self._report(f"could not release #{number}: {error}; take the label {self._in_progress} off by hand")
