"""Nothing that holds a secret goes unseen, ordinary work does, and no answer tells the secret."""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worktree.runs import create, gone, names_on_origin, origin_has, reasons, stored
from tests.world import World, commit, git
from worktree.errors import GitError
from worktree.git import Git, Limits
from worktree.interruption import Interruption
from worktree.redaction import Redactor
from worktree.scanner import KNOWN, NOT_IN_TIME, Scanner, _expression, _rules
from worktree.screening import TOO_LARGE, screen_commits, screen_files, shown

SECRET = 'p&ss "wörd"/+1'
REDACT = Redactor([SECRET])

# Put together here, so that nobody who screens this repository takes them for real ones.
LETTERS = "q7Zt2Lw9Xc4Vb8Nm3Kj6Hg5Fd1Sa0PoIuYtReW" + "k2M8x"
GITHUB = "gh" + "p_" + LETTERS[:36]
AMAZON = "AK" + "IA" + "Q3EGUVXJYT5B7ZK2"
SLACK = "xo" + "xb-" + "123456789012-123456789012-" + LETTERS[:24]
GOOGLE = "AI" + "za" + "Sy" + LETTERS[:33]
STRIPE = "sk" + "_live_" + LETTERS[:24]
ANTHROPIC = "sk-ant-" + "api03-" + (LETTERS * 3)[:93] + "AA"
PRIVATE = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXk\n" * 8 + "-----END OPENSSH PRIVATE KEY-----"

FORMS = [
    SECRET,
    quote(SECRET, safe=""),
    json.dumps(SECRET),
    json.dumps(json.dumps(SECRET)),
    base64.b64encode(f"x-access-token:{SECRET}".encode()).decode(),
    base64.b64encode(b"ab" + SECRET.encode() + b"c").decode(),
]


def screened(top: Path, paths: Collection[str], redact: Redactor, limit: int = Limits().file) -> dict[str, str]:
    """Screen files that no commit has yet."""
    return screen_files(Git(directory=top, redact=redact, limits=Limits(file=limit)), top, paths)


def put(top: Path, path: str, content: str | bytes) -> str:
    """Write a file and return its path."""
    (top / path).parent.mkdir(parents=True, exist_ok=True)
    (top / path).write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("token", "rule"),
    [
        (GITHUB, "github-pat"),
        (AMAZON, "aws-access-token"),
        (SLACK, "slack-bot-token"),
        (GOOGLE, "gcp-api-key"),
        (STRIPE, "stripe-access-token"),
        (ANTHROPIC, "anthropic-api-key"),
        (PRIVATE, "private-key"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_token_is_found_by_its_shape(tmp_path: Path, token: str, rule: str, encoding: str) -> None:
    path = put(tmp_path, "settings.py", f"first\nkey = '{token}'\nlast\n".encode(encoding))
    assert screened(tmp_path, [path], Redactor()) == {path: rule}


def test_a_token_is_found_between_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = put(tmp_path, "program", bytes(range(256)) * 40 + b"\xff" + GITHUB.encode() + b"\0\xfe\x80")
    assert screened(tmp_path, [path], Redactor()) == {path: "github-pat"}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", "api_key = '" + LETTERS + "'"),
        ("a.py", "token = 'gh" + "p_" + "x" * 36 + "'"),
        ("a.py", "key = 'AK" + "IA" + "IOSFODNN7EXAMPLE'"),
        ("README.md", "curl -u me:secret-word -H 'Authorization: Bearer any-token' http://127.0.0.1/"),
        ("ci.yml", "# sourcegraph\nuses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd\n"),
        ("main.tf", 'password = "changeme1"'),
        ("a.py", f"token = '{GITHUB}'  # gitleaks:allow"),
        ("package-lock.json", GITHUB),
        ("logo.svg", GITHUB),
        ("a.txt", "skill, task, kiss: nothing"),
        ("empty", ""),
    ],
)
def test_ordinary_work_is_not_held_up(tmp_path: Path, path: str, content: str) -> None:
    assert screened(tmp_path, [put(tmp_path, path, content)], Redactor(["another-secret"])) == {}


