"""The claim on an issue as people see it: labels. Who has the issue they do not decide, see `delivery.claims`."""

from collections.abc import Callable

from delivery.errors import GitHubError
from delivery.github import GitHub, Issue
from delivery.unfinished import Unfinished


class IssueLabels:
    """Labels an issue as being worked on; labels but `ready` and `in_progress` are left alone."""

    def __init__(
        self, github: GitHub, issue: Issue, *, ready: str, in_progress: str, report: Callable[[str], None]
    ) -> None:
        self._github = github
        self._number = issue.number
        self._report = report
        labels = {label.lower(): label for label in issue.labels}
        self.in_progress = in_progress
        self._ready = labels.get(ready.lower())
        self.was_in_progress = in_progress.lower() in labels

    @property
    def was_ready(self) -> bool:
        """Whether the issue had the label that lets an agent take it."""
        return self._ready is not None

    @classmethod
    def of(cls, github: GitHub, issue: Issue, unfinished: Unfinished, report: Callable[[str], None]) -> "IssueLabels":
        """Return the labels as a Run had to do with them which was killed."""
        labels = cls(github, issue, ready=unfinished.ready, in_progress=unfinished.in_progress, report=report)
        labels._ready = unfinished.ready if unfinished.was_ready else None
        labels.was_in_progress = unfinished.was_in_progress
        return labels

    def make(self) -> bool:
        """Add the one label, take the other off; tell whether the issue is sure to be open as it was when it was read.

        It is when it is still labelled as ready: whoever closes it as done has taken that off. Raises GitHubError with
        the issue as it was, or nearly.
        """
        number = self._number
        is_ready = False
        if self.was_in_progress:
            self._report(f"#{number} is labelled {self.in_progress} already; going on")
        else:
            self._report(f"labelling #{number} {self.in_progress}")
            there = self._github.add_label(number, self.in_progress)
            is_ready = self._ready is not None and self._ready.lower() in there
        if self._ready and (is_ready or self.was_in_progress):
            self._github.remove_label(number, self._ready)
        else:
            self._ready = None  # somebody took it off, and it is not ours to put back
        return is_ready

    def finish(self) -> None:
        """Take the label off an issue that is closed by now, because its work is merged. Raises GitHubError."""
        seen = self._github.issue(self._number)
        if not seen.is_open and self.in_progress.lower() in {label.lower() for label in seen.labels}:
            self._github.remove_label(self._number, self.in_progress)

    def is_open(self) -> bool:
        """Whether the issue is open now. Raises GitHubError."""
        return self._github.issues.is_open(self._number)

    def release(self) -> None:
        """Put back what `make` changed, for a Run that made nothing; trouble is reported with the remedy.

        An issue that somebody has closed meanwhile is ready for nobody.
        """
        number = self._number
        try:
            if self._ready and self.is_open():
                self._github.add_label(number, self._ready)
            if not self.was_in_progress:
                self._github.remove_label(number, self.in_progress)
        except GitHubError as error:
            self._report(f"could not release #{number}: {error}; take the label {self.in_progress} off by hand")
