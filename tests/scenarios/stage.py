"""The stage that scenarios play on: a hub, a repository on it, a clone, and `nightkeep run` as a process.

<tmp_path>/
    origin.git      the bare repository that the hub serves as acme/widget
    hub/            the hub's own memory
    place/widget    the clone; worktrees come to stand beside it
    agents/         the agents' scripts
    made/           what each agent had written when it ended
    state/          XDG_STATE_HOME: Session logs
    token           the token file
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import requests

from runner.hub import Exchange, Hub, Permission, Token
from runner.hub.deeds import Deeds
from tests.world import World, commit, git

NAME = "acme/widget"
WRITER, READER = "writer-token-0001", "reader-token-0001"
TOKENS = {WRITER: Permission.WRITE, READER: Permission.READ}
NIGHTKEEP = [sys.executable, "-P", "-m", "runner"]
_PATIENCE = 60

# Whatever an agent does, what it has made is written down when it ends: blobs of its files, and its HEAD.
_AGENT = """\
#!/bin/sh
record() {{
    find . -name .git -prune -o -type f -print | git hash-object --no-filters --stdin-paths
    git rev-parse --quiet --verify HEAD
}}
trap 'record >> {made}' EXIT
{script}
"""


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """What `--json` printed."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    def __str__(self) -> str:
        return f"exit {self.status}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def nightkeep(
    *arguments: str, cwd: Path, environment: dict[str, str] | None = None, patience: float = _PATIENCE
) -> Result:
    """Run the command as a user would, for `patience` seconds at most."""
    done = subprocess.run(
        [*NIGHTKEEP, *arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience,
    )
    return Result(done.returncode, done.stdout, done.stderr)


class Stage:
    """One scenario's world. `world` looks at origin and the clone, the methods here at the rest."""

    def __init__(self, root: Path, world: World, hub: Hub) -> None:
        self.root = root
        self.world = world
        self.hub = hub
        self.clone = world.launch
        self.token_file = root / "token"
        self.token_file.write_text(f"{WRITER}\n")
        self.state = root / "state"
        self.last: Result | None = None
        self.patience: float = _PATIENCE
        self.environment = {"XDG_STATE_HOME": str(self.state)}
        (root / "agents").mkdir()
        (root / "made").mkdir()

    # What there is before a Run.

    def issue(self, title: str = "Add a lamp", body: str = "It is dark.", labels: tuple[str, ...] = ("bug",)) -> int:
        """File an issue, ready for an agent; return its number."""
        body_of_it = {"title": title, "body": body, "labels": ["ready-for-agent", *labels]}
        return int(self.api("POST", "issues", body_of_it)["number"])

    @property
    def people(self) -> Deeds:
        """What does things to issues as other people would, whose roles `hub.admin.permit` gives."""
        return self.hub.people(NAME)

    def agent(self, script: str) -> str:
        """Write an agent, a shell script; return its command line."""
        number = len(list((self.root / "agents").iterdir()))
        path = self.root / "agents" / f"agent-{number}"
        path.write_text(_AGENT.format(made=shlex.quote(str(self.root / "made" / path.name)), script=script))
        path.chmod(0o755)
        return shlex.quote(str(path))

    def on_branch(self, branch: str, file: str, text: str, *, base: str = "main") -> str:
        """Push a commit to a branch of origin, as another person would; return it."""
        other = self.root / "other"
        if not other.exists():
            git(self.root, "clone", "-q", str(self.world.origin), str(other))
        git(other, "fetch", "-q", "origin")
        git(other, "checkout", "-q", "-B", branch, f"origin/{base}")
        (other / file).write_text(text)
        made = commit(other, f"write {file}")
        git(other, "push", "-q", "origin", branch)
        return made

    def pull_request(self, branch: str, *, base: str = "main", draft: bool = False, title: str = "Mine") -> int:
        """Open a pull request, as a person would; return its number."""
        body = {"title": title, "body": "By hand.", "head": branch, "base": base, "draft": draft}
        return int(self.api("POST", "pulls", body)["number"])

    # The Run.

    def url(self, number: int) -> str:
        """Return an issue's address."""
        return f"{self.hub.url}/{NAME}/issues/{number}"

    def run(self, issue: int, agent: str, *options: str, **environment: str) -> Result:
        """Run `nightkeep run` in the clone with the writer's token file, and check what holds after every Run."""
        before = self._clone_as_it_is()
        result = self.command(
            "run", self.url(issue), "--agent", agent, "--token-file", str(self.token_file), *options, **environment
        )
        self._check(before, result)
        return result

    def pickup(self, agent: str, *options: str, **environment: str) -> Result:
        """Run `nightkeep pickup` in the clone with the writer's token file, and check what holds after every Run.

        Issues count as settled after a second, so what is to be taken is to be made older: `people.age`.
        """
        before = self._clone_as_it_is()
        settle = {"NIGHTKEEP_PICKUP_SETTLE": "1s", **environment}
        result = self.command("pickup", "--agent", agent, "--token-file", str(self.token_file), *options, **settle)
        self._check(before, result)
        return result

    def ready(self, title: str = "Add a lamp", *, by: str = "olga", author: str = "eve", age: int = 3600) -> int:
        """File an issue by one person that another one, who may write here, labels as ready; return its number."""
        self.hub.admin.permit(NAME, by, "write")
        number = self.people.open(author, title)
        self.people.label(number, by, "ready-for-agent")
        self.people.age(number, age)
        return number

    def command(self, *arguments: str, **environment: str) -> Result:
        """Run any command of nightkeep in the clone."""
        self.last = nightkeep(
            *arguments, cwd=self.clone, environment={**self.environment, **environment}, patience=self.patience
        )
        return self.last

    def started(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a command of nightkeep in the clone that goes on by itself; issues settle after a second."""
        return self.started_as(*NIGHTKEEP, *arguments)

    def started_as(self, *command: str, stdout: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        """Start any command in the clone so."""
        environment = {**os.environ, **self.environment, "NIGHTKEEP_PICKUP_SETTLE": "1s"}
        return subprocess.Popen(
            command, cwd=self.clone, env=environment, stdout=stdout, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )

    def run_in(self, directory: Path, issue: int, agent: str, *options: str) -> Result:
        """Run `nightkeep run` somewhere else than in the clone."""
        arguments = ("run", self.url(issue), "--agent", agent, "--token-file", str(self.token_file), *options)
        self.last = nightkeep(*arguments, cwd=directory, environment=self.environment)
        return self.last

    # What there is afterwards.

    def api(self, method: str, path: str, body: object = None) -> Any:
        """Ask the hub about the repository, as its owner; `path` is under /repos/acme/widget."""
        answer = requests.request(
            method,
            f"{self.hub.url}/api/v3/repos/{NAME}/{path}",
            json=body,
            headers={"Authorization": f"Bearer {WRITER}"},
            timeout=_PATIENCE,
        )
        answer.raise_for_status()
        return answer.json()

    def labels(self, issue: int) -> set[str]:
        """Return an issue's labels."""
        return {label["name"] for label in self.api("GET", f"issues/{issue}")["labels"]}

    def pulls(self) -> list[dict[str, Any]]:
        """Return every pull request, oldest first."""
        found: list[dict[str, Any]] = self.api("GET", "pulls?state=all&direction=asc&per_page=100")
        return found

    def pull(self) -> dict[str, Any]:
        """Return the only pull request."""
        pulls = self.pulls()
        assert len(pulls) == 1, f"{len(pulls)} pull requests\n{self.last}"
        return pulls[0]

    def comments(self, number: int) -> list[str]:
        """Return the comments on an issue or pull request."""
        return [comment["body"] for comment in self.api("GET", f"issues/{number}/comments?per_page=100")]

    def note(self, number: int) -> str:
        """Return the only comment, which is a Failure note or what became of it."""
        comments = self.comments(number)
        assert len(comments) == 1, f"{comments}\n{self.last}"
        assert comments[0].startswith("<!-- nightkeep:failure-note "), comments[0]
        return comments[0]

    def refs(self) -> set[str]:
        """Return the full names of origin's refs, but for those that `tries` returns."""
        return {ref for ref in self._all_refs() if not ref.startswith("refs/nightkeep/tries/")}

    def tries(self) -> list[str]:
        """Return the refs of origin that count Runs which made nothing."""
        return sorted(ref for ref in self._all_refs() if ref.startswith("refs/nightkeep/tries/"))

    def _all_refs(self) -> list[str]:
        return git(self.world.origin, "for-each-ref", "--format=%(refname)").split()

    def subject(self, ref: str) -> str:
        """Return the subject of the commit that origin holds at a ref."""
        return git(self.world.origin, "log", "-1", "--format=%s", ref)

    def files(self, ref: str) -> set[str]:
        """Return the paths in the commit that origin holds at a ref."""
        return set(git(self.world.origin, "ls-tree", "-r", "--name-only", ref).splitlines())

    def worktrees(self) -> list[Path]:
        """Return the directories beside the clone."""
        return sorted(path for path in self.clone.parent.iterdir() if path != self.clone)

    def logs(self) -> list[Path]:
        """Return the Session logs."""
        return sorted(path for path in self.state.rglob("*.log") if not path.stem.endswith("-command"))

    def everything(self) -> dict[str, object]:
        """Return all that a Run which does not begin leaves as it was."""
        issues = self.api("GET", "issues?state=all&per_page=100")
        return {
            "issues": [(one["number"], one["state"], sorted(self.labels(one["number"]))) for one in issues],
            "comments": {one["number"]: self.comments(one["number"]) for one in issues},
            "pulls": [(pull["number"], pull["draft"], pull["head"]["sha"]) for pull in self.pulls()],
            "origin": git(self.world.origin, "for-each-ref"),
            "clone": git(self.clone, "for-each-ref", "refs/heads", "refs/nightkeep", check=False),
            "beside": self.worktrees(),
            "records": sorted(str(path) for path in (self.clone / ".git" / "nightkeep").rglob("*")),
            "state": sorted(str(path) for path in self.state.rglob("*")),
        }

    # What holds after every scenario.

    def _clone_as_it_is(self) -> dict[str, str]:
        looks = {
            "branch": ("symbolic-ref", "--quiet", "HEAD"),
            "HEAD": ("rev-parse", "--verify", "--quiet", "HEAD"),
            "index": ("ls-files", "--stage"),
            "files": ("status", "--porcelain", "--untracked-files=all", "--ignored"),
            "stash": ("stash", "list"),
            "configuration": ("config", "--local", "--list"),
            "branches": ("for-each-ref", "refs/heads", "refs/tags"),
        }
        return {what: git(self.clone, *command, check=False) for what, command in looks.items()}

    def _check(self, before: dict[str, str], result: Result) -> None:
        after, kept = self._clone_as_it_is(), self._retained()
        named = [path for path in kept if str(path) in result.stderr]
        assert named == kept, f"worktrees that nothing names: {set(kept) - set(named)}\n{result}"
        assert set(self.worktrees()) <= set(kept), f"left beside the clone: {self.worktrees()}"
        was, now = (set(look.pop("branches").splitlines()) for look in (before, after))
        assert all("refs/heads/issue-" in line for line in was - now), f"a branch moved: {was - now}\n{result}"
        ours = [line for line in now - was if "refs/heads/issue-" in line]
        assert len(ours) <= len(kept), f"branches that no worktree needs: {ours}\n{result}"
        assert after == before, f"the clone was changed\n{result}"
        self._check_processes(result)
        self._check_work(kept, result)

    def _retained(self) -> list[Path]:
        listed = git(self.clone, "worktree", "list", "--porcelain").splitlines()
        paths = [Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")]
        return [path for path in paths if path != self.clone]

    def processes(self) -> list[psutil.Process]:
        """Return the processes of all that was started here."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("XDG_STATE_HOME") == str(self.state):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def _check_processes(self, result: Result) -> None:
        left = self.processes()
        assert not left, f"processes left over: {left}\n{result}"

    def _check_work(self, kept: list[Path], result: Result) -> None:
        """Every file and commit that an agent had made is on origin, or in a worktree, store or ref that is named."""
        made = {oid for file in (self.root / "made").iterdir() for oid in file.read_text().split()}
        held = {line.split(" ", 1)[0] for line in git(self.world.origin, "rev-list", "--objects", "--all").splitlines()}
        for path in kept:
            held |= {line.split(" ", 1)[0] for line in git(path, "rev-list", "--objects", "HEAD").splitlines()}
            held |= self._hashes(path)
        said = result.stdout + result.stderr
        for store in (self.clone / ".git" / "nightkeep" / "rescue").glob("*"):
            held |= self._hashes(store / "tree") if str(store) in said else set()
        for ref in git(self.clone, "for-each-ref", "--format=%(refname)", "refs/nightkeep/rescue").splitlines():
            listed = git(self.clone, "rev-list", "--objects", ref).splitlines() if ref in said else []
            held |= {line.split(" ", 1)[0] for line in listed}
        # GitHub keeps the head of each pull request in refs/pull, though its branch be deleted.
        for pull in self.pulls() if made - held else []:
            listed = git(self.world.origin, "rev-list", "--objects", pull["head"]["sha"], check=False).splitlines()
            held |= {line.split(" ", 1)[0] for line in listed}
        assert made <= held, f"lost: {made - held}\n{result}"

    def _hashes(self, tree: Path) -> set[str]:
        files = [str(file) for file in tree.rglob("*") if file.is_file() and ".git" not in file.relative_to(tree).parts]
        return set(git(self.clone, "hash-object", "--no-filters", *files).split()) if files else set()


@contextmanager
def staged(
    root: Path,
    world: World,
    observe: Callable[[Exchange], None] | None = None,
    tokens: Mapping[str, Permission | Token] = TOKENS,
) -> Iterator[Stage]:
    """Have a hub serve the world's origin as acme/widget, and the clone have it as its origin, while the block runs."""
    with Hub(root / "hub", repositories={NAME: world.origin}, tokens=tokens, observe=observe) as hub:
        git(world.launch, "remote", "set-url", "origin", f"{hub.url}/{NAME}.git")
        yield Stage(root, world, hub)
