"""Sub-issues, blockers, who did what to issues, and who may do what."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from runner.hub import Hub
from tests.runner.hub.conftest import ADMIN, NAME, READER, TRIAGER, WRITER
from tests.world import World

QUERY = """query($owner: String!, $name: String!, $after: String) { repository(owner: $owner, name: $name) {
  issues(first: 2, after: $after, states: [OPEN], labels: ["Ready"], orderBy: {field: CREATED_AT, direction: ASC}) {
    totalCount pageInfo { hasNextPage endCursor }
    nodes { number author { __typename login } editor { __typename login } labels(first: 100) { nodes { name } }
      parent { number repository { nameWithOwner } }
      subIssuesSummary { total completed } subIssues(first: 100) { nodes { number state } }
      blockedBy(first: 50) { totalCount nodes { number state } }
      timelineItems(last: 100, itemTypes: [LABELED_EVENT, RENAMED_TITLE_EVENT, BLOCKED_BY_ADDED_EVENT]) { nodes {
        __typename
        ... on LabeledEvent { createdAt actor { __typename login } label { name } }
        ... on RenamedTitleEvent { actor { __typename login } previousTitle }
        ... on BlockedByAddedEvent { actor { __typename login } blockingIssue { number } } } } } } } }"""

Ask = Callable[..., requests.Response]


@pytest.fixture
def ask(hub: Hub) -> Ask:
    def send(method: str, path: str, body: object = None, token: str = ADMIN) -> requests.Response:
        address = f"{hub.url}/api/v3/repos/{NAME}/{path}"
        return requests.request(method, address, json=body, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    return send


def queried(hub: Hub, **variables: object) -> Any:
    body = {"query": QUERY, "variables": {"owner": "acme", "name": "widget", **variables}}
    headers = {"Authorization": f"Bearer {READER}"}
    answer = requests.post(f"{hub.url}/api/graphql", json=body, headers=headers, timeout=30).json()
    assert "errors" not in answer, answer
    return answer["data"]["repository"]["issues"]


def test_links_are_made_and_taken_over_rest(hub: Hub, ask: Ask) -> None:
    people = hub.people(NAME)
    spec, ticket, other = (people.open("ada") for _ in range(3))
    ids = {one: ask("GET", f"issues/{one}").json()["id"] for one in (spec, ticket, other)}
    assert ask("POST", f"issues/{spec}/sub_issues", {"sub_issue_id": ids[ticket]}).status_code == 201
    assert ask("GET", f"issues/{ticket}/parent").json()["number"] == spec
    assert [one["number"] for one in ask("GET", f"issues/{spec}/sub_issues").json()] == [ticket]
    assert ask("POST", f"issues/{other}/sub_issues", {"sub_issue_id": ids[ticket]}).status_code == 422
    moved = {"sub_issue_id": ids[ticket], "replace_parent": True}
    assert ask("POST", f"issues/{other}/sub_issues", moved).status_code == 201
    assert ask("DELETE", f"issues/{spec}/sub_issue", {"sub_issue_id": ids[ticket]}).status_code == 404
    assert ask("DELETE", f"issues/{other}/sub_issue", {"sub_issue_id": ids[ticket]}).status_code == 200
    assert ask("GET", f"issues/{ticket}/parent").status_code == 404
    blocked_by = f"issues/{spec}/dependencies/blocked_by"
    assert ask("POST", blocked_by, {"issue_id": ids[other]}).status_code == 201
    assert [one["number"] for one in ask("GET", blocked_by).json()] == [other]
    assert ask("DELETE", f"{blocked_by}/{ids[other]}").status_code == 200
    assert ask("GET", blocked_by).json() == []
    assert ask("POST", blocked_by, {"issue_id": 99}).status_code == 404
    assert ask("POST", blocked_by, {"issue_id": ids[other]}, READER).status_code == 403


def test_issues_come_with_what_they_are_linked_to_a_page_at_a_time(hub: Hub) -> None:
    people = hub.people(NAME)
    numbers = [people.open(login) for login in ("ada", "ghost", "robot[bot]", "eve")]
    for number in numbers[:3]:
        people.label(number, "olga", "ready", "bug")
    people.add_sub_issue(1, 2, "olga")
    people.block(1, 4, "olga")
    people.close(4, "olga")
    people.edit(1, "ada", title="Other", body="Else.")
    first = queried(hub)
    assert (first["totalCount"], first["pageInfo"]["hasNextPage"]) == (3, True)
    one, two = first["nodes"]
    assert one["blockedBy"] == {"totalCount": 1, "nodes": [{"number": 4, "state": "CLOSED"}]}
    assert one["subIssuesSummary"] == {"total": 1, "completed": 0}
    assert (two["parent"], two["author"]) == ({"number": 1, "repository": {"nameWithOwner": NAME}}, None)
    assert one["editor"] == {"__typename": "User", "login": "ada"}
    said = [(event["__typename"], event["actor"]["login"]) for event in one["timelineItems"]["nodes"]]
    assert said == [
        ("LabeledEvent", "olga"),
        ("LabeledEvent", "olga"),
        ("BlockedByAddedEvent", "olga"),
        ("RenamedTitleEvent", "ada"),
    ]
    last = queried(hub, after=first["pageInfo"]["endCursor"])
    assert [issue["author"] for issue in last["nodes"]] == [{"__typename": "Bot", "login": "robot"}]
    assert not last["pageInfo"]["hasNextPage"]


def test_what_may_not_be_seen_leaves_a_hole(hub: Hub, world: World) -> None:
    secret = requests.post(
        f"{hub.url}/api/v3/user/repos",
        json={"name": "secret"},
        headers={"Authorization": f"Bearer {ADMIN}"},
        timeout=30,
    ).json()["full_name"]
    people = hub.people(NAME)
    number, elsewhere = people.open("ada"), hub.people(secret).open("ada")
    people.label(number, "olga", "ready")
    people.block(number, elsewhere, "olga", of=secret)
    hub.admin.hide(secret)
    assert queried(hub)["nodes"][0]["blockedBy"] == {"totalCount": 1, "nodes": [None]}


def test_everything_about_an_issue_can_be_made_older(hub: Hub) -> None:
    people = hub.people(NAME)
    number = people.open("ada")
    people.label(number, "olga", "ready")
    before = queried(hub)["nodes"][0]["timelineItems"]["nodes"][0]["createdAt"]
    people.age(number, 3600)
    after = queried(hub)["nodes"][0]["timelineItems"]["nodes"][0]["createdAt"]
    assert after < before


@pytest.mark.parametrize(
    ("login", "role", "coarse"),
    [
        ("acme", "admin", "admin"),
        ("nightkeep-2", "write", "write"),
        ("mia", "maintain", "write"),
        ("tom", "triage", "read"),
        ("stranger", "read", "read"),
        ("out", "none", "none"),
    ],
)
def test_what_a_user_may_do_is_told(hub: Hub, ask: Ask, login: str, role: str, coarse: str) -> None:
    for somebody, given in (("mia", "maintain"), ("tom", "triage"), ("out", "none")):
        hub.admin.permit(NAME, somebody, given)
    answer = ask("GET", f"collaborators/{login}/permission", token=WRITER).json()
    assert (answer["role_name"], answer["permission"], answer["user"]["login"]) == (role, coarse, login)


def test_who_may_not_push_is_told_nothing_of_others(ask: Ask) -> None:
    assert ask("GET", "collaborators/acme/permission", token=TRIAGER).status_code == 403
