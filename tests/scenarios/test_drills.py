"""GitHub misbehaves, forbids, moves and asks for patience; the maintainer still reads one whole note."""

import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from delivery.errors import GitHubError, GitHubForbiddenError, GitHubUnavailableError
from delivery.github import GitHub, PullRequest
from runner.hub import Exchange, Hub, Permission, Token, TokenKind, drills
from runner.hub.drills import Trouble
from runner.hub.refusal import custom
from tests.scenarios.stage import NAME, WRITER, Stage, staged
from tests.world import World, commit, git
from worktree import Interruption

MAKES = "echo on > lamp.txt"
GIVES_UP = "echo half > half.txt; exit 3"
WORKFLOW_TOKEN = "ghs_builtinbuiltinbuiltin"
CONVERT = "convertPullRequestToDraft"


@contextmanager
def meanwhile(stage: Stage, change: Callable[[], object]) -> Iterator[str]:
    """Make `change` while the agent works; gives the words of a shell in which the agent waits for it."""
    begun, done = stage.root / "begun", stage.root / "done"

    def watch() -> None:
        deadline = time.monotonic() + 50
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        change()
        done.touch()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield f"touch {shlex.quote(str(begun))}; until test -e {shlex.quote(str(done))}; do sleep 0.05; done"
    finally:
        begun.touch()
        thread.join()


def pull_labels(stage: Stage) -> set[str]:
    return {label["name"] for label in stage.pull()["labels"]}


# Answers that get lost


@pytest.mark.parametrize("trouble", [drills.lost_answer(), drills.lost_answer(500), drills.dropped_connection()])
def test_lost_answers_double_nothing(stage: Stage, trouble: Trouble) -> None:
    lost = [stage.hub.drill("POST", path, trouble) for path in ("*/pulls", "*/comments", "*/labels")]
    result = stage.run(stage.issue(), stage.agent(GIVES_UP))
    assert [drill.hits for drill in lost] == [1, 1, 1]
    assert result.status == 1, result
    assert "the agent exited 3" in stage.note(stage.pull()["number"])
    assert stage.pull()["draft"] is True


# Drafts that GitHub refuses


