"""Git LFS: what pointers name is on the server before they are."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.hub import Hub, Permission
from tests.worktree.runs import opened
from tests.world import World, commit, git
from worktree import Interruption, Origin, RefUpdate, Worktree
from worktree.errors import PushRefused
from worktree.lfs import LfsStore
from worktree.refusal import RefusalKind

NAME, TOKEN = "acme/widget", "writer-token"
CONTENT = b"a picture\n"
ID = hashlib.sha256(CONTENT).hexdigest()
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{ID}\nsize {len(CONTENT)}\n"

needs_git_lfs = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")


@pytest.fixture
def hub(world: World, tmp_path: Path) -> Iterator[Hub]:
    """A hub that holds pushes against its objects."""
    (world.origin / "lfs").mkdir()
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}, tokens={TOKEN: Permission.WRITE}) as served:
        yield served


def origin(hub: Hub) -> Origin:
    return Origin(f"{hub.url}/{NAME}.git", TOKEN)


def store(directory: Path, content: bytes = CONTENT) -> str:
    """Put an object where git-lfs keeps it, as its filter does when a file is staged."""
    oid = hashlib.sha256(content).hexdigest()
    path = directory / "objects" / oid[:2] / oid[2:4] / oid
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return oid


def point(world: World, text: str = POINTER, *, config: str | None = None) -> RefUpdate:
    """Commit a pointer, as git has it after the filter; return the push of it."""
    for key, value in {"process": "", "clean": "", "required": "false"}.items():
        git(world.launch, "config", f"filter.lfs.{key}", value)  # the system may have one
    (world.launch / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (world.launch / "picture.bin").write_text(text)
    if config is not None:
        (world.launch / ".lfsconfig").write_text(config)
    return RefUpdate("refs/heads/issue-7", commit(world.launch, "picture"))


def on_server(world: World) -> set[str]:
    return {path.name for path in (world.origin / "lfs").rglob("*") if path.is_file()}


@needs_git_lfs
def test_the_objects_of_a_run_are_uploaded_before_its_push(world: World, hub: Hub) -> None:
    git(world.launch, "lfs", "install", "--local")
    with Worktree.create(
        opened(world), branch="issue-7", base="main", interruption=Interruption(), origin=origin(hub)
    ) as wt:
        git(wt.path, "lfs", "track", "*.bin")
        (wt.path / "picture.bin").write_bytes(CONTENT)
        wt.settle("Add a picture")
        wt.push()
        (wt.path / "picture.bin").write_bytes(b"half a pic")
        wt.preserve_failed_run("main", "agent exited 3")
    assert world.origin_file("issue-7~1", "picture.bin") == POINTER.removesuffix("\n")
    assert on_server(world) == {ID, hashlib.sha256(b"half a pic").hexdigest()}
    assert not wt.ending.kept


@needs_git_lfs
@pytest.mark.parametrize("settings", [{}, {"lfs.storage": "elsewhere"}])
def test_what_commits_beyond_origin_name_is_uploaded(world: World, hub: Hub, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        git(world.launch, "config", key, value)
    directory = world.launch / ".git" / settings.get("lfs.storage", "lfs")
    store(directory)
    store(directory, b"nobody names it")
    assert opened(world).remote(origin(hub)).push(point(world)) == ()
    assert on_server(world) == {ID}
    assert world.on_origin("issue-7")


@needs_git_lfs
def test_no_configuration_of_an_agent_says_where_objects_go(world: World, hub: Hub) -> None:
    store(world.launch / ".git" / "lfs")
    remote = opened(world).remote(origin(hub))
    for scope in ("--local", "--global"):
        git(world.launch, "config", scope, "lfs.url", "http://127.0.0.1:9/trap")
        git(world.launch, "config", scope, "url.http://127.0.0.1:9/.insteadOf", hub.url)
    remote.push(point(world))
    assert on_server(world) == {ID}


@needs_git_lfs
def test_an_upload_that_fails_is_a_failed_push(world: World, hub: Hub) -> None:
    store(world.launch / ".git" / "lfs")
    (world.launch / ".git/lfs/objects" / ID[:2] / ID[2:4] / ID).write_bytes(b"is broken\n")
    with pytest.raises(PushRefused, match="The object is not the one that its name says") as caught:
        opened(world).remote(origin(hub)).push(point(world))
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN
    assert "git lfs push" in " ".join(caught.value.argv)
    assert not world.on_origin("issue-7")


def test_a_pointer_to_nothing_is_refused_by_the_server(world: World, hub: Hub) -> None:
    with pytest.raises(PushRefused, match="GH008: Your push referenced at least 1 unknown Git LFS object") as caught:
        opened(world).remote(origin(hub)).push(point(world))
    assert caught.value.refusal.kind is RefusalKind.CONTENT
    assert not world.on_origin("issue-7")


def test_without_git_lfs_the_push_goes_ahead_and_the_objects_are_named(
    world: World, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.origin / "lfs").rmdir()
    store(world.launch / ".git" / "lfs")
    update = point(world)
    (tmp_path / "bin").mkdir()
    for program in ("git", "env", "sh", "cat"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program) or "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert opened(world).remote(origin(hub)).push(update) == (ID,)
    assert world.on_origin("issue-7") == update.new


def test_a_remote_that_is_a_directory_gets_no_objects_and_they_are_named(world: World) -> None:
    store(world.launch / ".git" / "lfs")
    assert opened(world).remote().push(point(world)) == (ID,)
    assert world.on_origin("issue-7")


@pytest.mark.parametrize(
    ("text", "config", "found"),
    [
        (POINTER, None, (ID,)),
        (POINTER.replace("oid", "ext-0-foo sha256:0\noid"), None, (ID,)),
        (POINTER + "more\n", None, ()),
        (POINTER.replace(ID, "0" * 64), None, ()),
        ("x" * 2000, None, ()),
        (POINTER, "[lfs]\n\tfetchexclude = *.bin\n", (ID,)),
        (POINTER, "[lfs]\n\turl = https://lfs.example.com/\n", ()),
    ],
)
def test_which_objects_commits_name(world: World, text: str, config: str | None, found: tuple[str, ...]) -> None:
    directory = world.launch / ".git" / "lfs"
    store(directory)
    update = point(world, text, config=config)
    launch = opened(world)
    base = git(world.launch, "rev-parse", "HEAD~1")
    assert LfsStore(directory).named_in(launch.git, [update.new], {base}) == found
    assert LfsStore(directory).named_in(launch.git, [update.new], {base, update.new}) == ()


def test_an_object_that_is_a_link_is_not_followed(world: World, tmp_path: Path) -> None:
    directory = world.launch / ".git" / "lfs"
    place = directory / "objects" / ID[:2] / ID[2:4] / ID
    place.parent.mkdir(parents=True)
    (tmp_path / "private").write_bytes(CONTENT)
    place.symlink_to(tmp_path / "private")
    assert LfsStore(directory).named_in(opened(world).git, [point(world).new], ()) == ()


def test_a_push_without_lfs_starts_two_commands(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = git(tmp_path, "--exec-path") + "/git"
    spy = tmp_path / "bin" / "git"
    spy.parent.mkdir()
    spy.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/seen\nexec {real} "$@"\n')
    spy.chmod(0o755)
    update = point(world)
    remote = opened(world).remote()
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")
    remote.push(update)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert [next(word for word in line.split() if word in ("push", "ls-remote")) for line in seen] == [
        "push",
        "ls-remote",
    ]
