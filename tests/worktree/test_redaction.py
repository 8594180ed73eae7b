"""Secrets are masked in every form in which they turn up, and ordinary words are not."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worktree import Redactor, secrets_in

SECRET = 'p&ss "wörd"/+1'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET, safe=""),
        json.dumps(SECRET),
        base64.b64encode(f"x-access-token:{SECRET}".encode()).decode(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"a" + SECRET.encode() + b"bc").decode(),
        base64.b64encode(b"ab" + SECRET.encode() + b"c").decode(),
    ],
)
def test_a_known_secret_is_masked_in_each_form(form: str) -> None:
    masked = Redactor([SECRET])(f"before {form} after")
    assert "***" in masked
    assert form.strip('"') not in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


def test_a_secret_of_several_lines_is_masked_line_by_line() -> None:
    masked = Redactor(["first-line\nsecond-line"])("x first-line y\nz second-line")
    assert masked == "x *** y\nz ***"


@pytest.mark.parametrize("short", ["", " ", "x", "1234567", "\n\n"])
def test_short_values_mask_nothing(short: str) -> None:
    assert Redactor([short])("1234567 x words\n\nmore") == "1234567 x words\n\nmore"


def test_a_secret_inside_another_does_not_uncover_the_rest() -> None:
    assert Redactor(["abcdefgh", "abcdefghijkl"])("abcdefghijkl abcdefgh") == "*** ***"


@pytest.mark.parametrize(
    "shape",
    [
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "ghs_0123456789abcdefghijABCDEFGHIJ012345",
        "github_pat_0123456789abcdefghij_ABCDEFGHIJ",
        "sk-ant-api03-0123456789abcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
        "xoxb-1234567890-abcdef",
        "AIza" + "a" * 35,
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\ncut off",
    ],
)
def test_well_known_shapes_are_masked_without_being_told(shape: str) -> None:
    masked = Redactor()(f"a {shape}")
    assert masked == "a ***"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://me:pa55@host/x.git", "https://***@host/x.git"),
        ("https://:pa55@host/x.git", "https://***@host/x.git"),
        ("AUTHORIZATION: basic abc==", "AUTHORIZATION: ***"),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ("https://host:8080/x@y", "https://host:8080/x@y"),
        ("git@host:owner/repository.git", "git@host:owner/repository.git"),
        ("a plain sentence: nothing", "a plain sentence: nothing"),
        ("skill sk-short ghp_short", "skill sk-short ghp_short"),
    ],
)
def test_credentials_in_urls_and_headers(text: str, masked: str) -> None:
    assert Redactor()(text) == masked


def test_secrets_are_known_by_their_names() -> None:
    environment = {
        "GH_TOKEN": "a",
        "MY_API_KEY": "b",
        "db_password": "c",
        "PATH": "/bin",
        "EMPTY_TOKEN": "",
        "LANG": "C",
    }
    assert sorted(secrets_in(environment)) == ["a", "b", "c"]


@given(st.text(min_size=8).filter(lambda text: len(text.strip()) >= 8), st.text(), st.text())
def test_no_secret_comes_through(secret: str, before: str, after: str) -> None:
    assert secret not in Redactor([secret])(f"{before}{secret}{after}") or secret in "***"


@given(st.text())
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = Redactor(["known-secret"])(text)
    assert Redactor(["known-secret"])(once) == once


@pytest.mark.parametrize("secret", ["wJalrXUtnFEMI/K7MDENG/bPx", "caf\u00e9/K7MDENG"])
def test_a_slash_may_be_escaped_in_json(secret: str) -> None:
    """As PHP does, and what was written so may be a string of another document."""
    inner = json.dumps(secret).replace("/", "\\/")
    assert Redactor([secret])(f"{inner} {json.dumps(inner)}") == '"***" "\\"***\\""'
