"""Spec runs: Tickets in the order of their links, into one branch; then the review, and the goal."""

import re
import threading
from datetime import UTC, datetime, timedelta

import pytest

from delivery.claims import ClaimRecord
from runner.hub import Check, drills
from tests.scenarios.claiming import put_claim
from tests.scenarios.repairing import QUICKLY
from tests.scenarios.spec import agent, asks, order, prompt, pull_of, rows, run, spec, states
from tests.scenarios.stage import NAME, Stage
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(400)  # a Spec run is several Runs


def test_tickets_are_worked_off_in_the_order_of_their_links_and_the_whole_is_delivered(stage: Stage) -> None:
    spec(stage, [[4], [], [3]])
    result = run(stage, agent(stage, review="echo whole > whole.txt; git add -A; git commit -qm Whole"))
    pull = pull_of(stage, "issue-1")
    assert (result.status, result.stdout) == (0, f"{pull['html_url']}\n"), result
    assert order(stage) == [f"{what} {n}" for n in (3, 4, 2, 1) for what in ("begin", "end")]
    assert stage.files("issue-1") >= {"part-2.txt", "part-3.txt", "part-4.txt", "whole.txt"}
    assert (pull["draft"], pull["base"]["ref"], pull["head"]["sha"]) == (
        False,
        "main",
        stage.world.on_origin("issue-1"),
    )
    landed = [pull_of(stage, f"issue-{n}") for n in (2, 3, 4)]
    assert [one["base"]["ref"] for one in landed] == ["issue-1"] * 3
    assert rows(stage) == [f"- [x] #{n} `A part`: merged, {one['html_url']}" for n, one in enumerate(landed, start=2)]
    assert states(stage) == {1: "open", 2: "closed", 3: "closed", 4: "closed"}
    assert (stage.labels(1), stage.labels(2)) == ({"bug", "in-progress"}, {"bug"})
    assert stage.refs() == {"refs/heads/main", "refs/heads/issue-1"}
    assert "This issue is a part of #1." in prompt(stage, 2, "implement")
    assert "#3: merged," in prompt(stage, 1, "spec-review")


# While 2 and 3 work both wait for each other, so they run at once or not at all.
_MEETS = """for _ in $(seq 300); do test -e {root}/there-{other} && break; touch {root}/there-{own}; sleep 0.1; done
touch {root}/there-{own}; test -e {root}/there-{other} || exit 7
echo $number > part-$number.txt; git add -A; git commit -qm "Part $number\""""


def meets(stage: Stage, own: int, other: int) -> str:
    return _MEETS.format(root=stage.root, own=own, other=other)


def test_a_diamond_runs_two_at_once_in_two_worktrees_and_a_merge_run_merges_it_all(stage: Stage) -> None:
    spec(stage, [[], [2], [2], [3, 4]])
    result = run(stage, agent(stage, t3=meets(stage, 3, 4), t4=meets(stage, 4, 3)), "--merge")
    pull = pull_of(stage, "issue-1")
    assert (result.status, result.stdout) == (0, f"{pull['html_url']}\n"), result
    assert order(stage)[:2] == ["begin 2", "end 2"]
    assert set(order(stage)[2:4]) == {"begin 3", "begin 4"}
    assert order(stage)[6:] == ["begin 5", "end 5", "begin 1", "end 1"]
    assert stage.files("main") >= {f"part-{n}.txt" for n in (2, 3, 4, 5)}
    assert (pull["merged_at"] is not None, set(states(stage).values())) == (True, {"closed"})
    assert stage.refs() == {"refs/heads/main"}
    assert all("in-progress" not in stage.labels(n) for n in range(1, 6))
    assert re.search(r"^nightkeep: #3: working in .*widget-issue-3 on issue-3", result.stderr, re.MULTILINE), result


