"""The real programs, where they are installed, with a model on loopback that says what a script tells it to."""

import shutil
from pathlib import Path

import pytest

from delivery.causes import Code
from delivery.session import SessionResult
from tests.runner.agents.scripted_model import Hang, Model, Refuse, Say, Turn, Use, serve
from tests.runner.test_session import World
from tests.world import git

COMMITS = "git commit --quiet --allow-empty --message 'Add a lamp'"
CODEX = """\
model = "scripted"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""
AGENTS = {
    "claude": (["claude", "-p", "--allowedTools", "Bash Agent"], "Bash", "command"),
    "codex": (["codex", "exec", "-s", "danger-full-access"], "exec_command", "cmd"),
}


@pytest.fixture(params=AGENTS)
def program(request: pytest.FixtureRequest) -> str:
    """Each program that is installed."""
    name: str = request.param
    needs(name)
    return name


def needs(name: str) -> None:
    package = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex"}[name]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not on PATH; to run this: npm install -g {package}")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A repository to work in."""
    for name in ("work", "private", "home", "temporary"):
        (tmp_path / name).mkdir()
    git(tmp_path / "work", "init", "--quiet")
    return World(tmp_path)


def use(program: str, command: str) -> Use:
    _, tool, argument = AGENTS[program]
    return Use(tool, {argument: command})


def run(world: World, program: str, model: Model, *options: str, resume: str | None = None) -> SessionResult:
    """Run the program against the model."""
    home = world.top / "home"
    (home / "config.toml").write_text(CODEX.format(url=model.url))
    environment = {
        "HOME": str(home),
        "TMPDIR": str(world.top / "temporary"),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS": "500",
        "CLAUDE_CODE_TMPDIR": str(world.top / "temporary"),
        "CODEX_HOME": str(home),
        "SCRIPTED_KEY": "dummy",
        "GIT_AUTHOR_NAME": "Agent",
        "GIT_AUTHOR_EMAIL": "agent@localhost",
        "GIT_COMMITTER_NAME": "Agent",
        "GIT_COMMITTER_EMAIL": "agent@localhost",
    }
    return world.run(*AGENTS[program][0], *options, extra=environment, resume=resume, wall=60, grace=5)


def test_an_agent_works_and_says_so(world: World, program: str) -> None:
    with serve(use(program, COMMITS), Say("The lamp is on.\n\nIt was tested.")) as model:
        result = run(world, program, model)
    assert (result.cause, result.final_text) == (None, "The lamp is on.\n\nIt was tested."), world.lines
    assert git(world.directory, "log", "-1", "--format=%s") == "Add a lamp"
    assert f"$ {COMMITS}" in world.lines
    assert "do it" in model.heard[0]


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        (Refuse(429, "rate_limit_error"), Code.AGENT_LIMIT),
        (Refuse(401, "authentication_error"), Code.AGENT_LOGIN),
        (Refuse(529, "overloaded_error"), Code.MODEL),
    ],
)
def test_an_agent_that_is_refused(world: World, program: str, turn: Turn, code: Code) -> None:
    with serve(turn) as model:
        result = run(world, program, model)
    assert (result.code, result.cause is None) == (code, False), (result.cause, world.lines)


def test_claude_names_what_it_was_not_allowed(world: World) -> None:
    needs("claude")
    with serve(Use("Write", {"file_path": str(world.directory / "x"), "content": "x"}), Say("No.")) as model:
        result = run(world, "claude", model)
    assert (result.cause, result.denied) == (None, ("Write",)), world.lines


def test_claude_that_may_take_no_more_turns(world: World) -> None:
    needs("claude")
    with serve(use("claude", "true")) as model:
        result = run(world, "claude", model, "--max-turns", "1")
    assert result.cause == "the agent failed: Reached maximum number of turns (1)"


def test_claude_is_resumed_when_its_own_agents_were_stopped(world: World) -> None:
    needs("claude")
    given = {"description": "Review it", "prompt": "Look.", "subagent_type": "general-purpose"}
    with serve(Use("Agent", given | {"run_in_background": True}), Say("I wait."), Hang()) as model:
        first = run(world, "claude", model)
    assert (first.cause, first.unfinished) == (None, ("Review it",)), world.lines
    with serve(Say("Reviewed.")) as model:
        second = run(world, "claude", model, resume=first.resumable)
    assert (second.cause, second.final_text, second.unfinished) == (None, "Reviewed.", ()), world.lines
    assert second.resumable == first.resumable


def test_codex_is_resumed_when_a_command_was_stopped(world: World) -> None:
    needs("codex")
    with serve(Use("exec_command", {"cmd": "sleep 600", "yield_time_ms": 250}), Say("It runs.")) as model:
        first = run(world, "codex", model)
    assert (first.cause, first.unfinished) == (None, ("$ sleep 600",)), world.lines
    with serve(Say("It ran.")) as model:
        second = run(world, "codex", model, resume=first.resumable)
    assert (second.cause, second.final_text, second.unfinished) == (None, "It ran.", ()), world.lines
    assert second.resumable == first.resumable
