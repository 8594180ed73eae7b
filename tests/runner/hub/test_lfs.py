"""Git LFS: objects go in and out, and no pointer to nothing is pushed."""

import hashlib
import shutil
from pathlib import Path

import pytest
import requests

from runner.hub import Hub
from tests.runner.hub.conftest import NAME, READER, WRITER, remote
from tests.runner.hub.test_git import push
from tests.world import World, commit, git

CONTENT = b"a picture\n"
ID = hashlib.sha256(CONTENT).hexdigest()
OBJECT = {"oid": ID, "size": len(CONTENT)}
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{ID}\nsize {len(CONTENT)}\n"


def ask(hub: Hub, token: str, path: str, document: object) -> requests.Response:
    return requests.post(f"{hub.url}/{NAME}.git/info/lfs/{path}", json=document, auth=("x", token), timeout=10)


def batch(hub: Hub, operation: str, token: str = WRITER) -> requests.Response:
    return ask(hub, token, "objects/batch", {"operation": operation, "objects": [OBJECT]})


def upload(hub: Hub, content: bytes = CONTENT) -> int:
    action = batch(hub, "upload").json()["objects"][0]["actions"]["upload"]
    return requests.put(action["href"], content, headers=action["header"], timeout=10).status_code


def test_an_object_is_uploaded_verified_and_downloaded(hub: Hub) -> None:
    missing = batch(hub, "download").json()["objects"][0]
    assert missing["error"] == {"code": 404, "message": "Object does not exist on the server"}
    assert ask(hub, WRITER, "verify", OBJECT).status_code == 404
    assert upload(hub) == 200
    assert ask(hub, WRITER, "verify", OBJECT).status_code == 200
    assert batch(hub, "upload").json()["objects"] == [OBJECT | {"authenticated": True}], "nothing left to do"
    action = batch(hub, "download", READER).json()["objects"][0]["actions"]["download"]
    assert requests.get(action["href"], headers=action["header"], timeout=10).content == CONTENT


def test_another_object_than_named_is_not_taken(hub: Hub) -> None:
    assert upload(hub, b"something else") == 400
    assert ask(hub, WRITER, "verify", OBJECT).status_code == 404


@pytest.mark.parametrize(("token", "status"), [("wrong", 401), (READER, 403)])
def test_who_may_not_push_may_not_upload(hub: Hub, token: str, status: int) -> None:
    answer = batch(hub, "upload", token)
    assert answer.status_code == status
    assert ("LFS-Authenticate" in answer.headers) == (status == 401)


def test_nonsense_is_refused(hub: Hub) -> None:
    assert ask(hub, WRITER, "objects/batch", {"operation": "upload", "objects": [{"oid": "../x"}]}).status_code == 422


def test_a_pointer_to_nothing_is_refused(hub: Hub, world: World) -> None:
    (world.origin / "lfs").mkdir()
    (world.launch / "picture.bin").write_text(POINTER)
    commit(world.launch, "picture")
    done = push(world.launch, remote(hub, WRITER), "main:topic")
    assert done.returncode == 1
    assert "remote: error: GH008: Your push referenced at least 1 unknown Git LFS object:" in done.stderr
    assert f"remote:     {ID}" in done.stderr
    assert not world.on_origin("topic")
    assert upload(hub) == 200
    assert push(world.launch, remote(hub, WRITER), "main:topic").returncode == 0
    assert world.on_origin("topic")


def test_the_hooks_of_the_repository_still_run(hub: Hub, world: World, tmp_path: Path) -> None:
    (world.origin / "lfs").mkdir()
    world.hook("post-receive", f"touch {tmp_path}/received")
    assert push(world.launch, remote(hub, WRITER), "main:one").returncode == 0
    assert (tmp_path / "received").exists()
    world.hook("pre-receive", "grep -q refs/heads/two && { echo not two >&2; exit 1; }; exit 0")
    done = push(world.launch, remote(hub, WRITER), "main:two")
    assert "remote: not two" in done.stderr
    assert push(world.launch, remote(hub, WRITER), ":one").returncode == 0, "nothing new to look at"


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_git_lfs_pushes_and_fetches(hub: Hub, world: World, tmp_path: Path) -> None:
    git(world.launch, "lfs", "install", "--local")
    git(world.launch, "lfs", "track", "*.bin")
    (world.launch / "picture.bin").write_bytes(CONTENT)
    commit(world.launch, "picture")
    git(world.launch, "push", remote(hub, WRITER), "main:topic")
    assert world.origin_file("topic", "picture.bin") == POINTER.removesuffix("\n")
    git(tmp_path, "-c", "filter.lfs.smudge=", "clone", "-q", "-b", "topic", remote(hub, READER), "copy")
    git(tmp_path / "copy", "lfs", "install", "--local")
    git(tmp_path / "copy", "lfs", "pull")
    assert (tmp_path / "copy" / "picture.bin").read_bytes() == CONTENT
