"""`nightkeep demo`: three Runs on the embedded hub, with small scripts as agents.

<temporary directory>/
    hub/            the hub's root, which `nightkeep hub --root` serves again
    lighthouse/     the clone that the Runs are started from
    agents/         the three scripts
    state/          logs
    token           any text; the hub takes every token
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from runner.exit_codes import signal_exit_code

_REPOSITORY = "keeper/lighthouse"
_NIGHTKEEP = [sys.executable, "-P", "-m", "runner"]
_PATIENCE = 30.0  # seconds for the hub to answer, and for an agent to get half-way

_AGENTS = {
    "deliver": """\
#!/bin/sh
# Does its work, commits it, and says what it did.
echo "Reading the issue: $NIGHTKEEP_ISSUE_URL"
printf 'The lamp turns once in ten seconds.\\n' > lamp.txt
git add lamp.txt
git commit --quiet --message 'Let the lamp turn'
printf 'Let the lamp turn\\n\\nIt turns once in ten seconds, as the issue asks.\\n' > "$NIGHTKEEP_PR_FILE"
echo "Done."
""",
    "fail": """\
#!/bin/sh
# Commits half of its work, leaves the other half uncommitted, and gives up.
printf 'One blast a minute.\\n' > horn.txt
git add horn.txt
git commit --quiet --message 'Sound the horn'
printf 'Two blasts in thick fog (not finished)\\n' >> horn.txt
printf 'What is left: ask the harbour master.\\n' > notes.txt
echo "I cannot go on without the harbour master's answer." >&2
exit 3
""",
    "wait": """\
#!/bin/sh
# Writes half of its work and then takes its time; the demo interrupts it.
printf 'Paint the north wall white.\\n' > paint.txt
echo "Half of the tower is painted; now the paint must dry."
sleep 600
""",
}
_ISSUES = (
    ("Make the lamp turn", "The lamp should turn once in ten seconds.", "deliver"),
    ("Sound the horn in fog", "One blast a minute, two in thick fog.", "fail"),
    ("Paint the tower", "White, and red at the top.", "wait"),
)


@dataclass(frozen=True, slots=True)
class _Shown:
    """One Run of the demo, after it ended."""

    number: int
    status: int
    url: str


def run_demo() -> int:
    """Run the demo and return the exit status: 0 when all three Runs ended as they should."""
    _seal()
    root = Path(tempfile.mkdtemp(prefix="nightkeep-demo-"))
    _say(f"Everything happens in {root}, which is kept.\n")
    try:
        with _served(root / "hub") as address:
            demo = _Demo(root, address)
            demo.prepare()
            shown = [demo.run(number, agent) for number, (_, _, agent) in enumerate(_ISSUES, start=1)]
            demo.conclude(shown)
    except KeyboardInterrupt:
        _say(f"\nInterrupted. To remove everything: rm -r {shlex.quote(str(root))}")
        return signal_exit_code(signal.SIGINT)
    return 0 if [run.status for run in shown] == [0, 1, 128 + signal.SIGINT] else 1


def _seal() -> None:
    """Take out of this process's environment what would lead git, or a request to the hub, to another place."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]
    for name in ("GITHUB_API_URL", "GITHUB_SERVER_URL"):
        os.environ.pop(name, None)
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"
    # A person's commit may ask for a signature, run hooks or start an editor; the demo's must not.
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull


class _Demo:
    def __init__(self, root: Path, address: str) -> None:
        self._root = root
        self._address = address
        self._clone = root / "lighthouse"
        self._token = root / "token"

    def prepare(self) -> None:
        """Make the repository with its issues, the clone, and the agents."""
        self._token.write_text("any-text\n")
        self._token.chmod(0o600)
        (self._root / "agents").mkdir()
        for name, script in _AGENTS.items():
            (self._root / "agents" / f"{name}.sh").write_text(script)
        owner, name = _REPOSITORY.split("/")
        self._post(f"orgs/{owner}/repos", {"name": name})
        self._first_commit()
        for title, body, _ in _ISSUES:
            self._post(f"repos/{_REPOSITORY}/issues", {"title": title, "body": body, "labels": ["ready-for-agent"]})

    def run(self, number: int, agent: str) -> _Shown:
        """Run one issue as a person would, and show what they would see."""
        url = f"{self._address}/{_REPOSITORY}/issues/{number}"
        command = f"sh {shlex.quote(str(self._root / 'agents' / f'{agent}.sh'))}"
        arguments = ["run", url, "--agent", command, "--token-file", str(self._token)]
        _say(f"$ nightkeep {shlex.join(arguments)}")
        environment = {**os.environ, "XDG_STATE_HOME": str(self._root / "state")}
        with subprocess.Popen(
            [*_NIGHTKEEP, *arguments], cwd=self._clone, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            if agent == "wait":
                self._interrupt_half_way(process, number)
            try:
                output, _ = process.communicate()
            except KeyboardInterrupt:
                process.wait()  # it still brings its work to the hub
                raise
        _say(f"{output.strip()}\nexit status {process.returncode}\n")
        return _Shown(number, process.returncode, output.strip())

    def conclude(self, shown: list[_Shown]) -> None:
        """Say where to look, and show the Failure note of the Run that failed."""
        _say("What came of it:\n")
        for run, how in zip(shown, ("delivered", "failed", "interrupted"), strict=True):
            subject = self._git("log", "-1", "--format=%s", f"refs/heads/issue-{run.number}")
            log = next(iter(sorted((self._root / "state").rglob(f"{run.number}-*-implement.log"))), "none")
            _say(
                f"  #{run.number} {how}\n    pull request  {run.url}\n    branch        issue-{run.number}\n"
                f"    last commit   {subject}\n    Session log   {log}\n"
            )
        pull = shown[1].url.rsplit("/", 1)[-1]
        answer = requests.get(
            f"{self._address}/api/v3/repos/{_REPOSITORY}/issues/{pull}/comments",
            headers={"Authorization": "Bearer any-text"},
            timeout=_PATIENCE,
        )
        answer.raise_for_status()
        note = answer.json()[0]["body"].splitlines()
        _say("The Failure note on the failed Run's pull request:\n")
        _say("\n".join(f"    {line}" for line in note if not line.startswith("<!--")))
        port = self._address.rsplit(":", 1)[-1]
        _say(
            "\nTo open those addresses in a browser, serve the directory again:\n\n"
            f"    {_program()} hub --root {shlex.quote(str(self._root / 'hub'))} --port {port}\n\n"
            f"To remove everything: rm -r {shlex.quote(str(self._root))}"
        )

    def _post(self, path: str, body: dict[str, object]) -> None:
        headers = {"Authorization": "Bearer any-text"}
        answer = requests.post(f"{self._address}/api/v3/{path}", json=body, headers=headers, timeout=_PATIENCE)
        answer.raise_for_status()

    def _first_commit(self) -> None:
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(self._clone)], check=True)
        (self._clone / "README.md").write_text("# Lighthouse\n\nKeeps ships off the rocks.\n")
        self._git_here("add", "README.md")
        self._git_here(
            "-c", "user.name=Keeper", "-c", "user.email=keeper@localhost", "commit", "--quiet", "-m", "Found it"
        )
        self._git_here("remote", "add", "origin", f"{self._address}/{_REPOSITORY}.git")
        with_token = self._address.replace("://", "://keeper:any-text@")
        self._git_here("push", "--quiet", f"{with_token}/{_REPOSITORY}.git", "main")

    def _git_here(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self._clone, check=True)

    def _git(self, *arguments: str) -> str:
        bare = self._root / "hub" / "repositories" / f"{_REPOSITORY}.git"
        done = subprocess.run(["git", "-C", str(bare), *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() or "none"

    def _interrupt_half_way(self, process: "subprocess.Popen[str]", number: int) -> None:
        half_done = self._root / f"lighthouse-issue-{number}" / "paint.txt"
        deadline = time.monotonic() + _PATIENCE
        while not half_done.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        _say("(the demo sends SIGINT, as Ctrl-C would)")
        process.send_signal(signal.SIGINT)


@contextmanager
def _served(root: Path) -> Iterator[str]:
    arguments = [*_NIGHTKEEP, "hub", "--root", str(root)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it was asked for
            address = process.stdout.readline().strip()
            if not address:
                raise SystemExit(process.wait())
            yield address
        finally:
            process.terminate()


def _program() -> str:
    """Return how the user can start Nightkeep: by its name where that is on PATH, else by its path."""
    script = Path(sys.executable).with_name("nightkeep")
    on_path = any(Path(place) == script.parent for place in os.get_exec_path())
    return "nightkeep" if on_path or not script.exists() else str(script)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the demo is its output
