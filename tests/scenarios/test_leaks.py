"""A secret that the runner knows of comes out nowhere, in whatever shape an agent or a step prints it."""

import base64
import json
import secrets
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.scenarios.stage import Result, Stage
from worktree import Redactor

# What an agent can do with a secret: it is given in the environment, and as a file.
_AGENT = """\
import base64, json, os, pathlib, sys, urllib.parse
plain = os.environ["SERVICE_PASSWORD"]
document = os.environ["CLOUD_CREDENTIALS"]
key = json.loads(document)["private"]["key"]
shared = pathlib.Path(sys.argv[1]).read_text().strip()
for secret in (plain, key, shared):
    raw = secret.encode()
    print("raw", secret)
    print("quoted", urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret))
    print("JSON", json.dumps({"it": secret}), json.dumps(json.dumps({"it": secret})))
    for lead in range(3):
        print("base64", base64.b64encode(b"x" * lead + raw + b"tail").decode())
    print("basic", base64.b64encode(b"x-access-token:" + raw).decode())
    print("URL https://user:" + urllib.parse.quote(secret, safe="") + "@example.com/path?token=" + secret)
    print("Authorization: Bearer " + secret)
    print("X-Api-Key: " + secret, file=sys.stderr)
    print("\\x1b[1m" + secret[:7] + "\\x1b[0m" + secret[7:])
print(document)
print(json.dumps(json.loads(document)), json.dumps(document), urllib.parse.quote(document, safe=""))
print(base64.b64encode(document.encode()).decode())
print("::error::" + plain)
everything = " ".join((plain, key, shared))
pathlib.Path(os.environ["NIGHTKEEP_PR_FILE"]).write_text("Use " + everything + "\\n\\n" + everything + "\\n" + document)
pathlib.Path("made.txt").write_text("made\\n")
print("I used " + everything)
"""


class Canaries:
    """Three secrets: one in the environment, one inside of a JSON document there, and the token, in a file."""

    def __init__(self, stage: Stage) -> None:
        plain = f'pl"ain/{secrets.token_hex(8)}+&='
        key = f"key/{secrets.token_hex(8)}+=="
        document = json.dumps({"kind": "service", "private": {"key": key, "id": 7}}, indent=2)
        self.values = {"environment": plain, "JSON": key, "file": stage.token_file.read_text().strip()}
        self.environment = {
            "SERVICE_PASSWORD": plain,
            "CLOUD_CREDENTIALS": document,
            "GITHUB_STEP_SUMMARY": str(stage.root / "summary"),
            "GITHUB_OUTPUT": str(stage.root / "output"),
        }

    def found_in(self, text: str) -> list[str]:
        """Return what of the secrets can be read out of a text."""
        return [f"{name} {form}" for name, value in self.values.items() for form in forms(value) if form in text]


def forms(value: str) -> set[str]:
    raw = value.encode()
    encoded = {base64.b64encode(b"x" * lead + raw)[4 if lead else 0 :].decode()[:-4] for lead in range(3)}
    escaped = json.dumps(value)[1:-1]
    return {value, quote(value, safe=""), escaped, json.dumps(escaped)[1:-1], value.splitlines()[0][7:]} | encoded


@pytest.fixture
def canaries(stage: Stage) -> Canaries:
    return Canaries(stage)


def agent(stage: Stage, ending: str) -> str:
    program = stage.root / "tell.py"
    program.write_text(_AGENT)
    return stage.agent(f"{shlex.join([sys.executable, str(program), str(stage.token_file)])}; {ending}")


def told(stage: Stage, result: Result) -> dict[str, str]:
    """Return everything that anybody may come to read, by where it stands."""
    numbers = range(1, 2 + len(stage.pulls()))
    written = {str(path): path.read_text() for path in stage.state.rglob("*") if path.is_file()}
    messages = ["git", "-C", str(stage.world.origin), "log", "--all", "--format=%an %ae %B"]
    return {
        **written,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "summary": (stage.root / "summary").read_text(),
        "outputs": (stage.root / "output").read_text(),
        "commits": subprocess.run(messages, capture_output=True, text=True, check=True).stdout,
        "refs": "\n".join(stage.refs()),
        "pull requests": "\n".join(f"{pull['title']}\n{pull['body']}" for pull in stage.pulls()),
        "comments": "\n".join(comment for number in numbers for comment in stage.comments(number)),
    }


@pytest.mark.parametrize("on_actions", [False, True])
@pytest.mark.parametrize("ending", ["exit 0", "exit 3"])
def test_nothing_that_a_run_tells_holds_a_secret(
    stage: Stage, canaries: Canaries, ending: str, *, on_actions: bool
) -> None:
    workflow = {"GITHUB_ACTIONS": "true"} if on_actions else {}
    result = stage.run(stage.issue(), agent(stage, ending), "--json", **canaries.environment, **workflow)
    assert result.status == int(ending[-1] == "3"), result
    seen = told(stage, result)
    assert {where: found for where, text in seen.items() if (found := canaries.found_in(text))} == {}
    assert "I used ***" in stage.logs()[0].read_text()
    assert "URL https://***@example.com" in stage.logs()[0].read_text()


def test_a_secret_in_what_went_wrong(stage: Stage, canaries: Canaries) -> None:
    """Git's words, a step's command and the agent's arguments get into causes."""
    stage.world.hook("pre-receive", f"echo {shlex.quote(canaries.values['environment'])} is bad >&2; exit 1")
    command = f"{agent(stage, 'exit 0')} --password {shlex.quote(canaries.values['JSON'])}"
    result = stage.run(stage.issue(), command, "--json", **canaries.environment)
    assert result.status == 3, result
    assert {where: found for where, text in told(stage, result).items() if (found := canaries.found_in(text))} == {}
    assert "is bad" in result.document["cause"]


@pytest.mark.parametrize("ending", ["exit 0", "exit 3"])
def test_a_secret_in_the_names_of_what_was_made(stage: Stage, canaries: Canaries, ending: str) -> None:
    made = 'git checkout -q -b "on-$it"; echo "$it" > "$it"; git add .; git commit -q -m "$it"'
    named = 'git update-ref "refs/other/$it" HEAD; git config "a.$it.b" 1'
    script = f"it={shlex.quote(canaries.values['file'])}; {made}; {named}"
    number = stage.issue()
    result = stage.command(
        *("run", stage.url(number), "--agent", stage.agent(f"{script}; {ending}"), "--json"),
        *("--token-file", str(stage.token_file)),
        **canaries.environment,
    )
    assert result.status == 3, result
    assert {where: found for where, text in told(stage, result).items() if (found := canaries.found_in(text))} == {}
    assert "refs/other/***" in result.stderr
    assert "on-***" in result.stderr
    assert canaries.values["file"] not in stage.command("worktrees").stdout


@pytest.mark.parametrize("secret", ["caf\udce9-and-more", '["half \\ud83d of a character"]', "{" * 50_000])
def test_a_secret_that_is_no_text_stops_nobody(secret: str) -> None:
    assert Redactor([secret])(f"<{secret}>") == "<***>"


def test_a_secret_in_a_url_where_nothing_begins(stage: Stage, canaries: Canaries) -> None:
    secret = quote(canaries.values["environment"], safe="")
    result = stage.command("run", f"https://user:{secret}@example.com/x/y", "--agent", "true", **canaries.environment)
    assert result.status == 2, result
    seen = [result.stdout, result.stderr, Path(stage.root / "output").read_text(), (stage.root / "summary").read_text()]
    assert [found for text in seen for found in canaries.found_in(text)] == []
