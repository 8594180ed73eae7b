"""What a step of a workflow is told, and what the Action says where it cannot be installed."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from runner.actions import WorkflowStep
from runner.progress import Progress
from tests.action.workflow_runner import ACTION
from tests.scenarios.stage import NIGHTKEEP, WRITER, Stage


def action() -> dict[str, Any]:
    described: dict[str, Any] = yaml.safe_load(ACTION.read_text())
    return described


def told(output: Path) -> dict[str, str]:
    """Read a file of outputs as GitHub does; the last one of a name counts."""
    text = output.read_text()
    return {name: value for name, _, value in re.findall(r"(?ms)^([\w-]+)<<(\w+)\n(.*?)\n\2$", text)}


def test_every_output_is_set_before_anything_else(tmp_path: Path) -> None:
    output = tmp_path / "output"
    WorkflowStep({"GITHUB_OUTPUT": str(output)}).begin()
    assert told(output).keys() == action()["outputs"].keys()


def test_a_value_cannot_set_another_output(tmp_path: Path) -> None:
    output = tmp_path / "output"
    cause = "no\nEOF\noutcome=delivered\noutcome<<x\ndelivered\nx"
    WorkflowStep({"GITHUB_OUTPUT": str(output)}).not_begun(cause, 1.4)
    assert told(output) == {
        "outcome": "not-begun",
        "failure-cause": cause,
        "failure-code": "",
        "failure-stage": "preflight",
        "work-preserved": "nothing-made",
        "duration-seconds": "1",
    }


def test_a_name_that_is_no_text_is_told_all_the_same(tmp_path: Path) -> None:
    output, summary = tmp_path / "output", tmp_path / "summary"
    step = WorkflowStep({"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)})
    step.broken("caf\udce9 is gone", 1)
    assert told(output)["failure-cause"] == r"caf\udce9 is gone"
    assert "is gone" in summary.read_text()


def test_files_that_cannot_be_written_change_nothing(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone" / "file")
    step = WorkflowStep({"GITHUB_OUTPUT": gone, "GITHUB_STEP_SUMMARY": gone})
    step.begin()
    step.broken("a bug", 1)
    WorkflowStep({}).begin()
    assert not list(tmp_path.iterdir())


def test_the_older_form_of_a_command_is_not_said() -> None:
    """GitHub's runner obeys it wherever in a line it stands; a file's name may hold one."""
    for environment, said in (({"GITHUB_ACTIONS": "true"}, "## [error]x"), ({}, "##[error]x")):
        stream = StringIO()
        Progress(stream, environment).say("left over: ##[error]x")
        assert stream.getvalue() == f"nightkeep: left over: {said}\n"


def test_what_cannot_be_begun_says_so(stage: Stage) -> None:
    output, summary = stage.root / "output", stage.root / "summary"
    files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true"}
    result = stage.command("run", stage.url(7), "--token-file", str(stage.token_file), "--agent", "true", **files)
    assert result.status == 2, result
    outputs = told(output)
    assert (outputs["outcome"], outputs["work-preserved"]) == ("not-begun", "nothing-made")
    assert outputs["failure-cause"] in summary.read_text()
    (annotation,) = [line for line in result.stderr.splitlines() if line.startswith("::")]
    assert annotation == f"::error title=Nightkeep could not finish this::{outputs['failure-cause']}"


def test_killed(stage: Stage) -> None:
    """`kill -9` leaves the outputs that were set before anything else."""
    output, there = stage.root / "output", stage.root / "there"
    agent = stage.agent(f"touch {there}; exec sleep 1000")
    process = subprocess.Popen(
        [*NIGHTKEEP, "run", stage.url(stage.issue()), "--token-file", str(stage.token_file), "--agent", agent],
        cwd=stage.clone,
        env={**os.environ, **stage.environment, "GITHUB_OUTPUT": str(output), "TMPDIR": str(stage.root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(there.exists)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    outputs = told(output)
    assert (outputs["outcome"], outputs["work-preserved"]) == ("killed", "machine")
    assert outputs["failure-cause"] == "Nightkeep was killed before it could say how it ended"
    wait_until(lambda: not processes_of(stage))  # the supervisor ends what the runner can end no more


def test_nothing_of_the_repository_is_run_in_our_place(stage: Stage) -> None:
    """Neither what is in the checkout nor what PYTHONPATH, which a workflow may set for its own, leads to."""
    for directory in (stage.clone, stage.root / "library"):
        (directory / "runner").mkdir(parents=True)
        (directory / "runner" / "__init__.py").write_text("raise SystemExit(99)\n")
    (stage.root / "nightkeep-venv").symlink_to(sys.prefix)
    environment = {
        **os.environ,
        **stage.environment,
        "PYTHONPATH": f".:{stage.root / 'library'}",
        "RUNNER_TEMP": str(stage.root),
        "ISSUE_URL": stage.url(stage.issue()),
        "NIGHTKEEP_AGENT": stage.agent("echo lamp > lamp.txt"),
        "NIGHTKEEP_TOKEN": WRITER,
        "BASE_BRANCH": "main",
    }
    done = run_step("run", stage.clone, environment)
    assert done.returncode == 0, done
    assert done.stdout == f"{stage.pull()['html_url']}\n"


def run_step(name: str, directory: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a step of the Action as a workflow runner does."""
    script = next(step["run"] for step in action()["runs"]["steps"] if step["id"] == name)
    return subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def processes_of(stage: Stage) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("XDG_STATE_HOME") == str(stage.state):
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("python3", "said"),
    [
        (None, "Python 3.11 or newer is needed"),
        ("exit 1", "Python 3.11 or newer is needed"),
        ('test "$3" != venv', "python3 can make no virtual environment"),
        ('test "$3" != venv || { mkdir -p "$5/bin"; cp {false} "$5/bin/python"; }', "pip could not install what"),
    ],
    ids=["none", "old", "no-venv", "no-pip"],
)
def test_where_it_cannot_be_installed(tmp_path: Path, python3: str | None, said: str) -> None:
    programs, output = tmp_path / "bin", tmp_path / "output"
    programs.mkdir()
    for name in ("mkdir", "cp"):
        (programs / name).symlink_to(f"/bin/{name}")
    if python3 is not None:
        (programs / "python3").write_text(f"#!/bin/sh\n{python3.replace('{false}', '/bin/false')}\n")
        (programs / "python3").chmod(0o755)
    environment = {
        "PATH": str(programs),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_ACTION_PATH": str(tmp_path),
    }
    done = run_step("install", tmp_path, environment)
    assert done.returncode == 2, done
    (annotation,) = [line for line in done.stdout.splitlines() if line.startswith("::error")]
    cause = annotation.removeprefix("::error title=Nightkeep could not be installed::")
    assert said in cause
    assert output.read_text() == f"failure-cause={cause}\nfailure-stage=install\n"
