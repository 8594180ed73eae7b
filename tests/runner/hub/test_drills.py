"""The hub does wrong what it is told to, and nothing else."""

import threading
import time
from pathlib import Path

import pytest
import requests
from github import GithubException
from github.Repository import Repository

from runner.hub import Exchange, Hub, drills
from runner.hub.drills import Trouble
from tests.runner.hub.conftest import ADMIN, NAME, WRITER, push_branch, remote
from tests.runner.hub.test_git import push
from tests.world import World

LONG = 600.0  # seconds; no test waits for it
API = f"/api/v3/repos/{NAME}"


def ask(hub: Hub, method: str, path: str, body: object = None, *, token: str = ADMIN) -> requests.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return requests.request(method, hub.url + path, json=body, headers=headers, timeout=30, allow_redirects=False)


@pytest.mark.parametrize(
    ("trouble", "status", "header", "text"),
    [
        (drills.server_error(), 502, ("content-type", "application/json"), "Server Error"),
        (drills.secondary_rate_limit(3600), 403, ("retry-after", "3600"), "secondary rate limit"),
        (drills.secondary_rate_limit(), 403, ("retry-after", None), "secondary rate limit"),
        (drills.too_many_requests(2), 429, ("retry-after", "2"), "secondary rate limit"),
        (drills.primary_rate_limit(1500), 403, ("x-ratelimit-remaining", "0"), "API rate limit exceeded"),
        (drills.bad_credentials(), 401, ("www-authenticate", 'Basic realm="GitHub"'), "Bad credentials"),
        (drills.drafts_unsupported(), 422, ("x-ratelimit-limit", "5000"), "Draft pull requests are not supported"),
        (drills.moved("http://127.0.0.1/new"), 307, ("location", "http://127.0.0.1/new"), "Temporary Redirect"),
        (drills.answer(418, "teapot"), 418, ("content-type", "text/plain; charset=utf-8"), "teapot"),
    ],
)
def test_an_answer_instead(hub: Hub, trouble: Trouble, status: int, header: tuple[str, str | None], text: str) -> None:
    with hub.drill("POST", f"{API}/pulls", trouble):
        answer = ask(hub, "POST", f"{API}/pulls", {"title": "T", "head": "topic", "base": "main", "draft": True})
    assert (answer.status_code, answer.headers.get(header[0])) == (status, header[1])
    assert text in answer.text
    assert ask(hub, "GET", f"{API}/pulls?state=all").json() == []


def test_a_drill_is_for_so_many_requests(hub: Hub) -> None:
    with hub.drill("GET", f"{API}/issues", drills.server_error(503), times=2) as drill:
        answers = [ask(hub, method, f"{API}/{path}").status_code for method, path in [("GET", "issues")] * 3]
    assert (answers, drill.hits) == ([503, 503, 200], 2)
    assert hub.requests == [("GET", f"{API}/issues")] * 3


def test_a_drill_is_for_what_it_names_until_it_is_removed(hub: Hub) -> None:
    with hub.drill("*", "*/issues?state=all*", drills.server_error(500), times=None):
        assert [ask(hub, "GET", f"{API}/issues{query}").status_code for query in ("?state=all", "")] == [500, 200]
        assert ask(hub, "GET", f"{API}/issues?state=all").status_code == 500
    assert ask(hub, "GET", f"{API}/issues?state=all").status_code == 200


def test_the_first_drill_that_fits_is_applied(hub: Hub) -> None:
    hub.drill("GET", "*/issues", drills.server_error(500))
    hub.drill("GET", "*", drills.server_error(503))
    assert [ask(hub, "GET", f"{API}/issues").status_code for _ in range(3)] == [500, 503, 200]


def test_an_answer_is_late(hub: Hub) -> None:
    hub.drill("GET", "*", drills.delay(0.2))
    start = time.monotonic()
    assert ask(hub, "GET", f"{API}/issues").status_code == 200
    assert time.monotonic() - start >= 0.2


def test_a_delay_ends_with_its_drill_and_holds_nobody_else(hub: Hub) -> None:
    answers: list[int] = []
    with hub.drill("GET", "*/issues", drills.delay(LONG)) as drill:
        late = threading.Thread(target=lambda: answers.append(ask(hub, "GET", f"{API}/issues").status_code))
        late.start()
        while drill.hits == 0:
            late.join(0.01)
        assert ask(hub, "GET", f"{API}/pulls").status_code == 200
        assert answers == []
    late.join()
    assert answers == [200]


