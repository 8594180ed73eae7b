"""Check runs and statuses: the scripted continuous integration as clients see it."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from github.Repository import Repository

from runner.hub import NEVER, Check, Exchange, Hub, Permission, Source, Token, TokenKind, Wait
from runner.hub.access import Area
from runner.hub.checks import CONCLUSIONS, Stage, overall, stage
from tests.runner.hub.conftest import ADMIN, NAME, push_branch, remote
from tests.runner.hub.test_drills import API, ask
from tests.world import World, commit, git

FAILURE = Check("test", conclusions=("failure", "success"))


def seen(hub: Hub, ref: str) -> list[tuple[str, str, str | None]]:
    """Return name, status and conclusion of the check runs of a commit; this is a poll."""
    runs = ask(hub, "GET", f"{API}/commits/{ref}/check-runs").json()["check_runs"]
    return [(run["name"], run["status"], run["conclusion"]) for run in runs]


def ended(hub: Hub, ref: str, *names: str) -> list[tuple[str, str, str | None]]:
    """Return what `seen` does once the checks with these names, or all, are over."""
    deadline = time.monotonic() + 30
    while any(run[1] != "completed" for run in seen(hub, ref) if not names or run[0] in names):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return seen(hub, ref)


def test_a_check_belongs_to_the_pushed_head_and_its_pages_are_linked(
    hub: Hub, world: World, widget: Repository
) -> None:
    hub.ci.add(NAME, Check("test", branches="topic"))
    first = push_branch(world, "topic", "topic\n")
    [run] = widget.get_branch("topic").commit.get_check_runs()
    assert (run.name, run.status, run.conclusion, run.head_sha) == ("test", "completed", "success", first)
    assert run.details_url == run.html_url
    assert run.html_url.startswith(f"{hub.url}/{NAME}/actions/runs/")
    assert (run.app.slug, seen(hub, "main")) == ("github-actions", [])
    second = push_branch(world, "topic", "more\n", start="topic")
    [other] = widget.get_branch("topic").commit.get_check_runs()
    assert (other.head_sha, other.id == run.id) == (second, False)


def test_a_command_looks_at_the_pushed_files(hub: Hub, world: World, widget: Repository) -> None:
    hub.ci.add(NAME, Check("test", command="cat a.txt && test ! -e broken"))
    push_branch(world, "good", "good\n")
    git(world.launch, "checkout", "-q", "-b", "bad")
    (world.launch / "broken").touch()
    bad = commit(world.launch, "break it")
    git(world.launch, "push", "-q", "origin", "bad")
    assert ended(hub, "good") == [("test", "completed", "success")]
    assert ended(hub, bad) == [("test", "completed", "failure")]
    [job] = next(iter(widget.get_workflow_runs(head_sha=bad))).jobs()
    log = ask(
        hub, "GET", ask(hub, "GET", f"{API}/actions/jobs/{job.id}/logs").headers["location"].removeprefix(hub.url)
    )
    assert [line.partition(" ")[2] for line in log.text.splitlines()][2:] == [
        "a",
        "##[error]Process completed with exit code 1.",
    ]


def test_a_command_that_takes_too_long_is_ended(hub: Hub) -> None:
    hub.ci.add(NAME, Check("endless", command="sleep 600", limit=0.1))
    assert ended(hub, "main") == [("endless", "completed", "timed_out")]


def test_the_hub_answers_while_a_command_is_at_work(hub: Hub, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    hub.ci.add(NAME, Check("slow", command=f"until test -e '{go_on}'; do sleep 0.05; done", limit=60))
    hub.ci.add(NAME, Check("quick", command="true"))
    ended(hub, "main", "quick")
    began = time.monotonic()
    assert seen(hub, "main") == [("slow", "in_progress", None), ("quick", "completed", "success")]
    [page, _] = [run["html_url"] for run in ask(hub, "GET", f"{API}/commits/main/check-runs").json()["check_runs"]]
    assert requests.get(page, timeout=30).ok
    assert time.monotonic() - began < 5
    go_on.touch()
    assert ended(hub, "main") == [("slow", "completed", "success"), ("quick", "completed", "success")]


def test_a_command_ends_with_the_hub_and_is_carried_out_again_by_the_next(world: World, tmp_path: Path) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    command = f"echo $$ >> '{begun}'; test -e '{go_on}' || exec sleep 600"
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}, checks=[Check("slow", command=command)]) as hub:
        while not (begun.exists() and begun.read_text().endswith("\n")):
            assert seen(hub, "main") == [("slow", "in_progress", None)]
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)
    go_on.touch()
    with Hub(tmp_path / "hub", checks=[Check("slow", command=command)]) as hub:
        assert ended(hub, "main") == [("slow", "completed", "success")]


def test_a_check_takes_so_many_polls(hub: Hub) -> None:
    hub.ci.add(NAME, Check("slow", appears=Wait(polls=1), concludes=Wait(polls=2), vanishes=Wait(polls=3)))
    assert [seen(hub, "main") for _ in range(5)] == [
        [],
        [("slow", "in_progress", None)],
        [("slow", "completed", "success")],
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("polls", "seconds", "expected"),
    [
        (0, 0.0, Stage.UNSEEN),
        (2, 1.0, Stage.UNSEEN),
        (3, 0.9, Stage.UNSEEN),
        (3, 1.0, Stage.PENDING),
        (3, 2.0, Stage.DUE),
        (9, 9.0, Stage.GONE),
    ],
)
def test_polls_and_seconds_must_both_have_passed(polls: int, seconds: float, expected: Stage) -> None:
    check = Check("c", appears=Wait(2, 1.0), concludes=Wait(2, 2.0), vanishes=Wait(8, 9.0))
    assert stage(check, polls, seconds) is expected


def test_who_does_not_poll_sees_what_the_last_list_showed(hub: Hub) -> None:
    hub.ci.add(NAME, Check("slow", concludes=Wait(polls=1)))
    for expected in ("in_progress", "in_progress", "completed"):
        [suite] = ask(hub, "GET", f"{API}/commits/main/check-suites").json()["check_suites"]
        assert suite["status"] == expected
        seen(hub, "main")


def test_an_unchanged_list_is_a_poll_too(hub: Hub) -> None:
    hub.ci.add(NAME, Check("slow", concludes=Wait(polls=2)))
    path, headers = f"{hub.url}{API}/commits/main/check-runs", {"Authorization": f"Bearer {ADMIN}"}
    statuses = []
    for _ in range(4):
        answer = requests.get(path, headers=headers, timeout=30)
        statuses.append(answer.status_code)
        headers["If-None-Match"] = answer.headers["etag"]
    assert statuses == [200, 304, 200, 304]


def test_a_check_may_never_appear_or_never_end(hub: Hub) -> None:
    hub.ci.add(NAME, Check("lost", appears=NEVER))
    hub.ci.add(NAME, Check("stuck", conclusions=(None,)))
    assert [seen(hub, "main") for _ in range(3)] == [[("stuck", "in_progress", None)]] * 3


def test_every_conclusion_can_be_had(hub: Hub) -> None:
    for conclusion in sorted(CONCLUSIONS):
        hub.ci.add(NAME, Check(conclusion, conclusions=(conclusion,)))
    assert seen(hub, "main") == [(one, "completed", one) for one in sorted(CONCLUSIONS)]
    with pytest.raises(ValueError, match="use action_required, cancelled"):
        Check("test", conclusions=("failed",))


def test_a_check_is_for_paths_that_a_branch_changes(hub: Hub, world: World) -> None:
    hub.ci.add(NAME, Check("docs", paths=("docs/*",)))
    hub.ci.add(NAME, Check("code", paths=("docs/*", "*.txt")))
    topic = push_branch(world, "topic", "topic\n")
    assert seen(hub, topic) == [("code", "completed", "success")]
    assert seen(hub, "main") == [("code", "completed", "success")]


def test_every_push_over_http_is_checked(hub: Hub, world: World) -> None:
    hub.ci.add(NAME, Check("test", branches="topic"))
    commits = []
    for text in ("one", "two"):
        (world.launch / "a.txt").write_text(text)
        commits.append(commit(world.launch, text))
        git(world.launch, "push", "-q", remote(hub), "HEAD:refs/heads/topic")
    assert [len(seen(hub, one)) for one in commits] == [1, 1]


def test_nothing_is_checked_after_the_end(hub: Hub, world: World) -> None:
    hub.ci.add(NAME, Check("test"))
    hub.ci.end(NAME)
    assert seen(hub, push_branch(world, "topic", "topic\n")) == []
    assert seen(hub, "main") == [("test", "completed", "success")]
    with pytest.raises(ValueError, match="no repository acme/nothing"):
        hub.ci.add("acme/nothing", Check("test"))


def test_lists_of_checks_and_statuses_are_paged(hub: Hub, widget: Repository) -> None:
    for number in range(5):
        hub.ci.add(NAME, Check(f"job {number}"))
        hub.ci.add(NAME, Check(f"status {number}", source=Source.STATUS))
    first = ask(hub, "GET", f"{API}/commits/main/check-runs?per_page=2")
    assert (first.json()["total_count"], len(first.json()["check_runs"])) == (5, 2)
    assert 'rel="next"' in first.headers["link"]
    status = ask(hub, "GET", f"{API}/commits/main/status?per_page=2&page=3")
    assert [one["context"] for one in status.json()["statuses"]] == ["status 4"]
    assert (status.json()["total_count"], 'rel="prev"' in status.headers["link"]) == (5, True)
    assert [one["context"] for one in ask(hub, "GET", f"{API}/commits/main/statuses?per_page=1").json()] == ["status 4"]
    assert widget.get_branch("main").commit.get_check_runs().totalCount == 5


def test_only_the_first_page_is_a_poll(hub: Hub) -> None:
    for name in ("one", "two"):
        hub.ci.add(NAME, Check(name, concludes=Wait(polls=1)))
    pages = [
        ask(hub, "GET", f"{API}/commits/main/check-runs?per_page=1&page={page}").json()["check_runs"][0]["conclusion"]
        for page in (1, 2, 1, 2)
    ]
    assert pages == [None, None, "success", "success"]


@pytest.mark.parametrize(
    ("conclusions", "state"),
    [
        ((), "pending"),
        (("success", "success"), "success"),
        (("success", None), "pending"),
        (("failure", None), "failure"),
    ],
)
def test_statuses_come_to_one_state(
    hub: Hub, widget: Repository, conclusions: tuple[str | None, ...], state: str
) -> None:
    for number, conclusion in enumerate(conclusions):
        hub.ci.add(NAME, Check(f"s{number}", source=Source.STATUS, conclusions=(conclusion,), log="said\n"))
    combined = widget.get_branch("main").commit.get_combined_status()
    assert (combined.state, len(combined.statuses)) == (state, len(conclusions))
    for status in combined.statuses:
        assert status.target_url.startswith(f"{hub.url}/{NAME}/runs/")
        assert status.description == (None if status.state == "pending" else "said")
    assert seen(hub, "main") == []


@pytest.mark.parametrize(
    ("conclusions", "expected"),
    [
        (["success", None, "failure"], ("in_progress", None)),
        (["success", "failure", "skipped"], ("completed", "failure")),
        (["skipped", "success"], ("completed", "success")),
        (["skipped"], ("completed", "skipped")),
    ],
)
def test_jobs_come_to_one_conclusion(conclusions: list[str | None], expected: tuple[str, str | None]) -> None:
    assert overall(conclusions) == expected


def test_failed_jobs_run_again_under_new_ids(hub: Hub, world: World, widget: Repository) -> None:
    hub.ci.add(NAME, Check("lint"))
    hub.ci.add(NAME, replace(FAILURE, appears=Wait(polls=1), concludes=Wait(polls=2)))
    hub.ci.add(NAME, replace(FAILURE, name="other", workflow=".github/workflows/other.yml"))
    head = world.on_origin("main")
    run = next(run for run in widget.get_workflow_runs(head_sha=head) if run.path.endswith("ci.yml"))
    assert (run.status, run.conclusion) == ("completed", "success")  # the job that fails has not appeared
    for _ in range(2):
        seen(hub, "main")
    assert ask(hub, "POST", f"{API}/actions/runs/{run.id}/rerun-failed-jobs").json()["message"] == (
        "This workflow is already running"
    )
    before = {one.name: one.id for one in widget.get_branch("main").commit.get_check_runs()}
    assert run.rerun_failed_jobs() is True
    assert ask(hub, "POST", f"{API}/actions/runs/{run.id}/rerun-failed-jobs").status_code == 403
    shown = [
        {one.name: (one.id, one.conclusion) for one in widget.get_branch("main").commit.get_check_runs()}
        for _ in range(3)
    ]
    assert shown[0]["test"] == (before["test"], "failure")
    assert [one["test"][0] > before["test"] for one in shown] == [False, True, True]
    assert [one["test"][1] for one in shown] == ["failure", None, "success"]
    assert shown[2]["lint"] == (before["lint"], "success")
    assert shown[2]["other"] == (before["other"], "failure")
    run.update()
    assert (run.run_attempt, run.conclusion) == (2, "success")
    every = ask(hub, "GET", f"{API}/commits/main/check-runs?filter=all&check_name=test").json()["check_runs"]
    assert [one["conclusion"] for one in every] == ["failure", "success"]
    assert len(ask(hub, "GET", f"{API}/actions/runs/{run.id}/jobs?filter=all").json()["jobs"]) == 3
    refused = ask(hub, "POST", f"{API}/actions/runs/{run.id}/rerun-failed-jobs")
    assert (refused.status_code, refused.json()["message"]) == (403, "This workflow run cannot be retried")


def test_what_is_no_workflow_run_has_no_jobs_and_no_log(hub: Hub, widget: Repository) -> None:
    hub.ci.add(NAME, Check("scan", source=Source.APP, conclusions=("failure",), log="3 leaks\n"))
    hub.ci.add(NAME, Check("stuck", conclusions=(None,)))
    scan, stuck = ask(hub, "GET", f"{API}/commits/main/check-runs").json()["check_runs"]
    assert (scan["app"]["slug"], scan["output"]["summary"]) == ("acme-ci", "3 leaks")
    assert f"{hub.url}/{NAME}/runs/{scan['id']}" == scan["details_url"]
    for job in (scan["id"], stuck["id"], 999):
        assert ask(hub, "GET", f"{API}/actions/jobs/{job}/logs").status_code == 404
    assert [run.status for run in widget.get_workflow_runs()] == ["in_progress"]
    for run in (scan["check_suite"]["id"], 9_000_000_000 + scan["check_suite"]["id"]):
        assert ask(hub, "GET", f"{API}/actions/runs/{run}").status_code == 404
    assert ask(hub, "GET", f"/_logs/1/{stuck['id']}?signature=00").status_code == 403


def test_workflows_are_the_files_of_the_default_branch(hub: Hub, world: World, widget: Repository) -> None:
    assert widget.get_workflows().totalCount == 0
    workflows = world.launch / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "ci.yml").write_text("name: Tests\non: push\n")
    (workflows / "odd.yaml").write_text("- not: [a workflow\n")
    (workflows / "README.md").write_text("Workflows\n")
    commit(world.launch, "add workflows")
    git(world.launch, "push", "-q", "origin", "main")
    assert [(one.path, one.name) for one in widget.get_workflows()] == [
        (".github/workflows/ci.yml", "Tests"),
        (".github/workflows/odd.yaml", ".github/workflows/odd.yaml"),
    ]
    hub.ci.add(NAME, Check("test"))
    assert next(iter(widget.get_workflow_runs())).workflow_id == next(iter(widget.get_workflows())).id


def test_a_token_may_lack_one_area(world: World, tmp_path: Path, exchanges: list[Exchange]) -> None:
    limited = Token(Permission.WRITE, TokenKind.ACTIONS, without=frozenset({Area.ACTIONS}))
    with Hub(
        tmp_path / "hub", repositories={NAME: world.origin}, tokens={ADMIN: limited}, observe=exchanges.append
    ) as hub:
        hub.ci.add(NAME, Check("test", conclusions=("failure",)))
        assert seen(hub, "main") == [("test", "completed", "failure")]
        for method, path in (("GET", "runs"), ("GET", "jobs/1/logs"), ("POST", "runs/1/rerun-failed-jobs")):
            refused = ask(hub, method, f"{API}/actions/{path}")
            assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")


def test_checks_outlive_the_hub(world: World, tmp_path: Path) -> None:
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}) as hub:
        hub.ci.add(NAME, FAILURE)
        before = seen(hub, "main")
    with Hub(tmp_path / "hub") as again:
        assert seen(again, "main") == before == [("test", "completed", "failure")]
        assert seen(again, push_branch(world, "topic", "topic\n")) == before


def test_every_repository_is_checked_by_what_the_hub_was_started_with(world: World, tmp_path: Path) -> None:
    repositories = {NAME: world.origin}
    with Hub(tmp_path / "hub", repositories=repositories, checks=[Check("test", command="false")]) as hub:
        assert seen(hub, "main") == [("test", "completed", "failure")]
    with Hub(tmp_path / "hub", checks=[Check("test", command="true")]) as again:
        topic = push_branch(world, "topic", "topic\n")
        assert seen(again, topic) == [("test", "completed", "success")]
        assert [one for *_, one in seen(again, "main")] == ["failure", "success"]