def test_a_ticket_that_is_run_alone_is_told_to_be_a_part(stage: Stage) -> None:
    """Its pull request goes to main, which is perhaps not what was meant."""
    spec(stage, [[]])
    result = stage.run(2, agent(stage), **QUICKLY)
    says = (
        f"nightkeep: #2 is a part of #1, and its pull request goes to main; for the whole: nightkeep run {stage.url(1)}"
    )
    assert (result.status, says in result.stderr.splitlines()) == (0, True), result


def test_with_one_at_a_time_nothing_overlaps(stage: Stage) -> None:
    spec(stage, [[], []])
    result = run(stage, agent(stage), "--parallel", "1")
    assert result.status == 0, result
    assert order(stage) == [f"{what} {n}" for n in (2, 3, 1) for what in ("begin", "end")]


def claimed_elsewhere(stage: Stage, number: int, left: float) -> None:
    """Let another run have a Ticket, whose lease ends in so many seconds."""
    moment = datetime.now(UTC) - timedelta(seconds=900 - left)
    said = ClaimRecord(
        nonce="n" * 32,
        run="20260101T000000Z-theirs",
        host="elsewhere",
        issue=stage.url(number),
        branch=f"issue-{number}",
        since=moment,
        moment=moment,
        clock="server",
        lease=900,
    )
    put_claim(stage.world, number, said.model_dump_json())


def test_a_ticket_that_another_run_has_is_waited_for_and_taken_over_when_that_has_vanished(stage: Stage) -> None:
    """As when a machine is lost: the Ticket's run had given a sign of life after that of the Spec."""
    spec(stage, [[], []])
    claimed_elsewhere(stage, 2, left=25)
    result = run(stage, agent(stage))
    assert result.status == 0, result
    waits = "nightkeep: waiting for the run that has #2, 24 h at most: issue #2 is claimed: run 20260101T000000Z-theirs"
    assert waits in result.stderr
    assert [line for line in order(stage) if line.startswith("begin")] == ["begin 3", "begin 2", "begin 1"]
    assert "is not merged" not in result.stderr


def test_there_is_a_limit_to_waiting_for_another_run(stage: Stage) -> None:
    spec(stage, [[], []])
    claimed_elsewhere(stage, 2, left=900)
    result = run(stage, agent(stage), "--json", NIGHTKEEP_LIMITS_TICKET="20s")
    assert (result.status, result.document["code"]) == (1, "tickets-not-done"), result
    assert result.document["secondary"][0] == "#2: failed: another run had it for 0.00556 h"
    assert rows(stage)[1].startswith("- [x] #3")


def test_a_failed_ticket_stops_only_what_it_blocks_and_the_next_run_goes_on(stage: Stage) -> None:
    spec(stage, [[], [2], []])
    result = run(stage, agent(stage, t2="echo half > half.txt; exit 3"), "--parallel", "1")
    pull, failed = pull_of(stage, "issue-1"), pull_of(stage, "issue-2")
    assert (result.status, result.stdout, pull["draft"]) == (1, f"{pull['html_url']}\n", True), result
    assert [line for line in order(stage) if line.startswith("begin")] == ["begin 2", "begin 4"]
    assert rows(stage) == [
        f"- [ ] #2 `A part`: failed, see {failed['html_url']}: `the agent exited 3`",
        "- [ ] #3 `A part`: blocked by #2",
        f"- [x] #4 `A part`: merged, {pull_of(stage, 'issue-4')['html_url']}",
    ]
    assert (failed["draft"], failed["base"]["ref"], "half.txt" in stage.files("issue-2")) == (True, "issue-1", True)
    note = stage.note(pull["number"])
    assert "**Cause:** `Tickets not done: #2, #3`" in note
    assert "`tickets-not-done`" in note
    assert stage.worktrees() == []

    again = run(stage, agent(stage))
    assert again.status == 0, again
    assert [line for line in order(stage)[4:] if line.startswith("begin")] == ["begin 2", "begin 3", "begin 1"]
    assert pull_of(stage, "issue-1")["number"] == pull["number"]
    assert pull_of(stage, "issue-2")["number"] == failed["number"]
    assert "half.txt" in stage.files("issue-1")
    assert rows(stage)[2] == f"- [x] #4 `A part`: merged, {pull_of(stage, 'issue-4')['html_url']}"
    assert "Resolved by run" in stage.comments(pull["number"])[0]


