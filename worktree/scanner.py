"""What in a file is a secret: known values, and the token shapes of gitleaks' rules.

`gitleaks.toml` is the rule file of gitleaks 8.30.1 as it was published, `gitleaks.LICENSE` its licence. A newer one
can take its place; a rule that asks for what is not understood here is an error, not a rule that finds less.
"""

import math
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from worktree.redaction import MASK, Redactor

KNOWN = "a known secret value"
NOT_IN_TIME = "not screened in time"

_RULES = Path(__file__).with_name("gitleaks.toml")

# Rules that take almost any word in the right place for a secret (beside "key", after `curl -u`, as a password in
# Terraform), and one that takes commit ids for tokens: they would keep ordinary work from being pushed.
_LEFT_OUT = {
    "generic-api-key",
    "curl-auth-header",
    "curl-auth-user",
    "hashicorp-tf-password",
    "nuget-config-password",
    "sourcegraph-access-token",
}

# A person's word that a line is no secret, in gitleaks' own spelling. It does not count for known values.
_ALLOWED_LINE = b"gitleaks:allow"

_LOOK_ALIKES = 100_000  # of one rule in one file, after which no more are told from secrets: the file is taken for one
_MEMORY = 256 << 20  # bytes that the search for many words may use: enough for ten thousand forms of known values


class Scanner:
    """Finds known values in every form that `redact` masks, and token shapes by gitleaks' rules, in files of any kind.

    A rule counts as gitleaks has it: with its keywords, paths, entropy and allowlists. Files that gitleaks passes
    over (images, lock files, minified scripts) are searched for known values alone, and so is everything where
    `known_only` is asked for.
    """

    def __init__(self, redact: Redactor, *, known_only: bool = False) -> None:
        known = redact.forms
        self._known = len(known)
        self._rules = [] if known_only else list(_rules_by_keyword().values())
        self._always = [] if known_only else [rule for rule in _rules() if not rule.keywords]
        self._clues = _search_for(known, known_only=known_only)

    def rule_for(self, data: bytes, path: str = "", before: bytes = b"", late: Callable[[], bool] = bool) -> str | None:
        """Return the name of the rule by which `data`, the content of `path`, holds a secret; None for no secret.

        What a rule finds in `before` too, an older content that is public already, is no secret any more. That is
        never said of a known value, nor by a rule for one kind of file. Once `late` says so the rest is not looked
        for any more, and the answer is `NOT_IN_TIME`.
        """
        readings = _readings(data)
        clues: list[Sequence[int]] = [self._clues.Match(reading) or () for reading in readings]
        name = os.fsencode(path)
        if not any(clues) and not any(rule.is_for(name) for rule in self._always):
            return None
        if any(clue < self._known for found in clues for clue in found):
            return KNOWN
        earlier = _readings(before)
        for reading, found in zip(readings, clues, strict=True):
            rules = dict.fromkeys(rule for clue in found for rule in self._rules[clue - self._known])
            for rule in (*self._always, *rules):
                found_one = rule.finds(reading, name, earlier, late)
                if late():
                    return NOT_IN_TIME
                if found_one:
                    return rule.name
        return None

    def shown(self, path: str) -> str:
        """Return `path` as it may be shown to anybody: the parts of it that hold a secret are masked."""
        masked = "/".join(MASK if self.rule_for(os.fsencode(part)) else part for part in path.split("/"))
        return MASK if self.rule_for(os.fsencode(masked)) else masked


