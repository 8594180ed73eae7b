"""The stage of the scenarios, with a workflow runner on it."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.action.workflow_runner import WorkflowRunner
from tests.scenarios.conftest import stage, world
from tests.scenarios.stage import Stage

__all__ = ["registry", "runner", "stage", "world"]

_REGISTRY = re.compile(r"(?i)PIP_\w+|SSL_\w+|(REQUESTS|CURL)_CA_BUNDLE|(http|https|all|no)_proxy")


@pytest.fixture(scope="session")
def registry() -> Mapping[str, str]:
    """How the machine reaches its package registry: taken before the seal closes, for pip inside the Action only."""
    cache = Path.home() / ".cache" / "pip"
    reach = {name: value for name, value in os.environ.items() if _REGISTRY.fullmatch(name)}
    return {"PIP_CACHE_DIR": str(cache), **reach}


@pytest.fixture
def runner(stage: Stage, registry: Mapping[str, str]) -> WorkflowRunner:
    """A workflow runner that plays the example workflow in the stage's clone, against its hub."""
    return WorkflowRunner(stage, registry)
