"""Whether a pull request can be merged, what a branch demands of it, and what merging does."""

from pathlib import Path
from typing import Any

import pytest
from github import GithubException
from github.PullRequest import PullRequest
from github.Repository import Repository

from runner.hub import Check, Exchange, Hub, Permission, Source, Token, TokenKind
from runner.hub.access import Area
from runner.hub.requirements import Candidate, Demands, refusal, words
from tests.runner.hub.conftest import ADMIN, NAME, WRITER, Client, push_branch
from tests.runner.hub.test_drills import API, ask
from tests.runner.hub.test_issues import refused
from tests.world import World, commit, git

PROTECTION = f"{API}/branches/main/protection"
NOT_SUCCEEDED = "2 of 3 required status checks have not succeeded"
UNDEMANDING: dict[str, Any] = {
    "required_status_checks": None,
    "enforce_admins": True,
    "required_pull_request_reviews": None,
    "restrictions": None,
}


@pytest.fixture
def pull(world: World, widget: Repository) -> PullRequest:
    """Pull request 1, from `topic` to `main`, whose mergeability is known."""
    push_branch(world, "topic", "topic\n")
    return widget.create_pull(base="main", head="topic", title="Topic", body="A change.")


def state(widget: Repository) -> tuple[bool | None, str]:
    pull = widget.get_pull(1)
    return pull.mergeable, pull.mergeable_state


def protect(hub: Hub, **changes: Any) -> None:
    assert ask(hub, "PUT", PROTECTION, UNDEMANDING | changes).status_code == 200


def move_base(world: World, name: str = "elsewhere") -> str:
    """Push a commit to main that conflicts with nothing."""
    (world.launch / name).write_text("moved\n")
    made = commit(world.launch, "move main")
    git(world.launch, "push", "-q", "origin", "main")
    return made


def refusal_of(pull: PullRequest, **order: Any) -> tuple[int, str]:
    with pytest.raises(GithubException) as caught:
        pull.merge(**order)
    return refused(caught)


def test_mergeability_is_found_out_after_the_first_answer(world: World, widget: Repository, pull: PullRequest) -> None:
    assert (pull.raw_data["mergeable"], pull.mergeable_state) == (None, "unknown")
    assert [state(widget) for _ in range(2)] == [(True, "clean")] * 2
    push_branch(world, "topic", "more\n", start="topic")
    assert [state(widget) for _ in range(2)] == [(None, "unknown"), (True, "clean")]
    move_base(world)
    assert [state(widget) for _ in range(2)] == [(None, "unknown"), (True, "clean")]


def test_mergeability_may_take_longer(hub: Hub, widget: Repository, pull: PullRequest) -> None:
    hub.admin.set(NAME, mergeability_answers=3)
    assert [state(widget)[0] for _ in range(4)] == [None, None, True, True]
    with pytest.raises(TypeError):
        hub.admin.set(NAME, allow_everything=True)


def test_a_conflict_is_seen_and_not_merged(world: World, widget: Repository, pull: PullRequest) -> None:
    push_branch(world, "main", "conflict\n")
    assert [state(widget) for _ in range(2)] == [(None, "unknown"), (False, "dirty")]
    for method in ("merge", "squash", "rebase"):
        assert refusal_of(pull, merge_method=method) == (405, "Pull Request is not mergeable")


def test_a_draft_is_not_merged(widget: Repository, pull: PullRequest) -> None:
    pull.convert_to_draft()
    assert state(widget) == (True, "draft")
    assert refusal_of(pull) == (405, "Pull Request is still a draft")


@pytest.mark.parametrize(
    ("conclusion", "expected"), [("success", "clean"), ("failure", "unstable"), (None, "unstable")]
)
def test_checks_that_nobody_demands_make_it_unstable(
    hub: Hub, widget: Repository, pull: PullRequest, conclusion: str | None, expected: str
) -> None:
    hub.ci.add(NAME, Check("test", conclusions=(conclusion,)))
    assert state(widget) == (True, expected)
    assert pull.merge().merged


