"""Issues, labels and comments."""

import pytest
from github import GithubException, UnknownObjectException
from github.Repository import Repository

from runner.hub import Hub
from tests.runner.hub.conftest import NAME, READER, TRIAGER, Client


def names(repository: Repository, number: int) -> list[str]:
    return [label.name for label in repository.get_issue(number).get_labels()]


def refused(call: pytest.ExceptionInfo[GithubException]) -> tuple[int, str]:
    error = call.value
    assert isinstance(error.data, dict)
    details = [one.get("message") or one.get("code") for one in error.data.get("errors", [])]
    return error.status, (details or [error.data["message"]])[0]


def test_an_issue_is_opened_edited_closed_and_reopened(hub: Hub, widget: Repository) -> None:
    issue = widget.create_issue("Broken", body="It broke.", labels=["bug"])
    assert (issue.number, issue.html_url) == (1, f"{hub.url}/{NAME}/issues/1")
    issue.edit(title="Fixed", state="closed")
    closed = widget.get_issue(1)
    assert (closed.title, closed.state, closed.body, closed.labels[0].name) == ("Fixed", "closed", "It broke.", "bug")
    assert closed.closed_at is not None
    closed.edit(state="open", labels=["a", "b"])
    assert (widget.get_issue(1).state, names(widget, 1)) == ("open", ["a", "b"])


def test_what_is_not_there_is_not_found(hub: Hub, widget: Repository, client: Client) -> None:
    for number in (99, 10**20):
        with pytest.raises(UnknownObjectException):
            widget.get_issue(number)
    with pytest.raises(UnknownObjectException, match="Not Found"):
        client(hub, READER).get_repo("acme/nothing")


def test_an_issue_without_a_title_is_refused(widget: Repository) -> None:
    with pytest.raises(GithubException) as caught:
        widget.create_issue(" ")
    assert refused(caught) == (422, "missing_field")


def test_a_body_that_is_no_text_is_refused(widget: Repository) -> None:
    with pytest.raises(GithubException) as caught:
        widget.create_issue("half a pair: \ud800")
    assert refused(caught) == (400, "Problems parsing JSON")


def test_labels_are_made_once_whatever_their_case(widget: Repository) -> None:
    label = widget.create_label("Ready for agent", "00ff00", "take it")
    assert widget.get_label("ready for agent").raw_data["name"] == "Ready for agent"
    with pytest.raises(GithubException) as caught:
        widget.create_label("READY FOR AGENT", "ff0000")
    assert refused(caught) == (422, "already_exists")
    label.delete()
    with pytest.raises(UnknownObjectException):
        widget.get_label("ready for agent")


def test_labels_are_added_removed_and_replaced(widget: Repository) -> None:
    issue = widget.create_issue("Labelled")
    issue.add_to_labels("in progress", "area/api")  # unknown ones are created
    issue.add_to_labels("IN PROGRESS")
    assert names(widget, 1) == ["in progress", "area/api"]
    issue.remove_from_labels("area/api")
    with pytest.raises(GithubException) as caught:
        issue.remove_from_labels("area/api")
    assert refused(caught) == (404, "Label does not exist")
    issue.set_labels("other")
    assert names(widget, 1) == ["other"]
    assert [label.name for label in widget.get_labels()] == ["area/api", "in progress", "other"]


def test_comments_are_made_edited_listed_and_deleted(hub: Hub, widget: Repository) -> None:
    issue = widget.create_issue("Discussed")
    first, second = issue.create_comment("one"), issue.create_comment("two")
    first.edit("uno")
    assert [comment.body for comment in issue.get_comments()] == ["uno", "two"]
    assert issue.get_comment(first.id).html_url == f"{hub.url}/{NAME}/issues/1#issuecomment-{first.id}"
    second.delete()
    assert [comment.id for comment in widget.get_issue(1).get_comments()] == [first.id]
    assert widget.get_issue(1).comments == 1


def test_a_comment_has_a_longest_length(widget: Repository) -> None:
    issue = widget.create_issue("Long")
    issue.create_comment("x" * 65536)
    with pytest.raises(GithubException) as caught:
        issue.create_comment("x" * 65537)
    assert refused(caught) == (422, "body is too long (maximum is 65536 characters)")


def test_issues_are_selected_by_state_and_by_all_labels(widget: Repository) -> None:
    for number, labels in enumerate((["a"], ["a", "B"], ["b"]), start=1):
        widget.create_issue(f"Issue {number}", labels=labels)
    widget.get_issue(1).edit(state="closed")
    assert [issue.number for issue in widget.get_issues()] == [3, 2]
    assert [issue.number for issue in widget.get_issues(labels=["A", "b"])] == [2]
    assert [issue.number for issue in widget.get_issues(state="all", direction="asc")] == [1, 2, 3]
    assert [issue.number for issue in widget.get_issues(state="closed")] == [1]


def test_lists_come_in_pages(hub: Hub, widget: Repository, client: Client) -> None:
    for number in range(1, 6):
        widget.create_issue(f"Issue {number}")
    small = client(hub, READER)
    small.per_page = 2
    pages = small.get_repo(NAME).get_issues(direction="asc")
    before = len(hub.requests)
    assert [issue.number for issue in pages] == [1, 2, 3, 4, 5]
    assert hub.requests[before:] == [("GET", f"/api/v3/repos/{NAME}/issues")] * 3
    assert pages.totalCount == 5


def test_a_reader_may_write_issues_and_comments_but_not_label(hub: Hub, widget: Repository, client: Client) -> None:
    reader = client(hub, READER).get_repo(NAME)
    issue = reader.create_issue("Mine", labels=["dropped"])
    assert issue.labels == []
    issue.create_comment("also mine").edit("still mine")
    issue.edit(title="Changed")
    with pytest.raises(GithubException) as caught:
        issue.add_to_labels("ready")
    assert refused(caught) == (403, "Resource not accessible by personal access token")
    client(hub, TRIAGER).get_repo(NAME).get_issue(1).add_to_labels("ready")
    assert names(widget, 1) == ["ready"]


def test_only_known_tokens_are_let_in(hub: Hub, client: Client) -> None:
    with pytest.raises(GithubException) as caught:
        client(hub, "wrong").get_user().login  # noqa: B018  # reading it asks the server
    assert refused(caught) == (401, "Bad credentials")
    assert client(hub, READER).get_user().login == "nightkeep-4"
    permissions = client(hub, TRIAGER).get_repo(NAME).permissions
    assert (permissions.triage, permissions.push) == (True, False)
