"""Tokens in the environment, and how they are kept from the processes that we start."""

import ctypes
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SOURCES = ("NIGHTKEEP_TOKEN", "GITHUB_TOKEN")
# Tokens that a workflow or a shell may hold for others; no agent gets them either.
_OTHERS = (
    "GH_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
)
_PIPE = "NIGHTKEEP_TOKEN_PIPE"
_PR_SET_DUMPABLE = 4


def shed_tokens() -> Mapping[str, str]:
    """Take the tokens out of this process's environment, and return them.

    Removing a variable leaves it readable in `/proc/<pid>/environ` until the process ends, so the process executes
    itself anew without them and reads them from a pipe. Must be called before anything else is started.
    """
    held = {name: os.environ[name] for name in (*SOURCES, *_OTHERS) if name in os.environ}
    if held:
        _execute_anew(held)
    pipe = os.environ.pop(_PIPE, None)
    if pipe is None:
        return {}
    with os.fdopen(int(pipe), encoding="utf-8") as source:
        return {str(name): str(value) for name, value in json.load(source).items()}


def _execute_anew(held: Mapping[str, str]) -> None:
    source = _pipe_with(held)
    os.set_inheritable(source, True)  # noqa: FBT003 - takes it by position only
    # A copy under another name is as good: some runners hand an Action's inputs on, as INPUT_GITHUB-TOKEN.
    tokens = {*held.values()} - {""}
    environment = {name: value for name, value in os.environ.items() if name not in held and value not in tokens}
    # -P, -E: a folder `runner/` in the current directory or on PYTHONPATH must not be run in our place.
    os.execve(
        sys.executable,
        [sys.executable, "-E", "-P", "-m", "runner", *sys.argv[1:]],
        {**environment, _PIPE: str(source)},
    )


def _pipe_with(held: Mapping[str, str]) -> int:
    """Return the end to read from of a pipe that has the tokens in it; they are few and short, so nothing waits."""
    source, sink = os.pipe()
    with os.fdopen(sink, "w", encoding="utf-8") as file:
        json.dump(dict(held), file)
    return source


@contextmanager
def handed_over(held: Mapping[str, str]) -> Iterator[tuple[Mapping[str, str], tuple[int, ...]]]:
    """Yield what a command of ours is started with to have the tokens: variables, and descriptors to pass on."""
    source = _pipe_with(held)
    try:
        yield {_PIPE: str(source)}, (source,)
    finally:
        os.close(source)


def close_to_other_processes() -> None:
    """Forbid this user's other processes to read this one's memory and environment (Linux; root still can)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