@dataclass(frozen=True, slots=True)
class _Allowlist:
    """What makes a finding none: the file's path, the secret or the whole match, a word in the secret."""

    paths: tuple[str, ...]
    regexes: tuple[str, ...]
    words: tuple[bytes, ...]
    whole: bool

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "_Allowlist":
        _only(entry, {"description", "paths", "regexes", "regexTarget", "stopwords"})
        target = entry.get("regexTarget", "secret")
        if target not in ("secret", "match"):
            raise ValueError(f"an allowlist for the {target} is not understood")
        words = tuple(word.lower().encode() for word in entry.get("stopwords", ()))
        return cls(tuple(entry.get("paths", ())), tuple(entry.get("regexes", ())), words, target == "match")

    def excuses(self, name: bytes, match: bytes, secret: bytes) -> bool:
        return (
            any(_search(pattern, name) for pattern in self.paths)
            or any(_search(pattern, match if self.whole else secret) for pattern in self.regexes)
            or any(word in secret.lower() for word in self.words)
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    keywords: tuple[bytes, ...]
    pattern: str | None
    path: str | None
    entropy: float
    group: int
    allowlists: tuple[_Allowlist, ...]

    @classmethod
    def of(cls, entry: Mapping[str, Any], everywhere: _Allowlist) -> "_Rule":
        _only(entry, {"id", "description", "keywords", "regex", "path", "entropy", "secretGroup", "allowlists"})
        return cls(
            name=entry["id"],
            keywords=tuple(keyword.lower().encode() for keyword in entry.get("keywords", ())),
            pattern=entry.get("regex"),
            path=entry.get("path"),
            entropy=entry.get("entropy", 0),
            group=entry.get("secretGroup", 0),
            allowlists=(everywhere, *map(_Allowlist.of, entry.get("allowlists", ()))),
        )

    def is_for(self, name: bytes) -> bool:
        """Whether the rule has anything to say of a file of that name."""
        return self.path is None or (name != b"" and _search(self.path, name))

    def finds(self, data: bytes, name: bytes, earlier: Sequence[bytes], late: Callable[[], bool]) -> bool:
        """Whether a secret is in `data`; once it is late the answer means nothing."""
        if not self.is_for(name):
            return False
        if self.pattern is None:
            return True
        search = _expression(self.pattern).finditer
        # A rule for one kind of file (a manifest of secrets, say) finds the first of them and means them all.
        excusing = earlier if self.path is None else ()
        public = {self._evidence(match) for text in excusing for match in islice(search(text), _LOOK_ALIKES)}
        dismissed: set[tuple[bytes, bytes]] = set()
        return any(
            number >= _LOOK_ALIKES
            or late()
            or (self._evidence(match) not in public and self._counts(match, name, dismissed))
            for number, match in enumerate(search(data))
        )

    def _evidence(self, match: Any) -> bytes:
        """Return what makes a match the same as another: the secret, where one is sure to be all of it."""
        # With several groups the first may be a small part, or the name of a kind.
        text: bytes = match[0] if not self.group and len(match.groups()) > 1 else self._secret(match)
        return text

    def _secret(self, match: Any) -> bytes:
        secret: bytes = match[self.group] if self.group else next(filter(None, match.groups()), match[0])
        return secret

    def _counts(self, match: Any, name: bytes, dismissed: set[tuple[bytes, bytes]]) -> bool:
        found = (match[0], self._secret(match))
        if found in dismissed:
            return False
        if self._excuses(name, *found):
            dismissed.add(found)
            return False
        return _ALLOWED_LINE not in _lines_of(match)

    def _excuses(self, name: bytes, match: bytes, secret: bytes) -> bool:
        if self.entropy and _entropy(secret) <= self.entropy:
            return True
        return any(allowlist.excuses(name, match, secret) for allowlist in self.allowlists)


@cache
def _rules() -> tuple[_Rule, ...]:
    book = tomllib.loads(_RULES.read_text(encoding="utf-8"))
    everywhere = _Allowlist.of(book["allowlist"])
    return tuple(_Rule.of(entry, everywhere) for entry in book["rules"] if entry["id"] not in _LEFT_OUT)


@cache
def _rules_by_keyword() -> Mapping[bytes, Sequence[_Rule]]:
    by_keyword: dict[bytes, list[_Rule]] = {}
    for rule in _rules():
        for keyword in rule.keywords:
            by_keyword.setdefault(keyword, []).append(rule)
    return by_keyword


def _only(entry: Mapping[str, Any], understood: Collection[str]) -> None:
    unknown = sorted(entry.keys() - understood)
    if unknown:
        raise ValueError(f"{unknown} in a rule is not understood")


@lru_cache(maxsize=4)  # it takes a while to build, and the known values hardly ever change
def _search_for(known: frozenset[bytes], *, known_only: bool) -> Any:
    """Return a search that tells in one pass which of the values are there, and then which keywords in any case."""
    re2 = _re2()
    keywords = () if known_only else _rules_by_keyword()
    options = _options()
    options.max_mem = _MEMORY
    search = re2.Set.SearchSet(options)
    for pattern in (*map(re2.escape, sorted(known)), *(b"(?i)" + re2.escape(keyword) for keyword in keywords)):
        search.Add(pattern)
    search.Compile()
    return search


def _readings(data: bytes) -> list[bytes]:
    """Return the ways to read `data`: without the NULs text in UTF-16 and UTF-32 reads like any other."""
    return [data, data.replace(b"\0", b"")] if b"\0" in data else [data]


def _search(pattern: str, text: bytes) -> bool:
    return _expression(pattern).search(text) is not None


@cache
def _expression(pattern: str) -> Any:
    return _re2().compile(pattern.encode(), _options())


def _options() -> Any:
    options = _re2().Options()
    options.encoding = options.Encoding.LATIN1  # bytes as they are, for files are in no particular encoding
    return options


def _re2() -> Any:
    import re2  # type: ignore[import-untyped]  # it comes without types

    return re2


def _entropy(text: bytes) -> float:
    """Return Shannon's entropy in bits a character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _lines_of(match: Any) -> bytes:
    text: bytes = match.string
    end = text.find(b"\n", match.end())
    return text[text.rfind(b"\n", 0, match.start()) + 1 : end if end >= 0 else len(text)]
