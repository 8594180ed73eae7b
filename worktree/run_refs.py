"""Refs that are one run's own, by its name; here and on origin."""

CHECKPOINTS = "refs/nightkeep/checkpoints/"
RESCUE = "refs/nightkeep/rescue/"


def checkpoint_ref(run_id: str) -> str:
    """Return the ref that names a run's last checkpoint."""
    return f"{CHECKPOINTS}{run_id}"


def rescue_ref(run_id: str, name: str = "") -> str:
    """Return a run's rescue ref of that name; without one, what all of them begin with."""
    return f"{RESCUE}{run_id}/{name}"
