"""Every test runs in a world of its own, sealed off from the machine's user and from the network."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.world import World, make_world

pytest_plugins = ["tests.contract.plugin"]

_SEALED = ("GIT_", "GITHUB_", "GH_", "NIGHTKEEP_", "XDG_", "ACTIONS_", "SSH_", "EMAIL", "LC_", "ANTHROPIC_", "OPENAI_")


@pytest.fixture(autouse=True)
def seal(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test an empty HOME and TMPDIR and none of the caller's settings; afterwards nothing may be left."""
    home = tmp_path_factory.mktemp("home")
    temporary = tmp_path_factory.mktemp("tmp")
    for name in [name for name in os.environ if name.startswith(_SEALED)]:
        monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "EDITOR": "false",
        "NO_COLOR": "1",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tempfile.tempdir", None)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield home
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    for child in left:
        child.send_signal(signal.SIGKILL)
    assert not left, f"processes left over: {left}"
    assert not list(temporary.iterdir()), "files left over in the temporary directory"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A bare origin and a clone of it, on `main` with two files."""
    return make_world(tmp_path)
