"""Asking for many issues at once: pages, lost answers, and what may not be seen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from delivery.github import GitHub, Role
from runner.hub import Exchange, Hub, Permission, drills
from tests.delivery.conftest import NAME, TOKEN
from tests.world import World, git

SECRET = "acme/secret"


@pytest.fixture
def hub(world: World, tmp_path: Path, exchanges: list[Exchange]) -> Iterator[Hub]:
    secret = tmp_path / "secret.git"
    git(tmp_path, "init", "-q", "--bare", str(secret))
    repositories = {NAME: world.origin, SECRET: secret}
    tokens = {TOKEN: Permission.WRITE}
    with Hub(tmp_path / "hub", repositories=repositories, tokens=tokens, observe=exchanges.append) as served:
        yield served


def test_five_hundred_issues_are_five_questions(hub: Hub, github: GitHub) -> None:
    people = hub.people(NAME)
    for _ in range(500):
        people.label(people.open("ada"), "olga", "ready")
    hub.requests.clear()
    queue = github.issues.queue("READY", "working")
    assert [issue.number for issue in queue.ready] == list(range(1, 501))
    assert len(hub.requests) == 5


def test_blockers_and_tickets_beyond_one_page_are_all_found(hub: Hub, github: GitHub) -> None:
    people = hub.people(NAME)
    spec = people.open("ada")
    for _ in range(60):
        other = people.open("ada")
        people.block(spec, other, "olga")
        people.add_sub_issue(spec, other, "olga")
    assert len(github.issues.one(spec).blockers) == 60
    assert len(github.issues.tickets(spec)[0]) == 60


@pytest.mark.parametrize("forbids", [False, True])
def test_a_blocker_that_may_not_be_seen_is_counted(hub: Hub, github: GitHub, *, forbids: bool) -> None:
    people = hub.people(NAME)
    number = people.open("ada")
    people.block(number, hub.people(SECRET).open("eve"), "olga", of=SECRET)
    hub.admin.hide(SECRET, forbids=forbids)
    found = github.issues.one(number)
    assert (found.blockers, found.unseen_blockers) == ((), 1)


def test_an_issue_whose_answer_was_lost_is_not_made_twice(hub: Hub, github: GitHub) -> None:
    with hub.drill("POST", "/api/v3/repos/*/issues", drills.lost_answer()):
        number = github.issues.create(title="CI red", body="Mark: base-fix-1", labels=("ready",), marker="base-fix-1")
    assert [issue.number for issue in github.issues.queue("ready", "working").ready] == [number]


def test_a_stranger_has_no_role_where_nobody_may_read(hub: Hub, github: GitHub) -> None:
    hub.admin.make_private_on_free_plan(NAME)
    hub.admin.permit(NAME, "mia", "maintain")
    assert [github.issues.role(login) for login in ("nobody", "mia")] == [Role.NONE, Role.WRITE]
