"""A hub that serves the world's origin as acme/widget, and clients of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from github import Auth, Github
from github.Repository import Repository

from runner.hub import Exchange, Hub, Permission
from tests.world import World, commit, git

NAME = "acme/widget"
ADMIN, WRITER, TRIAGER, READER = "admin-token", "writer-token", "triager-token", "reader-token"
TOKENS = {
    ADMIN: Permission.ADMIN,
    WRITER: Permission.WRITE,
    TRIAGER: Permission.TRIAGE,
    READER: Permission.READ,
}

Client = Callable[[Hub, str], Github]


@pytest.fixture
def hub(world: World, tmp_path: Path, exchanges: list[Exchange]) -> Iterator[Hub]:
    repositories = {NAME: world.origin}
    with Hub(tmp_path / "hub", repositories=repositories, tokens=TOKENS, observe=exchanges.append) as served:
        yield served


@pytest.fixture
def client() -> Iterator[Client]:
    """Makes PyGithub clients for a hub and a token, which neither retry nor wait."""
    with ExitStack() as stack:

        def make(hub: Hub, token: str) -> Github:
            made = Github(
                auth=Auth.Token(token),
                base_url=f"{hub.url}/api/v3",
                retry=None,
                seconds_between_requests=None,
                seconds_between_writes=None,
            )
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def widget(hub: Hub, client: Client) -> Repository:
    """acme/widget as its administrator sees it."""
    return client(hub, ADMIN).get_repo(NAME)


def remote(hub: Hub, token: str = ADMIN, name: str = NAME) -> str:
    """Return the address that git uses, with the token in it."""
    return f"{hub.url.replace('//', f'//x-access-token:{token}@')}/{name}.git"


def push_branch(world: World, branch: str, text: str, *, start: str = "main") -> str:
    """Put a commit that rewrites a.txt on a branch of origin, and return it."""
    git(world.launch, "checkout", "-q", "-B", branch, start)
    (world.launch / "a.txt").write_text(text)
    made = commit(world.launch, f"write {text.strip()}")
    git(world.launch, "push", "-q", "origin", branch)
    git(world.launch, "checkout", "-q", "main")
    return made
