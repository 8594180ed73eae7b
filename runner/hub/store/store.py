"""The door to the store."""

from contextlib import AbstractContextManager
from pathlib import Path

from runner.hub.store.checks import Checks
from runner.hub.store.comments import Comments
from runner.hub.store.database import Database
from runner.hub.store.events import Events
from runner.hub.store.issues import Issues
from runner.hub.store.labels import Labels
from runner.hub.store.links import Links
from runner.hub.store.people import People
from runner.hub.store.queue import Queue
from runner.hub.store.repositories import Repositories
from runner.hub.store.rules import Rules


class Store:
    """All that one hub remembers, in the file `path`, which is made when it is not there."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)
        self.repositories = Repositories(self._database)
        self.events = Events(self._database)
        self.labels = Labels(self._database, self.events)
        self.issues = Issues(self._database, self.labels, self.events)
        self.links = Links(self._database, self.events)
        self.people = People(self._database)
        self.comments = Comments(self._database)
        self.checks = Checks(self._database)
        self.rules = Rules(self._database)
        self.queue = Queue(self._database)

    def transaction(self) -> AbstractContextManager[None]:
        """Make what the block reads and writes one step that no other thread can come between."""
        return self._database.transaction()

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._database.close()
