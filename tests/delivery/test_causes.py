"""The codes of causes are one closed set, wherever they show."""

import errno
import signal
from pathlib import Path

import pytest

from delivery.causes import Code, as_table
from delivery.errors import (
    DeliveryError,
    GitHubError,
    GitHubForbiddenError,
    GitHubNotFoundError,
    GitHubUnavailableError,
    PolicyRefusal,
    RunFailureError,
)
from delivery.failure import code_of
from worktree import AcquisitionError, GitError, Interruption, LaunchError, UnsettledError, WorktreeError

DOCUMENT = Path(__file__).parents[2] / "docs" / "failure-causes.md"


def test_the_documentation_has_every_code() -> None:
    remedy = "write its table anew: python -c 'from delivery.causes import as_table; print(as_table())'"
    assert DOCUMENT.read_text().endswith(f"\n\n{as_table()}"), remedy


def test_every_code_has_one_hint_of_its_own() -> None:
    hints = [code.hint for code in Code]
    assert len(set(hints)) == len(Code)
    assert all(hint.endswith(".") and "|" not in hint for hint in hints)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RunFailureError("x", Code.REPAIRS), Code.REPAIRS),
        (PolicyRefusal("x"), Code.POLICY_REFUSAL),
        (GitHubError("x", 401), Code.TOKEN),
        (GitHubError("x", 422), Code.GITHUB),
        (GitHubNotFoundError("x", 404), Code.GITHUB),
        (GitHubForbiddenError("x", 403), Code.PERMISSION),
        (GitHubUnavailableError("x", 502), Code.GITHUB_UNAVAILABLE),
        (DeliveryError("x"), Code.MACHINE),
        (UnsettledError("x"), Code.UNSETTLED),
        (AcquisitionError("x", None), Code.WORKTREE),
        (LaunchError("x"), Code.WORKTREE),
        (GitError(["git"], Path(), status=1), Code.GIT),
        (WorktreeError("x"), Code.GIT),
        (OSError(errno.ENOSPC, "x"), Code.MACHINE),
        (KeyError("x"), Code.BUG),
    ],
)
def test_what_kind_of_cause_an_error_makes(error: Exception, code: Code) -> None:
    assert code_of(error, Interruption()) is code
    interrupted = Interruption()
    interrupted.record(signal.SIGTERM)
    assert code_of(error, interrupted) is Code.INTERRUPTED
