"""Every test runs in a world of its own, sealed off from the machine's user and from the network."""

import os
import random
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import proof
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


# The whole suite plays a part, the same each time, of what starts whole Runs or much of git: so many cases of each
# parametrised test, by directory, and this share of the scenarios. A full proof, or one file, plays all.
_CASES = {"scenarios": 1, "worktree": 2}
_SHARE = 0.1


def pytest_configure() -> None:
    """Let what is started here hear a SIGHUP, which is ignored below `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw what is played; some tests draw by themselves."""
    if proof.full() or config.getoption("keyword") or any(".py" in argument for argument in config.args):
        return
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    played = {item for name, cases in tests.items() for item in _drawn(name, cases)}
    config.hook.pytest_deselected(items=[item for item in items if item not in played])
    items[:] = [item for item in items if item in played]


def _drawn(name: str, cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return which cases of a test are played."""
    most = next((most for directory, most in _CASES.items() if directory in cases[0].path.parts), None)
    if most is None or cases[0].get_closest_marker("drawn"):
        return cases
    chance = random.Random(f"{proof.seed()} {name}")
    if "scenarios" in cases[0].path.parts and chance.random() > _SHARE:
        return []
    return chance.sample(cases, min(most, len(cases)))
