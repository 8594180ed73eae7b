"""What an agent leaves where a recovery will look, which must not be waited for or written through."""

import pytest

from tests.scenarios.stage import Stage

_KILLS_ITS_RUNNER = "set -- $(cat /proc/$PPID/stat); kill -9 $4; sleep 60"
_RECORD = '"$(git rev-parse --path-format=absolute --git-common-dir)/nightkeep/runs/$NIGHTKEEP_RUN"'


@pytest.mark.parametrize("make", ["mkfifo", "ln -s {precious}", "ln -s nowhere", "mkdir"])
@pytest.mark.parametrize("what", ["output", "log"])
def test_a_recovery_waits_for_nothing_and_follows_no_link(stage: Stage, what: str, make: str) -> None:
    precious = stage.root / "precious"
    precious.write_text("a person's\n")
    make = make.format(precious=precious)
    traps = {
        "output": f"{make} {_RECORD}/session-again.claude.raw",
        "log": f"for log in {stage.state}/nightkeep/logs/acme/widget/*-command.log; do rm $log; {make} $log; done",
    }
    number = stage.issue()
    agent = stage.agent(f"echo made > made.txt; {traps[what]}; {_KILLS_ITS_RUNNER}")
    killed = stage.command("run", stage.url(number), "--agent", agent, "--token-file", str(stage.token_file))
    assert killed.status == -9, killed
    stage.patience = 20
    result = stage.command("recover", "--token-file", str(stage.token_file))
    assert (result.status, stage.files("issue-1") >= {"made.txt"}, stage.worktrees()) == (0, True, []), result
    assert precious.read_text() == "a person's\n"
    assert not [log for log in stage.logs() if "a person's" in log.read_text()]
    assert "there is nothing to recover" in stage.command("recover", "--token-file", str(stage.token_file)).stderr
