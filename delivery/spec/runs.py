"""What a Spec run asks of the Runs of its Tickets, and what it gets back. `runner` runs the processes."""

from collections.abc import Mapping
from typing import Protocol

from delivery.spec.graph import TicketEnding


class TicketRuns(Protocol):
    """Runs Tickets, each in a process of its own with a claim of its own, as Merge runs into the Spec branch."""

    def start(self, number: int) -> None:
        """Start the Run of a Ticket. Raises OSError."""
        ...

    def wait(self, seconds: float) -> Mapping[int, TicketEnding]:
        """Return those that have ended since, by the Tickets' numbers; waits for one for so long."""
        ...

    def tell(self) -> None:
        """Tell all that run to stop, and keep their work. They are still to be waited for."""
        ...
