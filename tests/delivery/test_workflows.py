"""Whether a workflow runs for a pull request, as a table."""

import pytest

from delivery.workflows import Applying, Proposed, which_apply

RUNS = Applying(runs=1, is_filtered=False)
TWICE = Applying(runs=2, is_filtered=False)
FILTERED = Applying(runs=0, is_filtered=True)
NEITHER = Applying(runs=0, is_filtered=False)
PROPOSED = Proposed(base="main", branch="issue-7", paths=["src/lamp.py", "docs/lamp.md"])


@pytest.mark.parametrize(
    ("on", "answer"),
    [
        ("on: push", RUNS),
        ("on: [push, issues]", RUNS),
        ("on: [push, pull_request]", TWICE),
        ("on: pull_request", RUNS),
        ("on:\n  pull_request:\n", RUNS),
        ("on:\n  pull_request_target:\n    branches: [main]", RUNS),
        ("on: workflow_dispatch", NEITHER),
        ("on:\n  schedule:\n    - cron: '0 0 * * *'", NEITHER),
        ("on:\n  pull_request:\n    branches: [main]", RUNS),
        ("on:\n  pull_request:\n    branches: ['release/**']", FILTERED),
        ("on:\n  pull_request:\n    branches: ['ma*', '!main']", FILTERED),
        ("on:\n  pull_request:\n    branches: ['**', '!main', 'main']", RUNS),
        ("on:\n  pull_request:\n    branches-ignore: main", FILTERED),
        ("on:\n  pull_request:\n    types: [labeled]", FILTERED),
        ("on:\n  pull_request:\n    types: [labeled, synchronize]", RUNS),
        ("on:\n  pull_request:\n    paths: ['**.py']", RUNS),
        ("on:\n  pull_request:\n    paths: ['**/*.rs']", FILTERED),
        ("on:\n  pull_request:\n    paths: ['src/**', '!src/**']", FILTERED),
        ("on:\n  pull_request:\n    paths-ignore: ['docs/**']", RUNS),
        ("on:\n  pull_request:\n    paths-ignore: ['docs/**', 'src/*.py']", FILTERED),
        ("on:\n  push:\n    branches: [main]", FILTERED),
        ("on:\n  push:\n    branches: ['issue-[0-9]+']", RUNS),
        ("on:\n  push:\n    tags: ['v*']", FILTERED),
        ("on:\n  push:\n    branches: [main]\n  pull_request:", RUNS),
        ("on:\n  pull_request:\n    branches: ['mains?']", RUNS),
        ("on: {", RUNS),
        ("- a list", RUNS),
    ],
)
def test_one_workflow(on: str, answer: Applying) -> None:
    assert which_apply([on], PROPOSED) == answer


def test_several_workflows() -> None:
    texts = ["on: workflow_dispatch", "on:\n  push:\n    branches: [main]"]
    assert which_apply([], PROPOSED) == NEITHER
    assert which_apply(texts, PROPOSED) == FILTERED
    assert which_apply([*texts, "on: push", "on: pull_request"], PROPOSED) == Applying(runs=2, is_filtered=True)


def test_paths_that_are_unknown_are_let_through() -> None:
    texts = [f"on:\n  pull_request:\n    {filters}: ['docs/**']" for filters in ("paths", "paths-ignore")]
    assert which_apply(texts, Proposed(base="main", branch="issue-7", paths=None)) == TWICE
