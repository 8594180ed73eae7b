"""Waiting for checks that GitHub lists, over HTTP."""

import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delivery.checks import Absence, Expected, Patience, Verdict, runs_to_repeat
from delivery.errors import GitHubError
from delivery.github import GitHub
from delivery.watching import CheckWatch, StoppedError
from runner.hub import Check, Exchange, Hub, Permission, Source, Wait, drills
from tests.delivery.conftest import NAME, TOKEN
from tests.world import World, commit, git
from worktree import Interruption

CHECK_RUNS = "*/check-runs"


@pytest.fixture
def hub(world: World, tmp_path: Path, exchanges: list[Exchange]) -> Iterator[Hub]:
    """A hub with a branch `topic` beside `main`."""
    git(world.launch, "checkout", "-q", "-b", "topic")
    (world.launch / "lamp.txt").write_text("on\n")
    commit(world.launch, "lamp")
    git(world.launch, "push", "-q", "origin", "topic")
    tokens = {TOKEN: Permission.WRITE}
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}, tokens=tokens, observe=exchanges.append) as served:
        yield served


def watch(world: World, github: GitHub, said: list[str] | None = None, **changed: Any) -> CheckWatch:
    lines = [] if said is None else said
    given: dict[str, Any] = {
        "expected": Expected,
        "absence": lambda _: Absence.NOT_STARTED,
        "patience": Patience(grace=1, limit=20, poll=0.05),
        "merges": False,
        "interruption": Interruption(),
        "keep_fence": list,
        "report": lines.append,
    }
    head, base = world.on_origin("topic"), world.on_origin("main")
    return CheckWatch(github=github.checks, head=head, base_commit=base, **given | changed)


def names(verdict: Verdict) -> tuple[list[str], list[str]]:
    return [check.name for check in verdict.own], [check.name for check in verdict.inherited]


def test_a_long_wait_costs_few_counted_requests(
    world: World, hub: Hub, github: GitHub, exchanges: list[Exchange]
) -> None:
    """However many looks an hour has: only answers that are new count against the token's limit."""
    hub.ci.add(NAME, Check("slow", concludes=Wait(polls=30), branches="topic"))
    said: list[str] = []
    patience = Patience(grace=1, limit=60, poll=0.01)
    assert watch(world, github, said, patience=patience).to_the_end() == Verdict()
    looks = [seen for seen in exchanges if "/commits/" in seen.path]
    assert len(looks) >= 2 * 30
    assert len([seen for seen in looks if seen.status != 304]) <= 8
    waiting, green = said
    assert re.fullmatch(r"waiting for 1 check, until \d\d:\d\d UTC at most: slow \(http://\S+\)", waiting)
    assert green == f"checks are green on {world.on_origin('topic')[:12]}: slow"


def test_checks_and_statuses_of_all_pages_count(world: World, hub: Hub, github: GitHub) -> None:
    for number in range(101):
        hub.ci.add(NAME, Check(f"job {number:03}", branches="topic"))
        hub.ci.add(NAME, Check(f"status {number:03}", source=Source.STATUS, branches="topic"))
    hub.ci.add(NAME, Check("zz job", conclusions=("failure",), branches="topic"))
    hub.ci.add(NAME, Check("zz status", conclusions=("failure",), source=Source.STATUS, branches="topic"))
    own, inherited = names(watch(world, github).to_the_end())
    assert (sorted(own), inherited) == (["zz job", "zz status"], [])


def test_the_base_commit_is_not_asked_about_when_all_is_green(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("test"))
    assert watch(world, github).to_the_end().is_green
    assert not [path for _, path in hub.requests if world.on_origin("main") in path]


def test_own_and_inherited_failures_are_told_apart(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("lint", conclusions=("failure",)))
    hub.ci.add(NAME, Check("test", command="test ! -e lamp.txt", concludes=Wait(polls=3), branches="topic"))
    assert names(watch(world, github).to_the_end()) == (["test"], ["lint"])
    looks = [path.split("/commits/")[1][:40] for _, path in hub.requests if path.endswith("/check-runs")]
    head, base = world.on_origin("topic"), world.on_origin("main")
    assert looks[-2:] == [head, base], "once, after all had finished"
    assert looks.count(base) == 1


def test_checks_may_take_their_time_to_appear(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("late", appears=Wait(polls=3), branches="topic"))
    said: list[str] = []
    patience = Patience(grace=30, limit=60, poll=0.05)
    assert watch(world, github, said, patience=patience).to_the_end() == Verdict()
    assert said[0].startswith("waiting for checks to start, until ")


