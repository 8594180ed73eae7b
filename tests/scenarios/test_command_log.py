"""The Command log of whole Runs, and what `nightkeep prompt` says beforehand."""

from pathlib import Path

from tests.scenarios.stage import WRITER, Result, Stage
from tests.world import commit, git
from worktree import read_journal

DELIVERS = "echo lamp > lamp.txt; git add lamp.txt; git commit -qm lamp; echo agent-says-this"
GIVES_UP = "echo half > half.txt; exit 3"
FILE = ".github/nightkeep.yml"


def prompt(stage: Stage, issue: int, *options: str, **environment: str) -> Result:
    token = ("--token-file", str(stage.token_file))
    return stage.command("prompt", stage.url(issue), *token, *options, **environment)


def command_log(stage: Stage) -> Path:
    (log,) = stage.state.rglob("*-command.log")
    return log


def test_what_was_said_and_how_it_ended(stage: Stage) -> None:
    result = stage.run(stage.issue(), stage.agent(DELIVERS))
    log = command_log(stage)
    lines = [line.split(" ", 1)[1] for line in log.read_text().splitlines()]
    said = [line for line in result.stderr.splitlines() if line.startswith("nightkeep: ")]
    assert lines == [*said, "ended: delivered, exit status 0"]
    assert f"nightkeep: Command log: {log}" in said
    (session,) = stage.logs()
    assert session.name == log.name.replace("-command.", "-implement.")
    assert session.parent == log.parent == stage.state / "nightkeep" / "logs" / "acme" / "widget"


def test_logs_lists_and_shows_them(stage: Stage) -> None:
    number = stage.issue()
    failed = stage.run(number, stage.agent(GIVES_UP), "--json")
    assert failed.document["command_log"] == str(command_log(stage))
    listed = stage.command("logs")
    assert "failed, exit status 1" in listed.stdout, listed
    shown = stage.command("logs", str(number))
    assert "nightkeep: starting the agent" in shown.stdout, shown
    assert str(stage.logs()[0]) in shown.stdout


def test_a_run_that_does_not_begin_leaves_no_log(stage: Stage) -> None:
    result = stage.run(stage.issue(), "no-such-agent-at-all")
    assert result.status == 2
    assert not stage.state.exists()


def test_a_place_that_cannot_be_written_is_one_warning(stage: Stage) -> None:
    stage.state.mkdir()
    (stage.state / "nightkeep").write_text("in the way")
    result = stage.run(stage.issue(), stage.agent(DELIVERS))
    assert result.status == 0, result
    assert result.stderr.count("the Command log cannot be written") == 1, result
    assert "Command log:" not in result.stderr


def test_the_prompt_is_what_the_agent_gets(stage: Stage) -> None:
    number = stage.issue("Größer", "With ``` fences\nand \U0001f3ee.")
    before = stage.everything()
    printed = prompt(stage, number)
    assert printed.status == 0, printed
    assert stage.everything() == before
    kept = stage.root / "kept"
    stage.run(number, stage.agent(f'cat > "{kept}"; echo x > x.txt'))
    assert printed.stdout == kept.read_text()


def test_the_prompt_of_a_continuation_and_another_base(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("next", "n.txt", "n")
    assert "next" in prompt(stage, number, "--base", "next").stdout
    stage.run(number, stage.agent(GIVES_UP))
    assert "There is work on it already" in prompt(stage, number).stdout


def test_the_repositorys_prompt_where_it_is_trusted(stage: Stage) -> None:
    (stage.clone / ".github").mkdir()
    (stage.clone / FILE).write_text("prompt: Mind the gap.\n")
    commit(stage.clone, "configure")
    git(stage.clone, "push", "-q", str(stage.world.origin), "main")
    git(stage.clone, "fetch", "-q", str(stage.world.origin), "main:refs/remotes/origin/main")
    number = stage.issue()
    ignored = prompt(stage, number)
    assert "Mind the gap." not in ignored.stdout
    assert "does not trust" in ignored.stderr
    host = stage.hub.url.removeprefix("http://")
    assert "Mind the gap." in prompt(stage, number, NIGHTKEEP_TRUSTED_REPOSITORIES=f"{host}/acme/widget").stdout


def test_a_prompt_that_cannot_be_had(stage: Stage) -> None:
    for issue, options in ((99, {}), (stage.issue(), {"NIGHTKEEP_LIMITS_IDLE": "soon"})):
        result = prompt(stage, issue, **options)
        assert (result.status, result.stdout) == (2, ""), result
        assert "nothing was begun or claimed" in result.stderr
        assert WRITER not in result.stderr


def steps(stage: Stage) -> list[str]:
    (file,) = stage.state.rglob("*-journal.jsonl")
    return [str(entry["step"]) for entry in read_journal(file)]


def test_the_journal_has_each_step_of_a_delivery(stage: Stage) -> None:
    stage.run(stage.issue(), stage.agent(DELIVERS))
    asked = ["session", "settle", "push", "ready", "watch", "clean-up"]
    assert steps(stage) == ["claim", "worktree", "begun", *asked, "note", "unclaim", "end"]
    assert "journal" in stage.command("logs").stdout


def test_the_journal_has_each_step_of_a_failed_run(stage: Stage) -> None:
    stage.run(stage.issue(), stage.agent(GIVES_UP))
    failed = ["session", "preserve", "draft", "clean-up", "note"]
    assert steps(stage) == ["claim", "worktree", "begun", *failed, "unclaim", "end"]


def test_a_run_that_made_nothing_enters_the_release(stage: Stage) -> None:
    stage.run(stage.issue(), stage.agent("exit 3"))
    assert steps(stage)[-3:] == ["release", "unclaim", "end"]
