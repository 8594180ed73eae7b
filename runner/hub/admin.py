"""What a test can do to a repository, as its administrator would on GitHub's settings pages."""

from runner.hub.requirements import rule
from runner.hub.store import Store


class Admin:
    """Changes repositories behind the API's back; the hub remembers it.

    Repositories are named OWNER/NAME. Every call raises ValueError when there is no such repository or issue.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def archive(self, full_name: str) -> None:
        """Make a repository read-only, for the API and for git."""
        self._store.repositories.state(self._store.repositories.named(full_name), "archived")

    def make_private_on_free_plan(self, full_name: str) -> None:
        """Make a repository private and its owner pay nothing: there are no draft pull requests."""
        repository = self._store.repositories.named(full_name)
        with self._store.transaction():
            self._store.repositories.make_private(repository)
            self._store.repositories.state(repository, "no drafts")

    def hide(self, full_name: str, *, forbids: bool = False) -> None:
        """Let nobody see the issues of a repository at the other ends of links; `forbids` says it in an error, too."""
        repository = self._store.repositories.named(full_name)
        self._store.repositories.state(repository, "forbidden" if forbids else "hidden")

    def permit(self, full_name: str, login: str, role: str) -> None:
        """Give a user a role there: `admin`, `maintain`, `write`, `triage`, `read`, or `none`."""
        self._store.people.permit(self._store.repositories.named(full_name).id, login, role)

    def rename(self, full_name: str, new: str) -> None:
        """Give a repository another name, or another owner; its old addresses lead to the new ones."""
        owner, slash, name = new.partition("/")
        with self._store.transaction():
            if not (owner and slash and name) or "/" in name or self._store.repositories.find(owner, name):
                raise ValueError(f"{new!r} is not a free repository name: write OWNER/NAME")
            self._store.repositories.rename(self._store.repositories.named(full_name), owner, name)

    def transfer(self, full_name: str, number: int, target: str) -> int:
        """Move an issue to the repository `target` and return its number there; its old address leads to it."""
        with self._store.transaction():
            issue = self._store.issues.find(self._store.repositories.named(full_name).id, number)
            if issue is None or issue.pull is not None:
                raise ValueError(f"#{number} is not an issue of {full_name}")
            return self._store.issues.transfer(issue, self._store.repositories.named(target).id).number

    def set(self, full_name: str, **settings: bool | int) -> None:
        """Change fields of the repository's `Settings`, such as `allow_squash_merge` or `delete_branch_on_merge`."""
        self._store.rules.set(self._store.repositories.named(full_name).id, **settings)

    def add_rule(self, full_name: str, branch: str, kind: str, **parameters: object) -> None:
        """Let a rule of GitHub's type `kind` hold for a branch, with GitHub's defaults for parameters not given.

        Known are `pull_request`, `required_status_checks`, `required_linear_history` and `merge_queue`.
        """
        self._store.rules.add(self._store.repositories.named(full_name).id, branch, rule(kind, parameters))

    def approve(self, full_name: str, number: int, login: str) -> None:
        """Let the user `login`, whose word counts, approve of a pull request."""
        issue = self._store.issues.find(self._store.repositories.named(full_name).id, number)
        if issue is None or issue.pull is None:
            raise ValueError(f"#{number} is not a pull request of {full_name}")
        self._store.rules.approve(issue.id, login)