def test_none_appears(world: World, hub: Hub, github: GitHub) -> None:
    assert watch(world, github).to_the_end() == Verdict(absence=Absence.NOT_STARTED)


def test_what_is_waited_for_is_said_when_it_changes(world: World, hub: Hub, github: GitHub) -> None:
    for name, polls in (("quick", 3), ("slow", 6)):
        hub.ci.add(NAME, Check(name, concludes=Wait(polls=polls), branches="topic"))
    said: list[str] = []
    assert watch(world, github, said).to_the_end() == Verdict()
    assert [re.findall("quick|slow", line) for line in said] == [["quick", "slow"], ["slow"], ["quick", "slow"]]


AN_HOUR = [drills.primary_rate_limit(1500), drills.secondary_rate_limit(3600), drills.too_many_requests(3600)]


@pytest.mark.parametrize("trouble", AN_HOUR, ids=["primary", "secondary", "too-many"])
def test_a_server_that_asks_for_patience_is_obeyed_as_long_as_checks_are_waited_for(
    world: World, hub: Hub, github: GitHub, trouble: drills.Trouble
) -> None:
    hub.ci.add(NAME, Check("test", branches="topic"))
    drill = hub.drill("GET", CHECK_RUNS, trouble, times=None)
    said: list[str] = []
    began = time.monotonic()
    with pytest.raises(GitHubError, match="asks for a wait of"):
        watch(world, github, said, patience=Patience(grace=1, limit=2, poll=0.05)).to_the_end()
    assert (drill.hits <= 3, time.monotonic() - began < 20) == (True, True)
    assert any("looking at the checks again in 2 s" in line for line in said), said


@pytest.mark.parametrize("trouble", [drills.server_error(), drills.dropped_connection()])
def test_trouble_of_githubs_is_waited_out(world: World, hub: Hub, github: GitHub, trouble: drills.Trouble) -> None:
    hub.ci.add(NAME, Check("test", branches="topic"))
    hub.drill("GET", CHECK_RUNS, trouble, times=6)
    said: list[str] = []
    patience = Patience(grace=1, limit=30, poll=0.05)
    assert watch(world, github, said, patience=patience).to_the_end() == Verdict()
    assert any("looking at the checks again in" in line for line in said)


def test_trouble_while_the_base_commit_is_asked_about_is_waited_out(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("lint", conclusions=("failure",)))
    hub.drill("GET", f"*/commits/{world.on_origin('main')}/*", drills.server_error(), times=6)
    patience = Patience(grace=1, limit=30, poll=0.05)
    assert names(watch(world, github, patience=patience).to_the_end()) == ([], ["lint"])


def test_what_still_runs_on_the_base_commit_is_waited_for(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("lint", conclusions=("failure",), branches="topic"))
    hub.ci.add(NAME, Check("lint", conclusions=("failure",), concludes=Wait(polls=3), branches="main"))
    said: list[str] = []
    assert names(watch(world, github, said).to_the_end()) == ([], ["lint"])
    assert said == [f"lint failed; waiting for the same to end on the Base commit {world.on_origin('main')[:12]}"]


def test_checks_that_the_token_may_not_read(world: World, hub: Hub, github: GitHub) -> None:
    forbidden = {"message": "Resource not accessible by personal access token"}
    drill = hub.drill("GET", CHECK_RUNS, drills.answer(403, forbidden), times=None)
    assert watch(world, github).to_the_end() == Verdict(absence=Absence.UNREADABLE)
    assert drill.hits == 1, "it is not asked again"


def test_a_signal_ends_the_wait(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("stuck", conclusions=(None,), branches="topic"))
    interruption = Interruption()

    def stop(_line: str) -> None:
        interruption.record(signal.SIGTERM)

    with pytest.raises(StoppedError):
        watch(world, github, report=stop, interruption=interruption).to_the_end()


def again(hub: Hub, world: World, github: GitHub) -> tuple[Verdict, int]:
    """Watch, have what failed run again, and return what came of it and how often that was asked for."""
    watched = watch(world, github)
    verdict = watched.to_the_end()
    assert verdict.own
    after = watched.repeat(verdict)
    return after, sum(path.endswith("/rerun-failed-jobs") for method, path in hub.requests if method == "POST")


