"""The journal: what is about to be done is on the disk before it is done."""

import json
import stat
from pathlib import Path

import pytest

from tests.worktree.shortage import largest_file
from worktree import Journal, Redactor, read_journal

SECRET = "canary-0123456789"


def test_each_entry_is_there_at_once_private_and_redacted(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "acme" / "7-journal.jsonl"
    journal = Journal(file, redact=Redactor([SECRET]))
    journal.enter("claim", issue="https://github.com/acme/widget/issues/7", continued=False)
    assert [entry["step"] for entry in read_journal(file)] == ["claim"]
    journal.enter("preserve", cause=f"agent said {SECRET}", stage=None)
    assert read_journal(file)[1].items() >= {"step": "preserve", "cause": "agent said ***", "stage": None}.items()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]


def test_another_commands_journal_is_left_alone(tmp_path: Path) -> None:
    one, two = Journal(tmp_path / "j.jsonl"), Journal(tmp_path / "j.jsonl")
    one.enter("claim", issue="1")
    two.enter("claim", issue="2")
    one.enter("end")
    assert [entry["step"] for entry in read_journal(tmp_path / "j.jsonl")] == ["claim", "end"]
    assert [entry["issue"] for entry in read_journal(tmp_path / "j-2.jsonl")] == ["2"]
    two.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["j.jsonl"]


def test_an_entry_that_a_kill_cut_short_is_none(tmp_path: Path) -> None:
    file = tmp_path / "j.jsonl"
    file.write_text(json.dumps({"step": "claim"}) + "\n" + '{"step": "pu')
    assert read_journal(file) == [{"step": "claim"}]


def test_a_place_that_cannot_be_written_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    said: list[str] = []
    journal = Journal(tmp_path / "logs" / "j.jsonl", report=said.append)
    journal.enter("claim")
    journal.enter("push")
    assert len(said) == 1
    assert "the work goes on without it" in said[0]
    with pytest.raises(OSError, match="Not a directory"):
        read_journal(tmp_path / "logs" / "j.jsonl")


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    journal = Journal()
    journal.enter("claim")
    journal.discard()
    assert not list(tmp_path.iterdir())


def test_whoever_goes_on_with_a_journal_does_not_write_behind_an_entry_that_was_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "j.jsonl"
    file.write_text(json.dumps({"step": "claim"}) + "\n" + '{"step": "pu')
    journal = Journal.reopen(file)
    assert journal is not None
    journal.enter("preserve")
    assert [entry["step"] for entry in read_journal(file)] == ["claim", "preserve"]


def test_a_full_disk_cuts_no_entry_short_and_what_it_kept_out_comes_with_the_next(tmp_path: Path) -> None:
    file, said = tmp_path / "j.jsonl", list[str]()
    journal = Journal(file, report=said.append)
    journal.enter("claim")
    with largest_file(file.stat().st_size + 10):
        journal.enter("worktree")
        journal.enter("begun", run="r")
        assert [entry["step"] for entry in read_journal(file)] == ["claim"]
        assert Journal.reopen(file) is None, "a Run that is at work is taken for dead"
    journal.enter("session")
    assert [entry["step"] for entry in read_journal(file)] == ["claim", "worktree", "begun", "session"]
    assert len(said) == 1


def test_a_journal_for_which_there_was_no_room_begins_when_there_is(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl")
    with largest_file(0):
        journal.enter("claim")
    journal.enter("worktree")
    assert [entry["step"] for entry in read_journal(tmp_path / "j.jsonl")] == ["claim", "worktree"]
