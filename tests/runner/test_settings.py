"""Settings: what may be written where, what wins, and what is said when it cannot be used."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from runner.session import SessionLimits
from runner.settings import (
    LoadedSettings,
    PromptReplacement,
    Settings,
    SettingsError,
    is_trusted,
    load_settings,
    settings_schema,
    show,
)
from runner.settings.document import read_document
from runner.settings.keys import keys
from runner.settings.sources import RESERVED
from worktree import Limits, Redactor

REPOSITORY_FILE = ".github/nightkeep.yml on main"
USER_FILE = "~/.config/nightkeep/config.yml"
SCHEMA = Path(__file__).parents[2] / "docs" / "nightkeep.schema.json"
DURATION = "must be a duration: 90s, 15m, 2h or a number of seconds, above 0 and up to 30 days"
LABEL = "must be the name of a label: one line of 1 to 50 characters"
REPOSITORY = "must be OWNER/NAME on github.com, or HOST/OWNER/NAME"
DIFFER = "labels.ready and labels.in-progress must differ, but both are"
SIZE = "must be a size: 50MB, 1.5 GB, 512KiB or a number of bytes, above 0 and up to 1000 GB"


def load(
    repository: str | None = None,
    user: str | bytes | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    *,
    trusted: bool = True,
) -> LoadedSettings:
    user_file = Path.home() / ".config" / "nightkeep" / "config.yml"
    if user is not None:
        user_file.parent.mkdir(parents=True)
        user_file.write_bytes(user.encode() if isinstance(user, str) else user)
    return load_settings(
        repository_text=repository,
        repository_name="octo/tools",
        base="main",
        trusted=trusted,
        user_file=user_file,
        environment=environment or {},
        flags=flags or {},
    )


def problems(*sources: Any, **more: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(*sources, **more)
    assert str(caught.value).splitlines() == list(caught.value.problems)
    return list(caught.value.problems)


def test_defaults() -> None:
    loaded = load()
    settings, limits = loaded.settings, loaded.settings.limits
    session, git = SessionLimits(), Limits()
    assert (limits.session, limits.idle, limits.output) == (session.wall, session.idle, session.output)
    assert (limits.git, limits.push, limits.file, limits.stop_grace) == (git.command, git.push, git.file, session.grace)
    assert limits.step == 600
    assert (settings.agent, settings.prompt, settings.setup, settings.verify) == (None, None, None, None)
    assert (settings.session.commit, settings.failed_run.pull_request) == ("auto", "draft")
    assert (settings.labels.ready, settings.labels.in_progress) == ("ready-for-agent", "in-progress")
    assert (settings.logs.directory, settings.worktrees.directory, settings.token_file) == (None, None, None)
    assert settings.trusted_repositories == ()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.notices == ()


def test_later_sources_win_key_by_key() -> None:
    loaded = load(
        "agent: one\nsetup: make\nlimits:\n  session: 1h\n  idle: 1m\n  git: 30\nlabels: {ready: go}\n",
        "# mine\nagent: two\nlimits:\n\n  idle: 2m\n  git: 31\nverify: tox\n",
        {"NIGHTKEEP_AGENT": "three", "NIGHTKEEP_LIMITS_GIT": "32", "HOME": "/"},
        {"agent": "four", "limits.push": 7, "setup": None},
    )
    settings = loaded.settings
    assert (settings.agent, settings.setup, settings.verify, settings.labels.ready) == ("four", "make", "tox", "go")
    limits = settings.limits
    assert (limits.session, limits.idle, limits.git, limits.push, limits.step) == (3600, 120, 32, 7, 600)
    assert {key: origin for key, origin in loaded.origins.items() if origin != "default"} == {
        "agent": "--agent",
        "setup": f"{REPOSITORY_FILE}:2",
        "verify": f"{USER_FILE}:7",
        "limits.session": f"{REPOSITORY_FILE}:4",
        "limits.idle": f"{USER_FILE}:5",
        "limits.git": "NIGHTKEEP_LIMITS_GIT",
        "limits.push": "--limits-push",
        "labels.ready": f"{REPOSITORY_FILE}:7",
    }


def test_prompt_is_replaced_as_a_whole() -> None:
    assert load("prompt: {replace: all}", "prompt: more").settings.prompt == "more"


def test_prompt_that_replaces() -> None:
    assert load("prompt: more", "prompt:\n  replace: all\n").settings.prompt == PromptReplacement(replace="all")


def test_null_takes_a_command_away() -> None:
    loaded = load("verify: tox", "verify: null")
    assert (loaded.settings.verify, loaded.origins["verify"]) == (None, f"{USER_FILE}:1")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "limits:\nlabels: {}\n", "\ufeff"])
def test_files_that_say_nothing(text: str) -> None:
    assert load(text, text).settings == Settings.model_validate({})


def test_lists() -> None:
    listed = "trusted-repositories:\n- octo/tools\n- ghe.example:8443/a/b.c\n"
    assert load(None, listed).settings.trusted_repositories == ("octo/tools", "ghe.example:8443/a/b.c")


def test_list_in_the_environment_replaces() -> None:
    loaded = load(None, "trusted-repositories: [a/b]", {"NIGHTKEEP_TRUSTED_REPOSITORIES": "c/d, e/f g/h,"})
    assert loaded.settings.trusted_repositories == ("c/d", "e/f", "g/h")


def test_environment_that_is_no_configuration() -> None:
    assert load(environment=dict.fromkeys(RESERVED, "x") | {"NIGHTKEEP_AGENT": "", "NIGHT": "x"}) == load()


def test_no_variable_is_reserved_or_means_two_keys() -> None:
    variables = [key.variable for key in keys().values()]
    assert len(variables) == len({*variables, *RESERVED}) - len(RESERVED)


def test_paths(seal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load(None, "logs: {directory: ~/logs}\nworktrees: {directory: /w}", {}, {"token-file": Path("token")})
    assert loaded.settings.logs.directory == seal / "logs"
    assert loaded.settings.worktrees.directory == Path("/w")
    assert loaded.settings.token_file == tmp_path / "token"


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90s", 90), ("15m", 900), ("2h", 7200), ("1.5 H", 5400), ("'45'", 45), ("0.25", 0.25), ("7", 7), ("010", 10)],
)
def test_durations(written: str, seconds: float) -> None:
    assert load(f"limits: {{session: {written}}}").settings.limits.session == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [("50MB", 50_000_000), ("200 MB", 200_000_000), ("1.5GB", 1_500_000_000), ("4KiB", 4096), ("12", 12), ("9 b", 9)],
)
def test_sizes(written: str, size: int) -> None:
    assert load(f"limits: {{file: {written}}}").settings.limits.file == size


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("agent: claude -p\n", "claude -p"),
        ("agent: >-\n  claude\n  -p\n", "claude -p"),
        ("agent: |\n  claude -p\n", "claude -p"),
        ("agent: |\n  sh -c 'a\n  b'\n", "sh -c 'a\nb'"),
    ],
)
def test_commands(text: str, command: str) -> None:
    assert load(text).settings.agent == command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agnt: x", ['1: unknown key "agnt"; did you mean "agent"?']),
        ("\nfailed_run: {}", ['2: unknown key "failed_run"; did you mean "failed-run"?']),
        ("limits:\n  sesion: 2h", ['2: unknown key "limits.sesion"; did you mean "limits.session"?']),
        ("limits.session: 2h", ['1: unknown key "limits.session"; did you mean "session" under "limits"?']),
        ("commit: all", ['1: unknown key "commit"; did you mean "commit" under "session"?']),
        ("token: x", ['1: unknown key "token"; did you mean "token-file"?']),
        ("zzz: 1", ['1: unknown key "zzz"']),
        ("'': 1", ['1: unknown key ""']),
        ("prompt: {text: x, replace: y}", ['1: unknown key "prompt.text"; did you mean "prompt.replace"?']),
        ("<<: {agent: x}", ['1: "<<" is no key: YAML reads it as merge, not as text']),
        ('"\\e[31m\\n": 1', ['1: unknown key "\\u001b[31m\\u000a"']),
        ("agent: 5", ["1: agent must be text, not 5; put it in quotes"]),
        ("agent: yes", ["1: agent must be text, not true; put it in quotes"]),
        ("agent: {a: b}", ["1: agent must be text, not a section"]),
        ("agent: ''", ["1: agent is empty; leave the key out, or write null"]),
        ('agent: "it\'s"', ["1: agent cannot be split into words: no closing quotation"]),
        ('agent: "a\\0"', ["1: agent holds a character that is no text: NUL, or what is not UTF-8"]),
        ('prompt: "\\ud800"', ["1: prompt holds a character that is no text: NUL, or what is not UTF-8"]),
        (
            "setup: |\n  npm ci\n  npm test\n",
            ["1: setup has several lines, but is one command, run without a shell; try: sh -c 'FIRST && SECOND'"],
        ),
        ("prompt: [a]", ["1: prompt must be text, not a list"]),
        ("prompt: {}", ['1: prompt must be text, or a section with the key "replace"']),
        ("prompt: {replace: 1}", ["1: prompt.replace must be text, not 1; put it in quotes"]),
        ("session: {commit: nver}", ['1: session.commit must be "auto", "all" or "never", not "nver"']),
        ("failed-run: {pull-request: no}", ['1: failed-run.pull-request must be "draft" or "none", not false']),
        ("limits: 5", ["1: limits must be a section with keys of its own, not 5"]),
        ("labels: [a]", ["1: labels must be a section with keys of its own, not a list"]),
        ("limits: {session: 2 hours}", [f'1: limits.session {DURATION}, not "2 hours"']),
        ("limits: {session: 1:30}", [f'1: limits.session {DURATION}, not "1:30"']),
        ("limits: {idle: 0}", [f"1: limits.idle {DURATION}, not 0"]),
        ("limits: {idle: -1}", [f"1: limits.idle {DURATION}, not -1"]),
        ("limits: {step: .inf}", [f'1: limits.step {DURATION}, not ".inf"']),
        ("limits: {step: 31 d}", [f'1: limits.step {DURATION}, not "31 d"']),
        ("limits: {push: null}", [f"1: limits.push {DURATION}, not nothing"]),
        ("limits: {push: true}", [f"1: limits.push {DURATION}, not true"]),
        ("limits: {output: 5 parsecs}", [f'1: limits.output {SIZE}, not "5 parsecs"']),
        ("limits: {file: 0.5}", [f"1: limits.file {SIZE}, not 0.5"]),
        ("labels: {ready: ' '}", [f'1: labels.ready {LABEL}, not " "']),
        ("labels: {ready: In-Progress}", [f'1: {DIFFER} "In-Progress"']),
        ("on: push", ['1: "on" is no key: YAML reads it as true or false, not as text']),
        ("5: x", ['1: "5" is no key: YAML reads it as a number, not as text']),
        ("? [a]\n: x", ["1: a key must be a word"]),
        ("agent: a\nlimits: {}\nagent: b", ['3: "agent" stands twice; the first is in line 1']),
        ("limits:\n  git: 1\n  git: 2", ['3: "limits.git" stands twice; the first is in line 2']),
        ("limits:\n\tsession: 2h", ["2: not YAML: a tab stands where only spaces may; indent with spaces"]),
        ("limits:\n  git: 2\n\tidle: 3", ["3: not YAML: a tab stands where only spaces may; indent with spaces"]),
        ("- a", ["1: the file must hold keys with values, as in: agent: COMMAND"]),
        ("\ntext", ["2: the file must hold keys with values, as in: agent: COMMAND"]),
        ("agent: &x a\nsetup: *x", ["2: the alias *x is refused; write the value out"]),
        ("agent: !!python/name:os.system x", ["1: the tag tag:yaml.org,2002:python/name:os.system is refused"]),
        ("agent: " + "[" * 60_000, ["1: this is nested deeper than any setting"]),
        ("a: b: c", ["1: not YAML: mapping values are not allowed here"]),
        ("agent: a\a", ["1: not YAML: the character U+0007 is not allowed"]),
        (
            "agent: a\n---\nagent: b",
            ["2: not YAML: expected a single document in the stream, but found another document"],
        ),
    ],
)
def test_what_is_said_about_a_file(text: str, expected: list[str]) -> None:
    assert problems(None, text) == [f"{USER_FILE}:{line}" for line in expected]


@pytest.mark.parametrize("key", ["agent", "setup", "verify", "token-command"])
@pytest.mark.parametrize(
    ("command", "syntax"),
    [
        ("npm ci && npm test", "&&"),
        ("npm ci&& npm test", "&&"),
        ("make || true", "||"),
        ("make | tee log", "|"),
        ("make |& tee log", "|&"),
        ("cd web; make", ";"),
        ("cd web ; make", ";"),
        ("make > log", ">"),
        ("make >log", ">"),
        ("make 2>&1", "2>&1"),
        ("make 2>/dev/null", "2>"),
        ("make &>> build/log", "&>>"),
        ("make < in.txt", "<"),
        ("make <in.txt", "<"),
        ("make &", "&"),
        ("bot -p $(cat prompt.md)", "$("),
        ("bot -p `cat prompt.md`", "`"),
        ("API_KEY=sesame bot", "API_KEY="),
        ("bot 'quoted' \\; x && y", "&&"),
    ],
)
def test_what_only_a_shell_understands(key: str, command: str, syntax: str) -> None:
    said = f"is run without a shell; for {syntax} write sh -c '…', or put it in quotes when it is to be passed on"
    assert problems(None, json.dumps({key: command})) == [f"{USER_FILE}:1: {key} {said}"]


@pytest.mark.parametrize(
    "command",
    [
        "sh -c 'npm ci && npm test > log; echo'",
        'sh -c "a | b"',
        "claude -p --allowedTools Bash(git:*) Edit",
        "bot --url http://h/?a=1&b=2",
        "grep '&&' \"||\" ';' file",
        "find . -exec cat {} \\;",
        "pip install x>=2 >=3",
        "bot <name> -> => a|b x;y",
        "env API_KEY=x bot --model m=1",
        "bot $HOME ${A} $A",
    ],
)
def test_what_is_passed_on_without_a_shell(command: str) -> None:
    assert load(json.dumps({"agent": command})).settings.agent == command


def test_the_remedy_is_the_sources() -> None:
    assert problems(None, "agent: ''", {}, {"agent": " "}) == [
        f"{USER_FILE}:1: agent is empty; leave the key out, or write null",
        "--agent: is empty; leave the flag out, or give it a value",
    ]


def test_file_that_is_too_large() -> None:
    assert problems("#" * 65_537, b"#\xff" * 40_000) == [
        f"{REPOSITORY_FILE}: is larger than 64 KiB",
        f"{USER_FILE}: is larger than 64 KiB",
    ]


def test_user_file_that_is_not_text() -> None:
    assert problems(None, b"agent: caf\xe9") == [f"{USER_FILE}: is not UTF-8"]


def test_user_file_that_is_a_directory(seal: Path) -> None:
    (seal / ".config" / "nightkeep" / "config.yml").mkdir(parents=True)
    assert problems() == [f"{USER_FILE}: is not a file"]


def test_machine_keys_in_the_repositorys_file() -> None:
    text = (
        "worktrees:\n  directory: /w\nlogs:\n  directory: /l\ntoken-file: /t\n"
        "trusted-repositories:\n- a/b\n- https://c/d/e\ntoken-command: x\nlimits:\n  token-command: 1s\n"
    )
    here = "belongs to the machine, not to the repository; put it in"
    named = {2: "worktrees.directory", 4: "logs.directory", 5: "token-file", 6: "trusted-repositories"}
    assert problems(text) == [
        *(
            f"{REPOSITORY_FILE}:{line}: {key} {here} {USER_FILE}, or in the environment as {variable(key)}"
            for line, key in named.items()
        ),
        f'{REPOSITORY_FILE}:8: trusted-repositories, entry 2, {REPOSITORY}, not "https://c/d/e"',
        *(
            f"{REPOSITORY_FILE}:{line}: {key} {here} {USER_FILE}, or in the environment as {variable(key)}"
            for line, key in {9: "token-command", 11: "limits.token-command"}.items()
        ),
    ]


def variable(key: str) -> str:
    return "NIGHTKEEP_" + key.upper().replace(".", "_").replace("-", "_")


def test_every_problem_of_every_source_in_one_error() -> None:
    secret = "ghp_" + "a1B2" * 9
    environment = {"NIGHTKEEP_LIMITS_IDLE": secret, "NIGHTKEEP_AGNET": secret, "NIGHTKEEP_ZZZ": "1"}
    assert problems("b: 1\nc: 1", "limits: {git: x}\nlogs: {directory: x}", environment, {"limits.push": 0}) == [
        f'{REPOSITORY_FILE}:1: unknown key "b"',
        f'{REPOSITORY_FILE}:2: unknown key "c"',
        f'{USER_FILE}:1: limits.git {DURATION}, not "x"',
        f'{USER_FILE}:2: logs.directory must be an absolute path, or one that begins with ~/, not "x"',
        'NIGHTKEEP_AGNET: unknown environment variable; did you mean "NIGHTKEEP_AGENT"?',
        f'NIGHTKEEP_LIMITS_IDLE: {DURATION}, not "***"',
        "NIGHTKEEP_ZZZ: unknown environment variable",
        f"--limits-push: {DURATION}, not 0",
    ]


def test_a_place_that_names_the_key_is_enough() -> None:
    environment = {"NIGHTKEEP_RESCUE_MAX_SIZE": "x", "NIGHTKEEP_TRUSTED_REPOSITORIES": "a/b c"}
    size, repository, agent = problems(None, None, environment, {"agent": "one && two"})
    assert size.startswith("NIGHTKEEP_RESCUE_MAX_SIZE: must be a size: ")
    assert repository.startswith("NIGHTKEEP_TRUSTED_REPOSITORIES: entry 2 must be OWNER/NAME")
    assert agent.startswith("--agent: is run without a shell; for && write ")


def test_labels_that_become_equal_by_two_sources() -> None:
    assert problems("labels: {ready: x}", "labels: {in-progress: x}") == [f'{USER_FILE}:1: {DIFFER} "x"']


def test_labels_that_are_equal_only_with_a_default() -> None:
    labels = load("labels: {ready: in-progress}", "labels: {in-progress: busy}").settings.labels
    assert (labels.ready, labels.in_progress) == ("in-progress", "busy")


def test_file_of_a_repository_that_is_not_trusted() -> None:
    loaded = load("agent: x\nnonsense: [", trusted=False)
    assert loaded.settings.agent is None
    assert "; ".join(loaded.notices) == (
        f"{REPOSITORY_FILE} is ignored, because this machine does not trust octo/tools; "
        f'to use it, add "octo/tools" to trusted-repositories in {USER_FILE}, '
        "as in: trusted-repositories: [octo/tools]"
    )
    assert loaded.trust == "", "a file that cannot be read names no agent"


def test_the_line_that_trusts_keeps_who_is_trusted() -> None:
    loaded = load("agent: x", "trusted-repositories: ['ghe.example:8443/a/b']", trusted=False)
    assert loaded.trust.endswith('as in: trusted-repositories: ["ghe.example:8443/a/b", octo/tools]')
    assert load("agent: null\nsetup: x", trusted=False).trust == ""


@pytest.mark.parametrize(
    ("user", "flag", "expected"), [(None, None, True), ("agent: y", None, False), (None, "./y", False)]
)
def test_who_named_the_agent(user: str | None, flag: str | None, *, expected: bool) -> None:
    assert load("agent: ./x", user, {}, {"agent": flag}).agent_is_repositorys is expected


@pytest.mark.parametrize(
    ("repository", "host", "trusted", "expected"),
    [
        ("octo/tools", "github.com", ["octo/tools"], True),
        ("Octo/Tools", "GitHub.com", ["a/b", "OCTO/tools"], True),
        ("octo/tools", "github.com", ["github.com/octo/tools"], True),
        ("octo/tools", "ghe.example", ["GHE.example/octo/tools"], True),
        ("octo/tools", "127.0.0.1:8080", ["127.0.0.1:8080/octo/tools"], True),
        ("octo/tools", "ghe.example", ["octo/tools"], False),
        ("octo/tools", "github.com", ["ghe.example/octo/tools"], False),
        ("octo/tools", "127.0.0.1:8080", ["127.0.0.1:8081/octo/tools"], False),
        ("octo/tools2", "github.com", ["octo/tools"], False),
        ("octo/tools", "github.com", [], False),
    ],
)
def test_trust(repository: str, host: str, trusted: list[str], *, expected: bool) -> None:
    assert is_trusted(repository, host, trusted) is expected


def test_rows_for_people() -> None:
    token = "ghp_" + "a1B2" * 9
    rows = show(
        load(
            "limits: {session: 5400, idle: 0.5, file: 1500, output: 3GB}\nprompt: |\n  one\n  two\n",
            f"agent: env OPENAI_API_KEY='x y' bot --auth-token abc --model m {token} https://me:pw@host/\n",
            {"NIGHTKEEP_TRUSTED_REPOSITORIES": "a/b c/d"},
            {"token-file": Path("/t")},
        ),
        Redactor(["my-own-secret"]),
    )
    assert [key for key, _, _ in rows] == [".".join(map(str, path)) for path in keys()]
    values = {key: (value, origin) for key, value, origin in rows}
    assert values["agent"] == (
        "env OPENAI_API_KEY=*** bot --auth-token *** --model m *** https://***@host/",
        f"{USER_FILE}:1",
    )
    assert values["prompt"] == ('"one\\ntwo\\n"', f"{REPOSITORY_FILE}:2")
    assert values["setup"] == ("null", "default")
    shown = {key: value for key, (value, _) in values.items()}
    assert (shown["limits.session"], shown["limits.idle"], shown["limits.push"]) == ("90m", "0.5s", "5m")
    assert (shown["limits.file"], shown["limits.output"]) == ("1500B", "3GB")
    assert (shown["trusted-repositories"], shown["token-file"]) == ("[a/b, c/d]", "/t")
    assert all("\n" not in value for value in shown.values())


def test_schema_file_is_fresh() -> None:
    remedy = "write it anew: python -m runner.settings > docs/nightkeep.schema.json"
    assert SCHEMA.read_text(encoding="utf-8") == json.dumps(settings_schema(), indent=2) + "\n", remedy


def test_schema_describes_every_key() -> None:
    described = dict(properties(settings_schema()))
    assert set(described) >= {".".join(map(str, path)) for path in keys()}
    for path, key in keys().items():
        described_key = described[".".join(map(str, path))]
        assert described_key["x-nightkeep-scope"] == key.scope
        assert described_key["title"] == path[-1]
        assert described_key["description"].endswith(".")
    assert described["limits.session"]["default"] == "2h"
    assert described["failed-run.pull-request"]["enum"] == ["draft", "none"]
    machine = {path[0] for path, key in keys().items() if key.scope == "machine"}
    assert machine == {"logs", "worktrees", "token-file", "token-command", "trusted-repositories", "limits", "rescue"}


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every key of the schema, dotted; every object on the way must refuse unknown keys."""

    def below(part: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        assert (part["type"], part["additionalProperties"]) == ("object", False)
        for key, value in part["properties"].items():
            yield name + key, value
            if "$ref" in value:
                yield from below(schema["$defs"][value["$ref"].rpartition("/")[2]], f"{name}{key}.")

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    return below(schema, "")


@pytest.mark.parametrize("make", [str, lambda text: f"limits:\n  session: {text}", lambda text: f'agent: "{text}"'])
@hypothesis_settings(deadline=None, max_examples=60)
@given(text=st.text(alphabet=st.characters() | st.sampled_from("\t\n :-[]{}'\"\\&*!|>#%@U0")))
def test_reading_a_file_never_raises(make: Callable[[str], str], text: str) -> None:
    read_document(make(text))