def test_a_word_that_allows_one_line_allows_no_other(tmp_path: Path) -> None:
    path = put(tmp_path, "a.py", f"a = '{GITHUB}'  # gitleaks:allow\nb = '{GITHUB[:-1]}0'\n")
    assert screened(tmp_path, [path], Redactor()) == {path: "github-pat"}


def test_a_rule_for_one_kind_of_file_counts_there_alone(tmp_path: Path) -> None:
    manifest = "kind: Secret\ndata:\n  password: " + base64.b64encode(LETTERS.encode()).decode() + "\n"
    paths = [put(tmp_path, name, manifest) for name in ("secret.yaml", "secret.txt", "store.p12")]
    found = screened(tmp_path, paths, Redactor())
    assert found == {"secret.yaml": "kubernetes-secret-yaml", "store.p12": "pkcs12-file"}


def test_a_rule_says_which_part_of_a_match_is_the_secret(tmp_path: Path) -> None:
    """In the place of the secret stands a word that is none; another part of the match would count."""
    real, none = (
        f"sonar_{'login'} = '{value}'" for value in (LETTERS.lower()[:40], "abcdefghijklmnopqrstuvwxyz01234567890123")
    )
    paths = [put(tmp_path, "real", real), put(tmp_path, "none", none)]
    assert screened(tmp_path, paths, Redactor()) == {"real": "sonar-api-token"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", ["a.py", "package-lock.json", "logo.png", "node_modules/a/b.js"])
def test_a_known_value_is_found_in_each_form_in_any_file(tmp_path: Path, form: str, path: str) -> None:
    put(tmp_path, path, b"\xff\0\xfe" + form.encode() + b"\x80 gitleaks:allow\n")
    assert screened(tmp_path, [path], REDACT) == {path: KNOWN}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_known_value_is_found_in_wide_characters(tmp_path: Path, encoding: str) -> None:
    path = put(tmp_path, "a.txt", f"set TOKEN={LETTERS}\r\n".encode(encoding))
    assert screened(tmp_path, [path], Redactor([LETTERS])) == {path: KNOWN}


def test_one_of_very_many_known_values_is_found(tmp_path: Path) -> None:
    values = [f"value-number-{number}-{LETTERS}" for number in range(1000)]
    paths = [put(tmp_path, f"{number}.txt", f"x{values[number]}x") for number in (0, 500, 999)]
    assert screened(tmp_path, [*paths, put(tmp_path, "a", "nothing")], Redactor(values)) == dict.fromkeys(paths, KNOWN)


@pytest.mark.parametrize("name", [f"key-{GITHUB}.txt", f"{GITHUB}/a.txt", "dir/" + quote(SECRET, safe="")])
def test_a_name_is_screened_and_shown_without_the_secret(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name, "nothing")
    assert list(screened(tmp_path, [path], REDACT)) == [path]
    assert GITHUB not in shown(path, REDACT)
    assert quote(SECRET, safe="") not in shown(path, REDACT)
    assert "***" in shown(path, REDACT)


def test_a_known_value_that_is_a_whole_path_is_not_shown() -> None:
    assert shown("top/first-half/second-half", Redactor(["first-half/second-half"])) == "***"
    assert shown("src/ordinary name.py", Redactor(["first-half/second-half"])) == "src/ordinary name.py"


def test_of_a_link_its_text_is_screened_and_never_what_it_points_to(tmp_path: Path) -> None:
    put(tmp_path, "outside", GITHUB)
    top = tmp_path / "top"
    top.mkdir()
    (top / "innocent").symlink_to(tmp_path / "outside")
    (top / "telling").symlink_to(f"/nowhere/{GITHUB}")
    assert screened(top, ["innocent", "telling"], Redactor()) == {"telling": "github-pat"}


def test_what_cannot_be_staged_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "nested").mkdir()
    closed = put(tmp_path, "closed", GITHUB)
    (tmp_path / closed).chmod(0)
    paths = ["fifo", "nested/", "missing", "missing/below", *([closed] if os.geteuid() else [])]
    assert screened(tmp_path, paths, Redactor()) == {}


