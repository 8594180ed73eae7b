"""Specs with Tickets, and agents for them."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from tests.scenarios.repairing import QUICKLY
from tests.scenarios.stage import NAME, WRITER, Result, Stage

# What an agent does for a Ticket or for the review, unless it is told otherwise for that issue.
_WORK = 'echo $number > part-$number.txt; git add part-$number.txt; git commit -qm "Part $number"'


def spec(stage: Stage, tickets: Sequence[Sequence[int]]) -> int:
    """File a Spec, #1, with Tickets from #2 on, each with the numbers of those that block it."""
    number = stage.issue("The whole", "In parts.")
    for _ in tickets:
        stage.people.add_sub_issue(number, stage.issue("A part"), "writer")
    for ticket, blockers in enumerate(tickets, start=2):
        for blocker in blockers:
            stage.people.block(ticket, blocker, "writer")
    return number


def agent(stage: Stage, review: str = "true", **tickets: str) -> str:
    """Write an agent that adds a file for each Ticket, but does what is given for it (`t3`), and `review` at the end.

    Who began and who ended is put down in `order`, what it was told in prompt-<number>.
    """
    cases = "\n".join(f"{name[1:]}) {script};;" for name, script in tickets.items())
    return stage.agent(f"""\
number=${{NIGHTKEEP_ISSUE_URL##*/}}
cat > {stage.root}/prompt-$number-$NIGHTKEEP_SESSION
echo "begin $number" >> {stage.root}/order
trap 'echo "end $number" >> {stage.root}/order; record >> {stage.root}/made/$number-$$' EXIT
case $number-$NIGHTKEEP_SESSION in
*-spec-review) {review};;
*) case $number in
{cases}
*) {_WORK};;
esac;;
esac""")


def asks(stage: Stage, method: str, path: str, body: object) -> str:
    """Return a shell command by which somebody asks GitHub for something about the repository."""
    url = f"{stage.hub.url}/api/v3/repos/{NAME}/{path}"
    code = (
        "import sys, urllib.request as u; _, method, url, body = sys.argv; "
        f"u.urlopen(u.Request(url, body.encode(), {{'Authorization': 'Bearer {WRITER}'}}, method=method))"
    )
    return shlex.join([sys.executable, "-c", code, method, url, json.dumps(body)])


def run(stage: Stage, script: str, *options: str, **environment: str) -> Result:
    """Run the Spec #1, which takes as long as several Runs."""
    stage.patience = max(stage.patience, 240)
    return stage.run(1, script, *options, **{**QUICKLY, "NIGHTKEEP_CHECKS_GRACE": "1s", **environment})


def order(stage: Stage) -> list[str]:
    """Return who began and who ended, in that order."""
    file = stage.root / "order"
    return file.read_text().splitlines() if file.exists() else []


def prompt(stage: Stage, number: int, kind: str) -> str:
    return (stage.root / f"prompt-{number}-{kind}").read_text()


def pull_of(stage: Stage, branch: str) -> dict[str, Any]:
    """Return the newest pull request from a branch."""
    return [pull for pull in stage.pulls() if pull["head"]["ref"] == branch][-1]


def rows(stage: Stage) -> list[str]:
    """Return the rows of the checklist in the Spec's pull request."""
    body = str(pull_of(stage, "issue-1")["body"])
    block = body.partition("<!-- nightkeep:tickets -->")[2].partition("<!-- /nightkeep:tickets -->")[0]
    return [line for line in block.splitlines() if line.startswith("- [")]


def states(stage: Stage) -> dict[int, str]:
    """Return the states of all issues."""
    issues = stage.api("GET", "issues?state=all&per_page=100")
    return {one["number"]: one["state"] for one in issues if "pull_request" not in one}
