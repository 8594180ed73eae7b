"""What GitHub could not be told when a Run failed is told later, once."""

import fcntl
import json
import os
from pathlib import Path

from runner.hub import drills
from runner.hub.drills import Drill, Trouble
from tests.scenarios.stage import Result, Stage

FAILS = "echo half > half.txt; exit 3"
COMMENTS, PULLS, LABELS, GRAPHQL = "*/comments", "*/pulls", "*/labels", "*/graphql"
PATIENCE = drills.secondary_rate_limit(3600)


def recover(stage: Stage, *options: str) -> Result:
    return stage.command("recover", "--token-file", str(stage.token_file), *options)


def drilled(stage: Stage, *paths: str, trouble: Trouble = PATIENCE) -> list[Drill]:
    return [stage.hub.drill("POST", path, trouble, times=None) for path in paths]


def untold(stage: Stage) -> list[Path]:
    return sorted(stage.state.rglob("*-untold*"))


def test_a_note_that_github_had_no_time_for_is_written_by_recover_once(stage: Stage) -> None:
    (drill,) = drilled(stage, COMMENTS)
    result = stage.run(stage.issue(), stage.agent(FAILS), "--json")
    (file,) = untold(stage)
    assert (file.stat().st_mode & 0o777, file.suffix) == (0o600, ".json")
    assert result.document["untold"] == {"file": str(file), "command": "nightkeep recover"}
    assert f"is kept in {file}; the next Run here tells it, or: nightkeep recover" in result.stderr
    drill.remove()
    with stage.hub.drill("POST", COMMENTS, drills.lost_answer()) as lost:
        done = recover(stage, "--json")
    assert (done.status, lost.hits, untold(stage)) == (0, 1, []), done
    note = stage.note(stage.pull()["number"])
    assert "**Cause:** `the agent exited 3`" in note
    ((one,),) = [json.loads(done.stdout)]
    assert one["note"].startswith(stage.pull()["html_url"])
    again = recover(stage)
    assert (again.status, "there is nothing to recover" in again.stderr) == (0, True), again
    assert stage.note(stage.pull()["number"]) == note


def test_the_next_run_tells_it_whatever_issue_it_is_for(stage: Stage) -> None:
    (drill,) = drilled(stage, COMMENTS)
    first = stage.issue()
    stage.run(first, stage.agent(FAILS))
    drill.remove()
    result = stage.run(stage.issue("Another"), stage.agent("echo on > lamp.txt"))
    assert (result.status, untold(stage)) == (0, []), result
    assert f"the Failure note of {stage.url(first)}, which could not be written when it failed, is at " in result.stderr
    assert "could not finish this" in stage.note(stage.pulls()[0]["number"])


def test_while_github_has_no_time_it_stays_and_stops_no_run(stage: Stage) -> None:
    drilled(stage, COMMENTS)
    stage.run(stage.issue(), stage.agent(FAILS))
    (file,) = untold(stage)
    done = recover(stage)
    assert (done.status, untold(stage)) == (75, [file]), done
    assert f"it is kept in {file}; then: nightkeep recover" in done.stderr
    assert stage.run(stage.issue("Another"), stage.agent("echo on > lamp.txt")).status == 0
    with file.open() as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)
        assert "there is nothing to recover" in recover(stage).stderr, "somebody else tells it"


def test_what_github_refuses_for_good_is_not_tried_again(stage: Stage) -> None:
    (drill,) = drilled(stage, COMMENTS)
    stage.run(stage.issue(), stage.agent(FAILS))
    drill.remove()
    forbidden = drills.answer(403, {"message": "Resource not accessible by personal access token"})
    (drill,) = drilled(stage, COMMENTS, trouble=forbidden)
    done = recover(stage)
    (file,) = untold(stage)
    assert (done.status, drill.hits, file.suffix) == (3, 1, ".md"), done
    assert f"it is in {file}, and is not tried again" in done.stderr
    assert "could not finish this" in file.read_text()
    assert "there is nothing to recover" in recover(stage).stderr


def test_a_refusal_is_said_at_once_and_nothing_is_kept(stage: Stage) -> None:
    drilled(stage, COMMENTS, trouble=drills.answer(403, {"message": "Resource not accessible"}))
    result = stage.run(stage.issue(), stage.agent(FAILS), "--json")
    assert (result.document["untold"], untold(stage)) == (None, []), result
    assert "the Failure note could not be written: GitHub answered 403" in result.stderr


