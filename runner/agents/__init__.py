"""Agents' programs: which one a command starts, how it is asked for a stream, and what its stream says."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from runner.agents import claude, codex, command
from runner.agents.agent import Agent
from runner.agents.conversation import Conversation
from runner.agents.events import Shown, Trouble, shown

__all__ = ["Agent", "Conversation", "Shown", "Trouble", "agent_for", "agent_named", "any_command", "shown"]

any_command: Agent = command
_AGENTS: Mapping[str, Agent] = {claude.NAME: claude, codex.NAME: codex}


def agent_for(argv: Sequence[str]) -> Agent:
    """Return the agent that a command starts, by its program's name; one whose output we cannot read is any command."""
    agent = agent_named(PurePath(argv[0]).name)
    return agent if agent.streams(argv) else any_command


def agent_named(name: str) -> Agent:
    """Return the agent of that name; any command for a name that we do not know."""
    return _AGENTS.get(name, any_command)