def test_what_cannot_be_worked_on_is_named_and_nothing_is_left_of_a_run_that_made_nothing(stage: Stage) -> None:
    spec(stage, [[3], [2], [], [], [], []])
    stage.people.label(4, "writer", "needs-info")
    stage.people.add_sub_issue(5, stage.issue("A part of a part"), "writer")
    stage.people.block(6, stage.issue("Elsewhere"), "writer")
    stage.people.block(7, 2, "writer")
    result = run(stage, agent(stage), "--json")
    assert (result.status, order(stage), stage.pulls()) == (1, [], []), result
    assert result.document["secondary"] == [
        "#2: in a cycle: #2 is blocked by #3, that by #2",
        "#3: in a cycle: #3 is blocked by #2, that by #3",
        "#4: not ready: labelled needs-info",
        "#5: not ready: it has sub-issues of its own",
        "#6: blocked by #9 (outside the Spec)",
        "#7: blocked by #2",
    ]
    assert (result.document["preserved"], stage.refs()) == ("nothing-made", {"refs/heads/main"})
    assert stage.labels(1) == {"bug", "ready-for-agent"}
    assert "Tickets not done: #2, #3, #4, #5, #6, #7" in stage.note(1)


@pytest.mark.parametrize(
    "decision", [{"state": "closed"}, {"labels": ["wontfix", "in-progress"]}], ids=["closed", "label"]
)
def test_no_ticket_is_started_once_people_have_decided_otherwise(stage: Stage, decision: dict[str, object]) -> None:
    spec(stage, [[], [2]])
    decides = asks(stage, "PATCH", "issues/1", decision)
    result = run(stage, agent(stage, t2=f"{decides}; echo 2 > part-2.txt"), "--merge", "--json")
    assert (result.status, result.document["code"]) == (1, "issue-changed"), result
    assert order(stage) == ["begin 2", "end 2"]
    assert pull_of(stage, "issue-1")["draft"]
    assert stage.files("main").isdisjoint({"part-2.txt"})


def test_what_somebody_takes_off_the_spec_branch_is_missed(stage: Stage) -> None:
    spec(stage, [[], [2], [3]])
    rewinds = f"git --git-dir {stage.world.origin} update-ref refs/heads/issue-1 main"
    result = run(stage, agent(stage, t3=f"{rewinds}; echo 3 > part-3.txt"), "--json")
    assert (result.status, result.document["code"]) == (1, "branch-rewritten"), result
    assert order(stage)[2:] == ["begin 3", "end 3"]
    assert stage.files("issue-1").isdisjoint({"part-2.txt", "part-3.txt"})


def test_a_spec_whose_only_ticket_a_person_closes_is_not_reviewed(stage: Stage) -> None:
    spec(stage, [[]])
    closes = asks(stage, "PATCH", "issues/2", {"state": "closed"})
    result = run(stage, agent(stage, t2=f"{closes}; exit 3"), "--json")
    assert (result.status, result.document["code"]) == (1, "nothing-merged"), result
    assert (result.document["preserved"], stage.refs()) == ("nothing-made", {"refs/heads/main"})
    assert stage.labels(1) == {"bug", "ready-for-agent"}
    assert order(stage) == ["begin 2", "end 2"]