@pytest.mark.parametrize("name", ["two\nlines", "-r", "a b", " ", "'\"$(x)", ":(top)x", os.fsdecode(b"caf\xe9")])
def test_odd_names(world: World, name: str) -> None:
    path = put(world.launch, f"{name}/{name}", GITHUB)
    assert screened(world.launch, [path], Redactor()) == {path: "github-pat"}
    head = commit(world.launch, "odd")
    assert screen_commits(Git(directory=world.launch), [head], ["origin/main"]) == {path: "github-pat"}
    put(world.launch, path, f"edited\n{GITHUB}")
    assert screen_files(Git(directory=world.launch), world.launch, [path], head) == {}
    edited = commit(world.launch, "edited")
    assert screen_commits(Git(directory=world.launch), [edited], [head], head) == {}


MANIFEST = "kind: Secret\ndata:\n  user: bmlnaHRrZWVwZXI=\n"
JWT = "ZXlKaGJHY2lPaU" + "JIUzI1NiIsInR5cCI6IkpXVCJ9" + LETTERS


@pytest.mark.parametrize(
    ("path", "old", "new", "rule"),
    [
        ("a.py", f"a = '{GITHUB}'\n", f"edited\na = '{GITHUB}'\n", None),
        ("a.py", f"a = '{GITHUB}'\n", f"{{'b': \"{GITHUB}\"}}, {GITHUB}", None),
        ("a.py", f"{GITHUB}\n{AMAZON}\n", f"{AMAZON}\n{GITHUB}\n", None),
        ("a.py", f"{PRIVATE}\n", f"key = '{PRIVATE}'\n", None),
        ("a.py", f"a = '{GITHUB}'\n".encode("utf-16"), f"edited\na = '{GITHUB}'\n".encode("utf-16-le"), None),
        ("a.yaml", f"a: {GITHUB}\n", f"b: {GITHUB}\n", None),
        (f"{GITHUB}/a.py", "old\n", "new\n", None),
        ("a.py", "old\n", f"a = '{GITHUB}'\n", "github-pat"),
        ("a.py", f"a = '{GITHUB}'\n", f"a = '{GITHUB}'\nb = '{GITHUB[:-1]}0'\n", "github-pat"),
        ("a.py", f"a = '{GITHUB}'\n", f"a = '{GITHUB}'\nb = '{AMAZON}'\n", "aws-access-token"),
        ("a.py", f"a = '{GITHUB[:-1]}'\n", f"a = '{GITHUB}'\n", "github-pat"),
        ("a.py", f"{PRIVATE}\n", PRIVATE.replace("rZXlr", "rZXls").replace("b3Bl", "b3Bm", 1), "private-key"),
        ("a.py", f"a = '{JWT}'\n", f"b = '{JWT}'\n", None),
        ("a.py", f"a = '{JWT}'\n", f"a = '{JWT}new'\n", "jwt-base64"),
        ("a.yaml", MANIFEST, f"{MANIFEST}  password: {LETTERS[:20]}\n", "kubernetes-secret-yaml"),
        ("a.p12", "old", "new", "pkcs12-file"),
        ("a.py", f"a = '{SECRET}'\n", f"edited\na = '{SECRET}'\n", KNOWN),
        (quote(SECRET, safe=""), "old\n", "new\n", KNOWN),
    ],
)
def test_a_token_that_origin_has_in_the_same_file_does_not_count_again(
    world: World, path: str, old: str | bytes, new: str | bytes, rule: str | None
) -> None:
    before = commit_file(world, path, old)
    put(world.launch, path, new)
    expected = {path: rule} if rule else {}
    here = Git(directory=world.launch, redact=REDACT)
    assert screen_files(here, world.launch, [path], before) == expected
    head = commit(world.launch, "edited")
    shown_as = {shown(name, REDACT): rule for name, rule in expected.items()}
    assert screen_commits(here, [head], [before], before) == shown_as


