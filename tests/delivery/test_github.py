"""The door to GitHub, when answers get lost: a write happens once, a read is repeated, a refusal is final."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import requests

from delivery.errors import GitHubError, GitHubNotFoundError, GitHubUnavailableError
from delivery.github import GitHub
from runner.hub import Hub, Permission
from tests.delivery.proxy import Proxy, Trouble, proxy
from tests.world import World, commit, git

NAME = "acme/widget"
TOKEN, READER = "writer-token-0001", "reader-token-0001"
MARKER = "<!-- nightkeep:failure-note issue-1 -->"


@pytest.fixture
def between(world: World, tmp_path: Path) -> Iterator[Proxy]:
    """A hub with one issue and a branch for a pull request, behind a proxy."""
    git(world.launch, "checkout", "-q", "-b", "issue-1")
    (world.launch / "lamp.txt").write_text("on\n")
    commit(world.launch, "lamp")
    git(world.launch, "push", "-q", "origin", "issue-1")
    tokens = {TOKEN: Permission.WRITE, READER: Permission.READ}
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}, tokens=tokens) as hub, proxy(hub.url) as served:
        post(served, "issues", {"title": "Add a lamp"})
        yield served


@pytest.fixture
def github(between: Proxy) -> Iterator[GitHub]:
    with closing(GitHub(api_url=f"{between.url}/api/v3", token=TOKEN, repository=NAME)) as made:
        yield made


def post(served: Proxy, path: str, body: object) -> None:
    answer = requests.post(
        f"{served.url}/api/v3/repos/{NAME}/{path}",
        json=body,
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=30,
    )
    answer.raise_for_status()


def comments(served: Proxy, number: int = 1) -> list[str]:
    url = f"{served.url}/api/v3/repos/{NAME}/issues/{number}/comments?per_page=100"
    answer = requests.get(url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
    return [comment["body"] for comment in answer.json()]


def open_one(github: GitHub) -> None:
    pull = github.open_pull_request(title="Lamp", body="It is on.", base="main", branch="issue-1", draft=True)
    assert (pull.number, pull.is_draft, pull.base, pull.branch) == (2, True, "main", "issue-1")


def comment_one(github: GitHub) -> None:
    assert github.comment(1, MARKER, f"{MARKER}\nfailed").endswith("/issues/1#issuecomment-1")


WRITES = [(open_one, "/pulls"), (comment_one, "/comments")]


@pytest.mark.parametrize(("write", "path"), WRITES)
@pytest.mark.parametrize("status", [502, 500, 0])
def test_a_write_whose_answer_was_lost_is_looked_up(
    between: Proxy, github: GitHub, write: Callable[[GitHub], None], path: str, status: int
) -> None:
    between.trouble.append(Trouble("POST", path, status, forwarded=True))
    write(github)
    assert between.count("POST", path) == 1
    assert len(comments(between)) == (path == "/comments")
    assert len(github.pull_requests("issue-1")) == (path == "/pulls")


@pytest.mark.parametrize(("write", "path"), WRITES)
@pytest.mark.parametrize("status", [502, 0])
def test_a_write_that_did_not_happen_is_repeated_once(
    between: Proxy, github: GitHub, write: Callable[[GitHub], None], path: str, status: int
) -> None:
    between.trouble.append(Trouble("POST", path, status))
    write(github)
    assert between.count("POST", path) == 2
    assert len(comments(between)) == (path == "/comments")
    assert len(github.pull_requests("issue-1")) == (path == "/pulls")


@pytest.mark.parametrize(("write", "path"), WRITES)
@pytest.mark.parametrize("status", [403, 422, 404])
def test_a_refusal_is_not_asked_again(
    between: Proxy, github: GitHub, write: Callable[[GitHub], None], path: str, status: int
) -> None:
    between.trouble.append(Trouble("POST", path, status, times=9))
    with pytest.raises(GitHubError, match=f"GitHub answered {status}: trouble") as raised:
        write(github)
    assert raised.value.status == status
    assert not isinstance(raised.value, GitHubUnavailableError)
    assert between.count("POST", path) == 1


@pytest.mark.parametrize("forwarded", [True, False])
def test_labels_survive_lost_answers(between: Proxy, github: GitHub, *, forwarded: bool) -> None:
    between.trouble.append(Trouble("POST", "/labels", 502, forwarded=forwarded))
    between.trouble.append(Trouble("DELETE", "/labels/b", 0, forwarded=forwarded))
    for label in ("a", "b"):
        github.add_label(1, label)
    github.remove_label(1, "b")
    github.remove_label(1, "never there")
    assert github.issue(1).labels == {"a"}


def test_draft_and_ready_survive_lost_answers(between: Proxy, github: GitHub) -> None:
    open_one(github)
    between.trouble.append(Trouble("POST", "/graphql", 502, forwarded=True))
    github.mark_ready(2)
    assert not github.pull_request(2).is_draft
    github.convert_to_draft(2)
    assert github.pull_request(2).is_draft


@pytest.mark.parametrize("status", [500, 502, 503, 429, 0])
def test_a_read_is_repeated(between: Proxy, github: GitHub, status: int) -> None:
    between.trouble.append(Trouble("GET", "/issues/1", status, times=2))
    assert github.issue(1).title == "Add a lamp"
    assert between.count("GET", "/issues/1") == 3


def test_a_read_is_not_repeated_for_ever(between: Proxy, github: GitHub) -> None:
    between.trouble.append(Trouble("GET", "/issues/1", 503, times=99))
    with pytest.raises(GitHubUnavailableError, match="503"):
        github.issue(1)
    assert between.count("GET", "/issues/1") == 4


@pytest.mark.parametrize(("status", "error"), [(403, GitHubError), (404, GitHubNotFoundError), (401, GitHubError)])
def test_a_read_that_is_refused_is_not_repeated(
    between: Proxy, github: GitHub, status: int, error: type[GitHubError]
) -> None:
    between.trouble.append(Trouble("GET", "/issues/1", status, times=9))
    with pytest.raises(error, match=str(status)):
        github.issue(1)
    assert between.count("GET", "/issues/1") == 1


@pytest.mark.parametrize("body", [b"<html>Log in</html>", b"null", b"[]", b"{}", b'"text"'])
@pytest.mark.parametrize(
    ("ask", "method", "path"),
    [
        (lambda github: github.issue(1), "GET", "/issues/1"),
        (lambda github: github.repository(), "GET", "/repos/acme/widget"),
        (lambda github: github.edit_comment(1, MARKER, MARKER), "GET", "/comments"),
        (lambda github: github.pull_requests("issue-1"), "GET", "/pulls"),
        (comment_one, "POST", "/comments"),
        (open_one, "POST", "/pulls"),
    ],
)
def test_an_answer_that_makes_no_sense_is_no_bug_of_ours(
    between: Proxy, github: GitHub, ask: Callable[[GitHub], object], method: str, path: str, body: bytes
) -> None:
    between.trouble.append(Trouble(method, path, 200, times=9, body=body))
    with suppress(GitHubError):
        ask(github)
    assert between.count(method, path) >= 1


def test_the_sticky_comment_is_found_beyond_the_first_page(between: Proxy, github: GitHub) -> None:
    for number in range(101):
        post(between, "issues/1/comments", {"body": f"talk {number}"})
    url = github.comment(1, MARKER, f"{MARKER}\nfirst")
    for number in range(5):
        post(between, "issues/1/comments", {"body": f"more talk {number}, {MARKER}"})
    between.seen.clear()
    assert github.comment(1, MARKER, f"{MARKER}\nsecond") == url
    assert between.count("GET", "/comments") == 2
    assert between.count("POST", "/comments") == 0
    assert github.edit_comment(1, MARKER, f"{MARKER}\nthird")
    assert not github.edit_comment(1, "<!-- another -->", "x")


def test_permissions(between: Proxy, github: GitHub) -> None:
    assert github.repository().may_push
    with closing(GitHub(api_url=f"{between.url}/api/v3", token=READER, repository=NAME)) as reader:
        assert not reader.repository().may_push