def test_a_merge_makes_a_merge_commit_and_happens_once(world: World, widget: Repository, pull: PullRequest) -> None:
    parents = f"{world.on_origin('main')} {world.on_origin('topic')}"
    status = pull.merge(sha=pull.head.sha)
    assert (status.merged, status.sha) == (True, world.on_origin("main"))
    assert git(world.origin, "show", "-s", "--format=%P", "main") == parents
    assert world.origin_file("main", "a.txt") == "topic"
    assert git(world.origin, "show", "-s", "--format=%B", "main") == "Merge pull request #1 from acme/topic\n\nTopic\n"
    merged = widget.get_pull(1)
    assert (merged.merged, merged.state, merged.merge_commit_sha) == (True, "closed", status.sha)
    assert refusal_of(merged) == (405, "Pull Request is not mergeable")
    assert world.on_origin("topic") == merged.head.sha


def test_a_squash_makes_one_commit(world: World, pull: PullRequest) -> None:
    before = world.on_origin("main")
    pull.merge(merge_method="squash", commit_title="All of it")
    assert git(world.origin, "show", "-s", "--format=%P %s", "main") == f"{before} All of it"
    assert world.origin_file("main", "a.txt") == "topic"


def test_a_rebase_makes_the_commits_anew(world: World, pull: PullRequest) -> None:
    push_branch(world, "topic", "more\n", start="topic")
    base, head = move_base(world), world.on_origin("topic")
    sha = pull.merge(merge_method="rebase").sha
    assert git(world.origin, "log", "--format=%an %cn %s", f"{base}..{sha}").splitlines() == [
        "Person nightkeep write more",
        "Person nightkeep write topic",
    ]
    assert (world.on_origin("main"), sha != head) == (sha, True)
    assert git(world.origin, "worktree", "list", "--porcelain").count("worktree ") == 1


@pytest.mark.parametrize(
    ("method", "setting", "message"),
    [
        ("merge", "allow_merge_commit", "Merge commits are not allowed on this repository."),
        ("squash", "allow_squash_merge", "Squash merges are not allowed on this repository."),
        ("rebase", "allow_rebase_merge", "Rebase merges are not allowed on this repository."),
    ],
)
def test_a_method_that_is_not_allowed_is_refused(
    hub: Hub, widget: Repository, pull: PullRequest, method: str, setting: str, message: str
) -> None:
    assert getattr(widget, setting) is True
    hub.admin.set(NAME, **{setting: False})
    widget.update()
    assert getattr(widget, setting) is False
    assert refusal_of(pull, merge_method=method) == (405, message)


def test_another_head_is_refused(world: World, pull: PullRequest) -> None:
    before = world.on_origin("main")
    message = "Head branch was modified. Review and try the merge again."
    assert refusal_of(pull, sha="0" * 40) == (409, message)
    push_branch(world, "topic", "foreign\n", start="topic")
    assert refusal_of(pull, sha=pull.head.sha) == (409, message)
    assert world.on_origin("main") == before


def test_a_pull_request_that_somebody_pushed_to_its_base_is_merged(world: World, widget: Repository) -> None:
    widget.create_issue("Issue")
    head = push_branch(world, "topic", "topic\n")
    widget.create_pull(base="main", head="topic", title="Topic", body="Fixes #1")
    git(world.launch, "merge", "-q", "--no-ff", "-m", "by hand", "topic")
    git(world.launch, "push", "-q", "origin", "main", ":topic")
    merged = widget.get_pull(2)
    assert (merged.merged, merged.state, merged.head.sha) == (True, "closed", head)
    assert merged.merge_commit_sha == world.on_origin("main")
    assert widget.get_issue(1).state == "closed"


def test_a_branch_is_deleted_on_merge_where_that_is_set_or_by_hand(
    hub: Hub, world: World, widget: Repository, pull: PullRequest
) -> None:
    hub.admin.set(NAME, delete_branch_on_merge=True)
    pull.merge()
    assert world.on_origin("topic") == ""
    assert widget.get_pull(1).merged
    push_branch(world, "other", "other\n")
    assert ask(hub, "DELETE", f"{API}/git/refs/heads/other").status_code == 204
    assert world.on_origin("other") == ""
    again = ask(hub, "DELETE", f"{API}/git/refs/heads/other")
    assert (again.status_code, again.json()["message"]) == (422, "Reference does not exist")
    protect(hub)
    assert ask(hub, "DELETE", f"{API}/git/refs/heads/main").json()["message"] == "Cannot delete this branch"


