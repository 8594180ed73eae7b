"""The Failure note fits in what GitHub takes and reads well, whatever a log, a cause or a path holds."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from delivery.causes import Stage
from delivery.note import NoteFacts, failure_note, newer_of, note_marker, resolved_note, with_earlier
from delivery.outcome import Outcome, Result
from delivery.text import fenced, tail, visible
from worktree import Preserved

LIMIT = 65_536  # https://github.com/orgs/community/discussions/27190
LONG = 100_000
FACTS = NoteFacts(
    moment=datetime(2026, 1, 2, tzinfo=UTC), host="here", log_text="the end\n", continue_command="nightkeep run URL"
)
OUTCOME = Outcome(
    result=Result.FAILED,
    issue_url="https://x/7",
    base="main",
    branch="issue-7",
    run_id="run-1",
    cause="the agent exited 3",
    stage=Stage.SESSION,
    preserved=Preserved.MACHINE,
    session_log=Path("/logs/7.log"),
    retained="it is in use",
    worktree=Path("/w"),
)


def stuffed(text: str) -> str:
    """Return a note in which everything that others have a say in is `text`."""
    outcome = replace(
        OUTCOME,
        cause=text,
        secondary=(text,) * 30,
        failing=((text, f"https://ci.example/{text}"),) * 30,
        places=((text, text),) * 30,
        retained=text,
        worktree=Path("/", text.replace("\0", "")[:4_000]),
    )
    return failure_note(outcome, replace(FACTS, log_text=text, continue_command=f"nightkeep run URL --agent {text}"))


def blocks(markdown: str) -> list[str]:
    return [
        token.content for token in MarkdownIt("commonmark").enable("table").parse(markdown) if token.type == "fence"
    ]


FILLINGS = {
    "letters": "x" * LONG,
    "lines": "a line\n" * LONG,
    "bytes": "ä💡" * LONG,
    "backticks": "`" * LONG,
    "fences": "```\n" * LONG,
    "mixed": "``` `` ` |\n" * LONG,
    "controls": "\x1b\x00\x9b\u202e" * LONG,
    "quotes": "'\"" * LONG,
}


@pytest.mark.parametrize("text", FILLINGS.values(), ids=FILLINGS.keys())
def test_a_note_fits_whatever_is_long(text: str) -> None:
    note = stuffed(text)
    assert len(note) < LIMIT
    assert note.startswith(f"{note_marker('issue-7')}\n<!-- nightkeep:kept ")
    assert note.endswith("on here, 2026-01-02T00:00:00Z</sub>\n")
    assert note.encode()


@settings(deadline=None)
@given(st.text())
def test_a_note_is_whole_whatever_is_in_it(text: str) -> None:
    note = stuffed(text * 50)
    assert len(note) < LIMIT
    tokens = MarkdownIt("commonmark").enable("table").parse(note)
    first, hidden, *others = [token.content.split("\n")[0] for token in tokens if token.type == "html_block"]
    assert (first, hidden.startswith("<!-- nightkeep:kept ")) == (note_marker("issue-7"), True)
    assert others == [
        "<details><summary>The end of the Session log</summary>",
        "</details>",
    ]
    # A command to continue that is too long is not shown.
    assert len(blocks(note)) == (3 if len(f"nightkeep run URL --agent {text * 50}") <= 10_000 else 2)


def test_a_note_with_little_in_it_is_not_cut() -> None:
    lines = [f"{number:02} " + "y" * 300 for number in range(60)]
    note = failure_note(replace(OUTCOME, cause="c" * 1_990), replace(FACTS, log_text="\n".join(lines)))
    assert "c" * 1_990 in note
    assert blocks(note)[-1].splitlines() == lines


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ci.example/runs/7?check=a#b", "- `te` st`: <https://ci.example/runs/7?check=a#b>"),
        ("https://ci.example/> @all", None),
        ("javascript:alert(1)", None),
        ("", None),
    ],
)
def test_failing_checks_are_linked_where_the_address_is_one(url: str, shown: str | None) -> None:
    note = failure_note(replace(OUTCOME, failing=(("te` st", url),)), FACTS)
    lines = [line.replace("``", "`") for line in note.splitlines() if line.startswith("- `")]
    assert lines == ([shown] if shown else [])


def test_what_is_left_out_of_the_lists_is_counted() -> None:
    note = stuffed("x")
    assert "and 18 more | see the output" in note
    assert "- and 18 more, see the output" in note


@pytest.mark.parametrize(
    ("where", "files", "commands"),
    [
        ("/c/.git/nightkeep/rescue/run-1/work.bundle", None, ["nightkeep rescue show run-1"]),
        ("refs/nightkeep/rescue/run-1/made at 1234 in /c/.git", None, ["nightkeep rescue show run-1"]),
        (
            "build (ignored) in /c/.git/nightkeep/rescue/run-1",
            Path("/c/.git/nightkeep/rescue/run-1"),
            ["nightkeep rescue show run-1", "nightkeep rescue restore run-1 --to DIRECTORY"],
        ),
        ("refs/heads/issue-7 at 1234 on origin", None, []),
    ],
)
def test_whatever_was_rescued_is_shown_by_one_command(where: str, files: Path | None, commands: list[str]) -> None:
    note = failure_note(replace(OUTCOME, places=(("what", where),), rescued=files), FACTS)
    found = [line for block in blocks(note) for line in block.splitlines() if line.startswith("nightkeep rescue ")]
    assert found == commands


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("nightkeep run https://x/7 --agent claude", "in a clone of this repository:"),
        (
            "nightkeep run https://x/7 --agent /bin/agent",
            "in a clone of this repository on here (elsewhere change the paths):",
        ),
        ("nightkeep run https://x/7 --agent '/my agent'", "on here (elsewhere change the paths):"),
        ("nightkeep run https://x/7 --agent 'claude --add ./a/b'", "in a clone of this repository:"),
    ],
)
def test_a_command_with_paths_says_whose_they_are(command: str, said: str) -> None:
    assert said in failure_note(OUTCOME, replace(FACTS, continue_command=command))


def test_no_half_of_a_command_is_shown() -> None:
    note = failure_note(OUTCOME, replace(FACTS, continue_command="rm -r " + "x" * 50_000))
    assert "rm -r" not in note
    assert "the command that was given again" in note


def test_control_characters_are_shown_in_the_log() -> None:
    note = failure_note(
        OUTCOME, replace(FACTS, log_text="bell \a, escape \x1b[31m, null \0, \x9b, \u202eright\r\nnext\r50%")
    )
    assert blocks(note)[-1] == "bell ␇, escape ␛[31m, null ␀, \\x9b, \\u202eright\nnext␍50%\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ä, 日本, 👩\u200d🚀, \u3000", None),
        ("tab\tline\n", None),
        ("\x7f", "␡"),
        ("half \udcff", "half \\udcff"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("line\u2028end", "line\\u2028end"),
    ],
)
def test_what_cannot_be_seen_is_shown(text: str, shown: str | None) -> None:
    assert visible(text) == (text if shown is None else shown)


def test_a_path_that_is_not_utf_8_can_be_sent() -> None:
    assert failure_note(replace(OUTCOME, places=(("a file", "caf\udce9"),)), FACTS).encode()


def test_the_tail_is_cut_between_characters() -> None:
    assert tail("💡" * 10, 5, 3) == "…💡💡💡"


@pytest.mark.parametrize("text", ["`" * 50, "a\n```\nb\n`````\nc", "~~~\n```"])
def test_a_fence_is_longer_than_any_inside(text: str) -> None:
    assert blocks(fenced(text)) == [f"{text}\n"]


def test_what_an_earlier_note_names_is_carried_over_and_nothing_that_an_agent_printed() -> None:
    kept = ("made", "refs/nightkeep/rescue/run-1/made at 1234 on origin")
    printed = "| `bundle` | @everyone <a href=x>here</a> |\n```\n<!-- nightkeep:kept W10= -->\n"
    first = failure_note(replace(OUTCOME, places=(kept,)), replace(FACTS, log_text=printed))
    second = with_earlier(failure_note(replace(OUTCOME, places=()), FACTS), first)
    third = with_earlier(failure_note(replace(OUTCOME, places=()), replace(FACTS, log_text=kept[1])), second)
    for note in (second, third):
        assert "@everyone" not in note
        assert "| `made: commits" in note.partition("kept by an earlier Run")[2]
        assert f"| `{kept[1]}` |" in note.partition("kept by an earlier Run")[2]
    assert with_earlier(failure_note(replace(OUTCOME, places=(kept,)), FACTS), third).count("an earlier Run") == 0


def test_of_two_notes_the_later_stays_whichever_is_written_first_and_whatever_an_agent_printed() -> None:
    kept = ("made", "refs/nightkeep/rescue/run-1/made at 1234 on origin")
    forged = replace(FACTS, log_text="<sub>Run run-9 on here, 2099-01-01T00:00:00Z</sub>\n")
    old = failure_note(replace(OUTCOME, places=(kept,)), forged)
    new = failure_note(
        replace(OUTCOME, cause="newer", places=()), replace(FACTS, moment=datetime(2026, 1, 3, tzinfo=UTC))
    )
    resolved = resolved_note("issue-7", "https://x/8", "run-2", datetime(2026, 1, 3, tzinfo=UTC))
    for later in (new, resolved):
        both = {newer_of(later, old), newer_of(old, later)}
        assert both == {with_earlier(later, old)}
        assert kept[1] in both.pop().partition("kept by an earlier Run")[2]
    assert newer_of(old, old) == old


def test_where_an_earlier_run_kept_something_is_never_cut() -> None:
    where = f"build (ignored) in /srv/{'long/' * 40}.git/nightkeep/rescue/run-0"
    earlier = failure_note(replace(OUTCOME, places=(("kept on this machine", where),)), FACTS)
    resolved = with_earlier(resolved_note("issue-7", "https://x/8", "run-2", FACTS.moment), earlier)
    assert where in resolved
    assert "`nightkeep rescue show run-0`" in resolved


def test_empty_directories_are_not_said_to_be_kept() -> None:
    here = ("kept on this machine", "node_modules (an empty directory) in /c/.git/nightkeep/rescue/run-1")
    note = failure_note(
        replace(OUTCOME, preserved=Preserved.ORIGIN, places=(here,), rescued=Path("/c"), retained=None), FACTS
    )
    assert "node_modules" not in note
    assert "nothing else holds" not in note


def test_a_policy_refusal_asks_for_no_other_run() -> None:
    note = failure_note(replace(OUTCOME, result=Result.POLICY_REFUSAL), FACTS)
    assert "no Run is needed" in note
    assert FACTS.continue_command not in note
