"""Sessions with real agents, real signals and real processes."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from delivery.causes import Code
from delivery.session import SessionEnd, SessionRequest, SessionResult
from runner.logs import LogPlace
from runner.processes import Strays
from runner.session import AgentSessions, SessionLimits
from worktree import Interruption, Redactor

AGENTS = Path(__file__).parents[1] / "agents"
STREAMS = Path(__file__).parent / "agents" / "streams"
SECRET = "correct-horse-battery"
QUICK = {"grace": 0.3, "interrupted_grace": 0.2}


class Watching:
    """Remembers what it was told, and calls `action` with each tick."""

    def __init__(self) -> None:
        self.ticks = 0
        self.interruptions = 0
        self.why_stop: str | None = None
        self.action: Callable[[], object] = list

    def tick(self) -> None:
        self.ticks += 1
        self.action()

    def interrupted(self) -> None:
        self.interruptions += 1


@dataclass
class World:
    """A directory to work in, and what a session says about itself."""

    top: Path
    interruption: Interruption = field(default_factory=Interruption)
    lines: list[str] = field(default_factory=list)
    watch: Watching = field(default_factory=Watching)

    @property
    def directory(self) -> Path:
        return self.top / "work"

    @property
    def private(self) -> Path:
        return self.top / "private"

    @property
    def logs(self) -> Path:
        return self.top / "logs"

    def run(
        self,
        *argv: str | Path,
        prompt: str = "do it",
        extra: Mapping[str, str] | None = None,
        hear: Callable[[str], None] | None = None,
        resume: str | None = None,
        **limits: float,
    ) -> SessionResult:
        def progress(line: str) -> None:
            self.lines.append(line)
            if hear is not None:
                hear(line)

        sessions = AgentSessions(
            [str(word) for word in argv],
            environment=dict(os.environ),
            logs=LogPlace(self.logs, "stem"),
            limits=SessionLimits(**(QUICK | {"wall": 20} | limits)),  # type: ignore[arg-type]  # output is a whole number
            interruption=self.interruption,
            redact=Redactor([SECRET]),
            progress=progress,
            strays=Strays(),
        )
        return sessions.run(
            SessionRequest(
                kind="opening",
                prompt=prompt,
                directory=self.directory,
                private=self.private,
                environment={"NIGHTKEEP_RUN": f"run-{self.top}"} | dict(extra or {}),
                watch=self.watch,
                resume=resume,
            )
        )

    def python(self, code: str) -> SessionResult:
        return self.run(sys.executable, "-c", code)

    def processes(self) -> list[psutil.Process]:
        """The processes that work in the directory."""
        found = []
        for process in psutil.process_iter():
            try:
                if Path(process.cwd()) == self.directory and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def wait_until_nobody_is_left(self, seconds: float = 8) -> None:
        deadline = time.monotonic() + seconds
        while self.processes():
            assert time.monotonic() < deadline, self.processes()
            time.sleep(0.05)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world in which, after every test, no process, no child, no raw output and no temporary file is left."""
    temporary = tmp_path / "tmp"
    for name in ("work", "private", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    children = set(psutil.Process().children())
    world = World(tmp_path)
    yield world
    assert world.processes() == []
    assert set(psutil.Process().children()) <= children
    assert list(temporary.iterdir()) == []
    assert list(world.private.iterdir()) == []


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Sessions that end by themselves


def test_success(world: World) -> None:
    result = world.run(AGENTS / "succeed", prompt="paint the shed")
    assert (result.end, result.cause, result.status, result.survivors) == (SessionEnd.EXITED, None, 0, ())
    assert result.final_text == "Added work.txt.\nAll done."
    assert result.pull_request_text == "Add the work\n\nIt was asked for.\n"
    assert result.log == world.logs / "stem-opening.log"
    assert result.log.read_text() == "I was asked: paint the shed\n\nAdded work.txt.\nAll done.\n"
    assert world.lines == result.log.read_text().splitlines()
    assert (mode(world.logs), mode(result.log)) == (0o700, 0o600)


def test_prompt_is_in_a_private_file(world: World) -> None:
    result = world.run(
        "sh", "-c", 'stat -c %a "$NIGHTKEEP_PROMPT_FILE" "${NIGHTKEEP_PROMPT_FILE%/*}"; cat "$NIGHTKEEP_PROMPT_FILE"'
    )
    assert result.log.read_text().splitlines()[1:] == ["700", "do it"]


def test_environment(world: World) -> None:
    result = world.run(AGENTS / "print-environment", extra={"NIGHTKEEP_BASE": "main", "HOME": "/nowhere"})
    lines = result.log.read_text().splitlines()
    assert {"NIGHTKEEP_SESSION=opening", "NIGHTKEEP_BASE=main", "HOME=/nowhere"} <= set(lines)


def test_second_log_does_not_overwrite_the_first(world: World) -> None:
    first, second = world.run("echo", "one"), world.run("echo", "two")
    assert (first.log.read_text(), second.log.read_text()) == ("one\n", "two\n")


def test_exit_status(world: World) -> None:
    result = world.run(AGENTS / "fail")
    assert (result.end, result.status, result.cause) == (SessionEnd.EXITED, 3, "the agent exited 3")
    assert result.final_text == "I cannot go on"


def test_killed_agent(world: World) -> None:
    result = world.run("sh", "-c", "kill -9 $$")
    assert (result.end, result.status, result.cause) == (SessionEnd.EXITED, -9, "the agent was killed by SIGKILL")


def test_signals_have_their_default_effect_in_the_agent(world: World) -> None:
    code = "import signal as s; print(s.getsignal(s.SIGINT), s.getsignal(s.SIGHUP), s.getsignal(s.SIGTERM))"
    assert "SIG_IGN" not in world.python(code).final_text


def test_agent_that_is_not_there(world: World) -> None:
    result = world.run("no-such-agent")
    assert (result.end, result.status) == (SessionEnd.NOT_STARTED, None)
    assert result.cause == "the agent could not be started: No such file or directory: no-such-agent"


def test_agent_that_is_not_executable(world: World) -> None:
    (world.directory / "agent").write_text("#!/bin/sh\n")
    result = world.run("./agent")
    assert result.cause == "the agent could not be started: Permission denied: ./agent"


def test_directory_that_is_not_there(world: World) -> None:
    world.directory.rmdir()
    result = world.run(AGENTS / "succeed")
    assert result.end is SessionEnd.NOT_STARTED
    assert result.cause == f"the agent could not be started: No such file or directory: {world.directory}"
    world.directory.mkdir()


def test_private_directory_that_is_not_there(world: World) -> None:
    world.private.rmdir()
    assert world.run(AGENTS / "succeed").end is SessionEnd.NOT_STARTED
    world.private.mkdir()


def test_package_in_the_repository_is_not_ours(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.directory / "runner").mkdir()
    (world.directory / "runner" / "__init__.py").write_text("open('imported', 'w')")
    (world.directory / "runner" / "supervisor.py").write_text("open('imported', 'w')")
    with monkeypatch.context() as patch:
        patch.chdir(world.directory)
        assert world.run(AGENTS / "succeed").cause is None
    assert not (world.directory / "imported").exists()


# Limits


def test_time_limit(world: World) -> None:
    result = world.run(AGENTS / "hang", wall=0.5)
    assert (result.end, result.status) == (SessionEnd.TIME_LIMIT, -signal.SIGINT)
    assert result.cause == "the agent ran longer than 0.5 seconds and was stopped"


def test_idle_limit(world: World) -> None:
    result = world.run("sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done; sleep 1000", idle=0.6)
    assert (result.end, result.final_text) == (SessionEnd.IDLE_LIMIT, "1\n2\n3\n4\n5")
    assert result.cause == "the agent printed nothing for 0.6 seconds and was stopped"
    assert world.lines[-1] == "[nothing was printed for 0.3 seconds; after 0.6 seconds it is stopped]"


def test_output_limit(world: World) -> None:
    result = world.run(AGENTS / "chatty", output=1_000_000)
    assert (result.end, result.cause) == (SessionEnd.OUTPUT_LIMIT, "the agent printed more than 1 MB and was stopped")
    assert result.log.stat().st_size <= 1_000_100


def test_flood_gets_no_grace(world: World) -> None:
    began = time.monotonic()
    result = world.run(
        "sh", "-c", "trap '' INT TERM; while :; do head -c 200000 /dev/zero; done", output=1000, grace=30
    )
    assert result.end is SessionEnd.OUTPUT_LIMIT
    assert time.monotonic() - began < 10


def test_stubborn_agent_is_killed(world: World) -> None:
    result = world.run(AGENTS / "ignore-term", idle=0.4)
    assert (result.end, result.status, result.survivors) == (SessionEnd.IDLE_LIMIT, -signal.SIGKILL, ())


def test_grandchildren_that_escaped_are_stopped(world: World) -> None:
    result = world.run(AGENTS / "fork-and-escape", wall=1)
    assert (result.end, result.survivors) == (SessionEnd.TIME_LIMIT, ())
    assert world.processes() == []


def test_what_an_agent_leaves_in_the_background_is_stopped(world: World) -> None:
    result = world.run(AGENTS / "fork-and-escape", "exit")
    assert (result.end, result.cause, result.survivors) == (SessionEnd.EXITED, None, ())
    size = (world.directory / "late.txt").stat().st_size
    time.sleep(0.2)
    assert (world.directory / "late.txt").stat().st_size == size


def test_what_is_started_during_the_stop_is_stopped(world: World) -> None:
    script = "trap 'setsid sleep 1000 & setsid sleep 1000 &' INT TERM; echo ready; while :; do sleep 0.1; done"
    assert world.run("sh", "-c", script, idle=0.4).survivors == ()


def test_stubborn_background_process_is_killed(world: World) -> None:
    result = world.run("sh", "-c", "trap '' INT TERM; setsid sleep 1000 & exit 0")
    assert (result.cause, result.survivors) == (None, ())


# Secrets, control characters, the log


def test_secret_in_two_writes(world: World) -> None:
    half = len(SECRET) // 2
    result = world.python(
        "import time\n"
        f"print({SECRET[:half]!r}, end='', flush=True); time.sleep(.3); print({SECRET[half:]!r}, flush=True)\n"
        f"time.sleep(.2); print('end ' + {SECRET!r}, end='')"
    )
    assert result.log.read_text() == "***\nend ***"
    assert world.lines == ["***", "end ***"]
    assert result.final_text == "***\nend ***"


def test_log_is_safe_to_print(world: World) -> None:
    result = world.python(r"print('\x1b[31mred\x1b[0m \x1b]0;title\x07\x9b and\ttab \u202eabc')")
    assert result.log.read_text() == "␛[31mred␛[0m ␛]0;title␇\\x9b and\ttab \\u202eabc\n"
    assert world.lines == [result.final_text] == ["red  and\ttab abc"]


def test_emptied_output_is_followed_on(world: World) -> None:
    result = world.run("sh", "-c", "echo a long first line; sleep 0.5; echo new > /dev/stdout; sleep 0.3; echo last")
    assert "a long first line\n" in result.log.read_text()
    assert result.final_text.endswith("last")


def test_agent_that_removes_its_raw_output(world: World) -> None:
    result = world.run("sh", "-c", f"rm {world.private}/*; echo removed; sleep 0.3; echo last")
    assert (result.cause, result.log.read_text()) == (None, "removed\nlast\n")


@pytest.mark.parametrize("report", ['{"end":"exited","survivors":7}', '{"end":"well"}', "7", ""])
def test_agent_that_answers_for_its_supervisor(world: World, report: str) -> None:
    result = world.run("sh", "-c", f"echo '{report}' > /proc/$PPID/fd/1; sleep 30")
    assert (result.end, result.cause) == (SessionEnd.EXITED, "the session's supervisor was killed")
    assert not world.processes()


def test_log_that_cannot_be_written(world: World) -> None:
    world.logs.write_text("a file is in the way")
    result = world.run("echo", SECRET)
    assert (result.cause, result.final_text) == (None, "***")
    assert world.lines == [
        "the Session log cannot be written (File exists); the output is kept, unredacted and private",
        "***",
    ]
    (raw,) = world.private.iterdir()
    assert (raw.read_text(), mode(raw)) == (SECRET + "\n", 0o600)
    raw.unlink()


@pytest.mark.parametrize("make", ["ln -s ../secret", "mkfifo", "mkdir"])
def test_pull_request_file_that_is_none(world: World, make: str) -> None:
    (world.top / "tmp" / "secret").write_text("not for you")
    result = world.run("sh", "-c", f'{make} "$NIGHTKEEP_PR_FILE"')
    assert (result.cause, result.pull_request_text) == (None, "")
    (world.top / "tmp" / "secret").unlink()


def test_pull_request_text_is_redacted_and_bounded(world: World) -> None:
    result = world.python(f"import os; open(os.environ['NIGHTKEEP_PR_FILE'], 'w').write(({SECRET!r} + '\\n') * 9999)")
    assert set(result.pull_request_text.splitlines()) == {"***"}
    assert 2000 < len(result.pull_request_text.splitlines()) < 3000


def test_pull_request_text_has_no_control_characters(world: World) -> None:
    text = f"Ti\0tle\r\n\r\n\x1b[31mred\x1b[0m\t{SECRET[:4]}\x1b[1m{SECRET[4:]}\rlast\u202e\n"
    result = world.python(f"import os; open(os.environ['NIGHTKEEP_PR_FILE'], 'w', newline='').write({text!r})")
    assert result.pull_request_text == "Title\n\nred\t***\nlast\n"


def test_links_in_the_exchange_directory_are_not_followed(world: World) -> None:
    (world.directory / "mine").write_text("stays")
    world.run("sh", "-c", 'cd "${NIGHTKEEP_PR_FILE%/*}"; mkdir more; touch more/file; ln -s "$OLDPWD" link')
    assert (world.directory / "mine").read_text() == "stays"


def test_exchange_directory_replaced_by_a_link(world: World) -> None:
    (world.directory / "mine").write_text("stays")
    world.run("sh", "-c", 'd="${NIGHTKEEP_PR_FILE%/*}"; rm -r "$d"; ln -s "$PWD" "$d"')
    assert (world.directory / "mine").read_text() == "stays"


# Agents whose stream is read


def play(
    world: World, stream: str, *arguments: str, agent: str = "claude -p", wall: float = 20, **play: str
) -> SessionResult:
    """Run an agent that prints a recorded stream."""
    program, *options = agent.split()
    (world.directory / program).symlink_to(AGENTS / "claude")
    keep = world.top / "keep"
    keep.mkdir()
    played = {"STREAM": str(STREAMS / f"{stream}.jsonl"), "KEEP": str(keep)} | play
    return world.run(world.directory / program, *options, *arguments, extra=played, wall=wall)


def test_stream_becomes_text_that_people_read(world: World) -> None:
    result = play(world, "claude-commits", "--permission-mode", "acceptEdits")
    assert (result.cause, result.unfinished, result.denied) == (None, (), ())
    assert result.final_text == "The lamp is on.\n\nIt was tested."
    commit = '$ echo on > lamp.txt && git add lamp.txt && git commit -qm "Add a lamp"'
    said = ["The lamp is on.", "", "It was tested."]
    assert world.lines == [commit, "Read /home/me/widget-issue-7/lamp.txt", *said, "3 turns, $0.00"]
    assert result.log.read_text().splitlines()[1:] == [
        commit,
        "  (Bash completed with no output)",
        'Read {"file_path":"/home/me/widget-issue-7/lamp.txt"}',
        "  1\ton",
        "  2\t",
        *said,
        "[3 turns, $0.00]",
    ]
    asked = (world.top / "keep" / "opening-arguments").read_text().splitlines()
    assert asked == ["--output-format", "stream-json", "--verbose", "-p", "--permission-mode", "acceptEdits"]
    assert (world.top / "keep" / "opening-prompt").read_text() == "do it"


def test_another_output_format_is_the_users(world: World) -> None:
    result = play(world, "claude-max-turns", "--output-format", "text")
    assert (result.cause, world.lines[0][:16]) == (None, '{"type":"system"')


def test_codex_is_asked_for_its_stream(world: World) -> None:
    result = play(world, "codex-commits", "-m", "some", agent="codex exec")
    assert (result.cause, result.final_text) == (None, "All done.\n\nIt was fun.")
    assert (world.top / "keep" / "opening-arguments").read_text().split() == ["exec", "--json", "-m", "some"]


@pytest.mark.parametrize(
    ("stream", "status", "code", "cause"),
    [
        ("claude-max-turns", "1", Code.AGENT, "the agent failed: Reached maximum number of turns (1)"),
        ("claude-no-credit", "1", Code.AGENT_LIMIT, "the agent has used up what its account may use: Credit balance"),
        ("claude-not-logged-in", "1", Code.AGENT_LOGIN, "the agent's login, or its key, was refused: Not logged in"),
        ("claude-overloaded", "0", Code.MODEL, "the service of the agent's model failed: API Error: 529 Overloaded."),
        ("claude-commits", "4", Code.AGENT, "the agent exited 4"),
    ],
)
def test_what_the_stream_says_decides(world: World, stream: str, status: str, code: Code, cause: str) -> None:
    result = play(world, stream, EXIT=status)
    assert (result.end, result.code) == (SessionEnd.EXITED, code)
    assert (result.cause or "").startswith(cause)
    assert (result.unfinished, result.resumable) == ((), "")


def test_success_without_a_result_is_none(world: World) -> None:
    result = play(world, "claude-commits", STREAM="/dev/null", DO="echo 'I cannot speak'")
    assert result.cause == "the agent exited 0 without saying how its work ended"
    assert result.log.read_text() == "I cannot speak\n"


def test_time_limit_of_an_agent_with_a_stream(world: World) -> None:
    result = play(world, "claude-no-credit", wall=2, DO='cat "$STREAM"; sleep 1000')
    assert (result.end, result.code) == (SessionEnd.TIME_LIMIT, Code.AGENT)


def test_denied_tools_are_named(world: World) -> None:
    result = play(world, "claude-denied")
    assert (result.cause, result.denied) == (None, ("Bash",))
    assert "not allowed: Bash" in world.lines


@pytest.mark.parametrize(
    ("stream", "agent", "unfinished"),
    [
        ("claude-background-stopped", "claude -p", "Review it"),
        ("claude-background-killed-after-result", "claude -p", "Run the tests"),
        ("codex-background", "codex exec", "$ sleep 20; touch late"),
    ],
)
def test_what_was_stopped_with_the_session_can_be_resumed(
    world: World, stream: str, agent: str, unfinished: str
) -> None:
    result = play(world, stream, agent=agent)
    assert (result.cause, result.unfinished) == (None, (unfinished,))
    assert len(result.resumable) == 36


@pytest.mark.parametrize("session", ["--help", "", "x" * 200, "a b"])
def test_a_session_whose_name_is_no_argument_is_not_resumed(world: World, session: str) -> None:
    stream = (STREAMS / "claude-background-stopped.jsonl").read_text()
    known = json.loads(stream.splitlines()[0])["session_id"]
    (world.directory / "stream").write_text(stream.replace(known, session))
    result = play(world, "", STREAM="stream")
    assert (result.unfinished, result.resumable) == (("Review it",), "")


def test_broken_and_unknown_lines_are_kept_as_they_are(world: World) -> None:
    text = '{"type":"assistant","message":{"content":[{"type":"text","text":"cut'
    result = play(world, "claude-commits", DO=f"echo '{text}'; echo '{{\"type\":\"new\"}}'")
    assert result.cause is None
    assert world.lines[:2] == [text, '{"type":"new"}']
    assert result.log.read_text().splitlines()[:2] == world.lines[:2]


def test_secrets_in_a_stream(world: World) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMII\nEOW\n-----END PRIVATE KEY-----"
    words = f"{SECRET} {key} \x1b[31mred \ud800"
    padding = "y" * 90  # the brief line is cut in the middle of the secret, which must not save it
    content = [
        {"type": "text", "text": words},
        {"type": "tool_use", "name": "Bash", "input": {"command": f"{padding}{SECRET}"}},
        {"type": "text", "text": words},
    ]
    lines = [
        {"type": "assistant", "message": {"content": content}},
        {"type": "result", "subtype": "success", "is_error": True, "result": words},
    ]
    (world.directory / "stream").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result = play(world, "", STREAM="stream")
    told = "\n".join([*world.lines, result.log.read_text(), result.final_text, result.cause or ""])
    assert not [part for part in (SECRET, SECRET[:6], "MII", "EOW", "\x1b", "\ud800") if part in told]
    assert "***" in result.final_text


def test_a_message_that_is_longer_than_what_is_read_at_a_time(world: World) -> None:
    picture = {"type": "tool_result", "content": [{"type": "image", "source": {"data": "A" * 3_000_000}}]}
    (world.directory / "stream").write_text(json.dumps({"type": "user", "message": {"content": [picture]}}) + "\n")
    result = play(world, "claude-commits", DO="cat stream")
    assert result.cause is None
    assert result.log.read_text().startswith("  [image]\n")


# Interruption, and death


def test_interruption_before_the_start(world: World) -> None:
    world.interruption.record(signal.SIGTERM)
    result = world.run(AGENTS / "succeed")
    assert (result.end, result.cause, result.status) == (SessionEnd.INTERRUPTED, "interrupted by SIGTERM", None)
    assert list(world.directory.iterdir()) == []


def test_interruption_during_the_session(world: World) -> None:
    def interrupt(_: str) -> None:
        threading.Timer(0.3, world.interruption.record, [signal.SIGINT]).start()

    began = time.monotonic()
    result = world.run(AGENTS / "ignore-term", hear=interrupt, grace=30)
    assert (result.end, result.cause) == (SessionEnd.INTERRUPTED, "interrupted by SIGINT")
    assert result.status == -signal.SIGKILL
    assert time.monotonic() - began < 5


def test_interruption_shortens_a_stop_under_way(world: World) -> None:
    began = time.monotonic()
    timer = threading.Timer(1, world.interruption.record, [signal.SIGINT])
    timer.start()
    result = world.run(AGENTS / "ignore-term", wall=0.4, grace=30)
    timer.join()
    assert result.end is SessionEnd.TIME_LIMIT
    assert time.monotonic() - began < 6


def test_supervisor_killed(world: World) -> None:
    def kill_supervisor(line: str) -> None:
        if line == "escaped":
            (supervisor,) = (child for child in psutil.Process().children() if "runner.supervisor" in child.cmdline())
            supervisor.kill()

    result = world.run(AGENTS / "fork-and-escape", hear=kill_supervisor)
    assert (result.end, result.cause) == (SessionEnd.EXITED, "the session's supervisor was killed")
    assert (result.status, result.survivors) == (None, ())


def test_supervisor_told_to_terminate_stops_the_agent(world: World) -> None:
    def terminate_supervisor(_: str) -> None:
        (supervisor,) = (child for child in psutil.Process().children() if "runner.supervisor" in child.cmdline())
        supervisor.send_signal(signal.SIGHUP)
        supervisor.send_signal(signal.SIGINT)
        supervisor.terminate()

    result = world.run(AGENTS / "hang", hear=terminate_supervisor)
    assert (result.end, result.cause) == (SessionEnd.INTERRUPTED, "the session's supervisor was told to stop")


def test_supervisor_that_fails_says_why(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # No variable of Python's own reaches it, so what breaks it is a C library that is none.
    monkeypatch.setenv("LD_LIBRARY_PATH", str(world.top / "broken"))
    (world.top / "broken").mkdir()
    (world.top / "broken" / "libc.so.6").touch()
    result = world.run(AGENTS / "succeed")
    assert result.cause == "the session's supervisor failed with status 127, see the Session log"
    assert "libc.so.6" in result.log.read_text()


def test_trouble_in_the_runner_stops_the_agent(world: World) -> None:
    def fail(_: str) -> None:
        raise BrokenPipeError("nobody reads the progress")

    with pytest.raises(BrokenPipeError):
        world.run(AGENTS / "hang", hear=fail)
    (raw,) = world.private.iterdir()
    raw.unlink()


DRIVER = """
import os, sys
from pathlib import Path
from tests.runner.test_session import AGENTS, World
World(Path(sys.argv[1])).run(AGENTS / "fork-and-escape", wall=60)
"""


def test_runner_killed(world: World) -> None:
    environment = dict(os.environ) | {"TMPDIR": str(world.top), "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(world.top)], env=environment) as driver:
        deadline = time.monotonic() + 15
        while not (world.directory / "late.txt").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        driver.kill()
    world.wait_until_nobody_is_left()
    (raw,) = world.private.iterdir()  # kept: recovery redacts it
    assert raw.read_text().startswith("escaped") or raw.read_text() == ""
    raw.unlink()