def test_a_pull_request_that_could_not_be_opened_is_opened_as_a_draft(stage: Stage) -> None:
    asked = drilled(stage, COMMENTS, PULLS)
    stage.run(stage.issue(), stage.agent(FAILS))
    assert stage.pulls() == []
    for drill in asked:
        drill.remove()
    done = recover(stage)
    assert (done.status, stage.pull()["draft"], untold(stage)) == (0, True, []), done
    assert "could not finish this" in stage.note(stage.pull()["number"])


def _unconverted(stage: Stage) -> int:
    """Let a Run fail that goes on from a pull request, which can neither be made a draft nor be labelled."""
    number = stage.issue()
    stage.run(number, stage.agent("echo on > lamp.txt"))
    asked = drilled(stage, GRAPHQL, LABELS)
    result = stage.run(number, stage.agent(FAILS))
    assert (stage.pull()["draft"], len(untold(stage))) == (False, 1), result
    for drill in asked:
        drill.remove()
    return int(stage.pull()["number"])


def test_a_draft_that_could_not_be_made_is_made_later(stage: Stage) -> None:
    number = _unconverted(stage)
    done = recover(stage)
    assert (done.status, stage.pull()["draft"], untold(stage)) == (0, True, []), done
    assert "could not finish this" in stage.note(number)


def test_a_pull_request_that_somebody_went_on_with_stays_ready(stage: Stage) -> None:
    _unconverted(stage)
    stage.on_branch("issue-1", "mended.txt", "mended\n", base="issue-1")
    done = recover(stage)
    assert (done.status, stage.pull()["draft"], untold(stage)) == (0, False, []), done


def test_a_file_that_nobody_can_read_is_said_and_stops_nothing(stage: Stage) -> None:
    drilled(stage, COMMENTS)
    stage.run(stage.issue(), stage.agent(FAILS))
    (file,) = untold(stage)
    file.write_text("{")
    os.mkfifo(file.with_name("2-20261130T012231+0000-untold.json"))
    done = recover(stage)
    assert (done.status, done.stderr.count("cannot be read, so nothing is told of it")) == (0, 2), done


def _forge(stage: Stage, beside: Path, stem: str) -> None:
    """Write what an agent can: a note that asks for a pull request of somebody else's to be a draft."""
    target = stage.pull()
    forged = beside.with_name(f"{stem}-untold.json")
    words = f"<!-- nightkeep:failure-note issue-2 -->\n\nforged {stage.token_file.read_text().strip()}\n"
    forged.write_text(json.dumps({"head": target["head"]["sha"], "pending": "convert", "note": words}))


def test_a_note_that_belongs_to_no_failed_run_is_not_told(stage: Stage) -> None:
    stage.run(stage.issue(), stage.agent("echo on > lamp.txt"))
    (journal,) = stage.state.rglob("*-journal.jsonl")
    delivered = journal.name.removesuffix("-journal.jsonl")
    for stem in ("1-20261130T012231+0000", delivered):
        _forge(stage, journal, stem)
    done = recover(stage)
    assert (done.status, done.stderr.count("so nothing is told of it: ")) == (0, 2), done
    assert "tells of no Failed run" in done.stderr
    assert "No such file" in done.stderr
    assert (stage.pull()["draft"], stage.comments(stage.pull()["number"])) == (False, []), stage.pull()


def test_a_forged_note_goes_nowhere_but_to_the_failed_run_whose_journal_it_stands_by(stage: Stage) -> None:
    stage.run(stage.issue(), stage.agent("echo on > lamp.txt"))
    pull = stage.pull()
    failed = stage.issue("Another")
    stage.run(failed, stage.agent("exit 3"))
    (journal,) = stage.state.rglob(f"{failed}-*-journal.jsonl")
    _forge(stage, journal, journal.name.removesuffix("-journal.jsonl"))
    done = recover(stage)
    assert (done.status, untold(stage)) == (0, []), done
    assert (stage.pull()["draft"], stage.comments(pull["number"])) == (False, [])
    assert stage.token_file.read_text().strip() not in stage.note(failed)
