"""The door to GitHub, when answers get lost: a write happens once, a read is repeated, a refusal is final."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests

from delivery.errors import GitHubError, GitHubNotFoundError, GitHubUnavailableError
from delivery.github import GitHub
from runner.hub import Hub, Permission, drills
from tests.delivery.conftest import NAME, TOKEN
from tests.world import World, commit, git

READER = "reader-token-0001"
MARKER = "<!-- nightkeep:failure-note issue-1 -->"
TROUBLE = {"message": "trouble"}


@pytest.fixture
def hub(world: World, tmp_path: Path) -> Iterator[Hub]:
    """A hub with one issue and a branch for a pull request."""
    git(world.launch, "checkout", "-q", "-b", "issue-1")
    (world.launch / "lamp.txt").write_text("on\n")
    commit(world.launch, "lamp")
    git(world.launch, "push", "-q", "origin", "issue-1")
    tokens = {TOKEN: Permission.WRITE, READER: Permission.READ}
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}, tokens=tokens) as served:
        post(served, "issues", {"title": "Add a lamp"})
        yield served


def post(hub: Hub, path: str, body: object) -> None:
    answer = requests.post(
        f"{hub.url}/api/v3/repos/{NAME}/{path}",
        json=body,
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=30,
    )
    answer.raise_for_status()


def comments(hub: Hub) -> list[str]:
    url = f"{hub.url}/api/v3/repos/{NAME}/issues/1/comments?per_page=100"
    answer = requests.get(url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
    return [comment["body"] for comment in answer.json()]


def count(hub: Hub, method: str, path: str) -> int:
    """Return how many requests had that method and a path that ends so."""
    return len([seen for seen in hub.requests if seen[0] == method and seen[1].endswith(path)])


def open_one(github: GitHub) -> None:
    pull = github.open_pull_request(title="Lamp", body="It is on.", base="main", branch="issue-1", draft=True)
    assert (pull.number, pull.is_draft, pull.base, pull.branch) == (2, True, "main", "issue-1")


def comment_one(github: GitHub) -> None:
    assert github.comment(1, MARKER, f"{MARKER}\nfailed").endswith("/issues/1#issuecomment-1")


WRITES = [(open_one, "/pulls"), (comment_one, "/comments")]


@pytest.mark.parametrize(("write", "path"), WRITES)
@pytest.mark.parametrize("trouble", [drills.lost_answer(), drills.dropped_connection()])
def test_a_write_whose_answer_was_lost_is_looked_up(
    hub: Hub, github: GitHub, write: Callable[[GitHub], None], path: str, trouble: drills.Trouble
) -> None:
    hub.drill("POST", f"*{path}", trouble)
    write(github)
    assert count(hub, "POST", path) == 1
    assert len(comments(hub)) == (path == "/comments")
    assert len(github.pull_requests("issue-1")) == (path == "/pulls")


@pytest.mark.parametrize(("write", "path"), WRITES)
@pytest.mark.parametrize("trouble", [drills.server_error(), drills.dropped_connection(work=False)])
def test_a_write_that_did_not_happen_is_repeated_once(
    hub: Hub, github: GitHub, write: Callable[[GitHub], None], path: str, trouble: drills.Trouble
) -> None:
    hub.drill("POST", f"*{path}", trouble)
    write(github)
    assert count(hub, "POST", path) == 2
    assert len(comments(hub)) == (path == "/comments")
    assert len(github.pull_requests("issue-1")) == (path == "/pulls")


@pytest.mark.parametrize(("write", "path"), WRITES)
@pytest.mark.parametrize("status", [403, 422, 404])
def test_a_refusal_is_not_asked_again(
    hub: Hub, github: GitHub, write: Callable[[GitHub], None], path: str, status: int
) -> None:
    hub.drill("POST", f"*{path}", drills.answer(status, TROUBLE), times=None)
    with pytest.raises(GitHubError, match=f"GitHub answered {status}: trouble") as raised:
        write(github)
    assert raised.value.status == status
    assert not isinstance(raised.value, GitHubUnavailableError)
    assert count(hub, "POST", path) == 1


@pytest.mark.parametrize("work", [True, False])
def test_labels_survive_lost_answers(hub: Hub, github: GitHub, *, work: bool) -> None:
    added = hub.drill("POST", "*/labels", drills.lost_answer() if work else drills.server_error())
    removed = hub.drill("DELETE", "*/labels/b", drills.dropped_connection(work=work))
    for label in ("a", "b"):
        github.add_label(1, label)
    github.remove_label(1, "b")
    github.remove_label(1, "never there")
    assert github.issue(1).labels == {"a"}
    assert (added.hits, removed.hits) == (1, 1)


def test_draft_and_ready_survive_lost_answers(hub: Hub, github: GitHub) -> None:
    open_one(github)
    ready = hub.drill("POST", "*/graphql", drills.lost_answer(), contains="markPullRequestReadyForReview")
    draft = hub.drill("POST", "*/graphql", drills.server_error(), contains="convertPullRequestToDraft")
    github.mark_ready(2)
    assert not github.pull_request(2).is_draft
    github.convert_to_draft(2)
    assert github.pull_request(2).is_draft
    assert (ready.hits, draft.hits) == (1, 1)


@pytest.mark.parametrize(
    "trouble", [drills.server_error(500), drills.too_many_requests(0), drills.dropped_connection(work=False)]
)
def test_a_read_is_repeated(hub: Hub, github: GitHub, trouble: drills.Trouble) -> None:
    hub.drill("GET", "*/issues/1", trouble, times=2)
    assert github.issue(1).title == "Add a lamp"
    assert count(hub, "GET", "/issues/1") == 3


def test_a_read_is_not_repeated_for_ever(hub: Hub, github: GitHub) -> None:
    hub.drill("GET", "*/issues/1", drills.server_error(503), times=None)
    with pytest.raises(GitHubUnavailableError, match="503"):
        github.issue(1)
    assert count(hub, "GET", "/issues/1") == 4


@pytest.mark.parametrize(("status", "error"), [(403, GitHubError), (404, GitHubNotFoundError), (401, GitHubError)])
def test_a_read_that_is_refused_is_not_repeated(
    hub: Hub, github: GitHub, status: int, error: type[GitHubError]
) -> None:
    hub.drill("GET", "*/issues/1", drills.answer(status, TROUBLE), times=None)
    with pytest.raises(error, match=str(status)):
        github.issue(1)
    assert count(hub, "GET", "/issues/1") == 1


PAGE = "<html>Log in</html>"


@pytest.mark.parametrize(
    ("ask", "method", "path", "body"),
    [
        (lambda github: github.issue(1), "GET", "/issues/1", PAGE),
        (lambda github: github.issue(1), "GET", "/issues/1", {}),
        (lambda github: github.repository(), "GET", "/repos/acme/widget", None),
        (lambda github: github.edit_comment(1, MARKER, MARKER), "GET", "/comments", ["text"]),
        (lambda github: github.pull_requests("issue-1"), "GET", "/pulls", PAGE),
        (lambda github: github.pull_requests("issue-1"), "GET", "/pulls", [{}]),
        (comment_one, "POST", "/comments", []),
        (open_one, "POST", "/pulls", {}),
    ],
)
def test_an_answer_that_makes_no_sense_is_no_bug_of_ours(
    hub: Hub, github: GitHub, ask: Callable[[GitHub], object], method: str, path: str, body: object
) -> None:
    drill = hub.drill(method, f"*{path}", drills.answer(200, body), times=None)
    with pytest.raises(GitHubError) as raised:
        ask(github)
    assert not isinstance(raised.value, GitHubUnavailableError)
    assert drill.hits == 1


def test_the_sticky_comment_is_found_beyond_the_first_page(hub: Hub, github: GitHub) -> None:
    for number in range(101):
        post(hub, "issues/1/comments", {"body": f"talk {number}"})
    url = github.comment(1, MARKER, f"{MARKER}\nfirst")
    for number in range(5):
        post(hub, "issues/1/comments", {"body": f"more talk {number}, {MARKER}"})
    hub.requests.clear()
    assert github.comment(1, MARKER, f"{MARKER}\nsecond") == url
    assert count(hub, "GET", "/comments") == 2
    assert count(hub, "POST", "/comments") == 0
    assert github.edit_comment(1, MARKER, f"{MARKER}\nthird")
    assert not github.edit_comment(1, "<!-- another -->", "x")


def test_permissions(hub: Hub, github: GitHub) -> None:
    assert github.repository().may_push
    with closing(GitHub(api_url=f"{hub.url}/api/v3", token=READER, repository=NAME)) as reader:
        assert not reader.repository().may_push


def test_a_list_without_an_end_is_given_up(hub: Hub) -> None:
    url = f"{hub.url}/api/v3/repos/{NAME}/labels"
    label = {"id": 1, "node_id": "L", "url": f"{url}/x", "name": "x", "color": "ededed", "default": False}
    endless = drills.answer(200, [label], {"link": f'<{url}?page=2>; rel="next"'})
    impatient = GitHub(api_url=f"{hub.url}/api/v3", token=TOKEN, repository=NAME, patience=0.3)
    drill = hub.drill("GET", "*/labels*", endless, times=None)
    with closing(impatient), drill, pytest.raises(GitHubError, match="given up before its end"):
        impatient.labels()


# A token that dies


class Renewal:
    """Gives the tokens one after the other, then the last again and again."""

    def __init__(self, *tokens: str | None) -> None:
        self.tokens = [*tokens]
        self.asked = 0

    def __call__(self) -> str | None:
        self.asked += 1
        return self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]


def renewing(hub: Hub, renew: Renewal, said: list[str] | None = None) -> GitHub:
    return GitHub(
        api_url=f"{hub.url}/api/v3",
        token="dead-token-0001",
        renew=renew,
        repository=NAME,
        report=(said if said is not None else []).append,
    )


def test_a_token_that_is_refused_is_renewed_once(hub: Hub) -> None:
    said: list[str] = []
    renew = Renewal(TOKEN)
    with closing(renewing(hub, renew, said)) as github:
        assert github.issue(1).title == "Add a lamp"
        comment_one(github)
        assert (renew.asked, github.token_is_refused) == (1, False)
    assert said == ["GitHub no longer takes the token; going on with the one that was read afresh"]
    assert len(comments(hub)) == 1


@pytest.mark.parametrize(("write", "path"), WRITES)
def test_a_write_that_was_refused_happens_once(hub: Hub, write: Callable[[GitHub], None], path: str) -> None:
    renew = Renewal(TOKEN)
    with closing(renewing(hub, renew)) as github:
        write(github)
    assert (len(comments(hub)), renew.asked) == (path == "/comments", 1)


@pytest.mark.parametrize("given", [None, "dead-token-0001", "dead-token-0002"])
def test_without_a_new_token_github_is_not_asked_again(hub: Hub, given: str | None) -> None:
    renew = Renewal(given)
    with closing(renewing(hub, renew)) as github:
        for _ in range(5):
            with pytest.raises(GitHubError, match="GitHub answered 401: Bad credentials") as raised:
                github.issue(1)
            assert raised.value.status == 401
        assert github.token_is_refused
    assert (renew.asked, count(hub, "GET", "/issues/1")) == (1, 2 if given == "dead-token-0002" else 1)


def test_a_token_may_die_again(hub: Hub) -> None:
    renew = Renewal(READER, TOKEN)
    with closing(renewing(hub, renew)) as github:
        assert github.issue(1).number == 1
        hub.revoke(READER)
        assert github.issue(1).number == 1
    assert renew.asked == 2
