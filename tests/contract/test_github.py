"""Everything that delivery asks GitHub, and every answer, is as GitHub describes it."""

from collections.abc import Callable

import pytest

from delivery.errors import GitHubError
from delivery.github import Checks, CheckState, GitHub, Issues, Merges, Role, Word
from runner.hub import Check, Exchange, Hub, Source, drills
from tests.runner.hub.conftest import push_branch
from tests.runner.hub.test_drills import API, ask
from tests.world import World

NAME, MARKER = "acme/widget", "<!-- marker -->"


@pytest.fixture
def pull(github: GitHub, world: World) -> int:
    """A pull request from `topic`; an issue with a label has a number too."""
    push_branch(world, "topic", "topic\n")
    return github.open_pull_request(title="Topic", body="", base="main", branch="topic", draft=True).number


def test_every_method_is_as_described(github: GitHub, pull: int, hub: Hub, exchanges: list[Exchange]) -> None:
    issue = ask(hub, "POST", f"{API}/issues", {"title": "Add a lamp"}).json()["number"]
    calls: dict[str, Callable[[], object]] = {
        "repository": github.repository,
        "is_workflow_token": github.is_workflow_token,
        "viewer": github.viewer,
        "issue": lambda: github.issue(pull),
        "labels": github.labels,
        "create_label": lambda: github.create_label("ready", "0e8a16", "An agent may take it"),
        "add_label": lambda: github.add_label(pull, "area/api"),
        "remove_label": lambda: github.remove_label(pull, "area/api"),
        "pull_requests": lambda: github.pull_requests("topic"),
        "open_pull_requests": github.open_pull_requests,
        "merged_pull_requests": lambda: github.merged_pull_requests("main"),
        "pull_request": lambda: github.pull_request(pull),
        "open_pull_request": lambda: pull,  # the fixture did
        "edit_pull_request": lambda: github.edit_pull_request(pull, title="Better", body="Said."),
        "mark_ready": lambda: github.mark_ready(pull),
        "convert_to_draft": lambda: github.convert_to_draft(pull),
        "close_issue": lambda: github.close_issue(issue),
        "comment": lambda: github.comment(pull, MARKER, f"{MARKER} one"),
        "edit_comment": lambda: github.edit_comment(pull, MARKER, f"{MARKER} two"),
        "guarded": lambda: github.guarded(None),
        "unguarded": github.unguarded,
        "close": github.close,
    }
    for call in calls.values():
        call()
    assert methods(GitHub) == set(calls), "every method of GitHub is to be called here"
    assert {exchange.path for exchange in exchanges} >= {"/graphql", f"/repos/{NAME}/issues/{pull}/comments"}


def methods(of: type) -> set[str]:
    return {name for name, value in vars(of).items() if not name.startswith("_") and callable(value)}


def test_checks_are_asked_for_as_described(github: GitHub, pull: int, hub: Hub) -> None:
    hub.ci.add(NAME, Check("test", conclusions=("failure", "success"), log="it broke\n"))
    hub.ci.add(NAME, Check("deploy", source=Source.STATUS))
    hub.ci.add(NAME, Check("scan", source=Source.APP))
    head = github.pull_request(pull).head
    found = {check.name: check for check in github.checks.of(head)}
    test = found["test"]
    assert {name: check.state for name, check in found.items()} == {
        "test": CheckState.FAILED,
        "deploy": CheckState.PASSED,
        "scan": CheckState.PASSED,
    }
    assert test.run is not None
    assert test.job is not None
    assert (found["scan"].run, found["deploy"].id) == (None, None)
    assert "it broke" in github.checks.log_tail(test.job, 1000)
    github.checks.repeat(test.run)
    assert {check.state for check in github.checks.of(head)} == {CheckState.PASSED}
    assert github.checks.unreadable(head, actions=True) == ()
    assert methods(Checks) == {"of", "log_tail", "repeat", "unreadable"}, "every method is to be called here"


