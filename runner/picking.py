"""What looks through a repository's issues, put together for the commands that do: pickup, explain, status."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delivery.errors import PreflightError
from runner.access import Access, Place, place_of
from runner.configured import repository_settings
from runner.settings import Settings
from runner.token_source import NoTokenError
from worktree import GitError, Interrupted

if TYPE_CHECKING:  # it takes a while to import
    from delivery.pickup import Pickup


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """One repository as it is looked at: its place, the Base branch, and the settings as they stand there."""

    access: Access
    place: Place
    base: str
    settings: Settings
    pickup: "Pickup"


def picking(access: Access, base: str | None, flags: dict[str, object]) -> Picking:
    """Look where origin has the Base branch, and read the settings there. Asks GitHub's API nothing.

    Raises PreflightError, GitError and Interrupted.
    """
    from delivery.pickup import Pickup
    from runner.wiring import pickup_rules

    launch, place = access.launch, place_of(access.launch)
    if access.github is None or access.remote is None:
        raise NoTokenError(place.host)
    chosen = base or launch.checked_out
    if chosen is None:
        raise PreflightError(
            "HEAD is on no branch, so there is no Base branch; check one out (git checkout main) or name one "
            "(--base main)"
        )
    try:
        if not access.remote.read(f"refs/heads/{chosen}"):
            raise PreflightError(f"Base branch {chosen} is not on origin; push it (git push origin {chosen})")
        commit = access.remote.fetch(chosen)[chosen]
    except Interrupted:
        raise
    except GitError as error:
        if error.refused_credential:
            raise PreflightError(f"origin: {error.refused_credential}; give a token that is valid") from error
        raise PreflightError(f"origin does not answer: {' '.join(error.stderr.split()) or error}") from error
    loaded = repository_settings(
        launch,
        access.start.machine.settings,
        flags,
        repository=place.repository,
        host=place.host,
        base=chosen,
        commit=commit,
    )
    settings = loaded.settings
    pickup = Pickup(
        github=access.github,
        launch=launch,
        remote=access.remote,
        repository=place.repository,
        rules=pickup_rules(settings),
        report=access.say,
    )
    return Picking(access=access, place=place, base=chosen, settings=settings, pickup=pickup)
