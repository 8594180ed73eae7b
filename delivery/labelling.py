"""Whose word lets an issue be taken, and what was changed since."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from delivery.github import Deed, QueuedIssue, Word


@dataclass(frozen=True, slots=True)
class Labelling:
    """Who labelled an issue, and when. `actor` is "" for an account that is gone."""

    actor: str
    at: datetime


def labelling(deeds: Iterable[Deed], label: str, viewer: str) -> Labelling | None:
    """Return who put the label on that an issue has; None when that does not show.

    A Run takes the label off and puts it back when it made nothing. That is nobody's word: what `viewer`, whose token
    runs us, took off and put back counts as it was before.
    """
    current: Labelling | None = None
    taken: tuple[Labelling | None, str] | None = None
    for deed in deeds:
        if deed.label.lower() != label.lower():
            continue
        if deed.what is Word.UNLABELED:
            current, taken = None, (current, deed.actor)
        elif taken is not None and taken[1] == deed.actor == viewer:
            current, taken = taken[0], None
        else:
            current = Labelling(deed.actor, deed.at)
    return current


def labelling_before(deeds: Sequence[Deed], label: str, viewer: str) -> Labelling | None:
    """Return who had put the label on that a Run of `viewer` took off; None when that does not show."""
    taken = [place for place, deed in enumerate(deeds) if _takes_off(deed, label) and deed.actor == viewer]
    return labelling(deeds[: taken[-1]], label, viewer) if taken else None


def _takes_off(deed: Deed, label: str) -> bool:
    return deed.what is Word.UNLABELED and deed.label.lower() == label.lower()


def changes_since(labelled: Labelling, issue: QueuedIssue) -> tuple[Deed, ...]:
    """Return what was changed of an issue's title and text since then, or in the same second: the last of each kind.

    GitHub tells only who changed the text last; whoever that was has seen it.
    """
    renames = [deed for deed in issue.deeds if deed.what is Word.RENAMED and deed.at >= labelled.at]
    edited = []
    if issue.edited_at is not None and issue.edited_at >= labelled.at:
        edited = [Deed(what=Word.EDITED, actor=issue.edited_by or "", at=issue.edited_at)]
    return (*renames[-1:], *edited)
