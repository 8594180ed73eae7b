"""Who may do what in a repository."""

from runner.hub.site import Site
from runner.hub.store import Repository


def role_of(site: Site, repository: Repository, login: str) -> str:
    """Return a user's role: as it was set, as a token's owner has it, or what everybody may do.

    One of `admin`, `maintain`, `write`, `triage`, `read` and `none`.
    """
    given = site.store.people.role(repository.id, login)
    if given is not None:
        return given
    if login.casefold() == repository.owner.casefold():
        return "admin"
    permission = site.door.permission_of(login)
    if permission is not None:
        return permission.value
    return "none" if repository.private else "read"