def test_a_draft_that_is_forbidden(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    pull = stage.pull_request("issue-1")
    with stage.hub.drill("POST", "/api/graphql", drills.graphql_error(CONVERT), times=None, contains=CONVERT):
        result = stage.run(number, stage.agent(GIVES_UP), "--json")
    assert (result.status, result.document["cause"]) == (1, "the agent exited 3"), result
    assert (stage.pull()["draft"], pull_labels(stage)) == (False, {"run-failed"})
    note = stage.note(pull)
    assert "**Cause:** `the agent exited 3`" in note
    assert "the token may not turn a pull request into a draft; use the token of a user or of an app" in note
    assert "pull requests: write; it is labelled run-failed instead" in note
    assert stage.world.origin_file("issue-1", "half.txt") == "half"
    delivered = stage.run(number, stage.agent(MAKES))
    assert delivered.status == 0, delivered
    assert pull_labels(stage) == set()
    assert "Resolved by" in stage.note(pull)


@pytest.fixture
def workflow_stage(tmp_path: Path, world: World, exchanges: list[Exchange]) -> Iterator[Stage]:
    """A stage on which Nightkeep has the built-in token of a workflow."""
    tokens = {WRITER: Token(Permission.WRITE), WORKFLOW_TOKEN: Token(Permission.WRITE, TokenKind.ACTIONS)}
    with staged(tmp_path, world, exchanges.append, tokens) as stage:
        stage.token_file.write_text(WORKFLOW_TOKEN)
        yield stage


def test_the_built_in_token_of_a_workflow(workflow_stage: Stage) -> None:
    stage = workflow_stage
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    pull = stage.pull_request("issue-1")
    result = stage.run(number, stage.agent(GIVES_UP), "--json")
    assert (result.status, result.document["cause"]) == (1, "the agent exited 3"), result
    assert result.stderr.count("start no workflows") == 1
    assert (stage.pull()["draft"], pull_labels(stage)) == (False, {"run-failed"})
    assert "the built-in workflow token cannot turn a pull request into a draft; use the token of" in stage.note(pull)


def test_a_draft_that_the_built_in_token_cannot_make_ready(workflow_stage: Stage) -> None:
    number = workflow_stage.issue()
    workflow_stage.run(number, workflow_stage.agent(GIVES_UP))
    result = workflow_stage.run(number, workflow_stage.agent(MAKES), "--json")
    assert (result.status, result.document["stage"]) == (1, "pull-request"), result
    assert "the built-in workflow token cannot make a draft ready; use the token of a user" in result.document["cause"]
    assert workflow_stage.world.origin_file("issue-1", "lamp.txt") == "on"


@pytest.mark.parametrize("merge", [False, True])
def test_checks_that_cannot_come_are_not_waited_for(workflow_stage: Stage, *, merge: bool) -> None:
    stage = workflow_stage
    workflow = stage.clone / ".github" / "workflows" / "ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("on: pull_request\n")
    commit(stage.clone, "a workflow")
    git(stage.clone, "push", "-q", str(stage.world.origin), "main")
    flag = "--merge" if merge else "--no-merge"
    began = time.monotonic()
    result = stage.run(stage.issue(), stage.agent(MAKES), flag, "--json", NIGHTKEEP_CHECKS_GRACE="10m")
    assert time.monotonic() - began < 60, "that is far less than the grace"
    said = "what the built-in token of a workflow pushes starts no workflows"
    assert f": {said}\n" in result.stderr, result
    ended = (result.status, result.document["code"], stage.pull()["merged_at"])
    assert ended == ((1, "checks-missing", None) if merge else (0, None, None)), result


def test_a_label_that_is_refused_too(stage: Stage) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    pull = stage.pull_request("issue-1")
    stage.hub.drill("POST", "/api/graphql", drills.server_error(), times=None, contains=CONVERT)
    stage.hub.drill("POST", f"*/issues/{pull}/labels", drills.answer(403, {"message": "no labels"}), times=None)
    result = stage.run(number, stage.agent(GIVES_UP), "--json")
    assert (result.status, result.document["cause"]) == (1, "the agent exited 3"), result
    note = stage.note(pull)
    assert "could not be turned into a draft: GitHub answered 502" in note
    assert "the label run-failed could not be put on" in note


# The kinds of 422


def test_where_there_are_no_drafts(stage: Stage) -> None:
    stage.hub.admin.make_private_on_free_plan(NAME)
    number = stage.issue()
    result = stage.run(number, stage.agent(GIVES_UP), "--json")
    assert (result.status, result.document["cause"]) == (1, "the agent exited 3"), result
    assert (stage.pull()["draft"], pull_labels(stage)) == (False, {"run-failed"})
    note = stage.note(stage.pull()["number"])
    assert "is no draft, because there are none here: GitHub answered 422: Draft pull requests are not" in note
    assert stage.run(number, stage.agent("exit 4")).status == 1, stage.last
    assert "are not supported" in stage.note(stage.pull()["number"])
    assert stage.run(number, stage.agent(MAKES)).status == 0, stage.last
    assert pull_labels(stage) == set()


@pytest.mark.parametrize("ending", ["exit 0", "exit 3"])
def test_a_pull_request_that_is_there_already_is_used(stage: Stage, ending: str) -> None:
    number = stage.issue()
    stage.on_branch("issue-1", "begun.txt", "begun\n")
    pull = stage.pull_request("issue-1")
    with stage.hub.drill("GET", "*/pulls?*state=open*", drills.answer(200, [])) as hidden:
        result = stage.run(number, stage.agent(f"{MAKES}; {ending}"))
    assert (hidden.hits, result.status) == (1, int(ending[-1] == "3")), result
    assert result.stdout == f"{stage.hub.url}/{NAME}/pull/{pull}\n"
    assert stage.pull()["draft"] is (result.status == 1)


def test_nothing_between_the_branches_is_told_on_the_issue(stage: Stage) -> None:
    nothing = custom("PullRequest", "No commits between main and issue-1").body()
    number = stage.issue()
    stage.hub.drill("POST", "*/pulls", drills.answer(422, nothing), times=None)
    result = stage.run(number, stage.agent(GIVES_UP), "--json")
    assert (result.status, result.document["cause"], stage.pulls()) == (1, "the agent exited 3", []), result
    assert "No commits between main and issue-1" in stage.note(number)


# A log that is too long


def test_five_megabytes_of_anything_make_one_note(stage: Stage) -> None:
    code = """\
print("ä💡" * 400_000, "x" * 2_000_000, sep="\\n")
print("```\\n@everyone </details> | \\a\\0\\u202e\\n````" * 200, "`" * 700, "the very end")"""
    agent = stage.agent(f"echo half > half.txt; {shlex.join([sys.executable, '-c', code])}; exit 3")
    assert stage.run(stage.issue(), agent).status == 1, stage.last
    note = stage.note(stage.pull()["number"])
    assert "**Cause:** `the agent exited 3`" in note
    fence = "`" * 701
    (shown,) = note.split(f"{fence}text\n")[1:]
    assert shown.split(f"\n{fence}\n")[0].endswith("the very end")
    assert f"The whole Session log is `{stage.logs()[0]}`" in note
    assert stage.logs()[0].stat().st_size > 4_000_000


# A token that dies


@pytest.mark.parametrize(("ending", "cause"), [("exit 3", "the agent exited 3"), ("exit 0", "Authentication failed")])
def test_a_token_that_dies_while_the_agent_works(stage: Stage, ending: str, cause: str) -> None:
    def revoke() -> None:
        stage.hub.requests.clear()
        stage.hub.drill("*", "/api/*", drills.bad_credentials(), times=None)
        pushes.append(stage.hub.drill("*", "/acme/*", drills.bad_credentials(), times=None))

    pushes: list[drills.Drill] = []
    number = stage.issue()
    with meanwhile(stage, revoke) as words:
        result = stage.run(number, stage.agent(f"{words}; echo half > half.txt; {ending}"), "--json")
    requests = list(stage.hub.requests)
    pushes[0].remove()
    (kept,) = stage.worktrees()
    document = result.document
    assert (result.status, document["preserved"]) == (3, "machine"), result
    assert cause in document["cause"]
    assert any("the token has expired or was revoked" in line for line in document["secondary"]), result
    assert "the token has expired or was revoked" in result.stderr
    assert "GitHub no longer takes the token of the token file" in document["secondary"][-1]
    assert any(str(kept) in place["where"] for place in document["places"])
    assert git(kept, "log", "-1", "--format=%s").startswith("nightkeep: failed run (")
    assert git(kept, "show", "HEAD:half.txt") == "half"
    assert len(requests) <= 4, f"a storm: {requests}"
    # Four commands (a look or the push, the branch, a rescue ref, the claim), each without and with a token, twice.
    assert pushes[0].hits <= 16, f"a storm of {pushes[0].hits} requests by git"


# Waits that GitHub names


class Door:
    """A GitHub in this process; `said` is what it reported."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.said: list[str] = []
        self.on_report: Callable[[], None] = lambda: None
        self.interruption = Interruption()
        self.github = GitHub(
            api_url=f"{hub.url}/api/v3",
            token=WRITER,
            repository=NAME,
            interruption=self.interruption,
            report=self._report,
        )

    def _report(self, line: str) -> None:
        self.said.append(line)
        self.on_report()


@pytest.fixture
def door(stage: Stage) -> Iterator[Door]:
    stage.issue()
    made = Door(stage.hub)
    with closing(made.github):
        yield made


SHORT = [drills.secondary_rate_limit(1), drills.too_many_requests(1)]
LONG = [drills.secondary_rate_limit(3600), drills.too_many_requests(3600)]


@pytest.mark.parametrize("trouble", [*SHORT, None])
def test_a_short_wait_is_kept_and_said(door: Door, trouble: Trouble | None) -> None:
    drill = door.hub.drill("GET", "*/issues/1", trouble or drills.primary_rate_limit(1))
    start = time.monotonic()
    assert door.github.issue(1).title == "Add a lamp"
    assert drill.hits == 1
    assert time.monotonic() - start >= 0.9
    assert "rate limit" in door.said[0]
    assert "; trying again in " in door.said[0]


@pytest.mark.parametrize("trouble", [*LONG, None])
def test_a_wait_beyond_the_cap_is_an_error_at_once(door: Door, trouble: Trouble | None) -> None:
    drill = door.hub.drill("GET", "*/issues/1", trouble or drills.primary_rate_limit(3598), times=None)
    with pytest.raises(GitHubUnavailableError, match=r"asks for a wait of 3\d{3} s, and a Run waits for 60 s at most"):
        door.github.issue(1)
    assert (drill.hits, door.said) == (1, [])


def test_a_limit_without_a_named_wait_means_a_minute(door: Door) -> None:
    door.interruption.record(signal.SIGTERM)
    door.hub.drill("GET", "*/issues/1", drills.secondary_rate_limit())
    with pytest.raises(GitHubUnavailableError) as caught:
        door.github.issue(1)
    assert caught.value.wait == 60


@pytest.mark.parametrize("trouble", [*SHORT, *LONG, drills.server_error()])
def test_nothing_is_waited_for_once_a_signal_has_come(door: Door, trouble: Trouble) -> None:
    door.interruption.record(signal.SIGINT)
    drill = door.hub.drill("*", "*/issues/1/labels", trouble, times=None)
    start = time.monotonic()
    with pytest.raises(GitHubUnavailableError):
        door.github.add_label(1, "late")
    assert (drill.hits, door.said) == (1, [])
    assert time.monotonic() - start < 0.9


def test_a_signal_ends_a_wait(door: Door) -> None:
    door.on_report = lambda: door.interruption.record(signal.SIGTERM)
    door.hub.drill("GET", "*/issues/1", drills.too_many_requests(50), times=None)
    start = time.monotonic()
    with pytest.raises(GitHubUnavailableError):
        door.github.issue(1)
    assert time.monotonic() - start < 10


def test_a_missing_permission_is_not_waited_for(door: Door) -> None:
    drill = door.hub.drill("POST", "*/labels", drills.answer(403, {"message": "Resource not accessible"}), times=None)
    with pytest.raises(GitHubForbiddenError):
        door.github.add_label(1, "bug")
    assert (drill.hits, door.said) == (1, [])


# What has moved


def test_a_repository_that_is_renamed_while_the_agent_works(stage: Stage) -> None:
    number = stage.issue()
    with meanwhile(stage, lambda: stage.hub.admin.rename(NAME, "acme/gadget")) as words:
        result = stage.run(number, stage.agent(f"{words}; {GIVES_UP}"), "--json")
    assert result.status == 1, result
    assert stage.pull()["draft"] is True
    assert "the agent exited 3" in stage.note(stage.pull()["number"])


def open_one(door: Door, branch: str = "issue-1") -> PullRequest:
    return door.github.open_pull_request(title="Lamp", body="On.", base="main", branch=branch, draft=False)


def test_writes_reach_a_repository_with_another_name_and_owner(stage: Stage, door: Door) -> None:
    for branch in ("issue-1", "theirs"):
        stage.on_branch(branch, f"{branch}.txt", "on\n")
    theirs = stage.pull_request("theirs")
    stage.hub.admin.rename(NAME, "others/gadget")
    opened = open_one(door)
    assert opened.number != theirs
    assert [pull.number for pull in door.github.pull_requests("issue-1")] == [opened.number]
    assert open_one(door).number == opened.number
    door.github.edit_pull_request(opened.number, title="Better", body="On.")
    door.github.add_label(opened.number, "a/b c")
    assert door.github.pull_request(opened.number).labels == {"a/b c"}
    door.github.remove_label(opened.number, "a/b c")
    assert door.github.pull_request(opened.number).labels == set()
    url = door.github.comment(opened.number, "<!-- m -->", "<!-- m --> one")
    assert door.github.comment(opened.number, "<!-- m -->", "<!-- m --> two") == url
    assert stage.comments(opened.number) == ["<!-- m --> two"]
    assert door.github.repository().full_name == "others/gadget"


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/elsewhere", ""])
def test_a_write_is_not_sent_to_another_server(door: Door, place: str) -> None:
    door.hub.drill("POST", "*/comments", drills.moved(place))
    with pytest.raises(GitHubError, match="GitHub answered 307: what was to be changed has moved to"):
        door.github.comment(1, "<!-- m -->", "<!-- m -->")


def test_a_write_is_not_sent_in_circles(door: Door) -> None:
    place = f"{door.hub.url}/api/v3/repos/{NAME}/issues/1/comments"
    drill = door.hub.drill("POST", "*/comments", drills.moved(place), times=None)
    with pytest.raises(GitHubError, match="in circles"):
        door.github.comment(1, "<!-- m -->", "<!-- m -->")
    assert drill.hits == 3


def test_a_label_that_was_not_put_on_is_no_success(door: Door) -> None:
    door.hub.drill("POST", "*/labels", drills.answer(200, []))
    with pytest.raises(GitHubError, match="did not put it on"):
        door.github.add_label(1, "bug")
