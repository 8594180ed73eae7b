"""What people do with issues, for a test that needs more of them than it has tokens."""

from dataclasses import replace

from runner.hub.store import Issue, Store


class Deeds:
    """Does to the issues of one repository what its users would do, each named by their login.

    What happens here happens now; `age` makes it older. Numbers are those of issues that are there; every call raises
    ValueError when there is none.
    """

    def __init__(self, store: Store, full_name: str) -> None:
        self._store = store
        self._repository = store.repositories.named(full_name)

    def open(self, login: str, title: str = "Add a lamp", body: str = "It is dark.") -> int:
        """Open an issue; return its number."""
        return self._store.issues.open(self._repository.id, title=title, body=body, author=login).number

    def close(self, number: int, login: str) -> None:
        """Close an issue."""
        self._store.issues.close(self._issue(number).id, login)

    def label(self, number: int, login: str, *names: str) -> None:
        """Put labels on an issue."""
        self._store.labels.attach(self._repository.id, self._issue(number).id, names, login)

    def unlabel(self, number: int, login: str, name: str) -> None:
        """Take a label off an issue."""
        label = self._store.labels.find(self._repository.id, name)
        if label is None:
            raise ValueError(f"{self._repository.full_name} has no label {name}")
        self._store.labels.detach(self._issue(number).id, label, login)

    def edit(self, number: int, login: str, *, title: str | None = None, body: str | None = None) -> None:
        """Give an issue another title or text."""

        def edited(issue: Issue) -> Issue:
            return replace(issue, title=title or issue.title, body=issue.body if body is None else body)

        self._store.issues.rewrite(self._issue(number).id, edited, login)

    def comment(self, number: int, login: str, body: str) -> None:
        """Write a comment on an issue or a pull request."""
        self._store.comments.add(self._issue(number).id, login, body)

    def add_sub_issue(self, number: int, child: int, login: str, *, of: str = "") -> None:
        """Make the issue `child`, of the repository `of` if it is another, a sub-issue."""
        self._store.links.add_child(self._issue(number).id, self._issue(child, of).id, login)

    def remove_sub_issue(self, number: int, child: int, login: str) -> None:
        """Make an issue a sub-issue no more."""
        self._store.links.remove_child(self._issue(number).id, self._issue(child).id, login)

    def block(self, number: int, blocker: int, login: str, *, of: str = "") -> None:
        """Let the issue `blocker`, of the repository `of` if it is another, block an issue."""
        self._store.links.block(self._issue(number).id, self._issue(blocker, of).id, login)

    def unblock(self, number: int, blocker: int, login: str) -> None:
        """Let an issue block another one no more."""
        self._store.links.unblock(self._issue(number).id, self._issue(blocker).id, login)

    def age(self, number: int, seconds: int) -> None:
        """Let all that happened to an issue so far have happened so much earlier."""
        self._store.events.make_older(self._issue(number).id, seconds)

    def _issue(self, number: int, of: str = "") -> Issue:
        repository = self._store.repositories.named(of) if of else self._repository
        issue = self._store.issues.find(repository.id, number)
        if issue is None:
            raise ValueError(f"{repository.full_name} has no #{number}")
        return issue
