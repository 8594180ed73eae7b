"""What the proofs of this package start from."""

from pathlib import Path

import pytest

from tests.worktree.scene import make_ground


@pytest.fixture
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in the middle of a person's work, made once, to be copied by each test."""
    made = tmp_path_factory.getbasetemp() / "ground"
    if not made.exists():
        make_ground(made)
    return made