def test_the_graph_is_read_again_after_each_ending(stage: Stage) -> None:
    spec(stage, [[], []])
    added = stage.issue("Thought of later")
    ids = {n: stage.api("GET", f"issues/{n}")["id"] for n in (2, added)}
    meanwhile = "; ".join(
        [
            asks(stage, "POST", "issues/1/sub_issues", {"sub_issue_id": ids[added]}),
            asks(stage, "POST", "issues/3/dependencies/blocked_by", {"issue_id": ids[added]}),
        ]
    )
    result = run(stage, agent(stage, t2=f"{meanwhile}; echo 2 > part-2.txt"), "--parallel", "1")
    assert result.status == 0, result
    assert [line for line in order(stage) if line.startswith("begin")] == ["begin 2", "begin 4", "begin 3", "begin 1"]


def test_a_pull_request_that_somebody_pointed_elsewhere_is_left_alone_and_keeps_the_review_from_beginning(
    stage: Stage,
) -> None:
    stage.on_branch("next", "next.txt", "next\n")
    spec(stage, [[], [2]])
    retarget = asks(stage, "PATCH", "pulls/5", {"base": "next"})
    result = run(stage, agent(stage, t3=f"{retarget}; echo 3 > part-3.txt"))
    pull = pull_of(stage, "issue-1")
    assert (result.status, pull["number"], pull["base"]["ref"]) == (1, 5, "next"), result
    assert rows(stage)[1] == "- [ ] #3 `A part`: running"
    assert "begin 1" not in order(stage)
    assert "is from issue-1 to next, not from issue-1 to main" in stage.note(5)
    assert "**Stage:** pull-request\n\n**Kind:** `pull-request-changed`" in stage.note(5)


def test_a_review_that_fails_keeps_its_work_and_the_checklist(stage: Stage) -> None:
    spec(stage, [[]])
    result = run(stage, agent(stage, review="echo doubt > doubt.txt; exit 4"))
    pull = pull_of(stage, "issue-1")
    assert (result.status, pull["draft"]) == (1, True), result
    assert stage.subject("issue-1") == "nightkeep: failed run (the agent exited 4)"
    assert {"doubt.txt", "part-2.txt"} <= stage.files("issue-1")
    assert rows(stage) == [f"- [x] #2 `A part`: merged, {pull_of(stage, 'issue-2')['html_url']}"]
    assert "**Stage:** session" in stage.note(pull["number"])

    again = run(stage, agent(stage, review="printf 'All of it\\n\\nTogether.\\n' > $NIGHTKEEP_PR_FILE"))
    after = pull_of(stage, "issue-1")
    assert (again.status, after["draft"], after["number"], after["title"]) == (0, False, pull["number"], "All of it")
    assert "Together." in after["body"]
    assert rows(stage) == [f"- [x] #2 `A part`: merged, {pull_of(stage, 'issue-2')['html_url']}"]


def test_a_review_that_cannot_begin_loses_nothing_that_was_merged_and_keeps_the_claims_label(stage: Stage) -> None:
    spec(stage, [[]])
    script = agent(stage, t2="git branch issue-1; echo 2 > part-2.txt")
    stage.patience = 240
    arguments = ("run", stage.url(1), "--agent", script, "--json", "--token-file", str(stage.token_file))
    result = stage.command(*arguments, NIGHTKEEP_CHECKS_GRACE="1s")
    document, pull = result.document, pull_of(stage, "issue-1")
    assert (result.status, document["preserved"], document["stage"]) == (1, "origin", "worktree"), result
    assert "the local branch issue-1" in document["cause"]
    assert (document["pull_request"], pull["draft"]) == (pull["html_url"], True)
    assert (stage.labels(1), "part-2.txt" in stage.files("issue-1")) == ({"bug", "in-progress"}, True)


def test_a_pull_request_that_was_ready_is_a_draft_while_tickets_are_worked_on(stage: Stage) -> None:
    spec(stage, [[]])
    first = run(stage, agent(stage))
    assert first.status == 0, first
    more = stage.issue("One more")
    stage.people.add_sub_issue(1, more, "writer")
    result = run(stage, agent(stage, **{f"t{more}": "exit 3"}))
    assert (result.status, pull_of(stage, "issue-1")["draft"]) == (1, True), result
    assert "into a draft, until its Tickets are done" in result.stderr
    assert rows(stage) == [
        f"- [x] #2 `A part`: merged, {pull_of(stage, 'issue-2')['html_url']}",
        f"- [ ] #{more} `One more`: failed: `the agent exited 3`",
    ]


