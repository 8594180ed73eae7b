"""How a worktree ends."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from worktree.checkout import LOST, Checkout
from worktree.cleanup import EMPTY, Cleaned
from worktree.errors import WorktreeError
from worktree.ledger import Ledger
from worktree.moments import written_now
from worktree.record import Retained, aside_of
from worktree.rescue import made_elsewhere


class Preserved(StrEnum):
    """Where what a run made is. MACHINE means that something is kept only on this machine."""

    ORIGIN = "origin"
    MACHINE = "machine"
    NOTHING_MADE = "nothing-made"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is there after the with-block.

    `kept` says that the checkout and its local branch are still in place, `why` says why, or that they were
    cleaned up. `rescued` is where the files are that nothing else held, None when there were none. `head` is the commit
    HEAD named last, None when git could not tell. `places` lists (what, where) for people, `refs` the refs of origin
    that were seen to hold what was made, the latest last. Known secrets are masked in `why` and `places`.
    """

    kept: bool
    why: str
    path: Path
    branch: str
    head: str | None
    places: tuple[tuple[str, str], ...]
    refs: Mapping[str, str]
    preserved: Preserved
    rescued: Path | None

    def __str__(self) -> str:
        """Say it in one line."""
        if self.kept:
            head = self.head or "an unknown commit"
            return f"keeping the worktree {self.path} and its local branch {self.branch}, HEAD at {head}: {self.why}"
        gone = f"cleaned up the worktree {self.path} and its local branch {self.branch}"
        return f"{gone}; what only they held is in {self.rescued}" if self.rescued else gone


def end(checkout: Checkout, cleaned: Cleaned) -> Ending:
    """Say in the record of a worktree that is retained why it is, let go of it, and return how it ended."""
    ledger = checkout.ledger
    # What is new in the clone since the run began was told at its end; by now most of it is a person's.
    elsewhere = [] if checkout.released else _made_elsewhere(checkout)
    places = [*ledger.places, *checkout.local_places(), *elsewhere]
    if ledger.reconfigured:
        keys = ", ".join(ledger.reconfigured)
        places.append(("configuration changed", f"{keys}; see git config --list --show-origin"))
    if cleaned.retained is not None:
        places.append(("worktree", str(_place(checkout))))
    # An agent chooses the names of files, branches and settings.
    places = [(what, checkout.git.redact(where)) for what, where in places]
    retained = None if cleaned.retained is None else checkout.git.redact(cleaned.retained)
    if retained is not None:
        _put_down(checkout, retained, places)
    checkout.directory.release()
    return Ending(
        kept=retained is not None,
        why=retained or _why_gone(cleaned, checkout),
        path=checkout.path,
        branch=checkout.record.branch,
        head=cleaned.head,
        places=tuple(places),
        refs=dict(ledger.refs),
        preserved=_preserved(cleaned, ledger, elsewhere),
        rescued=cleaned.store,
    )


def _put_down(checkout: Checkout, why: str, places: list[tuple[str, str]]) -> None:
    """Say in the record that the run has ended and why its worktree is there, for whoever comes by later.

    Where that is said already it stays, whatever keeps a person from releasing it.
    """
    moment = written_now()
    with suppress(OSError, ValueError):  # then it is looked at once more
        said = checkout.directory.retained() or Retained(why=why, moment=moment, places=tuple(places))
        checkout.directory.retain(said)


def _place(checkout: Checkout) -> Path:
    """Return where the worktree's directory is: where it was made, unless it could not be put back there."""
    aside = aside_of(checkout.path)
    if moved := checkout.moved_to_by_git():
        return moved
    return aside if checkout.is_at(aside) else checkout.path


def _made_elsewhere(checkout: Checkout) -> list[tuple[str, str]]:
    try:
        found = made_elsewhere(checkout)
    except (WorktreeError, OSError):
        return []
    return [("made during the run", f"{ref} at {oid} in {checkout.remote.common}") for ref, oid in found]


def _why_gone(cleaned: Cleaned, checkout: Checkout) -> str:
    if any(what == LOST for what, _ in checkout.ledger.places):
        return "somebody took its directory away"
    if cleaned.rows or checkout.ledger.local:
        return "everything in it is on origin or kept on this machine"
    return "everything in it is on origin"


def _preserved(cleaned: Cleaned, ledger: Ledger, elsewhere: list[tuple[str, str]]) -> Preserved:
    here = cleaned.retained is not None or ledger.local or elsewhere or ledger.lacks_lfs
    if here or any(row.why != EMPTY for row in cleaned.rows):
        return Preserved.MACHINE
    return Preserved.ORIGIN if ledger.refs else Preserved.NOTHING_MADE
