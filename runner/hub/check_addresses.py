"""Where checks are found: the ids of their workflow runs, and their pages."""

from runner.hub.checks import Source
from runner.hub.store import CheckRun, Suite

_RUNS_FROM = 9_000_000_000  # a run and its suite have different ids, as on GitHub; this is how far they are apart


def run_of(suite: Suite) -> int:
    """Return the id of the workflow run that a suite stands for."""
    return _RUNS_FROM + suite.id


def suite_of(run: int) -> int:
    """Return the id of the suite of a workflow run."""
    return run - _RUNS_FROM


def check_page(html_url: str, run: CheckRun) -> str:
    """Return the page of a check in the repository whose pages begin with `html_url`."""
    if run.suite.source is Source.ACTIONS:
        return f"{html_url}/actions/runs/{run_of(run.suite)}/job/{run.id}"
    return f"{html_url}/runs/{run.id}"
