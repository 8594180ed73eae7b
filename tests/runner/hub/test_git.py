"""Git over HTTP, with git as the client."""

import os
import random
import subprocess
import threading
from pathlib import Path

import pytest

from runner.hub import Hub
from tests.runner.hub.conftest import NAME, READER, WRITER, Client, remote
from tests.world import PERSON, World, commit, git


def push(directory: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = ["git", *PERSON, "-c", "credential.helper=", "push", *words]
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_TERMINAL_PROMPT": "0"}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("protocol", [0, 2])
def test_a_clone_holds_what_origin_holds(hub: Hub, world: World, tmp_path: Path, protocol: int) -> None:
    git(tmp_path, "-c", f"protocol.version={protocol}", "clone", "-q", remote(hub, READER), "copy")
    assert git(tmp_path / "copy", "rev-parse", "HEAD") == world.on_origin("main")
    bare_address = remote(hub, READER).removesuffix(".git")
    assert git(tmp_path, "ls-remote", bare_address, "HEAD").split()[0] == world.on_origin("main")


def test_a_push_moves_the_branch(hub: Hub, world: World) -> None:
    (world.launch / "a.txt").write_text("new\n")
    made = commit(world.launch, "new")
    git(world.launch, "push", "-q", remote(hub, WRITER), "main")
    assert world.on_origin("main") == made


def test_a_push_that_is_no_fast_forward_is_refused(hub: Hub, world: World) -> None:
    before = world.on_origin("main")
    git(world.launch, "commit", "-q", "--amend", "-m", "rewritten")
    done = push(world.launch, "--porcelain", remote(hub), "main")
    assert done.returncode == 1
    assert "[rejected] (non-fast-forward)" in done.stdout
    assert world.on_origin("main") == before


def test_what_a_hook_says_reaches_the_client(hub: Hub, world: World) -> None:
    world.hook("pre-receive", 'echo "GH013: $REMOTE_USER may not, HOME=$HOME" >&2; exit 1')
    done = push(world.launch, remote(hub, WRITER), "main:topic")
    assert done.returncode == 1
    assert "remote: GH013: nightkeep-2 may not, HOME=" in done.stderr
    assert "[remote rejected] main -> topic (pre-receive hook declined)" in done.stderr
    assert world.on_origin("topic") == ""


def test_large_bodies_in_chunks_and_compressed_ones_arrive(hub: Hub, world: World, tmp_path: Path) -> None:
    (world.launch / "large").write_bytes(bytes(range(256)) * 8 + random.Random(1).randbytes(5_000_000))
    made = commit(world.launch, "large")
    git(world.launch, "-c", "http.postBuffer=65536", "push", "-q", remote(hub), "main")
    assert world.on_origin("main") == made
    for number in range(40):  # many refs make a request so long that git compresses it
        git(
            world.origin,
            "update-ref",
            f"refs/heads/b{number}",
            git(world.origin, "commit-tree", "main^{tree}", "-m", str(number)),
        )
    git(tmp_path, "-c", "protocol.version=0", "clone", "-q", remote(hub), "copy")
    assert git(tmp_path / "copy", "rev-parse", "origin/b39") == world.on_origin("b39")


@pytest.mark.parametrize(
    ("token", "name", "answer"),
    [
        ("wrong", NAME, "Authentication failed"),
        (READER, NAME, "Permission to acme/widget.git denied to nightkeep-4."),
        (WRITER, "acme/nothing", "Repository not found."),
    ],
)
def test_a_push_without_the_right_is_refused(hub: Hub, world: World, token: str, name: str, answer: str) -> None:
    done = push(world.launch, remote(hub, token, name), "main:topic")
    assert done.returncode == 128
    assert answer in done.stderr
    assert world.on_origin("topic") == ""


def test_the_scheme_of_the_credential_has_no_case(hub: Hub, world: World) -> None:
    # What actions/checkout sends; the base64 is x-access-token:writer-token.
    header = "http.extraHeader=AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46d3JpdGVyLXRva2Vu"
    git(world.launch, "-c", header, "push", "-q", f"{hub.url}/{NAME}", "main:topic")
    assert world.on_origin("topic") == world.on_origin("main")


def test_a_slow_hook_keeps_nobody_waiting(hub: Hub, world: World, client: Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    world.hook("pre-receive", f"touch {gate}.reached; while [ ! -e {gate} ]; do sleep 0.01; done")
    pushing = threading.Thread(target=push, args=(world.launch, remote(hub), "main:topic"))
    pushing.start()
    while not Path(f"{gate}.reached").exists():
        pushing.join(0.01)
    assert client(hub, READER).get_repo(NAME).get_issues().totalCount == 0
    assert world.on_origin("topic") == ""
    gate.touch()
    pushing.join()
    assert world.on_origin("topic") == world.on_origin("main")


def test_stopping_the_hub_ends_a_hook_that_hangs(world: World, tmp_path: Path) -> None:
    world.hook("pre-receive", f"touch {tmp_path}/reached; sleep 600")
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}) as hub:
        pushing = threading.Thread(target=push, args=(world.launch, remote(hub), "main:topic"))
        pushing.start()
        while not (tmp_path / "reached").exists():
            pushing.join(0.01)
    pushing.join()  # the seal proves that no process is left
    assert world.on_origin("topic") == ""
