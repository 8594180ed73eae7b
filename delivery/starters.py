"""Who may start work in a repository."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from delivery.errors import GitHubForbiddenError
from delivery.github import GitHub, Role
from delivery.ready import may_start


@dataclass(slots=True, kw_only=True)
class Starters:
    """What people may do, in `roles` by login in small letters, asked of GitHub once each; `bots` may start work."""

    github: GitHub
    bots: Sequence[str]
    report: Callable[[str], None]
    roles: dict[str, Role] = field(default_factory=dict, init=False)

    def ask(self, login: str) -> None:
        """Learn what somebody may do; nothing, where GitHub does not tell. Raises GitHubError."""
        try:
            self.roles[login.lower()] = self.github.issues.role(login)
        except GitHubForbiddenError as error:
            self.report(f"GitHub does not tell this token what @{login} may do here, so it counts as nothing: {error}")
            self.roles[login.lower()] = Role.NONE

    def may(self, login: str) -> bool:
        """Whether somebody's word starts work. Raises GitHubError."""
        known = may_start(login, tuple(self.bots), self.roles)
        if known is None:
            self.ask(login)
            known = may_start(login, tuple(self.bots), self.roles)
        return bool(known)