def test_a_review_is_demanded_and_given(hub: Hub, widget: Repository, pull: PullRequest) -> None:
    protect(hub, required_pull_request_reviews={"required_approving_review_count": 1})
    assert state(widget) == (True, "blocked")
    message = "At least 1 approving review is required by reviewers with write access."
    assert refusal_of(pull) == (405, message)
    hub.admin.approve(NAME, 1, "maintainer")
    assert state(widget) == (True, "clean")
    assert pull.merge().merged
    with pytest.raises(ValueError, match="#9 is not a pull request"):
        hub.admin.approve(NAME, 9, "maintainer")


@pytest.mark.parametrize(
    ("check", "word"),
    [
        (Check("other"), "is expected."),
        (Check("test", conclusions=("failure",)), "is failing."),
        (Check("test", conclusions=(None,)), "is in progress."),
        (Check("test", conclusions=(None,), source=Source.STATUS), "is pending."),
        (Check("test"), ""),
        (Check("test", source=Source.STATUS), ""),
        (Check("test", conclusions=("skipped",)), ""),
    ],
)
def test_a_check_is_demanded(hub: Hub, widget: Repository, pull: PullRequest, check: Check, word: str) -> None:
    protect(hub, required_status_checks={"strict": False, "contexts": ["test"]})
    hub.ci.add(NAME, check)
    if word:
        assert state(widget) == (True, "blocked")
        assert refusal_of(pull) == (405, f'Required status check "test" {word}')
    else:
        assert state(widget) == (True, "clean")
        assert pull.merge().merged


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ({}, "3 of 3 required status checks are expected."),
        (
            {"a": "passing", "b": "failing"},
            "2 of 3 required status checks have not succeeded: 1 expected and 1 failing.",
        ),
        (
            {"a": "in progress", "b": "failing", "c": "passing"},
            "2 of 3 required status checks have not succeeded: 1 failing.",
        ),
        ({"a": "failing", "b": "failing", "c": "passing"}, "2 of 3 required status checks are failing."),
        ({"a": "passing", "b": "failing", "c": "passing"}, 'Required status check "b" is failing.'),
    ],
)
def test_several_checks_are_counted(checks: dict[str, str], message: str) -> None:
    shown = Candidate(checks=checks, approvals=0, behind=False)
    demands = Demands(contexts=("a", "b", "c"))
    assert refusal(demands, shown, login="somebody", is_admin=False, method="merge") == (405, message)


def test_of_checks_of_one_name_the_worst_counts() -> None:
    actions, status = Source.ACTIONS, Source.STATUS
    checks = [("a", actions, "failure"), ("a", status, "success"), ("b", status, "success"), ("b", actions, None)]
    assert words(checks) == {"a": "failing", "b": "in progress"}


def test_a_strict_branch_takes_only_what_is_up_to_date(
    hub: Hub, world: World, widget: Repository, pull: PullRequest
) -> None:
    protect(hub, required_status_checks={"strict": True, "contexts": []})
    assert state(widget) == (True, "clean")
    move_base(world)
    assert [state(widget)[1] for _ in range(2)] == ["unknown", "behind"]
    assert refusal_of(pull) == (409, "Head branch is out of date. Review and try the merge again.")
    protect(hub)
    assert pull.merge().merged


def test_administrators_are_let_through_unless_it_is_said(
    hub: Hub, client: Client, widget: Repository, pull: PullRequest
) -> None:
    protect(hub, required_status_checks={"strict": False, "contexts": ["test"]}, enforce_admins=False)
    writer = client(hub, WRITER).get_repo(NAME).get_pull(1)
    assert refusal_of(writer)[0] == 405
    protect(hub, required_status_checks={"strict": False, "contexts": ["test"]})
    assert refusal_of(pull)[0] == 405
    protect(hub, required_status_checks={"strict": False, "contexts": ["test"]}, enforce_admins=False)
    assert pull.merge().merged