def test_what_failed_is_run_again_once_for_each_workflow_run(world: World, hub: Hub, github: GitHub) -> None:
    for name in ("a", "b"):
        hub.ci.add(NAME, Check(name, conclusions=("failure", "success"), branches="topic"))
    other = ".github/workflows/other.yml"
    hub.ci.add(NAME, Check("c", conclusions=("failure", "success"), branches="topic", workflow=other))
    assert again(hub, world, github) == (Verdict(), 2)


def test_a_failure_that_is_no_job_has_nothing_asked(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("a", conclusions=("failure", "success"), branches="topic"))
    hub.ci.add(NAME, Check("b", conclusions=("failure",), source=Source.STATUS, branches="topic"))
    verdict, asked = again(hub, world, github)
    assert (names(verdict), asked) == ((["a", "b"], []), 0)


def test_a_refusal_stops_the_asking_and_the_checks_decide_as_they_are(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("a", conclusions=("failure",), branches="topic"))
    other = ".github/workflows/other.yml"
    hub.ci.add(NAME, Check("b", conclusions=("failure",), branches="topic", workflow=other))
    hub.drill("POST", "*/rerun-failed-jobs", drills.answer(403, {"message": "no"}), times=None)
    verdict, asked = again(hub, world, github)
    assert (names(verdict), asked) == ((["a", "b"], []), 1)


def test_a_later_refusal_leaves_the_judgement_to_the_whole_head(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("a", conclusions=("failure", "success"), branches="topic"))
    hub.ci.add(NAME, Check("lint", conclusions=("failure",)))
    other = ".github/workflows/other.yml"
    hub.ci.add(NAME, Check("b", conclusions=("failure",), branches="topic", workflow=other))
    refused = hub.drill("POST", "*/actions/runs/*/rerun-failed-jobs", drills.answer(403, {"message": "no"}), times=0)
    watched = watch(world, github)
    verdict = watched.to_the_end()
    (first, _) = runs_to_repeat(verdict.own)
    assert names(verdict) == (["a", "b"], ["lint"])
    refused.times, refused.path = None, f"*/runs/{max(runs_to_repeat(verdict.own))}/rerun-failed-jobs"
    assert first == min(runs_to_repeat(verdict.own))
    assert names(watched.repeat(verdict)) == (["b"], ["lint"])


def test_a_new_attempt_is_waited_for_and_the_old_one_is_not_taken_for_it(
    world: World, hub: Hub, github: GitHub
) -> None:
    late = Check("a", conclusions=("failure", "success"), appears=Wait(polls=3), branches="topic")
    hub.ci.add(NAME, late)
    watched = watch(world, github, patience=Patience(grace=20, limit=20, poll=0.05))
    verdict = watched.to_the_end()
    assert names(verdict) == (["a"], [])
    assert watched.repeat(verdict) == Verdict()


def test_a_new_attempt_that_never_appears_is_none(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("a", conclusions=("failure", "success"), branches="topic"))
    hub.drill("POST", "*/rerun-failed-jobs", drills.answer(201, {}))
    said: list[str] = []
    watched = watch(world, github, said)
    verdict = watched.to_the_end()
    assert watched.repeat(verdict) == verdict
    assert said[-1] == "GitHub shows no new attempt of those checks"


def test_a_signal_ends_the_wait_for_a_new_attempt(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("a", conclusions=("failure", "success"), branches="topic"))
    hub.drill("POST", "*/rerun-failed-jobs", drills.answer(201, {}))
    interruption = Interruption()
    watched = watch(world, github, interruption=interruption, patience=Patience(grace=60, limit=60, poll=0.05))
    verdict = watched.to_the_end()
    threading.Timer(0.5, interruption.record, [signal.SIGTERM]).start()
    with pytest.raises(StoppedError):
        watched.repeat(verdict)


def test_a_rerun_whose_answer_is_lost_is_asked_for_once(world: World, hub: Hub, github: GitHub) -> None:
    hub.ci.add(NAME, Check("a", conclusions=("failure", "success"), branches="topic"))
    hub.drill("POST", "*/rerun-failed-jobs", drills.lost_answer())
    assert again(hub, world, github) == (Verdict(), 1)


def test_a_log_is_read_from_its_end_and_without_the_token(
    world: World, hub: Hub, github: GitHub, exchanges: list[Exchange]
) -> None:
    hub.ci.add(NAME, Check("a", conclusions=("failure",), branches="topic", log="first\n" + "x" * 5000 + "\nlast\n"))
    (check,) = watch(world, github).to_the_end().own
    assert check.job is not None
    tail = github.checks.log_tail(check.job, 1000)
    assert len(tail) == 1000
    assert "last" in tail
    assert "first" not in tail