def test_a_hub_that_stops_waits_for_no_delay(world: World, tmp_path: Path) -> None:
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}) as hub:
        drill = hub.drill("GET", "*/issues", drills.delay(LONG))
        late = threading.Thread(target=ask, args=(hub, "GET", f"{API}/issues"))
        late.start()
        while drill.hits == 0:
            late.join(0.01)
        start = time.monotonic()
    late.join()
    assert time.monotonic() - start < 5


def test_the_answer_to_a_comment_is_lost(hub: Hub, widget: Repository) -> None:
    issue = widget.create_issue("Discussed")
    with hub.drill("POST", "*/comments", drills.lost_answer()), pytest.raises(GithubException) as caught:
        issue.create_comment("stored all the same")
    assert caught.value.status == 502
    assert [comment.body for comment in issue.get_comments()] == ["stored all the same"]


@pytest.mark.parametrize("work", [True, False])
def test_the_connection_is_dropped(hub: Hub, widget: Repository, *, work: bool) -> None:
    issue = widget.create_issue("Discussed")
    dropped = drills.dropped_connection(work=work)
    with hub.drill("POST", "*/comments", dropped), pytest.raises(requests.ConnectionError):
        issue.create_comment("stored, or not")
    assert issue.get_comments().totalCount == work


def test_a_mutation_is_forbidden_and_another_is_not(hub: Hub, world: World, widget: Repository) -> None:
    push_branch(world, "topic", "topic\n")
    pull = widget.create_pull(base="main", head="topic", title="Topic")
    name = "convertPullRequestToDraft"
    with hub.drill("POST", "/api/graphql", drills.graphql_error(name), contains=name) as drill:
        pull.mark_ready_for_review()
        with pytest.raises(GithubException) as caught:
            pull.convert_to_draft()
    assert (drill.hits, caught.value.status) == (1, 400)  # PyGithub's own status: GitHub says 200
    assert isinstance(caught.value.data, dict)
    assert caught.value.data["data"] == {name: None}
    assert widget.get_pull(1).draft is False


@pytest.mark.parametrize(
    ("path", "trouble", "said"),
    [
        ("*/info/refs?service=git-receive-pack", drills.bad_credentials(), "Authentication failed"),
        ("*/git-receive-pack", drills.server_error(), "502"),
        ("*/git-receive-pack", drills.dropped_connection(work=False), "hung up|Empty reply|reset"),
    ],
)
def test_a_push_fails(hub: Hub, world: World, path: str, trouble: Trouble, said: str) -> None:
    with hub.drill("*", path, trouble, times=None):
        done = push(world.launch, remote(hub, WRITER), "main:topic")
    assert done.returncode != 0
    assert any(one in done.stderr for one in said.split("|")), done.stderr
    assert world.on_origin("topic") == ""


@pytest.mark.parametrize("trouble", [drills.lost_answer(), drills.dropped_connection()])
def test_the_answer_to_a_push_is_lost(hub: Hub, world: World, trouble: Trouble) -> None:
    with hub.drill("POST", "*/git-receive-pack", trouble, times=None):
        done = push(world.launch, remote(hub, WRITER), "main:topic")
    assert done.returncode != 0
    assert world.on_origin("topic") == world.on_origin("main")


def test_a_large_push_is_turned_away_whole(hub: Hub, world: World) -> None:
    (world.launch / "large").write_bytes(bytes(range(256)) * 40_000)
    push_branch(world, "large", "large\n")
    with hub.drill("POST", "*/git-receive-pack", drills.answer(403, "no"), times=None):
        done = push(world.launch, remote(hub, WRITER), "large:topic")
    assert "403" in done.stderr


def test_an_observer_is_told_what_is_githubs(hub: Hub, exchanges: list[Exchange]) -> None:
    hub.drill("GET", "*", drills.server_error())
    hub.drill("POST", "*", drills.lost_answer())
    hub.drill("GET", "*", drills.bad_credentials())
    for method, body in (("GET", None), ("POST", {"title": "Stored"}), ("GET", None)):
        ask(hub, method, f"{API}/issues", body)
    assert [(one.method, one.path, one.status) for one in exchanges] == [
        ("POST", f"/repos/{NAME}/issues", 201),
        ("GET", f"/repos/{NAME}/issues", 401),
    ]
    assert exchanges[0].asked == {"title": "Stored"}