def test_others_are_kept_from_a_restricted_branch(hub: Hub, client: Client, pull: PullRequest) -> None:
    protect(hub, restrictions={"users": ["nightkeep"], "teams": []})
    writer = client(hub, WRITER).get_repo(NAME).get_pull(1)
    assert refusal_of(writer)[1].startswith("You're not authorized to push to this branch.")
    assert pull.merge().merged


def test_protection_is_read_as_it_was_written_and_taken_away(
    hub: Hub, client: Client, widget: Repository, pull: PullRequest
) -> None:
    main = widget.get_branch("main")
    with pytest.raises(GithubException, match="Branch not protected"):
        main.get_protection()
    protect(
        hub,
        required_status_checks={"strict": True, "contexts": [], "checks": [{"context": "test"}]},
        required_pull_request_reviews={"required_approving_review_count": 2},
        restrictions={"users": ["nightkeep"], "teams": []},
    )
    seen = main.get_protection()
    assert (seen.required_status_checks.strict, seen.required_status_checks.contexts) == (True, ["test"])
    assert seen.required_pull_request_reviews.required_approving_review_count == 2
    assert (seen.enforce_admins, seen.raw_data["restrictions"]["users"][0]["login"]) == (True, "nightkeep")
    everybody = ask(hub, "GET", f"{API}/branches/main", token=WRITER).json()
    assert (everybody["protected"], everybody["protection"]["required_status_checks"]["contexts"]) == (True, ["test"])
    with pytest.raises(GithubException) as caught:
        client(hub, WRITER).get_repo(NAME).get_branch("main").get_protection()
    assert refused(caught) == (403, "Resource not accessible by personal access token")
    main.remove_protection()
    assert widget.get_branch("main").protected is False
    assert ask(hub, "DELETE", PROTECTION).status_code == 404
    assert ask(hub, "GET", f"{API}/branches/nowhere/protection").json()["message"] == "Branch not found"


def test_a_token_may_not_read_protection_but_rules(world: World, tmp_path: Path, exchanges: list[Exchange]) -> None:
    limited = Token(Permission.ADMIN, TokenKind.ACTIONS, without=frozenset({Area.ADMINISTRATION}))
    with Hub(
        tmp_path / "hub", repositories={NAME: world.origin}, tokens={ADMIN: limited}, observe=exchanges.append
    ) as hub:
        refused = ask(hub, "GET", PROTECTION)
        assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
        assert ask(hub, "GET", f"{API}/rules/branches/main").json() == []


def test_rules_hold_for_everybody_and_everybody_may_read_them(hub: Hub, widget: Repository, pull: PullRequest) -> None:
    hub.admin.add_rule(NAME, "main", "pull_request", required_approving_review_count=2)
    hub.admin.add_rule(NAME, "main", "required_status_checks", required_status_checks=[{"context": "test"}])
    hub.admin.add_rule(NAME, "main", "required_linear_history")
    rules = ask(hub, "GET", f"{API}/rules/branches/main", token=WRITER).json()
    assert [rule["type"] for rule in rules] == ["pull_request", "required_status_checks", "required_linear_history"]
    assert rules[1]["parameters"]["required_status_checks"] == [{"context": "test"}]
    assert state(widget) == (True, "blocked")
    status, message = refusal_of(pull)
    assert (status, message.split("\n\n")) == (
        405,
        [
            "Repository rule violations found",
            "At least 2 approving reviews are required by reviewers with write access.",
            'Required status check "test" is expected.',
            "This branch must not contain merge commits.",
        ],
    )
    for login in ("one", "two"):
        hub.admin.approve(NAME, 1, login)
    hub.ci.add(NAME, Check("test"))
    assert pull.merge(merge_method="squash").merged
    assert ask(hub, "GET", f"{API}/rules/branches/topic").json() == []
    with pytest.raises(ValueError, match="no rule that the hub knows"):
        hub.admin.add_rule(NAME, "main", "required_signatures")
