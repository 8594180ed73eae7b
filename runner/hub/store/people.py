"""What each user may do in a repository, as its owner has set it."""

from runner.hub.store.database import Database


class People:
    """The table of collaborators. Who is not in it has no role of their own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def permit(self, repository: int, login: str, role: str) -> None:
        """Give a user a role, and no other one."""
        self._database.write("INSERT OR REPLACE INTO people VALUES (?,?,?)", repository, login, role)

    def role(self, repository: int, login: str) -> str | None:
        """Return a user's role, None for a stranger."""
        row = self._database.row("SELECT role FROM people WHERE repository = ? AND login = ?", repository, login)
        return None if row is None else str(row["role"])
