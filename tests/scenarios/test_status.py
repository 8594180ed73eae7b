"""What is shown of a repository's issues and runs."""

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from delivery.github import GitHub
from tests.scenarios.spec import agent as tickets_agent
from tests.scenarios.spec import pull_of
from tests.scenarios.spec import run as run_spec
from tests.scenarios.spec import spec as spec_of
from tests.scenarios.stage import NAME, NIGHTKEEP, WRITER, Stage
from tests.scenarios.test_pickup import WORK
from tests.waiting import wait_for


def status(stage: Stage) -> dict[str, Any]:
    document = stage.command("status", "--token-file", str(stage.token_file), "--json").document
    return {issue["issue"]: issue for issue in document["issues"]} | {"": document}


def test_each_issue_has_its_state(stage: Stage, tmp_path: Path) -> None:
    ready, blocked, person, spec = (stage.ready(f"Issue {n}") for n in range(4))
    one, two, outside = (stage.people.open("eve", f"Part {n}") for n in range(3))
    stage.people.add_sub_issue(spec, one, "olga")
    stage.people.add_sub_issue(spec, two, "olga")
    stage.people.block(two, outside, "olga")
    stage.people.close(one, "olga")
    stage.people.block(blocked, ready, "olga")
    stage.people.label(person, "olga", "needs-info")
    for number in (blocked, person, spec):
        stage.people.age(number, 3600)
    delivered, failed = stage.ready("Fine"), stage.ready("Broken")
    assert stage.run(delivered, stage.agent(WORK)).status == 0
    assert stage.run(failed, stage.agent("echo x > x; exit 3")).status == 1
    found = status(stage)
    assert {name: issue["state"] for name, issue in found.items() if name} == {
        f"#{failed}": "failed",
        f"#{delivered}": "delivered",
        f"#{ready}": "ready",
        f"#{spec}": "ready",
        f"#{blocked}": "blocked",
        f"#{person}": "for people",
    }
    assert found[f"#{delivered}"]["pull_request"] == stage.pulls()[0]["html_url"]
    parts = [(part["issue"], part["state"]) for part in found[f"#{spec}"]["parts"]]
    assert parts == [(f"#{one}", "done"), (f"#{two}", "blocked")]
    before = stage.everything()
    text = stage.command("status", "--token-file", str(stage.token_file)).stdout
    assert f"├─ #{one}" in text
    assert re.search(rf"└─ #{two} Part 1 +blocked +by #{outside} ", text)
    assert stage.everything() == before


def test_a_run_at_work_and_a_pass_are_shown(stage: Stage, tmp_path: Path) -> None:
    number = stage.ready()
    gate = tmp_path / "gate"
    agent = stage.agent(f"touch {gate}; while test -e {gate}; do sleep 0.05; done; {WORK}")
    with stage.started("pickup", "--agent", agent, "--token-file", str(stage.token_file)) as run:
        deadline = time.monotonic() + 60
        while not gate.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        found = status(stage)
        gate.unlink()
        assert run.wait(60) == 0
    assert found[f"#{number}"]["state"] == "runs"
    assert found[""]["pass"] is True
    assert [f"issue-{number} is at work in" in line for line in found[""]["here"]] == [True]


def test_what_became_of_tickets_is_told_of_them(stage: Stage) -> None:
    """And of an issue only what is known: that a person made a draft of its pull request is no failure."""
    stage.patience = 200
    spec_of(stage, [[], []])
    half = tickets_agent(stage, t2="echo half > half.txt; exit 3", t3="echo x > x.txt; exit 4")
    assert run_spec(stage, half).status == 1
    failed = pull_of(stage, "issue-2")["html_url"]
    stage.people.close(3, "writer")
    mine = stage.ready("Fine")
    assert stage.run(mine, stage.agent(WORK)).status == 0
    draft = pull_of(stage, f"issue-{mine}")
    people = GitHub(api_url=f"{stage.hub.url}/api/v3", token=WRITER, repository=NAME)
    people.convert_to_draft(draft["number"])
    people.close()
    found = status(stage)
    (first, second) = found["#1"]["parts"]
    assert (first["state"], first["pull_request"]) == ("failed", failed)
    assert second["state"] == "done"
    assert (found[f"#{mine}"]["state"], found[f"#{mine}"]["text"]) == ("started", "its pull request is a draft")
    lines = stage.command("status", "--token-file", str(stage.token_file)).stdout.splitlines()
    assert f"│    {failed}" in lines


def test_a_run_that_was_killed_is_told_with_what_to_do(stage: Stage, tmp_path: Path) -> None:
    number = stage.ready()
    gate = tmp_path / "gate"
    agent = stage.agent(f"touch {gate}; while test -e {gate}; do sleep 0.05; done; {WORK}")
    with stage.started("run", stage.url(number), "--agent", agent, "--token-file", str(stage.token_file)) as run:
        wait_for(gate.exists)
        run.kill()
    gate.unlink()
    wait_for(lambda: not stage.processes())
    found = status(stage)
    assert (found[f"#{number}"]["state"], found[f"#{number}"]["text"]) == (
        "failed",
        "killed, its runner is gone; finish it: nightkeep recover",
    )
    assert "its runner was killed; finish it: nightkeep recover" in found[""]["here"][0]
    assert stage.command("recover", "--token-file", str(stage.token_file)).status == 0
    assert status(stage).keys() == {f"#{number}", ""}


def test_nothing_is_said_to_be_nothing(stage: Stage) -> None:
    result = stage.command("status", "--token-file", str(stage.token_file))
    assert result.status == 0, result
    assert "nothing is labelled for an agent" in result.stdout


def test_on_a_terminal_it_goes_on_until_a_signal_comes(stage: Stage) -> None:
    stage.ready("Add a lamp")
    command = " ".join([*NIGHTKEEP, "status", "--token-file", str(stage.token_file)])
    with stage.started_as("script", "-qec", command, "/dev/null", stdout=subprocess.PIPE) as shown:
        assert shown.stdout is not None
        seen = b""
        deadline = time.monotonic() + 60
        while b"Add a lamp" not in seen and time.monotonic() < deadline:
            seen += os.read(shown.stdout.fileno(), 65_536)
        for process in stage.processes():
            process.terminate()
        shown.communicate(timeout=60)
    assert b"Add a lamp" in seen
