"""Git is run with a deadline, in a session of its own, with nothing inherited that was meant for somebody else."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_for
from tests.worktree.runs import create, gone, origin_has
from tests.world import World, commit, git
from worktree import GitError, Interrupted, Interruption, Launch, Limits, Redactor
from worktree.errors import GitTimeoutError
from worktree.git import Git

# Writes what it is and which signal it got; ends at TERM only when told to.
_CHILD = """#!/bin/sh
echo $$ >"$1"
trap 'echo term >>"$1"; {then}' TERM
sleep 60 & wait
sleep 60 & wait
"""


def alias(script: Path, *arguments: object) -> tuple[str, str]:
    """Return the setting that makes `git x` run a script."""
    return "alias.x", "!" + " ".join([str(script), *map(str, arguments)])


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def here(world: World, **limits: float) -> Git:
    return Git(directory=world.launch, limits=Limits(**{"lock": 0.3, "stop": 1, **limits}))  # type: ignore[arg-type]


@pytest.mark.parametrize(("then", "stop"), [("exit 0", 8), ("true", 1)], ids=["at-term", "only-at-kill"])
def test_a_deadline_stops_the_whole_command_with_term_before_kill(
    world: World, tmp_path: Path, then: str, stop: float
) -> None:
    name, value = alias(script(tmp_path / "child", _CHILD.format(then=then)), tmp_path / "log")
    before = time.monotonic()
    with pytest.raises(GitTimeoutError, match=r"git -c alias\.x=\S+ \S+ x failed \(stopped at its deadline\)"):
        here(world, stop=stop).run("-c", f"{name}={value}", "x", limit=0.5)
    assert time.monotonic() - before < 6
    number, word = (tmp_path / "log").read_text().split()
    assert word == "term"
    wait_for(lambda: not psutil.pid_exists(int(number)) or psutil.Process(int(number)).status() == "zombie")


@pytest.mark.parametrize("finishing", [False, True])
def test_an_interruption_stops_ordinary_commands_only(world: World, *, finishing: bool) -> None:
    latch = Interruption()
    ours = Git(directory=world.launch, interruption=latch)
    threading.Timer(0.3, latch.record, (signal.SIGHUP,)).start()
    before = time.monotonic()
    command = ("-c", f"alias.x=!sleep {1 if finishing else 30}; echo done", "x")
    if finishing:
        assert ours.completing().run(*command).text == "done"
    else:
        with pytest.raises(Interrupted, match="interrupted"):
            ours.run(*command)
        assert time.monotonic() - before < 8
    with pytest.raises(Interrupted):
        ours.run("version")
    assert ours.completing().run("version").text.startswith("git version")
    assert latch.recorded is signal.SIGHUP


def test_a_grandchild_that_holds_the_output_hangs_nothing(world: World, tmp_path: Path) -> None:
    escaped = script(tmp_path / "escape", f"#!/bin/sh\nsetsid sleep 30 &\necho $! >{tmp_path / 'pid'}\necho out\n")
    before = time.monotonic()
    try:
        assert here(world).run("-c", "=".join(alias(escaped)), "x").text == "out"
        assert time.monotonic() - before < 3
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_grandchild_that_goes_on_writing_hangs_nothing(world: World, tmp_path: Path) -> None:
    chatter = script(
        tmp_path / "chatter", f'#!/bin/sh\nsetsid sh -c "while echo on; do :; done" &\necho $! >{tmp_path / "pid"}\n'
    )
    before = time.monotonic()
    try:
        here(world).run("-c", "=".join(alias(chatter)), "x", limit=8)
        assert time.monotonic() - before < 5
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_much_output_and_much_input_are_taken_whole(world: World) -> None:
    ours = here(world)
    content = b"\0\xff\n" * 1_000_000
    oid = ours.run("hash-object", "-w", "--stdin", stdin=content).text
    assert ours.run("cat-file", "blob", oid).stdout == content


def test_a_command_that_reads_input_gets_none(world: World) -> None:
    assert here(world).run("hash-object", "--stdin").text == git(world.launch, "hash-object", "-t", "blob", "/dev/null")


def test_names_that_are_no_text_survive(world: World) -> None:
    (world.launch / "odd \udcff\n").write_text("x")
    assert "odd \udcff\n" in here(world).run("ls-files", "-z", "--others").fields


def test_location_variables_of_somebody_else_are_ignored(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    (other / "theirs.txt").write_text("theirs\n")
    head = commit(other, "theirs")
    (other / "a.txt").write_text("unfinished\n")
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / ".git" / "index",
        "GIT_OBJECT_DIRECTORY": other / ".git" / "objects",
        "GIT_CONFIG_GLOBAL": other / "nothing",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NAMESPACE": "elsewhere",
        "GIT_EDITOR": "touch editor-ran",
    }.items():
        monkeypatch.setenv(name, str(value))
    wt = create(world)
    (wt.path / "a.txt").write_text("staged\n")
    subprocess.run(["env", "-i", "git", "-C", str(wt.path), "add", "a.txt"], check=True)
    (wt.path / "a.txt").write_text("edited\n")
    with wt:
        wt.preserve_failed_run("main", "x")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before
    assert git(other, "rev-parse", "HEAD") == head
    assert world.origin_file("refs/heads/issue-7", "a.txt") == "edited"
    assert origin_has(world, "staged\n")
    assert gone(wt, world)


def test_no_hook_runs(world: World) -> None:
    marker = world.launch / "hook-ran"
    for hook in ("post-checkout", "reference-transaction", "prepare-commit-msg", "post-commit", "post-index-change"):
        world.hook(hook, f"touch {marker}; exit 1", repository=world.launch / ".git")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.settle("Edit a")
        wt.push()
    assert not marker.exists()
    assert gone(wt, world)


def test_an_error_says_command_directory_status_and_output_without_secrets(world: World) -> None:
    redact = Redactor(["hunter2-hunter2"])
    with pytest.raises(GitError) as caught:
        Git(directory=world.launch, redact=redact).run("rev-parse", "--verify", "hunter2-hunter2")
    error = caught.value
    assert str(error) == (
        f"git rev-parse --verify *** failed (exit 128) in {world.launch}: fatal: Needed a single revision"
    )
    assert (error.status, error.argv, error.directory) == (128, ("git", "rev-parse", "--verify", "***"), world.launch)
    with pytest.raises(GitError, match="no-such-command"):
        Git(directory=world.launch).run("-c", "user.name=x", "no-such-command")


def test_a_command_that_died_of_a_signal_says_so(world: World) -> None:
    with pytest.raises(GitError, match=r"exit 137|killed by signal 9"):
        here(world).run("-c", "alias.x=!kill -9 $$", "x")


@pytest.mark.parametrize(("held", "limit"), [(0.5, 5.0), (30.0, 0.5)], ids=["vanishes", "stays"])
def test_a_held_lock_is_waited_for_and_then_given_up(world: World, held: float, limit: float) -> None:
    lock = world.launch / ".git" / "index.lock"
    lock.touch()
    timer = threading.Timer(held, lock.unlink)
    timer.start()
    (world.launch / "n.txt").write_text("n\n")
    if held < limit:
        here(world, lock=limit).run("add", "n.txt")
        assert "n.txt" in git(world.launch, "ls-files")
    else:
        before = time.monotonic()
        with pytest.raises(GitError, match=r"index\.lock"):
            here(world, lock=limit).run("add", "n.txt")
        assert 0.4 < time.monotonic() - before < 5
        assert lock.exists(), "never taken from whoever holds it"
    timer.cancel()


def test_a_deadline_counts_for_all_tries_at_a_held_lock(world: World) -> None:
    (world.launch / ".git" / "index.lock").touch()
    before = time.monotonic()
    with pytest.raises(GitError):
        here(world, lock=30).run("add", ".", limit=0.6)
    assert time.monotonic() - before < 3


def test_a_directory_that_is_missing_is_an_error(world: World) -> None:
    with pytest.raises(GitError, match="No such file or directory"):
        Git(directory=world.launch / "missing").run("status")


def test_a_machine_without_git_is_an_error(world: World, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = (
        "import sys, pathlib; from worktree import *\n"
        "try: Launch.open(pathlib.Path(sys.argv[1]), interruption=Interruption())\n"
        "except WorktreeError as error: print(error)\n"
    )
    (tmp_path / "bin" / "env").symlink_to("/usr/bin/env")
    done = subprocess.run(
        [sys.executable, "-c", program, str(world.launch)],
        env={"PATH": str(tmp_path / "bin"), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "git" in done.stdout


def test_opening_a_clone_changes_nothing(world: World) -> None:
    before = {path: path.stat().st_mtime_ns for path in world.launch.rglob("*")}
    Launch.open(world.launch, interruption=Interruption())
    assert {path: path.stat().st_mtime_ns for path in world.launch.rglob("*")} == before


def test_git_leaves_no_lock_behind_where_a_file_may_not_grow(world: World) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(GitError) as refused:
            here(world).run("update-ref", "refs/heads/made", "HEAD")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "couldn't write" in str(refused.value)
    here(world).run("update-ref", "refs/heads/made", "HEAD")