def test_a_token_counts_in_any_other_file(world: World) -> None:
    before = commit_file(world, "a.py", GITHUB)
    (world.launch / "a.py").rename(world.launch / "b.py")
    put(world.launch, "b.py", f"edited\n{GITHUB}")
    put(world.launch, "sub/a.py", f"edited\n{GITHUB}")
    paths = ["a.py", "b.py", "sub/a.py"]
    expected = {"b.py": "github-pat", "sub/a.py": "github-pat"}
    here = Git(directory=world.launch)
    assert screen_files(here, world.launch, paths, before) == expected
    assert screen_commits(here, [commit(world.launch, "moved")], [before], before) == expected


def test_an_old_version_over_the_limit_excuses_nothing(world: World) -> None:
    before = commit_file(world, "a.py", f"{GITHUB}\n" + "nothing\n" * 1000)
    put(world.launch, "a.py", GITHUB)
    small = Git(directory=world.launch, limits=Limits(file=5000))
    assert screen_files(small, world.launch, ["a.py"], before) == {"a.py": "github-pat"}
    head = commit(world.launch, "edited")
    assert screen_commits(small, [head], [before], before) == {"a.py": "github-pat"}


def test_a_failed_run_pushes_edits_beside_an_old_token_and_not_a_new_one(world: World) -> None:
    for name in ("more.py", "old.py"):
        commit_file(world, name, f"a = '{GITHUB}'\n")
    git(world.launch, "push", "-q", "origin", "main")
    with create(world) as wt:
        put(wt.path, "old.py", f"edited\na = '{GITHUB}'\n")
        added = put(wt.path, "more.py", f"edited\na = '{GITHUB}'\nb = '{AMAZON}'\n")
        copied = put(wt.path, "copy.py", f"copied\na = '{GITHUB}'\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert world.origin_file("issue-7", "old.py") == f"edited\na = '{GITHUB}'"
    assert world.origin_file("issue-7", "more.py") == f"a = '{GITHUB}'"
    assert copied not in names_on_origin(world, "issue-7")
    assert reasons(world, wt).keys() == {added, copied}
    for path, rule in ((added, "aws-access-token"), (copied, "github-pat")):
        assert ("left out of the commit", f"{path}: looks like a secret ({rule})") in wt.ending.places
        assert not origin_has(world, (stored(world, wt) / path).read_bytes())


@pytest.mark.timeout(60)
def test_of_very_many_old_tokens_a_new_one_is_told(world: World) -> None:
    tokens = [f"{GITHUB[:-5]}{number:05}\n" for number in range(50_000)]
    before = commit_file(world, "a.txt", "".join(tokens))
    here = Git(directory=world.launch)
    put(world.launch, "a.txt", "".join(reversed(tokens)))
    assert screen_files(here, world.launch, ["a.txt"], before) == {}
    put(world.launch, "a.txt", "".join([*tokens, GITHUB]))
    assert screen_files(here, world.launch, ["a.txt"], before) == {"a.txt": "github-pat"}


def test_an_answer_of_git_that_somebody_else_has_read_is_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (world.launch / "n.txt").write_text("harmless, as far as it goes\n" * 100)
    made = commit(world.launch, "n")
    program, real = tmp_path / "programs" / "git", shutil.which("git")
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *"cat-file --batch "*) {real} "$@" | head -c 300;; *) {real} "$@";; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(GitError, match="its answer is cut short"):
        screen_commits(Git(directory=world.launch), [made], [])


