"""The way from raw output to Session log, without an agent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.spool import Follower
from worktree import Redactor

SECRET = "correct-horse-battery"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def follow(tmp_path: Path) -> Callable[..., Follower]:
    """Return a function that follows a spool written in the given pieces to its end."""

    def follow(*pieces: bytes, cap: int = 10_000_000) -> Follower:
        spool = tmp_path / "raw"
        spool.touch()
        follower = Follower(spool, tmp_path / "log", redact=Redactor([SECRET]), progress=lambda _: None, cap=cap)
        with follower, spool.open("ab", buffering=0) as raw:
            for piece in pieces:
                raw.write(piece)
                while follower.follow():
                    pass
            follower.finish(lambda: 10)
        assert follower.complete
        return follower

    return follow


def test_character_in_two_reads(follow: Callable[..., Follower]) -> None:
    assert follow(b"caf\xc3", b"\xa9\n\xff\n").log.read_text() == "café\n\ufffd\n"


def test_private_key_in_two_reads(follow: Callable[..., Follower]) -> None:
    text = follow(
        b"a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n", b"EOW\n-----END RSA PRIVATE KEY-----\nb\n"
    ).log.read_text()
    assert text == "a\n***\nb\n"


def test_unfinished_private_key(follow: Callable[..., Follower]) -> None:
    assert follow(b"a\n-----BEGIN PRIVATE KEY-----\nMII\n").log.read_text() == "a\n***\n"


def test_private_key_with_the_end_of_something_else_in_it(follow: Callable[..., Follower]) -> None:
    begun = b"a\n-----BEGIN PRIVATE KEY-----\n-----END CERTIFICATE-----\nMII\n"
    assert follow(begun, b"EOW\n-----END PRIVATE KEY-----\nb\n").log.read_text() == "a\n***\nb\n"


@pytest.mark.timeout(10)
def test_many_private_keys_take_no_time(follow: Callable[..., Follower]) -> None:
    key = b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"
    assert follow(key * 18_000, key).log.read_text() == "***\n" * 18_001


@pytest.mark.parametrize("secret", [SECRET, TOKEN])
@pytest.mark.parametrize("shift", range(0, 60, 7))
def test_endless_line_with_a_secret_where_it_is_cut(follow: Callable[..., Follower], secret: str, shift: int) -> None:
    whole = 1 << 20
    cut = whole + 1000 - (1 << 14)  # where the follower cuts first
    line = "." * (cut - shift) + secret + "." * (whole + 1000 - cut + shift - len(secret))
    log = follow(line[:whole].encode(), line[whole:].encode() + b"tail").log.read_text()
    assert log == line.replace(secret, "***") + "tail"


def test_empty_lines_are_taken_over_a_moments_worth_at_a_time(tmp_path: Path) -> None:
    """Whoever follows an agent is to hear a signal in between."""
    (tmp_path / "raw").write_bytes(b"\n" * (1 << 20))
    lines: list[str] = []
    with Follower(tmp_path / "raw", tmp_path / "log", redact=str, progress=lines.append, cap=1 << 21) as follower:
        follower.follow()
        assert 0 < len(lines) <= 1 << 17
        follower.finish(lambda: 60)
    assert (len(lines), follower.complete) == (1 << 20, True)


def test_secret_with_a_colour_in_it(follow: Callable[..., Follower]) -> None:
    text = follow(f"token {TOKEN[:9]}\x1b[1m{TOKEN[9:]}\x1b[0m!\n".encode()).log.read_text()
    assert text == "token ***!\n"


def test_output_beyond_the_cap_is_left_out(follow: Callable[..., Follower]) -> None:
    text = follow(f"one\ntwo {SECRET}\nthree\n".encode(), cap=len("one\ntwo ") + 5).log.read_text()
    assert text == "one\n[the output beyond the limit was left out]\n"


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("", ""),
        ("one\n\ntwo  \nthree\n \n\n", "two\nthree"),
        ("one\n\n" + "x" * 5000, "x" * 4000),
        ("10%\r20%\r\n", "10% 20%"),
    ],
)
def test_final_text(follow: Callable[..., Follower], output: str, text: str) -> None:
    assert follow(output.encode()).final_text() == text
