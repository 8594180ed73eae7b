"""`nightkeep demo`, and the hub that its last words serve again."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.scenarios.stage import NIGHTKEEP, Result, nightkeep
from tests.world import commit, git

_PATIENCE = 30


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Result]:
    """The demo as it ran for somebody who has set all sorts of things; what it keeps goes as it says it can."""
    other = tmp_path / "elsewhere"
    git(tmp_path, "init", "-q", "-b", "main", str(other))
    (other / "theirs.txt").write_text("theirs\n")
    theirs = commit(other, "theirs")
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n")
    environment = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "no_proxy": "", "NO_PROXY": ""}
    result = nightkeep("demo", cwd=tmp_path, environment=environment)
    assert git(other, "rev-parse", "main") == theirs
    assert git(other, "status", "--porcelain") == ""
    yield result
    removal = shlex.split(result.stdout.split("To remove everything: ", 1)[1])
    assert removal[:2] == ["rm", "-r"]
    subprocess.run(removal, check=True)


def kept(result: Result) -> Path:
    match = re.search(r"Everything happens in (\S+), which is kept", result.stdout)
    assert match is not None, result
    return Path(match[1])


def test_the_demo_shows_three_runs(demo: Result) -> None:
    assert demo.status == 0, demo
    for shown in (
        "exit status 0",
        "exit status 1",
        "exit status 130",
        "branch        issue-2",
        "last commit   nightkeep: failed run (the agent exited 3)",
        "last commit   nightkeep: failed run (interrupted by SIGINT)",
        "### Nightkeep could not finish this",
        "**Cause:** `the agent exited 3`",
        f"To remove everything: rm -r {kept(demo)}",
    ):
        assert shown in demo.stdout, f"{shown}\n{demo}"
    logs = re.findall(r"Session log   (\S+)", demo.stdout)
    assert [Path(log).exists() for log in logs] == [True, True, True]
    assert len(re.findall(r"pull request  http://\S+/pull/\d+", demo.stdout)) == 3
    serves_again(demo)


def serves_again(demo: Result) -> None:
    """The line that it prints serves the directory again."""
    (line,) = [line.strip() for line in demo.stdout.splitlines() if "hub --root" in line]
    words = shlex.split(line)
    assert shutil.which(words[0]) or Path(sys.executable).with_name(words[0]).exists()
    with hub(*words[2:]) as address:
        for url in re.findall(r"http://\S+/(?:issues|pull)/\d+(?=\s)", demo.stdout):
            assert url.startswith(address)
            page = requests.get(url, timeout=_PATIENCE)
            assert page.status_code == 200
            assert "text/html" in page.headers["Content-Type"]


@contextmanager
def hub(*options: str) -> Iterator[str]:
    with subprocess.Popen([*NIGHTKEEP, "hub", *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(_PATIENCE) == 0
            assert process.stdout.read() == ""


def test_the_first_line_of_the_hub_is_its_address_and_it_answers(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(tmp_path / "widget.git"))
    options = ("--root", str(tmp_path / "hub"), "--repository", f"acme/widget={tmp_path / 'widget.git'}")
    with hub(*options, "--token", "the-only-one") as address:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address)
        for token, status in (("the-only-one", 200), ("another", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            answer = requests.get(f"{address}/api/v3/repos/acme/widget", headers=headers, timeout=_PATIENCE)
            assert answer.status_code == status


def test_a_hub_whose_port_is_taken(tmp_path: Path) -> None:
    with hub("--root", str(tmp_path / "one")) as address:
        port = address.rsplit(":", 1)[-1]
        result = nightkeep("hub", "--root", str(tmp_path / "two"), "--port", port, cwd=tmp_path)
    assert (result.status, result.stdout) == (2, ""), result
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr
    assert "choose another --port, or 0" in result.stderr


@pytest.mark.parametrize(
    ("repository", "said"),
    [
        ("acme/widget=PLAIN", "is not a bare repository"),
        ("acme/widget=MISSING", "is not a bare repository"),
        ("acme/widget", "takes OWNER/NAME=PATH"),
        ("widget=PLAIN", "takes OWNER/NAME=PATH"),
        ("acme/widget=", "takes OWNER/NAME=PATH"),
        ("/widget=PLAIN", "write OWNER/NAME"),
    ],
)
def test_a_repository_that_cannot_be_served(tmp_path: Path, repository: str, said: str) -> None:
    git(tmp_path, "init", "-q", str(tmp_path / "plain"))
    named = repository.replace("PLAIN", str(tmp_path / "plain")).replace("MISSING", str(tmp_path / "missing"))
    result = nightkeep("hub", "--root", str(tmp_path / "hub"), "--repository", named, cwd=tmp_path)
    assert (result.status, result.stdout) == (2, ""), result
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_hub_whose_root_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = nightkeep("hub", "--root", str(tmp_path / "file"), cwd=tmp_path)
    assert (result.status, result.stdout) == (2, ""), result
    assert "Traceback" not in result.stderr


def test_an_interrupted_demo_says_how_to_be_rid_of_it(tmp_path: Path) -> None:
    """As Ctrl-C does it: everybody in the foreground gets the signal."""
    with subprocess.Popen(
        [*NIGHTKEEP, "demo"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("nightkeep: starting the agent"):
                os.killpg(process.pid, signal.SIGINT)
                break
        said += process.stdout.readlines()
        assert process.wait(_PATIENCE) == 130, said
    text = "".join(said)
    assert "Interrupted. To remove everything: rm -r " in text
    assert "Traceback" not in text
    assert "failed: interrupted by SIGINT" in text
    subprocess.run(shlex.split(text.split("To remove everything: ", 1)[1]), check=True)