def test_with_nothing_found_git_is_not_asked_for_what_was_before(world: World) -> None:
    """That commit is not even there."""
    nowhere = "0" * 39 + "1"
    here = Git(directory=world.launch)
    head = commit_file(world, "c.txt", "nothing")
    assert screen_files(here, world.launch, ["c.txt"], nowhere) == {}
    assert screen_commits(here, [head], ["origin/main"], nowhere) == {}


def test_a_large_file_is_screened_to_its_end_and_a_larger_one_is_said_to_be(tmp_path: Path) -> None:
    paths = [put(tmp_path, "large", b"nothing here\n" * 3_000_000 + GITHUB.encode()), put(tmp_path, "small", "x")]
    assert screened(tmp_path, paths, Redactor()) == {"large": "github-pat"}
    assert screened(tmp_path, paths, Redactor(), 39_000_000) == {"large": TOO_LARGE}


def test_a_file_of_countless_look_alikes_is_taken_for_a_secret(tmp_path: Path) -> None:
    few, many = (put(tmp_path, f"{n}.txt", ("gh" + "p_" + "x" * 36 + "\n") * n) for n in (1000, 100_001))
    assert screened(tmp_path, [few, many], Redactor()) == {many: "github-pat"}


def look_alikes(count: int) -> str:
    """Return keys that are examples, each another: it takes more than a tenth of a millisecond to tell one of them."""
    numbers = (f"{(number + 1) * 123456787 % 10**9:09}" for number in range(count))
    words = ("".join("QZTUYKRHGJ"[int(digit)] for digit in number) for number in numbers)
    return "".join(f"key = 'AK{'IA'}{word}EXAMPLE'\n" for word in words)


def seconds_of(scan: Callable[[], object]) -> float:
    """Return for how long this process itself is at work."""
    start = time.process_time()
    scan()
    return time.process_time() - start


def test_a_look_alike_that_is_repeated_is_judged_once() -> None:
    scanner = Scanner(Redactor())
    once, often = look_alikes(20_000).encode(), look_alikes(1).encode() * 20_000
    assert scanner.rule_for(often) is None
    assert seconds_of(lambda: scanner.rule_for(often)) < seconds_of(lambda: scanner.rule_for(once)) / 2


def test_a_look_alike_is_excused_by_its_own_line_alone(tmp_path: Path) -> None:
    path = put(tmp_path, "a.py", f"a = '{GITHUB}'  # gitleaks:allow\nb = '{GITHUB}'\n")
    assert screened(tmp_path, [path], Redactor()) == {path: "github-pat"}


def test_what_is_not_screened_in_time_is_held_back(world: World) -> None:
    slow = put(world.launch, "slow.txt", look_alikes(90_000))
    first, after = (put(world.launch, name, content) for name, content in (("first", GITHUB), ("zz", "nothing")))
    here = Git(directory=world.launch)
    found: dict[str, str] = {}
    paths = [first, slow, after, "missing"]
    assert seconds_of(lambda: found.update(screen_files(here, world.launch, paths, limit=0.5))) < 3
    assert found == {first: "github-pat", slow: NOT_IN_TIME, after: NOT_IN_TIME}
    found.clear()
    head = commit(world.launch, "work")
    assert seconds_of(lambda: found.update(screen_commits(here, [head], ["origin/main"], limit=0.5))) < 3
    assert found == {first: "github-pat", slow: NOT_IN_TIME, after: NOT_IN_TIME}


def test_however_late_it_is_names_are_screened(world: World) -> None:
    head = commit_file(world, f"key-{GITHUB}.txt", "nothing")
    found = screen_commits(Git(directory=world.launch), [head], ["origin/main"], limit=0)
    assert found == {"***": NOT_IN_TIME, f"message of {head}": NOT_IN_TIME}


def test_an_interruption_shortens_the_time(tmp_path: Path) -> None:
    paths = [put(tmp_path, f"{number}.txt", look_alikes(90_000)) for number in range(4)]
    interruption = Interruption()
    interruption.record(signal.SIGTERM)
    here = Git(directory=tmp_path, interruption=interruption).completing()
    found = screen_files(here, tmp_path, paths, limit=1000)
    assert found[paths[-1]] == NOT_IN_TIME


