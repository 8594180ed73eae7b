"""What surrounds a Run has no say in it, and is not harmed by it."""

import os
from pathlib import Path

from tests.scenarios.stage import NAME, WRITER, Stage
from tests.world import commit, git

COMMITS = "echo on > lamp.txt && git add lamp.txt && git commit -qm 'Let there be light'"
# Aims for one Run: git commands without the `git version` that GitPython looks for git with, and requests to GitHub.
MOST_COMMANDS, MOST_REQUESTS = 30, 20


def contents(repository: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in repository.rglob("*") if path.is_file()}


def test_variables_that_point_git_at_another_repository(stage: Stage) -> None:
    """Case 26 (a)."""
    other = stage.root / "elsewhere"
    git(stage.root, "init", "-q", "-b", "main", str(other))
    (other / "theirs.txt").write_text("theirs\n")
    commit(other, "theirs")
    before = contents(other)
    environment = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
    }
    result = stage.run(stage.issue(), stage.agent(f"env | grep ^GIT_ | sort > seen.txt; {COMMITS}"), **environment)
    (snapshot,) = stage.world.snapshot_refs()
    assert result.status == 0, result
    assert contents(other) == before
    assert stage.files("issue-1") == {".gitignore", "a.txt", "b.txt", "lamp.txt"}
    seen = {line.split("=")[0] for line in stage.world.origin_file(snapshot, "seen.txt").splitlines()}
    assert not seen & (environment.keys() - {"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"})
    assert "core.bare" not in stage.world.origin_file(snapshot, "seen.txt")


def test_an_agent_cannot_push_with_a_credential_helper_of_the_persons(stage: Stage) -> None:
    git(stage.clone, "config", "credential.helper", f"!echo username=me; echo password={WRITER};:")
    url = f"{stage.hub.url}/{NAME}"
    pushes = "; ".join(f"git push {place} HEAD:refs/heads/side" for place in ("origin", url, f"{url}.git", f"{url}/"))
    other = f"printf 'url={stage.hub.url}/acme/other.git\\n\\n' | git credential fill > answered.txt"
    result = stage.run(stage.issue(), stage.agent(f"{COMMITS}; {pushes}; {other}; git add . && git commit -qm more"))
    assert result.status == 0, result
    assert "refs/heads/side" not in stage.refs()
    assert WRITER in stage.world.origin_file("issue-1", "answered.txt")


def test_how_many_commands_and_requests_a_run_takes(stage: Stage) -> None:
    real = "/usr/bin:/bin"
    programs = stage.root / "programs"
    programs.mkdir()
    log = stage.root / "commands"
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >> {log}\nPATH={real} exec git "$@"\n')
    (programs / "git").chmod(0o755)
    stage.api("POST", "labels", {"name": "in-progress"})  # which is made once, by the first Run
    for name, status, ending in (("delivered", 0, "exit 0"), ("failed", 1, "echo half > half.txt; exit 3")):
        log.write_text("")
        number = stage.issue()
        asked = len(stage.hub.requests)
        result = stage.command(
            *("run", stage.url(number), "--token-file", str(stage.token_file)),
            *("--agent", stage.agent(f"PATH={real}; {COMMITS}; {ending}")),
            PATH=f"{programs}:{real}",
        )
        commands = [line for line in log.read_text().splitlines() if line != "version"]
        requests = stage.hub.requests[asked:]
        print(f"a {name} Run: {len(commands)} git commands, {len(requests)} requests to GitHub")  # noqa: T201
        assert result.status == status, result
        assert 10 < len(commands) <= MOST_COMMANDS, "\n".join(commands)
        assert 5 < len(requests) <= MOST_REQUESTS, requests


def test_an_agent_is_found_from_where_its_command_was_typed(stage: Stage) -> None:
    stage.agent(COMMITS)
    assert stage.run(stage.issue(), "../../agents/agent-0").status == 0
    assert stage.run(stage.issue(), "agent-0", PATH=f"../../agents:{os.environ['PATH']}").status == 0


def test_a_home_that_nobody_can_write_to(stage: Stage) -> None:
    stage.environment["XDG_STATE_HOME"] = "/proc/nowhere"
    result = stage.run(stage.issue(), stage.agent(COMMITS))
    assert result.status == 0, result
    assert "the Session log cannot be written" in result.stderr


def test_identity_of_the_person_is_the_agents_and_not_ours(stage: Stage) -> None:
    """Case 7."""
    git(stage.clone, "config", "user.name", "Person")
    git(stage.clone, "config", "user.email", "person@example.com")
    git(stage.clone, "config", "user.useConfigOnly", "true")
    stage.run(stage.issue(), stage.agent(f"{COMMITS}; echo half > half.txt; exit 3"))
    log = git(stage.world.origin, "log", "-2", "--format=%an <%ae> %cn", "issue-1")
    marker, made = log.splitlines()
    assert made == "Person <person@example.com> Person"
    assert "Person" not in marker


def test_without_any_identity(stage: Stage) -> None:
    """Case 7."""
    git(stage.clone, "config", "user.useConfigOnly", "true")
    result = stage.run(stage.issue(), stage.agent(f"{COMMITS}; echo half > half.txt; exit 3"))
    assert result.status == 1, result
    assert stage.world.origin_file("issue-1", "half.txt") == "half"


def test_a_path_with_spaces_and_accents(stage: Stage) -> None:
    moved = stage.clone.rename(stage.clone.with_name("wídget of mine"))
    stage.clone = moved
    result = stage.run(stage.issue(), stage.agent("echo x > 'né w.txt'; exit 3"))
    assert result.status == 1, result
    assert stage.world.origin_file("issue-1", "né w.txt") == "x"


def test_output_that_could_not_be_logged_is_kept_and_named(stage: Stage) -> None:
    stage.environment["XDG_STATE_HOME"] = "/proc/nowhere"
    result = stage.run(stage.issue(), stage.agent("echo hi; exit 3"), "--json")
    (place,) = result.document["places"]
    assert place["what"] == "session output"
    assert [file.read_text() for file in Path(place["where"]).glob("session-*")] == ["hi\n"]
    assert result.document["session_log"] is None


def test_output_that_could_not_be_logged_is_no_work(stage: Stage) -> None:
    stage.environment["XDG_STATE_HOME"] = "/proc/nowhere"
    number = stage.issue()
    result = stage.run(number, stage.agent("echo hi; exit 3"), "--json")
    assert result.document["preserved"] == "nothing-made"
    assert stage.labels(number) == {"bug", "ready-for-agent"}
