"""What the command loads before it knows what to do: start-up is felt."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"github", "git", "pydantic", "yaml", "requests", "tenacity", "psutil", "starlette", "uvicorn"}


@pytest.mark.parametrize(
    ("arguments", "typers_own"),
    # Typer shows the parameters of a command by pydantic.
    [(("--help",), set()), (("--version",), set()), (("run", "--help"), {"pydantic"})],
)
def test_help_loads_nothing_heavy(tmp_path: Path, arguments: tuple[str, ...], typers_own: set[str]) -> None:
    command = [sys.executable, "-P", "-X", "importtime", "-m", "runner", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    # "import time: <own µs> | <cumulative µs> | <module>", indented by depth
    loaded = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "runner.cli" in loaded
    assert loaded & HEAVY <= typers_own
