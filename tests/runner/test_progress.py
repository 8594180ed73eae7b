"""What a person reads while a command works."""

import os
from io import StringIO

from runner.progress import Progress

ACTIONS = {"GITHUB_ACTIONS": "true"}


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_our_lines_and_the_agents_can_be_told_apart() -> None:
    stream = StringIO()
    progress = Progress(stream, {})
    progress.say("one\ntwo")
    progress.agent("three")
    progress.say("")
    assert stream.getvalue() == "nightkeep: one\nnightkeep: two\n| three\nnightkeep: \n"


def test_on_a_terminal_the_agents_lines_are_dim() -> None:
    for environment, line in (({}, "\x1b[2m| three\x1b[0m\n"), ({"NO_COLOR": "1"}, "| three\n")):
        stream = Terminal()
        Progress(stream, environment).agent("three")
        assert stream.getvalue() == line


def test_on_actions_the_agents_lines_are_fenced() -> None:
    stream = StringIO()
    progress = Progress(stream, ACTIONS)
    progress.agent("::error::not ours")
    progress.agent("more")
    progress.say("ours")
    progress.agent("again")
    progress.close()
    opened, first, second, closed, ours, opened_again, third, closed_again = stream.getvalue().splitlines()
    assert (first, second, ours, third) == ("| ::error::not ours", "| more", "nightkeep: ours", "| again")
    fences = [opened.removeprefix("::stop-commands::"), opened_again.removeprefix("::stop-commands::")]
    assert [closed, closed_again] == [f"::{fence}::" for fence in fences]
    assert len(set(fences)) == 2


def test_a_line_of_ours_is_never_a_command() -> None:
    stream = StringIO()
    Progress(stream, ACTIONS).say("fine\n::set-output name=x::y\r::error::z\u2028::warning::w")
    assert all(line.startswith("nightkeep: ") for line in stream.getvalue().splitlines())


def test_a_reader_that_went_away_stops_nothing() -> None:
    stream = StringIO()
    progress = Progress(stream, ACTIONS)
    stream.close()
    progress.say("into the void")
    progress.agent("into the void")
    progress.close()


def test_a_reader_that_stops_reading_stops_nothing() -> None:
    source, sink = os.pipe()
    with os.fdopen(sink, "w") as stream, os.fdopen(source, "rb", buffering=0) as reader:
        progress = Progress(stream, {}, patience=0.05)
        for _ in range(300):
            progress.agent("x" * 3000)
        taken = len(reader.read(1 << 20))
        assert taken < 300 * 3000
        progress.say("read again")
        rest = reader.read(1 << 16).decode()
    assert "lines were left out, because nobody read them\nnightkeep: read again\n" in rest
