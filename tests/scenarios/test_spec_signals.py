"""A Spec run that is told to stop, or killed, and Runs of Tickets that are: all work is kept, and it can go on."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.scenarios.repairing import QUICKLY
from tests.scenarios.spec import agent, order, pull_of, rows, run, spec, states
from tests.scenarios.stage import NIGHTKEEP, Stage
from tests.scenarios.test_signals import Running
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(400)
_PATIENCE = 150  # seconds; a Spec run is several Runs
INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
# What is half done when the moment comes; `there-<number>` says that it has.
_HALF = "echo half > half-$number.txt; git add -A; git commit -qm half; echo rest > rest-$number.txt; {}"


def half(stage: Stage) -> str:
    return _HALF.format(f"touch {shlex.quote(str(stage.root))}/there-$number; sleep 1000")


@contextmanager
def running(stage: Stage, script: str, **environment: str) -> Iterator[Running]:
    """Start the Spec run on #1; afterwards no process of it may be left."""
    command = [*NIGHTKEEP, "run", stage.url(1), "--agent", script, "--json", "--token-file", str(stage.token_file)]
    with (stage.root / "progress").open("w") as progress:
        process = subprocess.Popen(
            command,
            cwd=stage.clone,
            env={**os.environ, **stage.environment, **QUICKLY, "NIGHTKEEP_CHECKS_GRACE": "1s", **environment},
            stdout=subprocess.PIPE,
            stderr=progress,
            text=True,
        )
    with process:
        try:
            yield Running(stage, process, stage.root, patience=_PATIENCE)
        finally:
            process.kill()
            wait_for(lambda: not stage.processes(), _PATIENCE)


def are_there(stage: Stage, *numbers: int) -> bool:
    return all((stage.root / f"there-{number}").exists() for number in numbers)


def ticket_processes(stage: Stage) -> dict[int, psutil.Process]:
    """Return the runners of Tickets by their numbers."""
    found = {}
    for process in stage.processes():
        words = process.cmdline()
        if "--ticket-of" in words:
            found[int(words[words.index("run") + 1].rpartition("/")[2])] = process
    return found


@pytest.mark.parametrize("number", [INT, TERM])
def test_all_tickets_are_told_before_any_is_waited_for_and_keep_their_work(
    stage: Stage, number: signal.Signals
) -> None:
    spec(stage, [[], [2], [2], [3]])
    with running(stage, agent(stage, t3=half(stage), t4=half(stage))) as under_way:
        wait_for(lambda: are_there(stage, 3, 4), _PATIENCE)
        under_way.send(number)
        document = under_way.end()
    assert (under_way.status, document["code"]) == (128 + number, "interrupted"), under_way.stderr
    told = [under_way.stderr.index(f"nightkeep: #{n}: SIGTERM: ending") for n in (3, 4)]
    ended = [under_way.stderr.index(f"nightkeep: #{n} is not merged: interrupted by SIGTERM") for n in (3, 4)]
    assert max(told) < min(ended)
    for ticket in (3, 4):
        assert {f"half-{ticket}.txt", f"rest-{ticket}.txt"} <= stage.files(f"issue-{ticket}")
        assert pull_of(stage, f"issue-{ticket}")["draft"]
    landed = pull_of(stage, "issue-2")["html_url"]
    assert rows(stage) == [
        f"- [x] #2 `A part`: merged, {landed}",
        "- [ ] #3 `A part`: interrupted",
        "- [ ] #4 `A part`: interrupted",
        "- [ ] #5 `A part`: blocked by #3",
    ]
    assert (pull_of(stage, "issue-1")["draft"], stage.worktrees()) == (True, [])
    assert sorted(line for line in order(stage) if line.startswith("begin")) == ["begin 2", "begin 3", "begin 4"]


def test_a_ticket_whose_process_is_killed_is_recovered_at_once_and_the_others_go_on(stage: Stage) -> None:
    spec(stage, [[], [2], []])
    with running(stage, agent(stage, t2=half(stage))) as under_way:
        wait_for(lambda: are_there(stage, 2), _PATIENCE)
        ticket_processes(stage)[2].send_signal(KILL)
        document = under_way.end()
    assert (under_way.status, document["cause"]) == (1, "Tickets not done: #2, #3"), under_way.stderr
    assert {"half-2.txt", "rest-2.txt"} <= stage.files("issue-2")
    assert rows(stage) == [
        f"- [ ] #2 `A part`: failed, see {pull_of(stage, 'issue-2')['html_url']}: `Nightkeep was killed`",
        "- [ ] #3 `A part`: blocked by #2",
        f"- [x] #4 `A part`: merged, {pull_of(stage, 'issue-4')['html_url']}",
    ]
    assert stage.worktrees() == []


