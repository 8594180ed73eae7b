"""What the hub is told about repositories and tokens, and how it then answers."""

from pathlib import Path

import pytest
import requests
from github import GithubException
from github.Repository import Repository

from runner.hub import Exchange, Hub, Permission, Token, TokenKind
from tests.runner.hub.conftest import ADMIN, NAME, READER, WRITER, Client, push_branch, remote
from tests.runner.hub.test_drills import API, ask
from tests.runner.hub.test_git import push
from tests.runner.hub.test_issues import refused
from tests.world import World, git

NEW = "acme/gadget"
ACTIONS, CLASSIC = "actions-token", "classic-token"


def test_an_archived_repository_is_read_only(hub: Hub, world: World, widget: Repository) -> None:
    issue = widget.create_issue("Old")
    hub.admin.archive(NAME)
    with pytest.raises(GithubException) as caught:
        issue.create_comment("too late")
    assert refused(caught) == (403, "Repository was archived so is read-only.")
    widget.update()
    assert (widget.archived, widget.get_issue(1).title) == (True, "Old")
    done = push(world.launch, remote(hub, WRITER), "main:topic")
    assert "This repository was archived so it is read-only." in done.stderr
    assert git(world.launch, "ls-remote", remote(hub, READER), "main")


def test_a_private_repository_on_a_free_plan_has_no_drafts(hub: Hub, world: World, widget: Repository) -> None:
    push_branch(world, "topic", "topic\n")
    hub.admin.make_private_on_free_plan(NAME)
    message = "Draft pull requests are not supported in this repository."
    with pytest.raises(GithubException) as caught:
        widget.create_pull(base="main", head="topic", title="Topic", draft=True)
    assert refused(caught) == (422, message)
    pull = widget.create_pull(base="main", head="topic", title="Topic")
    with pytest.raises(GithubException, match=message):
        pull.convert_to_draft()
    assert widget.get_pull(1).draft is False
    widget.update()
    assert widget.private is True


def test_a_renamed_repository_is_found_under_its_old_name(hub: Hub, widget: Repository, client: Client) -> None:
    widget.create_issue("Kept")
    hub.admin.rename(NAME, NEW)
    answer = ask(hub, "GET", f"{API}/issues?state=all")
    assert (answer.status_code, answer.json()["message"]) == (301, "Moved Permanently")
    assert answer.headers["location"] == f"{hub.url}/api/v3/repositories/{widget.id}/issues?state=all"
    assert ask(hub, "POST", f"{API}/issues", {"title": "T"}).status_code == 307
    assert ask(hub, "GET", API, token="wrong").status_code == 401
    assert client(hub, ADMIN).get_repo(NAME).full_name == NEW
    assert widget.get_issue(1).html_url == f"{hub.url}/{NEW}/issues/1"
    assert ask(hub, "GET", f"/{NAME}/issues/1").headers["location"] == f"{hub.url}/{NEW}/issues/1"


def test_git_is_sent_to_the_new_name(hub: Hub, world: World) -> None:
    hub.admin.rename(NAME, NEW)
    assert git(world.launch, "ls-remote", remote(hub, READER), "main").split()[0] == world.on_origin("main")
    done = push(world.launch, remote(hub, WRITER), "main:topic")
    assert f"redirecting to {hub.url}/{NEW}.git/" in done.stderr
    assert world.on_origin("topic") == world.on_origin("main")


def test_a_transferred_issue_leads_to_its_new_place(hub: Hub, widget: Repository, client: Client) -> None:
    target = client(hub, ADMIN).get_user().create_repo("other")
    target.create_issue("Here before")
    target.create_label("both", "ededed")
    widget.create_issue("Moves", labels=["both", "lost"]).create_comment("with its comments")
    number = hub.admin.transfer(NAME, 1, target.full_name)
    answer = ask(hub, "GET", f"{API}/issues/1")
    assert answer.status_code == 301
    assert answer.headers["location"] == f"{hub.url}/api/v3/repositories/{target.id}/issues/{number}"
    moved = widget.get_issue(1)
    assert (moved.number, moved.title, moved.html_url) == (2, "Moves", f"{hub.url}/{target.full_name}/issues/2")
    assert [label.name for label in moved.labels] == ["both"]
    assert moved.get_comments()[0].body == "with its comments"
    assert widget.create_issue("Next").number == 2  # the old number stays taken


