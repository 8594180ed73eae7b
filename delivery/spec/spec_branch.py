"""The Spec branch on origin, which Tickets are merged into by others than the Spec run itself."""

from collections.abc import Collection
from dataclasses import dataclass

from worktree import BranchRewrittenError, Launch
from worktree.remote import Remote


@dataclass(slots=True, kw_only=True)
class SpecBranch:
    """The branch as this run saw it last on origin: `at` that commit."""

    launch: Launch
    remote: Remote
    name: str
    at: str

    def look(self, landed: Collection[str]) -> str:
        """Return its commit, once it is sure to hold what it held, and those by which Tickets have `landed`.

        Raises BranchRewrittenError when somebody has taken any of it off, GitError.
        """
        ref = f"refs/heads/{self.name}"
        there = self.remote.read(ref)
        if not there:
            raise BranchRewrittenError(f"somebody deleted {self.name} on origin, where it was at {self.at[:12]}")
        now = there[ref] if there[ref] == self.at else self.remote.fetch(self.name)[self.name]
        for commit in (self.at, *landed):
            if not self._reaches(now, commit):
                raise BranchRewrittenError(
                    f"somebody rewrote {self.name} on origin: it is at {now[:12]}, without {commit[:12]}; what was "
                    "taken off is not put back"
                )
        self.at = now
        return now

    def is_in(self, base_commit: str) -> bool:
        """Whether a commit of the Base branch holds all of it."""
        return self._reaches(base_commit, self.at)

    def _reaches(self, head: str, commit: str) -> bool:
        # What is not here was not fetched with the head, so that does not reach it.
        asked = ("merge-base", "--is-ancestor", commit, head)
        return head == commit or self.launch.git.run(*asked, accept=(0, 1, 128)).status == 0
