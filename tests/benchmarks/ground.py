"""Where whole Runs are measured: the same origin, clone, hub and issue again for every one.

ROOT/
    pristine/       what `now` looks like before a Run
    now/origin.git  the bare repository that the hub serves as acme/widget
    now/hub         the hub's own memory, with one issue
    now/place/widget  the clone
    now/state       XDG_STATE_HOME
    now/tmp         TMPDIR
    agents/, token, shim/
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from runner.hub import Check, Exchange, Hub
from tests.scenarios.stage import NAME, NIGHTKEEP, WRITER
from tests.world import git, make_world

DELIVERED, FAILED, REPAIRED = "delivered", "failed", "repaired"
_AGENTS = {
    DELIVERED: "echo light > lamp.txt",
    FAILED: "echo light > lamp.txt; exit 3",
    REPAIRED: "test $NIGHTKEEP_SESSION = implement && echo dark > lamp.txt || echo light > lamp.txt",
}
_STATUS = {DELIVERED: 0, FAILED: 1, REPAIRED: 0}
_CHECKS = {REPAIRED: (Check("lamp", command="grep -q light lamp.txt", branches="issue-*"),)}


class Ground:
    """Everything that a Run needs, made new before each in the same places, so that one Run does what another did."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._pristine = root / "pristine"
        self.now = root / "now"
        self.origin = self.now / "origin.git"
        self.clone = self.now / "place" / "widget"
        self.shim = root / "shim"
        self.temporary = self.now / "tmp"
        self.exchanges: list[tuple[float, Exchange]] = []
        self._port = 0
        self._served: Hub
        self._token_file = root / "token"
        self._token_file.write_text(WRITER)
        for directory in (self.now, self.temporary, self.clone.parent, self.shim, root / "agents"):
            directory.mkdir()
        for name, script in _AGENTS.items():
            self.agent(name).write_text(f"#!/bin/sh\n{script}\n")
            self.agent(name).chmod(0o755)
        make_world(self.now).launch.rename(self.clone)
        with self._hub() as hub:
            self._port = int(hub.url.rpartition(":")[2])
            self.api = f"{hub.url}/api/v3"
            self._file_issue()
            git(self.clone, "remote", "set-url", "origin", f"{hub.url}/{NAME}.git")
            self._issue_url = f"{hub.url}/{NAME}/issues/1"
        self.now.rename(self._pristine)

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Everything as at the start, and the hub at work, while the block lasts."""
        shutil.rmtree(self.now, ignore_errors=True)
        shutil.copytree(self._pristine, self.now, symlinks=True)
        self.exchanges.clear()
        with self._hub() as hub:
            self._served = hub
            yield

    def agent(self, name: str) -> Path:
        """Return the agent whose Run ends so."""
        return self._root / "agents" / name

    def run(self, name: str, *, prefix: tuple[str, ...] = (), shimmed: bool = False) -> float:
        """Run `nightkeep run` to that ending and return the seconds that it took, as a user's shell would see it."""
        for check in _CHECKS.get(name, ()):
            self._served.ci.add(NAME, check)
        path = f"{self.shim}{os.pathsep}{os.environ['PATH']}" if shimmed else os.environ["PATH"]
        arguments = ("--agent", str(self.agent(name)), "--token-file", str(self._token_file))
        environment = {"PATH": path, "XDG_STATE_HOME": str(self.now / "state"), "TMPDIR": str(self.temporary)}
        began = time.perf_counter()
        done = subprocess.run(
            [*prefix, *NIGHTKEEP, "run", self._issue_url, *arguments],
            cwd=self.clone,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.perf_counter() - began
        assert done.returncode == _STATUS[name], done
        return took

    def ending(self) -> str:
        """Return what origin holds, and what is left of the clone's branches and worktrees."""
        looks = ((self.origin, "for-each-ref"), (self.clone, "branch"), (self.clone, "worktree", "list"))
        return "\n".join(git(where, *command) for where, *command in looks)

    def _hub(self) -> Hub:
        return Hub(
            self.now / "hub",
            port=self._port,
            repositories={NAME: self.origin},
            observe=lambda exchange: self.exchanges.append((time.time(), exchange)),
        )

    def _file_issue(self) -> None:
        made_once = {"name": "in-progress"}  # by the first Run in a repository
        headers = {"Authorization": f"Bearer {WRITER}"}
        labels = f"{self.api}/repos/{NAME}/labels"
        requests.post(labels, json=made_once, headers=headers, timeout=60).raise_for_status()
        body = {"title": "Add a lamp", "body": "It is dark.", "labels": ["ready-for-agent"]}
        requests.post(f"{self.api}/repos/{NAME}/issues", json=body, headers=headers, timeout=60).raise_for_status()
