"""Pull requests, over REST and GraphQL, on real branches."""

import pytest
from github import GithubException, UnknownObjectException
from github.PullRequest import PullRequest
from github.Repository import Repository

from runner.hub import Hub
from runner.hub.pull_requests import closing_numbers
from tests.runner.hub.conftest import NAME, READER, Client, push_branch
from tests.runner.hub.test_issues import refused
from tests.world import World, git


@pytest.fixture
def pull(world: World, widget: Repository) -> PullRequest:
    """Pull request 1, from `topic` to `main`."""
    push_branch(world, "topic", "topic\n")
    return widget.create_pull(base="main", head="topic", title="Topic", body="A change.")


def test_a_pull_request_knows_its_branches(hub: Hub, world: World, pull: PullRequest) -> None:
    assert (pull.number, pull.html_url, pull.draft) == (1, f"{hub.url}/{NAME}/pull/1", False)
    assert pull.head.sha == world.on_origin("topic")
    assert (pull.base.ref, pull.base.sha) == ("main", world.on_origin("main"))
    assert (pull.commits, pull.changed_files, pull.additions, pull.deletions) == (1, 1, 1, 1)


def test_a_pull_request_follows_its_branch_while_there_is_one(
    world: World, widget: Repository, pull: PullRequest
) -> None:
    moved = push_branch(world, "topic", "more\n", start="topic")
    assert widget.get_pull(1).head.sha == moved
    git(world.launch, "push", "-q", "origin", ":topic")
    gone = widget.get_pull(1)
    assert (gone.head.sha, gone.state, gone.merged) == (moved, "closed", False)
    with pytest.raises(GithubException) as caught:
        gone.edit(state="open")
    assert refused(caught) == (422, "state cannot be changed. The topic branch has been deleted.")


@pytest.mark.parametrize(
    ("head", "base", "answer"),
    [
        ("nowhere", "main", "invalid"),
        ("somebody:other", "main", "invalid"),
        ("other", "nowhere", "invalid"),
        ("same", "main", "No commits between main and same"),
        ("acme:topic", "main", "A pull request already exists for acme:topic."),
    ],
)
def test_a_pull_request_that_cannot_be_is_refused(
    world: World, widget: Repository, pull: PullRequest, head: str, base: str, answer: str
) -> None:
    push_branch(world, "other", "other\n")
    git(world.launch, "push", "-q", "origin", "main:same")
    with pytest.raises(GithubException) as caught:
        widget.create_pull(base=base, head=head, title="Second")
    assert refused(caught) == (422, answer)


def test_pull_requests_share_numbers_labels_and_comments_with_issues(widget: Repository, pull: PullRequest) -> None:
    assert widget.create_issue("Next").number == 2
    pull.add_to_labels("agent")
    pull.create_issue_comment("Looks good.")
    seen = widget.get_issue(1)
    assert seen.pull_request is not None
    assert ([label.name for label in seen.labels], seen.comments, seen.node_id) == (["agent"], 1, pull.node_id)
    assert [issue.number for issue in widget.get_issues()] == [2, 1]
    with pytest.raises(UnknownObjectException):
        widget.get_pull(2)


def test_pull_requests_are_listed_by_head_base_and_state(world: World, widget: Repository, pull: PullRequest) -> None:
    push_branch(world, "other", "other\n")
    widget.create_pull(base="topic", head="other", title="Stacked")
    assert [one.number for one in widget.get_pulls()] == [2, 1]
    assert [one.number for one in widget.get_pulls(head="acme:topic")] == [1]
    assert [one.number for one in widget.get_pulls(base="topic")] == [2]
    pull.edit(state="closed")
    assert [one.number for one in widget.get_pulls()] == [2]
    assert [one.number for one in widget.get_pulls(state="all", direction="asc")] == [1, 2]


def test_a_pull_request_is_edited(world: World, widget: Repository, pull: PullRequest) -> None:
    git(world.launch, "push", "-q", "origin", "main:release")
    pull.edit(title="Better", body="Said better.", base="release")
    after = widget.get_pull(1)
    assert (after.title, after.body, after.base.ref) == ("Better", "Said better.", "release")
    with pytest.raises(GithubException) as caught:
        pull.edit(base="nowhere")
    assert refused(caught) == (422, "invalid")


def test_a_pull_request_becomes_a_draft_and_ready_again(widget: Repository, pull: PullRequest) -> None:
    assert pull.convert_to_draft("mine")["clientMutationId"] == "mine"
    draft = widget.get_pull(1)
    assert draft.draft is True
    with pytest.raises(GithubException) as caught:
        draft.merge()
    assert refused(caught) == (405, "Pull Request is still a draft")
    draft.mark_ready_for_review()
    assert widget.get_pull(1).draft is False


def test_graphql_says_which_error_it_is(hub: Hub, client: Client, pull: PullRequest) -> None:
    reader = client(hub, READER).get_repo(NAME).get_pull(1)
    with pytest.raises(GithubException) as caught:
        reader.convert_to_draft()
    assert isinstance(caught.value.data, dict)
    assert caught.value.data["data"] == {"convertPullRequestToDraft": None}
    assert caught.value.data["errors"][0]["type"] == "FORBIDDEN"
    requester = pull.requester
    with pytest.raises(UnknownObjectException):
        requester.graphql_named_mutation("convertPullRequestToDraft", {"pullRequestId": "PR_99"}, "clientMutationId")
    assert requester.graphql_node(pull.node_id, "isDraft number", "PullRequest")[1]["data"]["node"]["number"] == 1


def test_a_merge_closes_the_issues_that_it_names(world: World, widget: Repository) -> None:
    for number in (1, 2, 3):
        widget.create_issue(f"Issue {number}")
    push_branch(world, "topic", "topic\n")
    widget.create_pull(base="main", head="topic", title="T", body="Closes #1, and mentions #2. FIXED: #3").merge()
    assert [issue.number for issue in widget.get_issues()] == [2]


def test_a_merge_elsewhere_closes_nothing(world: World, widget: Repository) -> None:
    widget.create_issue("Issue")
    push_branch(world, "topic", "topic\n")
    git(world.launch, "push", "-q", "origin", "main:release")
    widget.create_pull(base="release", head="topic", title="T", body="Closes #1").merge()
    assert widget.get_issue(1).state == "open"


@pytest.mark.parametrize(
    "word", ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "Resolved"]
)
def test_every_closing_word_counts(word: str) -> None:
    assert closing_numbers(f"This {word} #7.") == [7]
    assert closing_numbers(f"un{word} #7, {word}#8, {word} 9") == []


def test_a_reader_opens_and_merges_nothing(hub: Hub, client: Client, pull: PullRequest) -> None:
    reader = client(hub, READER).get_repo(NAME)
    with pytest.raises(GithubException) as caught:
        reader.get_pull(1).merge()
    assert caught.value.status == 403
    with pytest.raises(GithubException) as caught:
        reader.create_pull(base="main", head="topic", title="T")
    assert caught.value.status == 403


def test_refs_branches_and_statuses_are_read(world: World, widget: Repository, pull: PullRequest) -> None:
    assert widget.get_git_ref("heads/topic").object.sha == world.on_origin("topic")
    with pytest.raises(UnknownObjectException):
        widget.get_git_ref("heads/top")
    branch = widget.get_branch("topic")
    assert (branch.commit.sha, branch.commit.commit.message) == (world.on_origin("topic"), "write topic")
    assert (branch.commit.get_combined_status().state, branch.commit.get_check_runs().totalCount) == ("pending", 0)
