"""Why a Run can fail: a closed set of codes, which say the same to a note, a program and the documentation.

What happened stands in the cause, a sentence of each Run's own; the code is for programs, the hint for whoever wonders
what kind of trouble it is and what helps. `docs/failure-causes.md` is made of this table.
"""

from enum import StrEnum
from typing import Self


class Stage(StrEnum):
    """Where in a Run something went wrong."""

    WORKTREE = "worktree"
    TICKETS = "tickets"
    SETUP = "setup"
    SESSION = "session"
    COMMIT = "commit"
    VERIFY = "verify"
    PUSH = "push"
    PULL_REQUEST = "pull-request"
    REPAIR = "repair"
    CHECKS = "checks"
    MERGE = "merge"


class Code(StrEnum):
    """What kind of cause ended a Run. `hint` says what helps against it.

    `stage` is where in a Run causes of that kind belong, None when that depends on where they came up.
    """

    hint: str
    stage: Stage | None

    def __new__(cls, value: str, hint: str = "", stage: Stage | None = None) -> Self:
        """Make a member. `Code(value)` finds it, so that a hint is asked for by a test, not by types."""
        code = str.__new__(cls, value)
        code._value_, code.hint, code.stage = value, hint, stage
        return code

    INTERRUPTED = "interrupted", "A signal, or a cancelled job, ended the Run; continue it when you like."
    KILLED = "killed", "Nightkeep was killed; the next `nightkeep run` or `recover` in that clone finished the Run."
    BUG = "bug", "Nightkeep broke; please report it with the lines of the Command log."
    MACHINE = "machine-trouble", "The machine had trouble: a full disk, say, or a program that could not be read."
    GIT = "git-failed", "A git command failed; its words say why."
    ORIGIN = (
        "origin-unavailable",
        "Origin could not be reached, or failed, for most of `limits.push`; continue the Run when it is back.",
    )
    GITHUB = "github-refused", "GitHub refused a request; its words say why."
    GITHUB_UNAVAILABLE = (
        "github-unavailable",
        "GitHub did not answer, or asked for a longer wait than a Run has; try again later.",
    )
    TOKEN = "token-refused", "The token has expired or was revoked; give a valid one."
    PERMISSION = "permission-missing", "The token lacks a permission; the cause names it where GitHub says so."
    WORKTREE = "worktree-not-made", "The worktree could not be made.", Stage.WORKTREE
    TICKETS = (
        "tickets-not-done",
        "Some sub-issues are still open; what is said of each tells why. See to them, then run the whole again.",
        Stage.TICKETS,
    )
    SETUP = "setup-failed", "The command in `setup` failed; its log says why.", Stage.SETUP
    AGENT = "agent-failed", "The agent ended badly, or met a limit (`limits.session`, `limits.idle`, `limits.output`)."
    AGENT_LIMIT = (
        "agent-usage-limit",
        "The agent's account has used up what it may use; wait until the limit ends, or add credit.",
    )
    AGENT_LOGIN = "agent-login", "The agent's own login or key was refused; log it in as the user that runs Nightkeep."
    MODEL = "model-unavailable", "The service of the agent's model did not answer, or was overloaded; try again later."
    PROCESSES = "processes-left", "The agent left processes that could not be stopped."
    UNSETTLED = "worktree-unsettled", "The agent left HEAD elsewhere, or a git operation or a conflict unfinished."
    NOTHING_MADE = (
        "nothing-made",
        "The agent ended well without a commit or a changed file; say more in the issue, or allow more.",
        Stage.COMMIT,
    )
    NOTHING_MERGED = (
        "nothing-merged",
        "All sub-issues are closed, and nothing was merged; close the whole as well, or reopen what is to be done.",
        Stage.TICKETS,
    )
    VERIFY = "verify-failed", "The command in `verify` fails on the branch.", Stage.VERIFY
    PUSH_REFUSED = (
        "push-refused",
        "Origin did not take the branch: somebody else's commits are on it, a rule, or what is in it.",
        Stage.PUSH,
    )
    REWRITTEN = (
        "branch-rewritten",
        "Somebody took commits off a branch on origin, or deleted it; none is put back, and what was made is rescued.",
    )
    PULL_REQUEST = (
        "pull-request-changed",
        "Somebody closed the pull request, made it a draft, or pointed it at another branch.",
        Stage.PULL_REQUEST,
    )
    CONFLICT = "conflict-left", "A Repair left a merge unfinished, conflict markers, or no merge at all.", Stage.REPAIR
    NOT_MERGEABLE = (
        "not-mergeable",
        "GitHub calls the pull request unmergeable, though the Base branch is merged into it.",
        Stage.PULL_REQUEST,
    )
    REPAIRS = "repairs-exhausted", "`repair.limit` Repairs did not help; look at what they tried.", Stage.REPAIR
    UPSTREAM = (
        "upstream-kept-moving",
        "Others pushed faster than checks ran; raise `repair.moves`, or use a merge queue.",
        Stage.REPAIR,
    )
    CHECKS_FAILED = "checks-failed", "Checks fail, and the agent found nothing to change on the branch.", Stage.CHECKS
    CHECKS_INHERITED = (
        "checks-inherited",
        "Checks fail that fail on the Base branch, too; mend that first, or let a Run (`base-fix`).",
        Stage.CHECKS,
    )
    BASE_FIX = (
        "base-fix-failed",
        "Checks fail that fail on the Base branch, too, and the Run that was to mend it there did not.",
        Stage.CHECKS,
    )
    CHECKS_VANISHED = "checks-vanished", "GitHub listed a check of the commit, and then no more.", Stage.CHECKS
    CHECKS_PENDING = "checks-timed-out", "Checks did not finish within `limits.checks`.", Stage.CHECKS
    CHECKS_MISSING = (
        "checks-missing",
        "No check ran, or not all that a rule asks for; see `checks.required`, `checks.grace`, or use an app's token.",
        Stage.CHECKS,
    )
    MERGED_ELSEWHERE = (
        "merged-elsewhere",
        "Somebody merged the pull request at another commit than the one that was checked.",
        Stage.MERGE,
    )
    POLICY_REFUSAL = (
        "policy-refusal",
        "A rule of the Base branch forbids the merge; the pull request is ready for a person.",
        Stage.MERGE,
    )
    ISSUE_CHANGED = (
        "issue-changed",
        "Somebody changed the issue, closed it or labelled it for people meanwhile; look whether this still fits.",
    )
    LEASE_LOST = (
        "lease-lost",
        (
            "The Run gave no sign of life for a lease and another took the issue over, or somebody ended its claim; "
            "what it made is on rescue refs, and branch and pull request are not its any more."
        ),
    )


def as_table() -> str:
    """Return all codes, with their stages and hints, as a table in Markdown."""
    rows = [f"| `{code}` | {code.stage or 'any'} | {code.hint} |" for code in Code]
    return "\n".join(["| code | stage | what it means, and what helps |", "| --- | --- | --- |", *rows]) + "\n"
