"""The token reaches GitHub, and nobody else: neither a hostile agent nor what it makes git run."""

import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.hub import Permission
from tests.scenarios.attack import Evil, evil, forms
from tests.scenarios.stage import NIGHTKEEP, WRITER, Result, nightkeep, staged
from tests.world import World, git

OTHERS = ("GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "ACTIONS_RUNTIME_TOKEN")
WORKFLOW = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY", "ACTIONS_RUNTIME_URL")


@pytest.fixture
def attacker(tmp_path: Path, world: World) -> Iterator[Evil]:
    """A stage whose Runs use a token of their own, which no other process of this machine has, and an attacker."""
    canary = f'canary/{secrets.token_hex(12)}+"q'
    tokens = {WRITER: Permission.WRITE, canary: Permission.WRITE}
    with staged(tmp_path, world, tokens=tokens) as stage:
        stage.token_file.write_text(f"{canary}\n")
        stage.token_file.chmod(0o600)
        with evil(stage, canary) as made:
            yield made


def run(attacker: Evil, script: str, *options: str, by: str = "file", **environment: str) -> Result:
    """Run an agent on an issue of its own, and see that the token is nowhere."""
    stage = attacker.stage
    agent, url = stage.agent(script), stage.url(stage.issue())
    if by == "file":
        options = (*options, "--token-file", str(stage.token_file))
    else:
        environment[by] = attacker.canary
    environment |= stage.environment
    result = nightkeep("run", url, "--agent", agent, *options, cwd=stage.clone, environment=environment)
    nowhere(attacker, result)
    return result


def nowhere(attacker: Evil, result: Result) -> None:
    """Assert that the token is in nothing that anybody but the runner can read; the hub's memory is a file as well."""
    stage, wanted = attacker.stage, forms(attacker.canary)

    def look(what: str, text: bytes) -> None:
        found = [form for form in wanted if form in text]
        assert not found, f"{what} holds the token as {found}\n{result}"

    look("stdout", result.stdout.encode())
    look("stderr", result.stderr.encode())
    for number, request in enumerate(attacker.requests):
        look(f"request {number} to the evil server", request.encode())
    for top in (stage.root, Path(os.environ["HOME"]), Path(os.environ["TMPDIR"])):
        for path in top.rglob("*"):
            if path.is_file() and path not in (stage.token_file, attacker.spy):
                look(str(path), path.read_bytes())
    for repository in (stage.world.origin, stage.clone):
        everything = ["git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch"]
        look(f"the objects of {repository}", subprocess.run(everything, capture_output=True, check=True).stdout)


# Where the token comes from, and who else might see it there


@pytest.mark.parametrize("by", ["file", "NIGHTKEEP_TOKEN", "GITHUB_TOKEN"])
def test_process_table_does_not_tell(attacker: Evil, by: str) -> None:
    decoys = {name: f"decoy-{secrets.token_hex(8)}" for name in (*OTHERS, "ACTIONS_ID_TOKEN_REQUEST_TOKEN")}
    files = {name: str(attacker.directory / name) for name in WORKFLOW}
    agent = f"{attacker.command('agent')}\n{attacker.command('left', 'stay')}\nenv > environment; echo made > made.txt"
    result = run(attacker, agent, by=by, **decoys, **files)
    assert result.status == 0, str(result)
    seen = b"\0".join(attacker.seen().values())
    assert b"NIGHTKEEP_RUN=" in seen
    assert not [name for name, decoy in decoys.items() if decoy.encode() in seen]
    environment = attacker.stage.world.origin_file("issue-1", "environment")
    assert not [name for name in (*decoys, *files, by) if f"{name}=" in environment]


def test_variables_beside_a_token_file_are_taken_away_as_well(attacker: Evil) -> None:
    variables = {"NIGHTKEEP_TOKEN": "decoy-nightkeep-01", "GITHUB_TOKEN": "decoy-github-0001"}
    result = run(attacker, f"{attacker.command('agent')}; echo made > made.txt", **variables)
    assert result.status == 0, str(result)
    assert not [decoy for decoy in variables.values() if decoy.encode() in b"".join(attacker.seen().values())]


# Configuration that makes git talk to somebody else, or run something


@pytest.mark.parametrize("ending", ["exit 0", "exit 3"])
@pytest.mark.parametrize("scope", ["--local", "--global"])
def test_configuration_of_the_agent(attacker: Evil, scope: str, ending: str) -> None:
    agent = f"{attacker.configure(scope)}\necho made > made.txt; echo two > two.md\n{ending}"
    result = run(attacker, agent)
    assert result.status == int(ending[-1] == "3"), str(result)
    assert attacker.requests == []
    assert attacker.stage.world.origin_file("issue-1", "made.txt") == "made"
    assert attacker.spies() <= {"hook", "clean", "smudge", "process", "trace2"}, attacker.spies()
    assert not {"clean", "process"} & attacker.spies(), "a filter of the agent ran"


def test_filters_that_appeared_are_named(attacker: Evil) -> None:
    agent = f"{attacker.configure('--local')}\necho made > made.txt"
    assert "git filters that appeared during the run were switched off: process, spy" in run(attacker, agent).stderr


def test_filter_that_was_there_before_is_used(attacker: Evil) -> None:
    git(attacker.stage.clone, "config", "filter.shout.clean", "tr a-z A-Z")
    result = run(attacker, 'echo "*.txt filter=shout" > .gitattributes; echo made > made.txt')
    assert result.status == 0, str(result)
    assert attacker.stage.world.origin_file("issue-1", "made.txt") == "MADE"


@pytest.mark.parametrize("ending", ["exit 0", "exit 3"])
def test_what_git_was_made_to_leave_behind_is_gone_before_git_gets_the_token(attacker: Evil, ending: str) -> None:
    # A filter of the person, which the agent makes do more.
    git(attacker.stage.clone, "config", "filter.own.clean", "./clean")
    agent = f"""\
printf '#!/bin/sh\\n{attacker.command("late", "pass")}\\n' > clean; chmod +x clean
echo '*.txt filter=own' > .gitattributes; echo made > made.txt; {ending}"""
    result = run(attacker, agent)
    assert "late" in attacker.spies()
    # It may have taken the answer of the very git command that started it: then nothing is believed.
    assert result.status in {0, 1, 3}, str(result)
    # The filter gave git nothing, so git does not have what is in the file; or it failed, and git took the file itself.
    kept = [*attacker.stage.worktrees(), *(attacker.stage.clone / ".git" / "nightkeep" / "rescue").glob("*/tree")]
    there = git(attacker.stage.world.origin, "show", "issue-1:made.txt", check=False)
    assert [(place / "made.txt").read_text() for place in kept] == ["made\n"] or (not kept and there == "made")


def test_nested_repository_that_runs_something(attacker: Evil) -> None:
    spy = shlex.quote(attacker.command("nested", "pass"))
    agent = f"""\
git init -q nested; cd nested; echo '*.txt filter=own' > .gitattributes; echo one > one.txt
git add -A; git commit -qm one; git config filter.own.clean {spy}; git config core.fsmonitor {spy}
touch -d yesterday one.txt; cd ..; git add nested; git commit -qm nested; echo made > made.txt"""
    run(attacker, agent)
    assert "nested" in attacker.spies()


def test_remote_that_git_is_made_to_fetch_missing_objects_from(attacker: Evil) -> None:
    agent = f"""\
git config extensions.partialClone evil; git config core.repositoryFormatVersion 1
git config remote.evil.url {shlex.quote(str(attacker.stage.clone))}; git config remote.evil.promisor true
git config remote.evil.uploadpack {shlex.quote(attacker.command("lazy", "stay"))}
tree=$(git rev-parse 'HEAD^{{tree}}'); echo made > made.txt
rm -rf "$(git rev-parse --git-common-dir)/objects/$(echo "$tree" | cut -c1-2)"; exit 3"""
    run(attacker, agent)
    assert "lazy" in attacker.spies()


# What an agent prints, and what is made of it


def test_token_that_the_agent_has_found_is_masked(attacker: Evil) -> None:
    shaped = [f"ghp_{'a1B2' * 9}", f"github_pat_{'c3D4' * 8}", f"ghs_{'e5F6' * 9}"]
    code = f"""\
import base64, json, os, pathlib, urllib.parse
token = pathlib.Path({str(attacker.stage.token_file)!r}).read_text().strip()
raw = token.encode()
forms = [token, urllib.parse.quote(token, safe=""), json.dumps(token), base64.b64encode(raw).decode()]
forms += [base64.b64encode(b"x" * n + raw + b"y").decode() for n in range(3)] + {shaped!r}
pathlib.Path(os.environ["NIGHTKEEP_PR_FILE"]).write_text("Use " + token + " now\\n\\n" + "\\n".join(forms))
print("\\n".join(forms), "\\x1b[1m" + token[:9] + "\\x1b[0m" + token[9:], sep="\\n")
print("\\n" + "I used " + token)
"""
    program = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    delivered = run(attacker, f"{program}; echo made > made.txt")
    failed = run(attacker, f"{program}; echo half > half.txt; exit 3", "--json")
    assert (delivered.status, failed.status) == (0, 1), f"{delivered}\n{failed}"
    stage = attacker.stage
    assert (stage.pulls()[0]["title"], stage.subject("issue-1")) == ("Use *** now", "Use *** now")
    assert "I used ***" in stage.note(stage.pulls()[1]["number"])
    shown = [failed.stderr, failed.stdout, *(log.read_text() for log in stage.logs())]
    shown += [str(stage.pulls()), str(stage.comments(stage.pulls()[1]["number"]))]
    assert not [shape for shape in shaped for text in shown if shape in text]


def test_token_typed_into_the_agent_command_is_masked(attacker: Evil) -> None:
    stage = attacker.stage
    agent = f"{stage.agent('echo half > half.txt; exit 3')} --key {shlex.quote(attacker.canary)}"
    result = stage.command("run", stage.url(stage.issue()), "--agent", agent, "--token-file", str(stage.token_file))
    assert result.status == 1, str(result)
    nowhere(attacker, result)


# A failing git command is seen as failing


CHURN = "while :; do (setsid sh -c 'sleep 0.01 & exit 3' &) ; (exit 0) & sleep 0.005; done"
_LOSER = """\
import subprocess, sys
from pathlib import Path
from runner.processes import Strays, become_subreaper
from worktree import GitError
from worktree.git import Git
become_subreaper()
strays = Strays()
subprocess.run(["sh", "-c", sys.argv[2] + " & exit"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
git, seen = Git(directory=Path(sys.argv[1])), 0
for _ in range(40):
    try:
        git.run("push", "--porcelain", "nowhere", "main")
    except GitError as error:
        seen += error.status == 128
assert git.run("rev-parse", "HEAD").text
strays.stop()
print(seen)
"""


def test_failing_git_is_seen_while_orphans_die_around_it(world: World) -> None:
    command = [sys.executable, "-c", _LOSER, str(world.launch), CHURN]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert (done.stdout, done.stderr) == ("40\n", "")


def test_refused_push_is_seen_while_the_agents_orphans_die(attacker: Evil) -> None:
    attacker.stage.world.hook("pre-receive", "echo not here >&2; exit 1")
    for number in range(2):
        result = run(attacker, f"({CHURN}) > /dev/null 2>&1 & echo made{number} > made.txt", "--json")
        assert result.status == 3, str(result)
        assert "not here" in result.document["cause"]
        assert result.document["stage"] == "push"


def test_token_is_not_said_where_nothing_begins(attacker: Evil) -> None:
    environment = {**os.environ, "GITHUB_TOKEN": attacker.canary}
    command = [*NIGHTKEEP, "run", attacker.stage.url(1), "--agent", "true"]
    done = subprocess.run(command, cwd=attacker.directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert attacker.canary not in done.stdout + done.stderr