def test_facts_outlive_the_hub(world: World, tmp_path: Path) -> None:
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}) as hub:
        hub.admin.rename(NAME, NEW)
        hub.admin.archive(NEW)
    with Hub(tmp_path / "hub") as again:
        assert ask(again, "GET", API).status_code == 301
        assert ask(again, "GET", f"/api/v3/repos/{NEW}").json()["archived"] is True


def test_facts_about_nothing_are_refused(hub: Hub, widget: Repository) -> None:
    with pytest.raises(ValueError, match="no repository acme/nothing"):
        hub.admin.archive("acme/nothing")
    with pytest.raises(ValueError, match="#7 is not an issue"):
        hub.admin.transfer(NAME, 7, NAME)
    for name in ("widget", NAME):
        with pytest.raises(ValueError, match="not a free repository name"):
            hub.admin.rename(NAME, name)


def test_tokens_tell_what_they_are(world: World, tmp_path: Path, exchanges: list[Exchange], client: Client) -> None:
    push_branch(world, "topic", "topic\n")
    tokens: dict[str, Permission | Token] = {
        ADMIN: Permission.ADMIN,
        ACTIONS: Token(Permission.WRITE, TokenKind.ACTIONS),
        CLASSIC: Token(Permission.READ, TokenKind.CLASSIC),
    }
    repositories = {NAME: world.origin}
    with Hub(tmp_path / "hub", repositories=repositories, tokens=tokens, observe=exchanges.append) as hub:
        scopes = {token: ask(hub, "GET", API, token=token).headers.get("x-oauth-scopes") for token in tokens}
        assert scopes == {ADMIN: None, ACTIONS: None, CLASSIC: "repo, workflow"}
        assert "x-accepted-github-permissions" in ask(hub, "GET", API, token=ACTIONS).headers
        integration = "Resource not accessible by integration"
        assert ask(hub, "GET", "/api/v3/user", token=ACTIONS).json()["message"] == integration
        assert ask(hub, "POST", f"{API}/labels", {"name": "x"}, token=CLASSIC).status_code == 403
        pull = client(hub, ACTIONS).get_repo(NAME).create_pull(base="main", head="topic", title="T")
        assert (pull.user.login, pull.user.type) == ("github-actions[bot]", "Bot")
        with pytest.raises(GithubException, match=integration):
            pull.convert_to_draft()


def test_every_answer_tells_the_rate_limit(hub: Hub) -> None:
    answers = [ask(hub, "GET", path) for path in (API, f"{API}/issues/9", "/api/v3/repos/acme/nothing")]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["4999", "4998", "4997"]
    assert answers[0].headers["x-ratelimit-resource"] == "core"
    assert ask(hub, "POST", "/api/graphql", {"query": "{ viewer { login } }"}).headers["x-ratelimit-used"] == "1"
    assert "x-ratelimit-limit" not in ask(hub, "GET", "/").headers


def test_a_client_is_told_nothing_twice_and_pays_for_it_once(hub: Hub, widget: Repository) -> None:
    def again(path: str, tag: str, token: str = ADMIN) -> requests.Response:
        headers = {"Authorization": f"Bearer {token}", "If-None-Match": tag}
        return requests.get(hub.url + path, headers=headers, timeout=30)

    first = ask(hub, "GET", f"{API}/issues")
    tag, left = first.headers["etag"], first.headers["x-ratelimit-remaining"]
    for given in (tag, tag.removeprefix("W/"), f'"other", {tag}'):
        same = again(f"{API}/issues", given)
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
        assert same.headers["x-ratelimit-remaining"] == left
    widget.create_issue("New")
    changed = again(f"{API}/issues", tag)
    assert (changed.status_code, changed.json()[0]["title"], changed.headers["etag"] == tag) == (200, "New", False)
    assert again(f"{API}/issues", changed.headers["etag"], token="wrong").status_code == 401
    assert "etag" not in ask(hub, "GET", f"{API}/issues/99").headers