def test_of_known_values_alone_it_can_be_asked(world: World) -> None:
    put(world.launch, "a.txt", f"old {SECRET}")
    before = commit(world.launch, "old")
    paths = [
        put(world.launch, name, content)
        for name, content in (("a.txt", SECRET), ("token", GITHUB), ("large", "x" * 5001), (GITHUB, ""), ("b.p12", ""))
    ]
    named = put(world.launch, quote(SECRET, safe=""), "nothing")
    small = Git(directory=world.launch, redact=REDACT, limits=Limits(file=5000))
    found = screen_files(small, world.launch, [*paths, named], before, known_only=True)
    assert found == {"a.txt": KNOWN, "large": TOO_LARGE, named: KNOWN}
    nothing_known = Git(directory=world.launch)
    assert screen_files(nothing_known, world.launch, [*paths, named], known_only=True) == {}


def test_many_paths_are_shown_at_once() -> None:
    gitlab = "gl" + "pat-" + LETTERS[:20]
    redact = Redactor(["top-half/lower-half", *(f"value-number-{number}" for number in range(100))])
    asked = ["src/top-half/lower-half", f"dir/{gitlab}/a.py", f"dir/{gitlab}.txt", "dir/ordinary name.py"] * 2500
    answers: list[str] = []
    assert seconds_of(lambda: answers.extend(shown(path, redact) for path in asked)) < 10
    assert answers == ["***", "dir/***/a.py", "dir/***", "dir/ordinary name.py"] * 2500


def test_every_rule_of_the_scanner_is_understood() -> None:
    rules = _rules()
    assert len(rules) > 200
    for rule in rules:
        paths = [pattern for allowlist in rule.allowlists for pattern in allowlist.paths]
        regexes = [pattern for allowlist in rule.allowlists for pattern in allowlist.regexes]
        for pattern in filter(None, (rule.pattern, rule.path, *paths, *regexes)):
            assert _expression(pattern).pattern == pattern.encode()


def test_everything_between_is_screened(world: World) -> None:
    """A secret that a later commit took away again is still in what a push would send."""
    put(world.launch, "sub/settings.py", f"key = '{GITHUB}'")
    commit(world.launch, "with it")
    (world.launch / "sub/settings.py").unlink()
    head = commit(world.launch, "without it")
    assert screen_commits(Git(directory=world.launch), [head], ["origin/main"]) == {"sub/settings.py": "github-pat"}


def test_what_origin_has_is_not_screened_again(world: World) -> None:
    put(world.launch, "a.txt", GITHUB)
    published = commit(world.launch, "published")
    head = commit_file(world, "c.txt", "nothing")
    assert screen_commits(Git(directory=world.launch), [head], [published]) == {}
    assert screen_commits(Git(directory=world.launch), [head], ["0" * 39 + "1"]) == {"a.txt": "github-pat"}
    assert screen_commits(Git(directory=world.launch), [published], [head]) == {}
    assert screen_commits(Git(directory=world.launch), [], [published]) == {}
    assert screen_commits(Git(directory=world.launch), [], []) == {}


def commit_file(world: World, path: str, content: str | bytes, message: str = "work") -> str:
    put(world.launch, path, content)
    return commit(world.launch, message)


@pytest.mark.parametrize("secret", [GITHUB, SECRET])
def test_a_message_is_screened(world: World, secret: str) -> None:
    told = commit_file(world, "c.txt", "nothing", f"subject\n\nthe token is {secret}.\n")
    head = commit_file(world, "d.txt", "nothing")
    found = screen_commits(Git(directory=world.launch, redact=REDACT), [head], ["origin/main"])
    assert found == {f"message of {told}": "github-pat" if secret == GITHUB else KNOWN}