def test_without_the_spec_run_its_tickets_end_by_themselves_and_the_next_one_goes_on(stage: Stage) -> None:
    spec(stage, [[], [2], [2]])
    with running(stage, agent(stage, t3=half(stage), t4=half(stage))) as under_way:
        wait_for(lambda: are_there(stage, 3, 4), _PATIENCE)
        under_way.send(KILL)
        wait_for(lambda: not stage.processes(), _PATIENCE)
    for ticket in (3, 4):
        assert {f"half-{ticket}.txt", f"rest-{ticket}.txt"} <= stage.files(f"issue-{ticket}")
        assert pull_of(stage, f"issue-{ticket}")["draft"]
    assert stage.worktrees() == []
    assert rows(stage)[1:] == ["- [ ] #3 `A part`: running", "- [ ] #4 `A part`: running"]

    recovered = stage.command("recover", "--token-file", str(stage.token_file))
    assert recovered.status == 0, recovered
    pull = pull_of(stage, "issue-1")
    note = stage.comments(pull["number"])[0]
    assert "**Cause:** `Nightkeep was killed`" in note
    assert f"nightkeep run {stage.url(1)}" in note
    assert rows(stage) == [
        f"- [x] #2 `A part`: merged, {pull_of(stage, 'issue-2')['html_url']}",
        "- [ ] #3 `A part`: not started",
        "- [ ] #4 `A part`: not started",
    ]

    result = run(stage, agent(stage))
    after = pull_of(stage, "issue-1")
    assert (result.status, after["number"], after["draft"]) == (0, pull["number"], False), result
    assert {"half-3.txt", "rest-3.txt", "half-4.txt", "part-2.txt", "part-3.txt"} <= stage.files("issue-1")
    assert states(stage) == {1: "open", 2: "closed", 3: "closed", 4: "closed"}


def test_a_signal_while_the_whole_is_reviewed_keeps_the_reviews_work(stage: Stage) -> None:
    spec(stage, [[]])
    with running(stage, agent(stage, review=half(stage))) as under_way:
        wait_for(lambda: are_there(stage, 1), _PATIENCE)
        under_way.send(TERM)
        document = under_way.end()
    assert (under_way.status, document["stage"]) == (143, "session"), under_way.stderr
    assert {"half-1.txt", "rest-1.txt", "part-2.txt"} <= stage.files("issue-1")
    assert stage.subject("issue-1") == "nightkeep: failed run (interrupted by SIGTERM)"
    assert pull_of(stage, "issue-1")["draft"]
    assert rows(stage)[0].startswith("- [x] #2 `A part`: merged,")


def claims(stage: Stage) -> str:
    """Return a shell command that prints the claims on origin."""
    return f"git -C {shlex.quote(str(stage.world.origin))} for-each-ref '--format=%(refname)' refs/nightkeep/claims"


def test_the_spec_and_each_ticket_have_claims_of_their_own(stage: Stage) -> None:
    spec(stage, [[], [2]])
    looks = f"{claims(stage)} > {stage.root}/claims-$number; echo $number > part-$number.txt"
    with running(stage, agent(stage, t2=f"{looks}; {half(stage)}", t3=looks)) as under_way:
        wait_for(lambda: are_there(stage, 2), _PATIENCE)
        second = stage.run_in(stage.clone, 1, agent(stage))
        assert (second.status, "#1" in second.stderr, second.stdout) == (2, True, ""), second
        under_way.send(TERM)
        under_way.end()
    assert (stage.root / "claims-2").read_text().split() == ["refs/nightkeep/claims/1", "refs/nightkeep/claims/2"]
    assert not [ref for ref in stage.refs() if "claims" in ref]


def test_a_spec_run_that_loses_its_claim_stops_its_tickets_and_leaves_the_pull_request_alone(stage: Stage) -> None:
    spec(stage, [[], [2], [3]])
    origin = shlex.quote(str(stage.world.origin))
    lost = f"git -C {origin} update-ref refs/nightkeep/claims/1 $(git -C {origin} rev-parse main)"
    script = agent(stage, t3=f"{half(stage).replace('sleep 1000', lost + '; sleep 1000')}")
    with running(stage, script, NIGHTKEEP_LIMITS_HEARTBEAT="1s") as under_way:
        document = under_way.end()
    assert (document["code"], document["stage"]) == ("lease-lost", "tickets"), under_way.stderr
    assert {"half-3.txt", "rest-3.txt"} <= stage.files("issue-3")
    assert "starting on #4" not in under_way.stderr
    assert rows(stage)[1] == "- [ ] #3 `A part`: running"
    assert stage.worktrees() == []
