"""Fixtures that hold hubs to GitHub's description.

`pytest_plugins = ["tests.contract.plugin"]` in tests/conftest.py makes them known.
"""

from collections.abc import Iterator

import pytest

from runner.hub import Exchange
from tests.contract.checker import Contract


@pytest.fixture(scope="session")
def contract() -> Contract:
    """GitHub's description."""
    return Contract()


@pytest.fixture
def exchanges(contract: Contract) -> Iterator[list[Exchange]]:
    """What a hub has been asked and has answered: `Hub(…, observe=exchanges.append)`. Checked after the test."""
    seen: list[Exchange] = []
    yield seen
    problems = [problem for exchange in seen for problem in contract.check(exchange)]
    assert not problems, "not as GitHub describes it:\n" + "\n".join(dict.fromkeys(problems))
