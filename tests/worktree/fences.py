"""Fences as tests hold them: by messages that are counted, at a pace that tests choose."""

from itertools import count

from tests.world import World
from worktree import Fence, Interruption, Launch, Origin, Pace, ServerTime
from worktree.git import Limits

REF = "refs/nightkeep/claims/7"
IMPATIENT = Limits(pause=0.01)
SLOW = Pace(lease=900, beat=300)


def opened(world: World) -> Launch:
    return Launch.open(world.launch, interruption=Interruption(), limits=IMPATIENT)


def a_fence(
    world: World, who: str = "one", pace: Pace = SLOW, *, origin: Origin | None = None, is_atomic: bool = True
) -> Fence:
    """Return a fence that nobody has taken yet."""
    number = count(1)
    return Fence(
        opened(world).remote(origin),
        REF,
        lambda: f"{who} {next(number)}",
        clock=ServerTime(),
        pace=pace,
        is_atomic=is_atomic,
    )