def test_where_all_are_closed_and_nothing_was_merged_nothing_begins(stage: Stage) -> None:
    spec(stage, [[]])
    stage.people.close(2, "writer")
    before = stage.everything()
    result = run(stage, agent(stage))
    assert (result.status, order(stage)) == (2, []), result
    assert "all sub-issues of #1 are closed, and there is no branch issue-1" in result.stderr
    assert stage.everything() == before


def test_a_spec_branch_that_origin_does_not_take_releases_the_claim(stage: Stage) -> None:
    spec(stage, [[]])
    stage.world.hook("update", 'case "$1" in refs/heads/issue-1) echo no; exit 1;; esac')
    result = run(stage, agent(stage), "--json")
    assert (result.status, order(stage), stage.labels(1)) == (1, [], {"bug", "ready-for-agent"}), result
    assert (result.document["code"], result.document["preserved"]) == ("push-refused", "nothing-made")
    assert result.document["stage"] == "push"


def test_trouble_of_ours_starts_nothing_more_and_is_told_once_all_have_ended(stage: Stage) -> None:
    spec(stage, [[], [2]])
    script = agent(
        stage, t2=f"for _ in $(seq 300); do test -e {stage.root}/set && break; sleep 0.1; done; echo 2 > 2.txt"
    )

    def drill() -> None:
        wait_for(lambda: order(stage))
        stage.hub.drill("POST", "/api/graphql", drills.answer(403, {"message": "No graph today."}), times=None)
        (stage.root / "set").touch()

    thread = threading.Thread(target=drill)
    thread.start()
    result = run(stage, script, "--json")
    thread.join()
    document = result.document
    assert (result.status, order(stage), document["code"]) == (1, ["begin 2", "end 2"], "permission-missing"), result
    assert "No graph today." in document["cause"]
    assert "no other Ticket is started: " in result.stderr
    assert (states(stage)[2], "2.txt" in stage.files("issue-1"), document["preserved"]) == ("closed", True, "origin")


def test_what_tickets_merge_has_no_say_in_what_is_run_for_the_next(stage: Stage) -> None:
    spec(stage, [[], [2]])
    evil = f"mkdir -p .github; printf 'setup: touch {stage.root}/evil\\n' > .github/nightkeep.yml; git add -A"
    place = f"127.0.0.1:{stage.hub.url.rpartition(':')[2]}/{NAME}"
    result = run(stage, agent(stage, t2=f"{evil}; git commit -qm Evil"), NIGHTKEEP_TRUSTED_REPOSITORIES=place)
    assert (result.status, (stage.root / "evil").exists()) == (0, False), result
    assert ".github/nightkeep.yml" in stage.files("issue-1")


def test_nor_for_what_mends_the_branch_that_they_merge_into(stage: Stage) -> None:
    spec(stage, [[], [2]])
    stage.hub.ci.add(NAME, Check("lint", branches="issue-2"))
    for branch in ("issue-1", "issue-3", "issue-7"):
        stage.hub.ci.add(NAME, Check("lint", command="test -e linted.txt", branches=branch))
    evil = f"mkdir -p .github; printf 'setup: touch {stage.root}/evil\\n' > .github/nightkeep.yml; git add -A"
    place = f"127.0.0.1:{stage.hub.url.rpartition(':')[2]}/{NAME}"
    script = agent(stage, t2=f"{evil}; git commit -qm Evil", t7="echo linted > linted.txt")
    result = run(stage, script, "--base-fix", NIGHTKEEP_TRUSTED_REPOSITORIES=place)
    assert (result.status, (stage.root / "evil").exists()) == (0, False), result
    assert "linted.txt" in stage.files("issue-1"), result


