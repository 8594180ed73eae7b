"""Which issue is a sub-issue of which, and which one blocks which; across repositories, too."""

from runner.hub.store.database import Database
from runner.hub.store.events import Events
from runner.hub.store.records import EventKind


class Links:
    """The tables of links between issues, all by their ids. Who makes or takes one is remembered as an event."""

    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def parent(self, child: int) -> int | None:
        """Return whose sub-issue an issue is."""
        row = self._database.row("SELECT parent FROM sub_issues WHERE child = ?", child)
        return None if row is None else int(row["parent"])

    def children(self, parent: int) -> list[int]:
        """Return an issue's sub-issues, in the order in which they were added."""
        rows = self._database.rows("SELECT child FROM sub_issues WHERE parent = ? ORDER BY rowid", parent)
        return [row["child"] for row in rows]

    def add_child(self, parent: int, child: int, by: str) -> None:
        """Make an issue a sub-issue of `parent`, and of no other any more."""
        with self._database.transaction():
            before = self.parent(child)
            if before is not None:
                self.remove_child(before, child, by)
            self._database.write("INSERT INTO sub_issues VALUES (?,?)", child, parent)
            self._events.add(parent, EventKind.SUB_ISSUE_ADDED, by, other=child)

    def remove_child(self, parent: int, child: int, by: str) -> None:
        """Make an issue a sub-issue no more."""
        with self._database.transaction():
            self._database.write("DELETE FROM sub_issues WHERE child = ?", child)
            self._events.add(parent, EventKind.SUB_ISSUE_REMOVED, by, other=child)

    def blockers(self, issue: int) -> list[int]:
        """Return what blocks an issue, open or closed, the link made first first."""
        rows = self._database.rows("SELECT blocker FROM blockers WHERE issue = ? ORDER BY rowid", issue)
        return [row["blocker"] for row in rows]

    def block(self, issue: int, blocker: int, by: str) -> None:
        """Let `blocker` block an issue; once is enough."""
        with self._database.transaction():
            if blocker not in self.blockers(issue):
                self._database.write("INSERT INTO blockers VALUES (?,?)", issue, blocker)
                self._events.add(issue, EventKind.BLOCKED_BY_ADDED, by, other=blocker)

    def unblock(self, issue: int, blocker: int, by: str) -> None:
        """Let `blocker` block an issue no more."""
        with self._database.transaction():
            self._database.write("DELETE FROM blockers WHERE issue = ? AND blocker = ?", issue, blocker)
            self._events.add(issue, EventKind.BLOCKED_BY_REMOVED, by, other=blocker)
