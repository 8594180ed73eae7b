"""Why a Run can fail: a closed set of codes, which say the same to a note, a program and the documentation.

What happened stands in the cause, a sentence of each Run's own; the code is for programs, the hint for whoever wonders
what kind of trouble it is and what helps. `docs/failure-causes.md` is made of this table.
"""

from enum import StrEnum


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
    """What kind of cause ended a Run; see `hint_of`."""

    INTERRUPTED = "interrupted"
    KILLED = "killed"
    BUG = "bug"
    MACHINE = "machine-trouble"
    GIT = "git-failed"
    GITHUB = "github-refused"
    GITHUB_UNAVAILABLE = "github-unavailable"
    TOKEN = "token-refused"  # noqa: S105 - the name of a cause
    PERMISSION = "permission-missing"
    WORKTREE = "worktree-not-made"
    TICKETS = "tickets-not-done"
    SETUP = "setup-failed"
    AGENT = "agent-failed"
    AGENT_LIMIT = "agent-usage-limit"
    AGENT_LOGIN = "agent-login"
    MODEL = "model-unavailable"
    PROCESSES = "processes-left"
    UNSETTLED = "worktree-unsettled"
    NOTHING_MADE = "nothing-made"
    VERIFY = "verify-failed"
    PUSH_REFUSED = "push-refused"
    PULL_REQUEST = "pull-request-changed"
    CONFLICT = "conflict-left"
    NOT_MERGEABLE = "not-mergeable"
    REPAIRS = "repairs-exhausted"
    UPSTREAM = "upstream-kept-moving"
    CHECKS_FAILED = "checks-failed"
    CHECKS_INHERITED = "checks-inherited"
    BASE_FIX = "base-fix-failed"
    CHECKS_VANISHED = "checks-vanished"
    CHECKS_PENDING = "checks-timed-out"
    CHECKS_MISSING = "checks-missing"
    MERGED_ELSEWHERE = "merged-elsewhere"
    POLICY_REFUSAL = "policy-refusal"
    LEASE_LOST = "lease-lost"


_HINTS = {
    Code.INTERRUPTED: "A signal, or a cancelled job, ended the Run; continue it when you like.",
    Code.KILLED: "Nightkeep itself was killed; the next `nightkeep run` or `recover` in that clone finished the Run.",
    Code.BUG: "Nightkeep broke; please report it with the lines of the Command log.",
    Code.MACHINE: "The machine had trouble: a full disk, for example, or a program that could not be read.",
    Code.GIT: "A git command failed; its words say why.",
    Code.GITHUB: "GitHub refused a request; its words say why.",
    Code.GITHUB_UNAVAILABLE: "GitHub did not answer, or asked for a longer wait than a Run has; try again later.",
    Code.TOKEN: "The token has expired or was revoked; give a valid one.",
    Code.PERMISSION: "The token lacks a permission; the cause names it where GitHub says so.",
    Code.WORKTREE: "The worktree could not be made.",
    Code.TICKETS: "Some sub-issues are still open; the checklist says why. See to them, then run the whole again.",
    Code.SETUP: "The command in `setup` failed; its log says why.",
    Code.AGENT: "The agent ended badly, or was stopped at a limit (`limits.session`, `limits.idle`, `limits.output`).",
    Code.AGENT_LIMIT: "The agent's account has used up what it may use; wait until the limit ends, or add credit.",
    Code.AGENT_LOGIN: "The agent's own login, or its key, was refused; log it in as the user that runs Nightkeep.",
    Code.MODEL: "The service of the agent's model did not answer, or was overloaded; try again later.",
    Code.PROCESSES: "The agent left processes that could not be stopped.",
    Code.UNSETTLED: "The agent left HEAD elsewhere, or a git operation or a conflict unfinished.",
    Code.NOTHING_MADE: "The agent ended well without a commit or a changed file; say more in the issue, or allow more.",
    Code.VERIFY: "The command in `verify` fails on the branch.",
    Code.PUSH_REFUSED: "Origin did not take the branch: somebody else's commits are on it, a rule, or what is in it.",
    Code.PULL_REQUEST: "Somebody closed the pull request, made it a draft, or pointed it at another branch.",
    Code.CONFLICT: "A Repair left a merge unfinished, conflict markers, or no merge at all.",
    Code.NOT_MERGEABLE: "GitHub calls the pull request unmergeable, though the Base branch is merged into it.",
    Code.REPAIRS: "As many Repairs as `repair.limit` allows did not help; look at what they tried.",
    Code.UPSTREAM: "Others pushed faster than checks ran; raise `repair.moves`, or use a merge queue.",
    Code.CHECKS_FAILED: "Checks fail, and the agent found nothing on the branch to change about it.",
    Code.CHECKS_INHERITED: "Checks fail that fail on the Base branch, too; mend that first, or let a Run (`base-fix`).",
    Code.BASE_FIX: "Checks fail that fail on the Base branch, too, and the Run that was to mend it there did not.",
    Code.CHECKS_VANISHED: "GitHub listed checks of the commit, and then none.",
    Code.CHECKS_PENDING: "Checks did not finish within `limits.checks`.",
    Code.CHECKS_MISSING: "No check ran; see `checks.required` and `checks.grace`, or use an app's token.",
    Code.MERGED_ELSEWHERE: "Somebody merged the pull request at another commit than the one that was checked.",
    Code.POLICY_REFUSAL: "A rule of the Base branch forbids the merge; the pull request is ready for a person.",
    Code.LEASE_LOST: "The Run gave no sign of life for a lease and another took the issue over, or somebody ended its "
    "claim; what it made is on rescue refs, and branch and pull request are not its any more.",
}


# Where causes arise that arise in one stage only; others may come from anywhere.
_STAGES = {
    Code.SETUP: Stage.SETUP,
    Code.VERIFY: Stage.VERIFY,
    Code.PUSH_REFUSED: Stage.PUSH,
    Code.PULL_REQUEST: Stage.PULL_REQUEST,
    Code.CONFLICT: Stage.REPAIR,
    Code.NOT_MERGEABLE: Stage.PULL_REQUEST,
    Code.REPAIRS: Stage.REPAIR,
    Code.UPSTREAM: Stage.REPAIR,
    Code.CHECKS_FAILED: Stage.CHECKS,
    Code.CHECKS_INHERITED: Stage.CHECKS,
    Code.BASE_FIX: Stage.CHECKS,
    Code.CHECKS_VANISHED: Stage.CHECKS,
    Code.CHECKS_PENDING: Stage.CHECKS,
    Code.CHECKS_MISSING: Stage.CHECKS,
    Code.MERGED_ELSEWHERE: Stage.MERGE,
    Code.POLICY_REFUSAL: Stage.MERGE,
    Code.NOTHING_MADE: Stage.COMMIT,
    Code.WORKTREE: Stage.WORKTREE,
    Code.TICKETS: Stage.TICKETS,
}


def stage_of(code: Code) -> Stage | None:
    """Return the only stage in which causes of that kind arise, None when there are several."""
    return _STAGES.get(code)


def hint_of(code: Code) -> str:
    """Return what helps against causes of that kind, in a sentence."""
    return _HINTS[code]


def as_table() -> str:
    """Return all codes, with their stages and hints, as a table in Markdown."""
    rows = [f"| `{code}` | {stage_of(code) or 'any'} | {hint_of(code)} |" for code in Code]
    return "\n".join(["| code | stage | what it means, and what helps |", "| --- | --- | --- |", *rows]) + "\n"
