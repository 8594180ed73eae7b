"""Endings that no agent can bring about, on a real pull request and a real worktree, in this process."""

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from delivery.causes import Stage as RunStage
from delivery.conventions import Conventions
from delivery.errors import PolicyRefusal
from delivery.failure import fail
from delivery.github import GitHub
from delivery.issue_url import IssueUrl
from delivery.outcome import Outcome, Result
from delivery.pull_request import PullRequests
from delivery.run import Run
from delivery.session import SessionRequest, SessionResult
from runner.exit_codes import exit_code
from tests.scenarios.stage import NAME, WRITER, Stage
from tests.world import git
from worktree import Interruption, Journal, Launch, Origin, Preserved, Redactor, Worktree


@contextmanager
def door(stage: Stage) -> Iterator[GitHub]:
    with closing(GitHub(api_url=f"{stage.hub.url}/api/v3", token=WRITER, repository=NAME)) as github:
        yield github


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_policy_refusal(stage: Stage, *, interrupted: bool) -> None:
    """It preserves nothing and leaves the pull request ready; a signal that was recorded wins over it."""
    number = stage.issue()
    made = stage.on_branch("issue-1", "done.txt", "done\n")
    stage.pull_request("issue-1")
    interruption = Interruption()
    said: list[str] = []
    with door(stage) as github:
        issue = github.issue(number)
        pulls = PullRequests(github, issue, base="main", branch="issue-1", report=said.append)
        with Worktree.resume(
            stage.clone,
            branch="issue-1",
            base="main",
            interruption=interruption,
            origin=Origin(f"{stage.hub.url}/{NAME}.git", WRITER),
        ) as tree:
            if interrupted:
                interruption.record(signal.SIGTERM)
            failure = fail(
                tree,
                "main",
                PolicyRefusal("one more review is needed"),
                stage=RunStage.PULL_REQUEST,
                pull_requests=pulls,
                opens_draft=True,
                interruption=interruption,
                journal=Journal(),
                report=said.append,
            )
            local = git(tree.path, "rev-parse", "HEAD")
    ended = Outcome(
        result=failure.result,
        issue_url=stage.url(number),
        base="main",
        branch="issue-1",
        preserved=Preserved.ORIGIN,
        interruption=interruption.recorded,
    )
    pull = stage.pull()
    if interrupted:
        assert (failure.result, failure.cause) == (Result.FAILED, "interrupted by SIGTERM")
        assert (pull["draft"], exit_code(ended)) == (True, 128 + signal.SIGTERM)
    else:
        assert (failure.result, failure.cause) == (Result.POLICY_REFUSAL, "one more review is needed")
        assert (pull["draft"], exit_code(ended)) == (False, 4)
    assert stage.world.on_origin("refs/heads/issue-1") == local == made
    assert failure.pull_request is not None
    assert failure.pull_request.number == pull["number"]
    assert failure.secondary == ()


class UnexpectedError(Exception):
    """Of a class that nobody expects."""


@dataclass(frozen=True, slots=True)
class BuggySessions:
    """Does some work, and then breaks."""

    def run(self, request: SessionRequest) -> SessionResult:
        (request.directory / "half.txt").write_text("half\n")
        raise UnexpectedError("boom\nand more")


def test_a_bug_of_ours_keeps_the_work(stage: Stage) -> None:
    number, said, interruption = stage.issue(), list[str](), Interruption()
    url = IssueUrl.parse(stage.url(number))
    assert url is not None
    with door(stage) as github:
        run = Run(
            url=url,
            base=None,
            github=github,
            launch=Launch.open(stage.clone, interruption=interruption),
            origin=Origin(url.clone_url, WRITER),
            interruption=interruption,
            report=said.append,
            redact=Redactor([WRITER]),
            host="here",
            continue_command="nightkeep run",
        )
        outcome = run.execute(run.plan(), Conventions(), BuggySessions())
    assert (outcome.result, exit_code(outcome)) == (Result.BUG, 70), said
    assert outcome.cause == "a bug in Nightkeep: UnexpectedError: boom\nand more"
    assert stage.subject("issue-1") == "nightkeep: failed run (a bug in Nightkeep: UnexpectedError: boom)"
    assert stage.world.origin_file("issue-1", "half.txt") == "half"
    assert stage.pull()["draft"] is True
    assert "UnexpectedError: boom and more" in stage.note(stage.pull()["number"])
    assert stage.labels(number) == {"bug", "in-progress"}
    assert list(Path(stage.clone.parent).iterdir()) == [stage.clone]
