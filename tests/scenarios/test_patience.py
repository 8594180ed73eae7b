"""Nobody is waited for beyond reason when a Run ends: no server that asks for an hour, no editor of an agent's."""

import signal
import time

import pytest

from runner.hub import drills
from runner.hub.drills import Trouble
from tests.scenarios.stage import Stage
from tests.scenarios.test_signals import HALF, running
from tests.waiting import wait_for

AN_HOUR = [drills.secondary_rate_limit(3600), drills.secondary_rate_limit(), drills.too_many_requests(3600)]


@pytest.mark.parametrize("trouble", AN_HOUR, ids=["secondary", "secondary-unnamed", "too-many"])
def test_a_server_that_asks_for_patience_while_a_signal_ends_the_run(stage: Stage, trouble: Trouble) -> None:
    asked = [stage.hub.drill("POST", path, trouble, times=None) for path in ("*/pulls", "*/comments", "*/graphql")]
    with running(stage, HALF + "sleep 1000") as run:
        wait_for(run.there.exists)
        run.send(signal.SIGTERM)
        document = run.end()
    assert run.after < 15
    assert (run.status, document["preserved"]) == (128 + signal.SIGTERM, "origin"), run.stderr
    assert {"half.txt", "rest.txt"} <= stage.files("issue-1")
    assert [drill.hits for drill in asked] == [1, 1, 0], "nothing is asked again"
    assert "the Failure note could not be written: GitHub answered " in run.stderr
    assert "the Failure note is at" not in run.stderr


def test_a_server_that_asks_for_an_hour_while_a_run_fails(stage: Stage) -> None:
    number = stage.issue()
    drill = stage.hub.drill("POST", "*/comments", drills.secondary_rate_limit(3600), times=None)
    began = time.monotonic()
    result = stage.run(number, stage.agent("echo half > half.txt; exit 3"), "--json")
    assert time.monotonic() - began < 30
    assert (result.status, result.document["cause"], drill.hits) == (1, "the agent exited 3", 1), result
    assert "asks for a wait of 3600 s, and a Run waits for 60 s at most" in result.stderr
    assert stage.world.origin_file("issue-1", "half.txt") == "half"


def test_a_missing_permission_to_comment_is_asked_for_once(stage: Stage) -> None:
    forbidden = drills.answer(403, {"message": "Resource not accessible by personal access token"})
    drill = stage.hub.drill("POST", "*/comments", forbidden, times=None)
    result = stage.run(stage.issue(), stage.agent("echo half > half.txt; exit 3"), "--json")
    assert (result.status, result.document["cause"], drill.hits) == (1, "the agent exited 3", 1), result


@pytest.mark.parametrize("ending", ["exit 3", "exit 0"])
def test_a_commit_of_the_agents_that_waits_in_an_editor_ends_with_it(stage: Stage, ending: str) -> None:
    lock = "$(git rev-parse --git-path index.lock)"
    commits = "(GIT_EDITOR='sleep 600 #' setsid git commit -qa &)"
    result = stage.run(
        stage.issue(),
        stage.agent(f"echo half > a.txt; {commits}; until test -e {lock}; do sleep 0.05; done; {ending}"),
        "--json",
    )
    assert result.status == int(ending == "exit 3"), result
    assert stage.world.origin_file("issue-1", "a.txt") == "half"