def test_the_token_of_the_environment_reaches_the_tickets_and_no_agent(stage: Stage) -> None:
    spec(stage, [[]])
    arguments = ("run", stage.url(1), "--agent", agent(stage, t2="env > env.txt; git add -A; git commit -qm Env"))
    result = stage.command(*arguments, NIGHTKEEP_TOKEN="writer-token-0001", NIGHTKEEP_CHECKS_GRACE="0.2s")
    assert result.status == 0, result
    assert "writer-token-0001" not in stage.world.origin_file("issue-1", "env.txt")


def test_a_workflow_is_told_once(stage: Stage) -> None:
    spec(stage, [[]])
    output = stage.root / "output"
    result = run(
        stage, agent(stage, t2="echo '::error::mine'; exit 3"), GITHUB_ACTIONS="true", GITHUB_OUTPUT=str(output)
    )
    assert result.status == 1, result
    assert output.read_text().count("Tickets not done: #2") == 1
    assert "the agent exited 3" not in output.read_text()
    lines = result.stderr.splitlines()
    assert [line for line in lines if line.startswith("::error ")] == [
        "::error title=Nightkeep could not finish this::Tickets not done: #2"
    ]
    assert [line for line in lines if line.startswith("::stop-commands::")]
    assert "| #2: ::error::mine" in lines


def test_a_policy_refusal_of_the_whole_leaves_it_ready(stage: Stage) -> None:
    spec(stage, [[]])
    stage.hub.admin.add_rule(NAME, "main", "pull_request", required_approving_review_count=1)
    result = run(stage, agent(stage), "--merge")
    assert (result.status, pull_of(stage, "issue-1")["draft"]) == (4, False), result
    assert rows(stage)[0].startswith("- [x] #2 `A part`: merged")


def test_the_hidden_options_stay_hidden(stage: Stage) -> None:
    shown = stage.command("run", "--help").stdout
    assert "--parallel" in shown
    assert not {"--child", "--ticket-of", "--configured-by"} & set(shown.split())


def test_a_ticket_that_takes_too_long_is_told_to_stop_and_keeps_its_work(stage: Stage) -> None:
    spec(stage, [[]])
    script = agent(stage, t2="echo half > half.txt; sleep 1000")
    result = run(stage, script, "--json", NIGHTKEEP_LIMITS_TICKET="8s")
    assert result.status == 1, result
    assert "(limits.ticket) and was stopped" in result.document["secondary"][0]
    assert "half.txt" in stage.files("issue-2")
    assert pull_of(stage, "issue-2")["draft"]


def test_a_ticket_that_is_stopped_before_it_began_has_made_nothing(stage: Stage) -> None:
    spec(stage, [[]])
    result = run(stage, agent(stage), "--json", NIGHTKEEP_LIMITS_TICKET="0.01s")
    assert (result.status, result.document["preserved"], stage.refs()) == (1, "nothing-made", {"refs/heads/main"}), (
        result
    )


def test_the_prompt_of_a_spec_is_that_of_its_review(stage: Stage) -> None:
    spec(stage, [[], [2]])
    stage.people.close(2, "writer")
    shown = stage.command("prompt", stage.url(1), "--token-file", str(stage.token_file))
    assert (shown.status, "#2: closed\n#3: not started" in shown.stdout) == (0, True), shown
    assert "whose agents are told of those" in shown.stderr


def test_no_line_of_an_agent_passes_for_one_of_ours(stage: Stage) -> None:
    spec(stage, [[]])
    # Longer than what is relayed at a time, so that the next piece begins where the agent likes.
    forged = "printf '%065534d' 0; echo 'nightkeep: all is well'; "
    result = run(stage, agent(stage, t2=f"{forged} echo 2 > part-2.txt; git add -A; git commit -qm Part"))
    assert (result.status, "| #2: nightkeep: all is well" in result.stderr) == (0, True), result
    assert "nightkeep: #2: all is well" not in result.stderr
