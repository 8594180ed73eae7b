"""What a branch demands of a pull request before it takes it, and how GitHub says that something is missing.

https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository. The sentences are GitHub's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runner.hub.checks import PASSING, Source

_NOT_AUTHORISED = (
    "You're not authorized to push to this branch. "
    "Visit https://docs.github.com/articles/about-protected-branches/ for more information."
)
_PASSING, _FAILING, _EXPECTED, _PENDING, _IN_PROGRESS = "passing", "failing", "expected", "pending", "in progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What a protected branch, or one that rules are for, demands.

    `pushers` None lets everybody who may write push. `everyone` false lets administrators through. `queue` is the
    method by which a merge queue merges, where there is one. `ruled`: these are a repository's rules.
    """

    contexts: tuple[str, ...] = ()
    strict: bool = False
    approvals: int = 0
    linear: bool = False
    pushers: tuple[str, ...] | None = None
    everyone: bool = False
    queue: str | None = None
    ruled: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule for a branch: GitHub's `type` and `parameters`."""

    type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a pull request has to show. `checks` are GitHub's words for its checks, by their names."""

    checks: Mapping[str, str]
    approvals: int
    behind: bool


_REVIEW_SWITCHES = (
    "dismiss_stale_reviews_on_push",
    "require_code_owner_review",
    "require_last_push_approval",
    "required_review_thread_resolution",
)
_DEFAULTS: dict[str, dict[str, Any]] = {
    "required_linear_history": {},
    "pull_request": {"required_approving_review_count": 1, **dict.fromkeys(_REVIEW_SWITCHES, False)},
    "required_status_checks": {"required_status_checks": [], "strict_required_status_checks_policy": False},
    "merge_queue": {
        "check_response_timeout_minutes": 60,
        "grouping_strategy": "ALLGREEN",
        "max_entries_to_build": 5,
        "max_entries_to_merge": 5,
        "merge_method": "MERGE",
        "min_entries_to_merge": 1,
        "min_entries_to_merge_wait_minutes": 5,
    },
}


def rule(kind: str, parameters: Mapping[str, Any]) -> Rule:
    """Return a rule with GitHub's defaults for what is not given. Raises ValueError for a type that is not known."""
    if kind not in _DEFAULTS or not parameters.keys() <= _DEFAULTS[kind].keys():
        raise ValueError(f"{kind} with {sorted(parameters)} is no rule that the hub knows: {_DEFAULTS}")
    return Rule(kind, _DEFAULTS[kind] | dict(parameters))


def demands_of(rules: Iterable[Rule]) -> Demands:
    """Return what rules demand together."""
    demands = Demands(everyone=True, ruled=True)
    for one in rules:
        given = one.parameters
        match one.type:
            case "pull_request":
                demands = replace(demands, approvals=given["required_approving_review_count"])
            case "required_status_checks":
                contexts = tuple(check["context"] for check in given["required_status_checks"])
                demands = replace(demands, contexts=contexts, strict=given["strict_required_status_checks_policy"])
            case "merge_queue":
                demands = replace(demands, queue=given["merge_method"].lower())
            case _:
                demands = replace(demands, linear=True)
    return demands


def words(checks: Iterable[tuple[str, Source, str | None]]) -> dict[str, str]:
    """Return how GitHub calls the state of checks, given by name, source and conclusion; of equal names the worst."""
    rank = (_PASSING, _PENDING, _IN_PROGRESS, _FAILING)
    said: dict[str, str] = {}
    for name, source, conclusion in checks:
        word = _word(source, conclusion)
        said[name] = max(word, said.get(name, _PASSING), key=rank.index)
    return said


def unmet(demands: Demands, candidate: Candidate) -> list[str]:
    """Return a sentence for each thing that is missing, but for the branch being out of date."""
    sentences = []
    if candidate.approvals < demands.approvals:
        reviews = "review is" if demands.approvals == 1 else "reviews are"
        sentences.append(f"At least {demands.approvals} approving {reviews} required by reviewers with write access.")
    return sentences + _checks_sentence(demands.contexts, candidate.checks)


def is_settled(checks: Mapping[str, str]) -> bool:
    """Tell whether every check has ended well."""
    return all(word == _PASSING for word in checks.values())


def has_failed(demands: Demands, checks: Mapping[str, str]) -> bool:
    """Tell whether a check that is demanded has ended badly."""
    return any(checks.get(name) == _FAILING for name in demands.contexts)


def refusal(
    demands: Demands, candidate: Candidate, *, login: str, is_admin: bool, method: str
) -> tuple[int, str] | None:
    """Return status and message with which GitHub refuses a merge, or None."""
    if is_admin and not demands.everyone:
        return None
    sentences = [] if demands.pushers is None or login in demands.pushers else [_NOT_AUTHORISED]
    sentences += unmet(demands, candidate)
    if demands.linear and method == "merge":
        sentences.append("This branch must not contain merge commits.")
    if demands.queue is not None:
        sentences.append("Changes must be made through the merge queue")
    if sentences:
        return 405, "\n\n".join(["Repository rule violations found", *sentences]) if demands.ruled else " ".join(
            sentences
        )
    if demands.strict and candidate.behind:
        return 409, "Head branch is out of date. Review and try the merge again."
    return None


def _checks_sentence(contexts: tuple[str, ...], checks: Mapping[str, str]) -> list[str]:
    states = {name: checks.get(name, _EXPECTED) for name in contexts}
    missing = {name: word for name, word in states.items() if word != _PASSING}
    if not missing:
        return []
    if len(missing) == 1:
        [(name, word)] = missing.items()
        return [f'Required status check "{name}" is {word}.']
    counted = f"{len(missing)} of {len(contexts)} required status checks"
    counts = Counter(missing.values())
    if len(counts) == 1:
        return [f"{counted} are {next(iter(counts))}."]
    # GitHub leaves those in progress out of this sum.
    parts = [f"{counts[word]} {word}" for word in (_EXPECTED, _PENDING, _FAILING) if word in counts]
    return [f"{counted} have not succeeded: {' and '.join(parts)}."]


def _word(source: Source, conclusion: str | None) -> str:
    if conclusion is None:
        return _PENDING if source is Source.STATUS else _IN_PROGRESS
    return _PASSING if conclusion in PASSING else _FAILING
