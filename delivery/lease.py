"""What a run says of itself in a ref that it holds on origin, and whether it lives, to judge by that."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from worktree import Pace, ServerTime, host_name
from worktree.moments import written

LONGEST_LEASE = 7 * 86_400  # seconds
_NONCE = 16  # bytes
_SKEW = timedelta(seconds=60)  # by which a record may be ahead of the time that we were told

Moment = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


@dataclass(frozen=True, slots=True)
class Live:
    """The run lives; its lease ends at `until` unless it gives a sign of life before."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Dead:
    """The run has vanished: another one may take over what it holds."""


@dataclass(frozen=True, slots=True)
class Doubtful:
    """Nobody can tell whether the run lives, for `why`; so it is taken for alive."""

    why: str


class Lease(BaseModel):
    """What all such records say, version 1.

    `nonce` is drawn at random once a run, so that no two are ever equal. `moment` is when this record was made, by the
    clock of GitHub as the run heard it last (`clock` is "server"), or by the machine's where it heard none. `lease` is
    in seconds: a record that is older is of a run that has vanished.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    nonce: str = Field(min_length=16, max_length=64)
    run: str = Field(max_length=100)
    host: str = Field(max_length=300)
    moment: Moment
    clock: Literal["server", "machine"]
    lease: float = Field(gt=0, le=LONGEST_LEASE)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return what a commit's message says, None when it is none of ours."""
        try:
            return cls.model_validate_json(text)
        except (ValidationError, OverflowError):  # of a moment for which UTC has no year
            return None

    def judge(self, now: datetime) -> Live | Dead | Doubtful:
        """Decide whether the run lives at `now`, the server's time."""
        if self.moment > now + _SKEW:
            wrong = "the clock of its machine" if self.clock == "machine" else "one of the two clocks"
            return Doubtful(
                f"it says that it was made at {written(self.moment)}, and it is {written(now)}: {wrong} is wrong"
            )
        until = self.moment + timedelta(seconds=self.lease)
        return Live(until) if now < until else Dead()


def lease_now(run: str, nonce: str, clock: ServerTime, pace: Pace) -> Lease:
    """Return what a run says now: it lives."""
    return Lease(
        nonce=nonce,
        run=run,
        host=host_name(),
        moment=clock.now().replace(microsecond=0),
        clock="server" if clock.is_known else "machine",
        lease=pace.lease,
    )


def new_nonce() -> str:
    """Draw what tells the records of one run from those of all others."""
    return token_hex(_NONCE)
