"""How a moment is written wherever a program or a person reads it: RFC 3339, in UTC, to the second."""

from datetime import UTC, datetime

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def written(moment: datetime) -> str:
    """Write a moment that is given in UTC."""
    return moment.strftime(_FORM)


def written_now() -> str:
    """Write the present moment, by this machine's clock."""
    return written(datetime.now(UTC))


def read_moment(text: str) -> datetime:
    """Read a moment as it was written. Raises ValueError for anything else."""
    return datetime.strptime(text, _FORM).replace(tzinfo=UTC)
