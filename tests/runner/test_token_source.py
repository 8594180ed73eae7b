"""Where a token comes from, once an agent may have changed what is there."""

import os
from pathlib import Path

import pytest

from runner.token_source import LearningRedactor, TokenError, TokenSource, token_by_command, token_in_file


def source(file: Path, said: list[str]) -> TokenSource:
    return TokenSource(token_in_file(file), learn=lambda _: None, report=said.append)


def test_a_file_is_read_anew(tmp_path: Path) -> None:
    file, said = tmp_path / "token", list[str]()
    file.write_text("first-token\n")
    token = source(file, said)
    file.write_text("second-token\n")
    assert (token.token, token.recent(), token.token) == ("first-token", "second-token", "second-token")
    assert said == []


@pytest.mark.parametrize("trouble", ["fifo", "directory", "gone", "empty", "device"])
def test_what_an_agent_put_in_the_files_place_is_not_waited_for(tmp_path: Path, trouble: str) -> None:
    file, said = tmp_path / "token", list[str]()
    file.write_text("first-token")
    token = source(file, said)
    file.unlink()
    match trouble:
        case "fifo":
            os.mkfifo(file)
        case "directory":
            file.mkdir()
        case "empty":
            file.touch()
        case "device":
            file.symlink_to("/dev/zero")
    assert [token.renew(), token.recent(), token.token] == [None, None, "first-token"]
    assert len(said) == 1, "the same trouble is said once"


def test_a_pipe_gives_its_token_at_the_start(tmp_path: Path) -> None:
    receiving, sending = os.pipe()
    os.write(sending, b"piped-token\n")
    os.close(sending)
    try:
        token = source(Path(f"/dev/fd/{receiving}"), [])
        assert (token.token, token.renew()) == ("piped-token", None)
    finally:
        os.close(receiving)


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("first-token")
    (tmp_path / "token").symlink_to("real")
    assert source(tmp_path / "token", []).renew() == "first-token"


def test_a_command_is_run_again_for_a_token_that_was_refused(tmp_path: Path) -> None:
    counter = tmp_path / "asked"
    place = token_by_command(["sh", "-c", f"echo x >> {counter}; echo token-$(wc -l < {counter})"], 10)
    token = TokenSource(place, learn=lambda _: None)
    assert (token.recent(), token.renew(), token.recent()) == ("token-1", "token-2", "token-2")


def test_a_command_that_closes_its_output_and_stays(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="gave no answer within 1 seconds"):
        TokenSource(token_by_command(["sh", "-c", "exec >&-; sleep 30"], 1), learn=lambda _: None)


def test_each_token_is_masked_before_anybody_has_it(tmp_path: Path) -> None:
    file, redact = tmp_path / "token", LearningRedactor(["another-secret"])
    file.write_text("first-token")
    token = TokenSource(token_in_file(file), learn=redact.learn)
    file.write_text("second-token")
    token.renew()
    assert redact("another-secret first-token second-token third-token") == "*** *** *** third-token"
