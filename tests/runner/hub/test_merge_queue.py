"""A base that merges through a queue, over GraphQL."""

from typing import Any

import pytest
from github.Repository import Repository

from runner.hub import Check, Hub, Wait
from tests.runner.hub.conftest import ADMIN, NAME, READER, push_branch
from tests.runner.hub.test_drills import API, ask
from tests.world import World, commit, git

QUEUE = "gh-readonly-queue/*"
ENQUEUE = """mutation($input: EnqueuePullRequestInput!) {
  enqueuePullRequest(input: $input) { clientMutationId mergeQueueEntry { id position state } } }"""
DEQUEUE = """mutation($input: DequeuePullRequestInput!) {
  dequeuePullRequest(input: $input) { mergeQueueEntry { id } } }"""
WATCH = """query($id: ID!) { node(id: $id) { __typename ... on PullRequest {
  state merged isMergeQueueEnabled isInMergeQueue mergeable mergeStateStatus headRefOid
  mergeQueueEntry { position state enqueuedAt headCommit { oid } baseCommit { oid } }
  timelineItems(last: 1, itemTypes: [REMOVED_FROM_MERGE_QUEUE_EVENT]) {
    nodes { __typename ... on RemovedFromMergeQueueEvent { reason createdAt beforeCommit { oid } } } } } } }"""


def graphql(hub: Hub, query: str, token: str = ADMIN, **variables: Any) -> Any:
    return ask(hub, "POST", "/api/graphql", {"query": query, "variables": variables}, token=token).json()


def enqueue(hub: Hub, pull: int = 1, token: str = ADMIN, **changes: Any) -> Any:
    return graphql(hub, ENQUEUE, token, input={"pullRequestId": node_id(hub, pull)} | changes)


def node_id(hub: Hub, pull: int) -> str:
    return str(ask(hub, "GET", f"{API}/issues/{pull}").json()["node_id"])


def seen(hub: Hub, pull: int = 1) -> Any:
    """Return the pull request as it is watched; this is a poll."""
    return graphql(hub, WATCH, id=f"PR_{pull}")["data"]["node"]


def reason(hub: Hub, pull: int = 1) -> Any:
    [event] = seen(hub, pull)["timelineItems"]["nodes"]
    return event["reason"]


def error(answer: Any) -> tuple[str, str]:
    [one] = answer["errors"]
    return one["type"], one["message"]


@pytest.fixture
def queued(hub: Hub, world: World, widget: Repository) -> str:
    """The head of pull request 1, from `topic` to `main`, which wants `test` and a queue."""
    hub.admin.add_rule(NAME, "main", "merge_queue")
    hub.admin.add_rule(NAME, "main", "required_status_checks", required_status_checks=[{"context": "test"}])
    head = push_branch(world, "topic", "topic\n")
    widget.create_pull(base="main", head="topic", title="Topic", body="A change.")
    return head


def test_a_queue_merges_after_its_checks(hub: Hub, world: World, queued: str) -> None:
    hub.ci.add(NAME, Check("test", branches="topic"))
    hub.ci.add(NAME, Check("test", branches=QUEUE, concludes=Wait(polls=1)))
    before = world.on_origin("main")
    assert ask(hub, "GET", f"{API}/rules/branches/main").json()[0]["type"] == "merge_queue"
    direct = ask(hub, "PUT", f"{API}/pulls/1/merge", {"sha": queued})
    assert (direct.status_code, direct.json()["message"].splitlines()[-1]) == (
        405,
        "Changes must be made through the merge queue",
    )
    made = enqueue(hub, expectedHeadOid=queued, clientMutationId="mine")["data"]["enqueuePullRequest"]
    assert made["clientMutationId"] == "mine"
    assert (made["mergeQueueEntry"]["position"], made["mergeQueueEntry"]["state"]) == (1, "QUEUED")
    assert ask(hub, "PUT", f"{API}/pulls/1/merge").json()["message"] == "Pull Request is in the merge queue"
    waiting = seen(hub)
    assert (waiting["isMergeQueueEnabled"], waiting["isInMergeQueue"], waiting["merged"]) == (True, True, False)
    assert (waiting["mergeQueueEntry"]["state"], waiting["mergeQueueEntry"]["baseCommit"]["oid"]) == (
        "AWAITING_CHECKS",
        before,
    )
    group = waiting["mergeQueueEntry"]["headCommit"]["oid"]
    assert world.on_origin(f"gh-readonly-queue/main/pr-1-{before}") == group
    assert git(world.origin, "show", "-s", "--format=%P", group) == f"{before} {queued}"
    [run] = ask(hub, "GET", f"{API}/actions/runs?head_sha={group}").json()["workflow_runs"]
    assert (run["event"], run["status"]) == ("merge_group", "in_progress")
    assert seen(hub)["mergeQueueEntry"] == waiting["mergeQueueEntry"]
    merged = seen(hub)
    assert (merged["state"], merged["isInMergeQueue"], merged["mergeQueueEntry"]) == ("MERGED", False, None)
    assert merged["timelineItems"]["nodes"][0]["reason"] == "merged"
    assert (world.on_origin("main"), git(world.origin, "branch", "--list", QUEUE)) == (group, "")
    assert ask(hub, "GET", f"{API}/pulls/1").json()["merge_commit_sha"] == group


