"""The example workflow and the Action on a workflow runner.

One of these jobs installs for real, which takes most of the time; in the others `python3` is a stand-in.
"""

import base64
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.action.workflow_runner import CANARY, JobResult, WorkflowRunner
from tests.scenarios.stage import NAME, NIGHTKEEP, WRITER, Stage

# An idle machine needs twenty seconds for the longest; what a busy one needs is the registry's and the disk's affair.
pytestmark = pytest.mark.timeout(240)

# Says whatever a workflow runner might obey, on both streams and after a carriage return, and all that it has in its
# environment; writes to the files of the step if it is told where they are.
HOSTILE = r"""
cat > /dev/null
cp /proc/$$/environ "$XDG_STATE_HOME/environment-of-the-agent"
tr '\0' '\n' < /proc/$$/environ
say() {
    echo "$1"; echo "$1" >&2; printf 'x\r%s\r\n' "$1"; printf '\033[2m%s\n' "$1"
}
say '::set-output name=outcome::hostile'
say '##[set-output name=outcome;]hostile'
say '::error title=hostile::hostile'
say '##[error]hostile'
say '##[command]hostile'
say '::add-mask::nightkeep'
say '::add-path::/hostile'
say '::group::hostile'
say '::stop-commands::hostile'
say '::hostile::'
for file in "$GITHUB_OUTPUT" "$GITHUB_ENV" "$GITHUB_PATH" "$GITHUB_STEP_SUMMARY"; do
    echo outcome=hostile-by-file >> "${file:-/dev/null}"
done
echo lamp > lamp.txt
"""


def test_delivered(stage: Stage, runner: WorkflowRunner) -> None:
    number = stage.issue()
    result = runner.label(number, stage.agent(HOSTILE))
    pull = stage.pull()
    assert result.status == 0, result
    assert pull["draft"] is False
    seconds, log = result.outputs.pop("duration-seconds"), result.outputs.pop("session-log")
    assert result.outputs == {
        "outcome": "delivered",
        "failure-cause": "",
        "failure-code": "",
        "failure-stage": "",
        "pull-request-url": pull["html_url"],
        "branch": "issue-1",
        "work-preserved": "origin",
        "preserved-ref": "refs/heads/issue-1",
        "preserved-sha": pull["head"]["sha"],
    }
    assert 0 < int(seconds) < 60
    assert Path(log) in stage.logs()
    assert f"Summary - ### Nightkeep delivered\n\nPull request: {pull['html_url']}\n" in result.log
    assert result.annotations == []
    check_what_always_holds(stage, result)


def test_failed(stage: Stage, runner: WorkflowRunner, tmp_path: Path) -> None:
    number = stage.issue()
    path = stand_in_for_python(tmp_path, f'exec {shlex.join(NIGHTKEEP)} "$@"')
    result = runner.label(number, stage.agent(f"{HOSTILE}\nexit 3"), path=path)
    pull = stage.pull()
    assert result.status == 1, result
    assert "exit status 1" in result.log, result
    assert pull["draft"] is True
    del result.outputs["duration-seconds"], result.outputs["session-log"]
    assert result.outputs == {
        "outcome": "failed",
        "failure-cause": "the agent exited 3",
        "failure-code": "agent-failed",
        "failure-stage": "session",
        "pull-request-url": pull["html_url"],
        "branch": "issue-1",
        "work-preserved": "origin",
        "preserved-ref": "refs/heads/issue-1",
        "preserved-sha": pull["head"]["sha"],
    }
    assert stage.world.origin_file("issue-1", "lamp.txt") == "lamp"
    assert f"Summary - Pull request: {pull['html_url']}\n" in result.log
    assert "### Nightkeep could not finish this\n\n**Cause:** `the agent exited 3`\n" in result.log
    assert result.annotations == ["title=Nightkeep could not finish this::the agent exited 3"]
    check_what_always_holds(stage, result)


def test_killed(stage: Stage, runner: WorkflowRunner, tmp_path: Path) -> None:
    """What Nightkeep had set before is left; the example's last step says what to do."""
    path = stand_in_for_python(
        tmp_path, "echo outcome=killed >> $GITHUB_OUTPUT; echo work-preserved=machine >> $GITHUB_OUTPUT; kill -9 $$"
    )
    result = runner.label(stage.issue(), "true", path=path)
    assert result.status == 1, result
    assert (result.outputs["outcome"], result.outputs["work-preserved"]) == ("killed", "machine")
    assert "put\nthe label `ready-for-agent` on issue 1 again" in result.log


def test_not_installed(stage: Stage, runner: WorkflowRunner, tmp_path: Path) -> None:
    before = stage.everything()
    write_program(tmp_path / "python3", "exit 1")
    result = runner.label(stage.issue(), "true", path=f"{tmp_path}:/usr/bin:/bin")
    assert result.status == 1, result
    cause = "Python 3.11 or newer is needed as python3 on PATH; actions/setup-python brings one"
    told = {
        "outcome": "not-begun",
        "failure-cause": cause,
        "failure-stage": "install",
        "work-preserved": "nothing-made",
    }
    assert result.outputs == {**dict.fromkeys(result.outputs, ""), **told}
    assert result.annotations == [f"title=Nightkeep could not be installed::{cause}"]
    assert stage.everything().items() >= {key: before[key] for key in ("pulls", "origin", "clone", "beside")}.items()


def stand_in_for_python(directory: Path, nightkeep: str) -> str:
    """Return a PATH whose python3 makes a virtual environment in which pip does nothing, and Nightkeep is a script."""
    programs, inner = directory / "programs", directory / "inner"
    programs.mkdir()
    write_program(inner, f'test "$3" = runner || exit 0\nshift 3\n{nightkeep}')
    write_program(
        programs / "python3",
        f'test "$3" = venv || exit 0\nmkdir -p "$5/bin" && cp {shlex.quote(str(inner))} "$5/bin/python"',
    )
    return f"{programs}:/usr/bin:/bin"


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def check_what_always_holds(stage: Stage, result: JobResult) -> None:
    """Nothing that the agent said was obeyed, no secret is told, and nothing stays behind."""
    allowed = re.compile(r"::(stop-commands|set-output|error |[0-9a-f]{32}::)")
    assert all(allowed.match(line) for line in result.obeyed), result.obeyed
    assert not [line for line in result.obeyed if "hostile" in line], result.obeyed
    fences = [line.removeprefix("::stop-commands::") for line in result.obeyed if line.startswith("::stop-commands::")]
    assert fences
    assert [line for line in result.obeyed if re.fullmatch(r"::[0-9a-f]{32}::", line)] == [f"::{it}::" for it in fences]
    assert "hostile-by-file" not in json.dumps(result.outputs) + result.log.partition("Summary - ")[2]
    environment = (stage.state / "environment-of-the-agent").read_text()
    assert WRITER not in environment
    assert CANARY in environment
    assert f"GITHUB_REPOSITORY={NAME}" in result.log, "the agent did not show its environment"
    for secret in (WRITER, CANARY):
        for shape in (secret, base64.b64encode(secret.encode()).decode()):
            assert shape not in result.log, f"{shape} is told"
    beside = list((stage.root / "act" / "home" / ".cache" / "act").glob("*/hostexecutor-*"))
    assert not beside, "a worktree stays behind"
    assert stage.last is not None
    stage._check_processes(stage.last)