def test_issues_are_asked_for_as_described(github: GitHub, hub: Hub) -> None:
    people, issues = hub.people(NAME), github.issues
    spec, ticket, blocker = (people.open(login) for login in ("ada", "robot[bot]", "ghost"))
    people.add_sub_issue(spec, ticket, "writer")
    people.block(ticket, blocker, "writer")
    people.label(spec, "olga", "Ready", "bug")
    people.label(blocker, "olga", "working")
    people.close(blocker, "olga")
    people.edit(spec, "ada", title="Other", body="Else.")
    people.comment(spec, "olga", "And soon.")
    queue = issues.queue("ready", "working")
    assert [issue.number for issue in queue.ready] == [spec]
    assert (queue.working_count, queue.done) == (0, {blocker: frozenset({"working"})})
    found = queue.ready[0]
    assert [(deed.what, deed.actor, deed.label) for deed in found.deeds] == [
        (Word.LABELED, "olga", "Ready"),
        (Word.LABELED, "olga", "bug"),
        (Word.RENAMED, "ada", ""),
    ]
    assert (found.tickets, found.tickets_closed, found.edited_by) == (1, 0, "ada")
    assert found.linked_at is not None
    single = issues.one(ticket)
    assert single.parent is not None
    assert (single.author, single.parent.number, single.blockers[0].is_open) == ("robot[bot]", spec, False)
    (one,), unseen = issues.tickets(spec)
    assert (one.number, one.blockers[0].number, unseen) == (ticket, blocker, 0)
    assert [(comment.author, comment.body) for comment in issues.comments(spec)] == [("olga", "And soon.")]
    assert (issues.role("acme"), issues.role("stranger")) == (Role.ADMIN, Role.READ)
    made = issues.create(title="New", body="Text <!-- mark -->", labels=("base-fix",), marker="<!-- mark -->")
    assert issues.one(made).labels == {"base-fix"}
    assert issues.titles("base-fix") == {made: "New"}
    assert (issues.is_open(made), issues.is_open(blocker)) == (True, False)
    with pytest.raises(GitHubError):
        issues.one(99)
    assert methods(Issues) == {
        "queue", "one", "tickets", "comments", "role", "create", "titles", "is_open"
    }, "every method is to be called here"  # fmt: skip


def test_merges_are_asked_for_as_described(github: GitHub, pull: int, hub: Hub) -> None:
    github.mark_ready(pull)
    hub.admin.add_rule(NAME, "main", "pull_request", required_approving_review_count=2)
    seen = github.pull_request(pull)
    with pytest.raises(GitHubError, match="405"):
        github.merges.merge(pull, seen.head, "merge")
    rules = github.merges.rules("main")
    assert (rules.rules, rules.needs_queue) == (("2 approving reviews",), False)
    assert github.merges.rules("topic").rules == ()
    assert methods(Merges) == {"merge", "rules", "enqueue", "dequeue", "is_queued"}, "every method is to be called here"


def test_the_merge_queue_is_asked_for_as_described(github: GitHub, pull: int, hub: Hub) -> None:
    github.mark_ready(pull)
    hub.admin.add_rule(NAME, "main", "merge_queue")
    hub.admin.add_rule(NAME, "main", "required_status_checks", required_status_checks=[{"context": "test"}])
    hub.ci.add(NAME, Check("test", branches="topic"))
    hub.ci.add(NAME, Check("test", branches="gh-readonly-queue/*", conclusions=(None,)))
    assert github.merges.rules("main").needs_queue
    assert github.merges.rules("main").checks == {"test"}
    seen = github.pull_request(pull)
    github.checks.of(seen.head)
    with pytest.raises(GitHubError):
        github.merges.enqueue(seen, "0" * 40)
    github.merges.enqueue(seen, seen.head)
    assert github.merges.is_queued(seen)
    github.merges.dequeue(seen)
    assert not github.merges.is_queued(seen)


def test_every_refusal_is_as_described(github: GitHub, pull: int, hub: Hub) -> None:
    refusals: list[Callable[[], object]] = [
        lambda: github.issue(99),
        lambda: github.comment(pull, MARKER, "x" * 70_000),
        lambda: github.open_pull_request(title="T", body="", base="nowhere", branch="topic", draft=False),
    ]
    for refused in refusals:
        with pytest.raises(GitHubError):
            refused()
    hub.admin.make_private_on_free_plan(NAME)
    with pytest.raises(GitHubError, match="Draft pull requests are not supported"):
        github.open_pull_request(title="T", body="", base="main", branch="topic", draft=True)
    hub.admin.archive(NAME)
    with pytest.raises(GitHubError, match="archived"):
        github.add_label(pull, "bug")
    with hub.drill("*", "/api/*", drills.bad_credentials(), times=None), pytest.raises(GitHubError, match="401"):
        github.issue(pull)
