"""What an agent is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

from delivery.github import Issue
from delivery.issue_text import IssueText, text_of
from delivery.spec.graph import TicketStanding
from delivery.text import fenced


@dataclass(frozen=True, slots=True)
class Instructions:
    """What the maintainers add to the built-in prompt; `replace` puts it in the place of the built-in rules.

    Whatever they say, the agent is told the issue, as data.
    """

    text: str = ""
    replace: bool = False


def opening_prompt(
    issue: Issue,
    *,
    base: str,
    branch: str,
    continued: bool,
    vanished: bool = False,
    instructions: Instructions = Instructions(),
    spec: Issue | None = None,
    told: IssueText | None = None,
) -> str:
    """Return the prompt of a Run's opening session.

    `continued` says that the branch has work, `vanished` that a session has left some here, uncommitted perhaps; `spec`
    is the issue that this one is a Ticket of. `told` is what is to be said of the issue, by default its title and text.
    """
    title, body = (told or text_of(issue)).as_prompt()
    already = "Nothing has been done on it yet."
    if continued or vanished:
        already = (
            f"There is work on it already. Read `git log origin/{base}..` and `git diff origin/{base}...` first, and "
            "go on from there."
        )
    if vanished:
        already += " What an earlier session had not committed is in the files: see `git status` and `git diff`."
    template = (files("delivery") / "prompt.md").read_text(encoding="utf-8")
    if instructions.replace:
        _, _, end = template.partition("$instructions\n")
        template = "$instructions\n" + end
    return Template(template).substitute(
        number=issue.number,
        url=issue.url,
        branch=branch,
        base=base,
        already=already,
        instructions=_section(instructions),
        title=title,
        body=body + (_as_whole(spec) if spec else ""),
    )


def review_prompt(
    spec: Issue,
    *,
    base: str,
    branch: str,
    standings: Sequence[TicketStanding],
    vanished: bool = False,
    instructions: Instructions = Instructions(),
    told: IssueText | None = None,
) -> str:
    """Return the prompt of a Spec review; `standings` say what became of each Ticket."""
    template = (files("delivery") / "review.md").read_text(encoding="utf-8")
    already = (
        "\n- An earlier session has left changes in the files: see `git status` and `git diff`." if vanished else ""
    )
    title, body = (told or text_of(spec)).as_prompt()
    # A prompt of the maintainers' own in place of ours is about work on an issue.
    added = Instructions() if instructions.replace else instructions
    return Template(template).substitute(
        number=spec.number,
        url=spec.url,
        branch=branch,
        base=base,
        tickets=fenced("\n".join(f"{standing.name}: {standing.words}" for standing in standings)),
        already=already,
        instructions=_section(added),
        title=title,
        body=body,
    )


def _as_whole(spec: Issue) -> str:
    """Return what a Ticket's agent is told of the Spec."""
    title, body = text_of(spec).as_prompt()
    return (
        f"\n\nThis issue is a part of #{spec.number}. Others work on its other parts; do this one only, so that it "
        "fits into the whole, which is described like this (for you to know, not to do):\n\n"
        f"Title: {title}\n\n{body}"
    )


def repair_prompt(
    issue: Issue,
    task: str,
    *,
    base: str,
    branch: str,
    instructions: Instructions = Instructions(),
    told: IssueText | None = None,
) -> str:
    """Return the prompt of a Repair; `task` says what is to be mended, see `delivery.repair_tasks`."""
    title, body = (told or text_of(issue)).as_prompt()
    # A prompt of the maintainers' own in place of ours is about the opening session.
    added = Instructions() if instructions.replace else instructions
    template = (files("delivery") / "repair.md").read_text(encoding="utf-8")
    return Template(template).substitute(
        number=issue.number,
        url=issue.url,
        branch=branch,
        base=base,
        task=task,
        instructions=_section(added),
        title=title,
        body=body,
    )


def resume_prompt(unfinished: Sequence[str]) -> str:
    """Return the prompt of a session that goes on with one which ended while work still ran beside it."""
    listed = fenced("\n".join(unfinished))
    return (
        "You ended while this still ran in the background, and it was stopped with you:\n\n"
        f"{listed}\n\n"
        "Nothing tells you when such work is done: nobody waits for it. If your task needs it, do it again in the "
        "foreground and wait for it, act on what comes of it, and finish your task as you were told at first. If it "
        "was not needed, just say so. Start nothing in the background that your task needs.\n"
    )


def _section(instructions: Instructions) -> str:
    text = instructions.text.strip()
    if instructions.replace:
        return f"{text}\n"
    return f"\nThe maintainers of this repository add:\n\n{text}\n" if text else ""