def test_a_queue_lets_go_what_fails_there(hub: Hub, world: World, queued: str) -> None:
    hub.ci.add(NAME, Check("test", branches="topic"))
    hub.ci.add(NAME, Check("test", branches=QUEUE, conclusions=("failure",)))
    before = world.on_origin("main")
    enqueue(hub)
    assert [seen(hub)["isInMergeQueue"] for _ in range(2)] == [True, False]
    gone = seen(hub)
    [event] = gone["timelineItems"]["nodes"]
    assert (event["reason"], event["beforeCommit"]["oid"], gone["state"]) == ("failed_checks", queued, "OPEN")
    assert (world.on_origin("main"), git(world.origin, "branch", "--list", QUEUE)) == (before, "")
    assert "data" in enqueue(hub)


def test_a_queue_goes_on_from_a_base_that_moved_and_one_at_a_time(
    hub: Hub, world: World, widget: Repository, queued: str
) -> None:
    hub.ci.add(NAME, Check("test"))
    (world.launch / "other").write_text("other\n")
    commit(world.launch, "other")
    git(world.launch, "push", "-q", "origin", "main:other")
    git(world.launch, "reset", "-q", "--hard", "origin/main")
    widget.create_pull(base="main", head="other", title="Other")
    enqueue(hub)
    assert enqueue(hub, 2)["data"]["enqueuePullRequest"]["mergeQueueEntry"]["position"] == 2
    first = seen(hub)["mergeQueueEntry"]
    (world.launch / "elsewhere").write_text("moved\n")
    moved = commit(world.launch, "move main")
    git(world.launch, "push", "-q", "origin", "main")
    again = seen(hub)["mergeQueueEntry"]
    assert (again["baseCommit"]["oid"], again["headCommit"] == first["headCommit"]) == (moved, False)
    for _ in range(3):
        seen(hub, 2)
    assert [seen(hub, number)["state"] for number in (1, 2)] == ["MERGED", "MERGED"]
    assert git(world.origin, "rev-list", "--first-parent", "--count", f"{moved}..main") == "2"


def test_a_pull_request_is_found_by_its_number(hub: Hub, queued: str) -> None:
    query = """query($owner: String!, $name: String!, $number: Int!) {
      repository(owner: $owner, name: $name) { nameWithOwner pullRequest(number: $number) { id headRefOid } } }"""
    found = graphql(hub, query, owner="acme", name="widget", number=1)["data"]["repository"]
    assert found == {"nameWithOwner": NAME, "pullRequest": {"id": node_id(hub, 1), "headRefOid": queued}}
    for name, number in (("nothing", 1), ("widget", 9)):
        assert error(graphql(hub, query, owner="acme", name=name, number=number))[0] == "NOT_FOUND"


def test_a_conflict_in_the_queue_is_said(hub: Hub, world: World, queued: str) -> None:
    hub.ci.add(NAME, Check("test"))
    enqueue(hub)
    push_branch(world, "main", "conflict\n")
    assert reason(hub) == "merge_conflict"
    assert [seen(hub)["mergeable"] for _ in range(2)][1] == "CONFLICTING"


@pytest.mark.parametrize("how", ["dequeue", "close", "push"])
def test_a_pull_request_is_taken_out(hub: Hub, world: World, queued: str, how: str) -> None:
    hub.ci.add(NAME, Check("test"))
    enqueue(hub)
    seen(hub)
    match how:
        case "dequeue":
            assert "errors" not in graphql(hub, DEQUEUE, input={"id": "PR_1"})
        case "close":
            ask(hub, "PATCH", f"{API}/pulls/1", {"state": "closed"})
        case _:
            push_branch(world, "topic", "more\n", start="topic")
    assert reason(hub) == "manual"
    assert git(world.origin, "branch", "--list", QUEUE) == ""
    assert error(graphql(hub, DEQUEUE, input={"id": "PR_1"})) == (
        "UNPROCESSABLE",
        "Pull request is not in the merge queue",
    )


def test_a_queue_takes_only_what_is_right(hub: Hub, world: World, widget: Repository, queued: str) -> None:
    unprocessable = "UNPROCESSABLE"
    assert error(enqueue(hub)) == (unprocessable, 'Pull request Required status check "test" is expected.')
    hub.ci.add(NAME, Check("test"))
    assert error(enqueue(hub, expectedHeadOid="0" * 40)) == (
        unprocessable,
        "expectedHeadOid does not match the current head",
    )
    assert error(enqueue(hub, token=READER))[0] == "FORBIDDEN"
    enqueue(hub)
    assert error(enqueue(hub)) == (unprocessable, "Pull request is already in the merge queue")
    git(world.launch, "push", "-q", "origin", "main:release")
    push_branch(world, "other", "other\n")
    pull = widget.create_pull(base="release", head="other", title="Other")
    assert error(enqueue(hub, 2)) == (unprocessable, "Merge queue is not enabled for the base branch")
    pull.edit(base="main")
    pull.convert_to_draft()
    assert error(enqueue(hub, 2)) == (unprocessable, "Pull request is in draft state")
    pull.edit(state="closed")
    assert error(enqueue(hub, 2)) == (unprocessable, "Pull request is closed")