@pytest.mark.parametrize("field", ["user.name", "user.email"])
def test_people_are_screened(world: World, field: str) -> None:
    put(world.launch, "c.txt", "nothing")
    git(world.launch, "add", "-A")
    git(world.launch, "-c", f"{field}={GITHUB}", "commit", "-q", "-m", "work")
    head = git(world.launch, "rev-parse", "HEAD")
    assert screen_commits(Git(directory=world.launch), [head], ["origin/main"]) == {f"message of {head}": "github-pat"}


def test_the_ids_in_a_commit_are_no_secrets(world: World) -> None:
    tree = git(world.launch, "rev-parse", "HEAD^{tree}")
    head = commit_file(world, "c.txt", "nothing", "work")
    shapes = Redactor(
        [tree, git(world.launch, "rev-parse", f"{head}^{{tree}}"), git(world.launch, "rev-parse", "HEAD^")]
    )
    assert screen_commits(Git(directory=world.launch, redact=shapes), [head], ["origin/main"]) == {}


@pytest.mark.parametrize("secret", [GITHUB, "top-half/lower-half"])
def test_a_name_given_to_an_old_file_is_screened_and_not_told(world: World, secret: str) -> None:
    (world.launch / "dir" / secret).parent.mkdir(parents=True)
    git(world.launch, "mv", "a.txt", f"dir/{secret}")
    head = commit(world.launch, "renamed")
    found = screen_commits(
        Git(directory=world.launch, redact=Redactor(["top-half/lower-half"])), [head], ["origin/main"]
    )
    assert list(found.values()) == ["github-pat" if secret == GITHUB else KNOWN]
    assert secret not in "".join(found)


def test_a_merge_brings_in_what_both_sides_made(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "other")
    commit_file(world, "other.txt", f"key = {AMAZON}\n")
    git(world.launch, "checkout", "-q", "main")
    commit_file(world, "mine.txt", f"key = {GITHUB}\n")
    git(world.launch, "merge", "-q", "--no-edit", "other")
    found = screen_commits(Git(directory=world.launch), [git(world.launch, "rev-parse", "HEAD")], ["origin/main"])
    assert found == {"other.txt": "aws-access-token", "mine.txt": "github-pat"}


@pytest.mark.parametrize("name", ["package-lock.json", "package-lock.json\nreal.py", "a.svg"])
def test_a_file_at_two_paths_is_judged_by_each(world: World, name: str) -> None:
    """Git names one of them, the first, and it up to its line end; some paths are not screened for tokens."""
    put(world.launch, f"a/{name}", f"key = '{GITHUB}'")
    head = commit_file(world, "z/settings.py", f"key = '{GITHUB}'")
    found = screen_commits(Git(directory=world.launch), [head], ["origin/main"])
    odd = {f"a/{name}": "github-pat"} if "\n" in name else {}
    assert found == {"z/settings.py": "github-pat"} | odd


def test_a_directory_that_is_moved_is_judged_at_each_place(world: World) -> None:
    commit_file(world, "node_modules/a.min.js/b.js", f"key = '{GITHUB}'")
    git(world.launch, "mv", "node_modules", "src")
    head = commit(world.launch, "moved")
    git(world.launch, "mv", "src", "node_modules")
    last = commit(world.launch, "back")
    assert screen_commits(Git(directory=world.launch), [last], ["origin/main"]) == {"src/a.min.js/b.js": "github-pat"}
    assert screen_commits(Git(directory=world.launch), [last], [head]) == {}


def test_what_a_merge_alone_puts_somewhere_is_screened(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "other")
    commit_file(world, "logo.svg", f"key = '{GITHUB}'")
    git(world.launch, "checkout", "-q", "main")
    commit_file(world, "mine.txt", "nothing")
    git(world.launch, "merge", "-q", "--no-edit", "--no-commit", "other")
    put(world.launch, "settings.py", f"key = '{GITHUB}'")
    put(world.launch, f"key-{AMAZON}.txt", "nothing")
    head = commit(world.launch, "merge")
    found = screen_commits(Git(directory=world.launch), [head], ["origin/main"])
    assert found == {"settings.py": "github-pat", "***": "aws-access-token"}


