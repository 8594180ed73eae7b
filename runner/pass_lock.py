"""One pass at a time for each repository on a machine.

<state directory>/nightkeep/locks/<host>/<owner>/<name>.lock     in small letters, empty, never deleted
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_state_path

from runner.access import Place


@contextmanager
def only_pass(place: Place) -> Iterator[bool]:
    """Whether no other pass over the repository is going on; while the block lasts none can begin.

    The kernel lets go of the lock however the process ends, and no child of it has the lock. Raises OSError.
    """
    path = _lock_of(place)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def is_going_on(place: Place) -> bool:
    """Tell whether a pass over the repository is going on here."""
    if not _lock_of(place).exists():
        return False
    with only_pass(place) as is_alone:
        return not is_alone


def _lock_of(place: Place) -> Path:
    owner, name = place.repository.lower().split("/")
    return user_state_path("nightkeep") / "locks" / place.host.lower() / owner / f"{name}.lock"
