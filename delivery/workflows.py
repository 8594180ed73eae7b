"""Whether a repository's workflows run for a pull request, read from their files as GitHub documents the filters.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#on
What cannot be read counts as running: then checks are waited for in vain, and not missed.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

_PULL_REQUEST = ("pull_request", "pull_request_target")
_UNASKED = {"opened", "synchronize", "reopened"}  # what a pull request does by which its checks start
_ANYTHING: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A pull request for the Base branch from `branch`; `paths` are the files that it changes, None for unknown."""

    base: str
    branch: str
    paths: Collection[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    """How many runs of workflows begin, one for each event, and whether filters keep workflows from running at all."""

    runs: int
    is_filtered: bool


def which_apply(texts: Iterable[str], proposed: Proposed) -> Applying:
    """Decide by the texts of all workflow files."""
    runs = [_runs(_events(text), proposed) for text in texts]
    return Applying(runs=sum(number or 0 for number in runs), is_filtered=0 in runs)


def _events(text: str) -> Mapping[str, Any] | None:
    """Return what a workflow runs on, with the filters of each event; None when that cannot be read."""
    try:
        read = yaml.safe_load(text)
        # YAML takes the word `on` for true.
        named = read.get("on", read.get(True))
    except (yaml.YAMLError, AttributeError):
        return None
    match named:
        case str():
            return {named: _ANYTHING}
        case list():
            return {str(name): _ANYTHING for name in named}
        case dict():
            return {str(name): filters or _ANYTHING for name, filters in named.items()}
    return None


def _runs(events: Mapping[str, Any] | None, proposed: Proposed) -> int | None:
    """Count the runs of one workflow; None for one that has nothing to do with pull requests or pushes."""
    if events is None:
        return 1
    answers = [
        _lets_through(filters, proposed, branch=proposed.branch if event == "push" else proposed.base, event=event)
        for event, filters in events.items()
        if event == "push" or event in _PULL_REQUEST
    ]
    return sum(answers) if answers else None


def _lets_through(filters: Any, proposed: Proposed, *, branch: str, event: str) -> bool:
    if not isinstance(filters, Mapping):
        return True
    if event in _PULL_REQUEST and "types" in filters and not _UNASKED & set(_words(filters["types"])):
        return False
    if (
        event == "push"
        and ({"tags", "tags-ignore"} & filters.keys())
        and not ({"branches", "branches-ignore"} & filters.keys())
    ):
        return False
    named = any(
        (
            "branches" in filters and not _chosen(branch, _words(filters["branches"])),
            "branches-ignore" in filters and _chosen(branch, _words(filters["branches-ignore"])),
            "paths" in filters and not _any_chosen(proposed.paths, _words(filters["paths"])),
            "paths-ignore" in filters
            and proposed.paths is not None
            and all(_chosen(path, _words(filters["paths-ignore"])) for path in proposed.paths),
        )
    )
    return not named


def _any_chosen(paths: Collection[str] | None, patterns: Sequence[str]) -> bool:
    return paths is None or any(_chosen(path, patterns) for path in paths)


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else [str(value)]


def _chosen(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name is chosen by patterns, of which a later one outweighs an earlier one and `!` takes back."""
    chosen = False
    for pattern in patterns:
        if _pattern(pattern.removeprefix("!")).fullmatch(name):
            chosen = not pattern.startswith("!")
    return chosen


def _pattern(glob: str) -> re.Pattern[str]:
    """Return a filter pattern of GitHub's as a regular expression: `?` and `+` are about the character before them."""
    parts = re.findall(r"\*\*/|\*\*|\*|\[[^\]]+\]|[?+]|\\.|.", glob, re.DOTALL)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "?", "+": "+"}
    try:
        return re.compile(
            "".join(meaning.get(part) or (part if part[0] in "[\\" else re.escape(part)) for part in parts)
        )
    except re.error:
        return re.compile(".*", re.DOTALL)