def test_a_name_that_origin_has_does_not_count_again(world: World) -> None:
    published = commit_file(world, f"key-{AMAZON}.txt", "old")
    commit_file(world, f"key-{AMAZON}.txt", "new")
    head = commit_file(world, "beside.txt", "new")
    assert screen_commits(Git(directory=world.launch), [head], [published]) == {}


def test_a_name_that_is_taken_away_does_not_count(world: World) -> None:
    published = commit_file(world, quote(SECRET, safe=""), "old")
    git(world.launch, "rm", "-q", quote(SECRET, safe=""))
    head = commit(world.launch, "removed")
    assert screen_commits(Git(directory=world.launch, redact=REDACT), [head], [published]) == {}


def test_an_empty_directory_has_a_name_too(world: World) -> None:
    """Only plumbing makes one, and git does not list it among files."""
    empty = git(world.launch, "hash-object", "-w", "-t", "tree", "/dev/null")
    tree = subprocess.run(
        ["git", "mktree"],
        cwd=world.launch,
        input=f"040000 tree {empty}\tkey-{AMAZON}\n",
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.strip()
    head = git(world.launch, "commit-tree", tree, "-p", "HEAD", "-m", "empty")
    found = screen_commits(Git(directory=world.launch), [head], ["origin/main"])
    assert list(found.values()) == ["aws-access-token"]


def test_a_link_and_a_program_are_blobs_like_others(world: World) -> None:
    (world.launch / "link").symlink_to(f"/nowhere/{GITHUB}")
    head = commit_file(world, "program", bytes(range(256)) * 10 + SECRET.encode())
    found = screen_commits(Git(directory=world.launch, redact=REDACT), [head], ["origin/main"])
    assert found == {"link": "github-pat", "program": KNOWN}


def test_a_blob_over_the_limit_is_named_and_the_rest_is_screened(world: World) -> None:
    put(world.launch, "large", "nothing\n" * 1000)
    head = commit_file(world, "small", GITHUB)
    small = Git(directory=world.launch, limits=Limits(file=5000))
    assert screen_commits(small, [head], ["origin/main"]) == {"large": TOO_LARGE, "small": "github-pat"}


def test_more_than_is_read_at_once(world: World) -> None:
    for number in range(5):
        put(world.launch, f"{number}.txt", f"{number}\n" * 6_000_000 + GITHUB)
    head = commit(world.launch, "much")
    found = screen_commits(Git(directory=world.launch), [head], ["origin/main"])
    assert found == {f"{number}.txt": "github-pat" for number in range(5)}


def test_what_is_not_there_is_an_error_and_not_clean(world: World) -> None:
    with pytest.raises(GitError):
        screen_commits(Git(directory=world.launch), ["0" * 39 + "1"], ["origin/main"])


@settings(deadline=None)
@given(
    st.text("abcXYZ019-_/+ &%é", min_size=8).filter(lambda text: len(text.strip(" ")) >= 8),
    st.text("abc/ é\n"),
    st.text("abc/ é\n"),
)
def test_no_answer_holds_a_known_value(secret: str, before: str, after: str) -> None:
    scanner = Scanner(Redactor([secret]))
    place = f"{before}{secret}{after}"
    assert scanner.rule_for(place.encode()) == KNOWN
    assert secret not in scanner.shown(place)


@settings(deadline=None)
@given(st.binary(), st.binary())
def test_any_bytes_can_be_screened_and_any_name_be_shown(name: bytes, content: bytes) -> None:
    scanner = Scanner(Redactor())
    assert scanner.rule_for(content, os.fsdecode(name)) is None
    assert scanner.shown(os.fsdecode(name)) == os.fsdecode(name)
