"""What the Action installs is what the project needs."""

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.action.workflow_runner import ROOT


def test_the_lock_has_what_is_needed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [Requirement(line) for line in (*project["project"]["dependencies"], *project["build-system"]["requires"])]
    text = (ROOT / ".github" / "requirements.lock").read_text().replace("\\\n", "")
    entries = [line for line in text.splitlines() if not line.startswith("#")]
    locked = dict(re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", "\n".join(entries)))
    wrong = [str(one) for one in needed if not one.specifier.contains(locked.get(canonicalize_name(one.name), "0"))]
    assert not wrong, f"write .github/requirements.lock anew, as its head says: {wrong}"
    assert all("--hash=sha256:" in entry for entry in entries)
