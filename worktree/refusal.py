"""What a remote says when it does not take a push, told apart.

Reading its words may only make us more careful: a sign that it is the content outweighs every other one, and what is
not surely recognised is unknown.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

_LONGEST_WORDS = 600  # characters


class RefusalKind(StrEnum):
    """Why a push was not taken; the value says it to a person."""

    NON_FAST_FORWARD = "origin holds commits there that are not here"
    BRANCH_RULE = "a rule on that branch forbids it"
    CONTENT = "origin refuses what is in it"
    STALE_LEASE = "somebody else moved it meanwhile"
    SHALLOW = "the clone is shallow and origin wants the whole history"
    TRANSIENT = "origin could not be reached, or failed"
    UNAUTHORIZED = "the credential was not accepted"
    UNKNOWN = "it did not say why"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a push was not taken, and the remote's own words for it, in one line for a person; "" when it said none.

    What git made of them stands in brackets behind them.
    """

    kind: RefusalKind
    words: str

    def __str__(self) -> str:
        if self.kind is RefusalKind.UNKNOWN and self.words:
            return self.words
        return f"{self.kind}: {self.words}" if self.words else str(self.kind)


# https://docs.github.com/en/code-security/secret-scanning, https://docs.github.com/repositories/working-with-files and
# the answers as people meet them: a secret (GH013 with these words), a file's size, path or extension, a workflow file
# without the scope, Git LFS objects that were not uploaded or cannot be checked.
_CONTENT = re.compile(
    r"\bGH00[189]\b|push protection|push cannot contain|secrets? (?:detected|found)|(?:following|contains?) secrets"
    r"|secret.scanning|file size limit|large files? detected"
    r"|file (?:path|extension|size)s?\b|refusing to allow .* workflow|without `?workflows?`? (?:scope|permission)"
    r"|unknown Git LFS object|LFS budget",
    re.IGNORECASE,
)

_NOT_FORWARD = {"non-fast-forward", "fetch first"}
_LOST_LEASES = {"stale info", "remote ref updated since checkout"}
_SHALLOW = {"shallow update not allowed"}
_RULES = {"protected branch hook declined", "push declined due to repository rule violations"}
_LOCKED = {"failed to lock", "failed to update ref", "cannot lock ref"}
_OTHERS = {"atomic push failed", "atomic push failure", "atomic transaction failed"}  # these are not the culprits

# Of a rule on a branch every line must be one of these; a rule on the commits themselves is not among them.
# https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets
_BRANCH_RULES = re.compile(
    r"GH0(?:06: Protected branch update failed|13: Repository rule violations found) for refs/heads/.*"
    r"|Review all repository rules at \S+"
    r"|(?:Changes must be made through (?:a pull request|the merge queue)\. ?|Cannot update this protected ref\. ?"
    r"|Cannot force-push to (?:this|a protected) branch\.? ?|Cannot create ref due to creations being restricted\. ?"
    r"|Cannot change this locked branch\.? ?|Required status checks? .* (?:is|are) expected\. ?"
    r"|\d+ of \d+ required status checks are expected\. ?"
    r"|(?:At least )?\w+ appro(?:ving|ved) reviews? (?:is|are) required(?: by reviewers with write access)?\. ?"
    r"|You're not authorized to push to this branch\.(?: Visit \S+ for more information\.)? ?)+"
)

# A lock that another push holds, and no name that is in the way.
_LOCK = re.compile(
    r"cannot lock ref '[^']*': (?:Unable to create .*File exists|is at \w+ but expected \w+)|failed to lock"
)
_BAD_CREDENTIAL = re.compile(
    r"Authentication failed|Authentication required|could not read (?:Username|Password)|Permission denied \("
    r"|returned error: 40[13]\b|Bad credentials",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"returned error: (?:429|5\d\d)|HTTP (?:429|5\d\d)\b|HTTP code = 5\d\d|early EOF|unexpected disconnect"
    r"|the remote end hung up|Connection (?:reset|timed out|refused|was reset|closed by)|Operation timed out"
    r"|Couldn't connect to server|Could not resolve host|Temporary failure in name resolution|Empty reply from server"
    r"|Recv failure|Send failure|Operation too slow|RPC failed; curl|Network is unreachable|Internal Server Error",
    re.IGNORECASE,
)

_CODE = re.compile(r"GH\d{3}\b")
_PROGRESS = re.compile(r"[A-Z][a-z]+ [a-z]+: +\d+(?:%|,|$)|Processed \d+ references|Trace: |See https?://")
_ADVICE = re.compile(
    r"\(\?\)|https?://\S+$|Resolve the following|Review all repository rules|locations:$|hook declined to update"
)
_NOISE = ("failed to push some refs", "Please make sure you have", "and the repository exists")


def read_refusal(stdout: str, stderr: str) -> Refusal:
    """Tell from what `git push --porcelain` wrote why it failed. Redacting is the caller's."""
    reasons = list(_reasons(stdout))
    remote = list(_remote_lines(stderr))
    own = list(_own_lines(stderr))
    return Refusal(_kind(reasons, remote, own), _words(reasons, remote, own))


def refused_refs(stdout: str) -> dict[str, str]:
    """Return the refs of origin that `git push --porcelain` says were refused, each with git's word for it.

    Not those that were refused only because another one was.
    """
    rows = [line.split("\t") for line in stdout.splitlines() if line.startswith("!\t")]
    return {row[1].partition(":")[2]: row[2] for row in rows if _bracketed(row[2]) not in _OTHERS}


def _kind(reasons: Sequence[str], remote: Sequence[str], own: Sequence[str]) -> RefusalKind:
    unquoted = (re.sub("'[^']*'", "", line) for line in own)  # a repository may have any name
    if any(_CONTENT.search(text) for text in (*reasons, *remote, *unquoted)):
        return RefusalKind.CONTENT
    culprits = set(reasons) - _OTHERS
    if reasons:
        return _kind_by_refs(culprits, remote)
    if any(_BAD_CREDENTIAL.search(text) for text in own):
        return RefusalKind.UNAUTHORIZED
    return RefusalKind.TRANSIENT if any(_PASSING.search(text) for text in own) else RefusalKind.UNKNOWN


def _kind_by_refs(culprits: set[str], remote: Sequence[str]) -> RefusalKind:
    """Go by git's own status of each ref; the remote's words must not contradict it."""
    if culprits & _LOST_LEASES:
        return RefusalKind.STALE_LEASE
    if not culprits:
        return RefusalKind.UNKNOWN
    if culprits <= _NOT_FORWARD:
        return RefusalKind.NON_FAST_FORWARD
    if culprits <= _SHALLOW:
        return RefusalKind.SHALLOW
    if culprits <= _RULES and _is_branch_rule(remote):
        return RefusalKind.BRANCH_RULE
    if culprits <= {"failed to lock"} or (culprits <= _LOCKED and any(_LOCK.search(line) for line in remote)):
        return RefusalKind.TRANSIENT
    return RefusalKind.UNKNOWN


def _is_branch_rule(remote: Sequence[str]) -> bool:
    said = [line for line in remote if not _PROGRESS.match(line)]
    rules = [line for line in said if not (_CODE.match(line) or line.startswith("Review all"))]
    return bool(rules) and all(_BRANCH_RULES.fullmatch(line) for line in said)


def _reasons(stdout: str) -> Iterator[str]:
    """Yield what stands in the brackets of each refused ref: `!<tab>from:to<tab>[rejected] (reason)`."""
    for line in stdout.splitlines():
        if line.startswith("!\t"):
            yield _bracketed(line.rsplit("\t", 1)[1])


def _bracketed(status: str) -> str:
    return status.partition("] ")[2].removeprefix("(").removesuffix(")")


def _remote_lines(stderr: str) -> Iterator[str]:
    """Yield the remote's lines, without its bullets, dashes and blank lines."""
    for line in re.split(r"[\r\n]+", stderr):
        if line.startswith("remote:"):
            said = line.removeprefix("remote:").strip(" \t—-").removeprefix("error: ").strip()
            if said:
                yield said


def _own_lines(stderr: str) -> Iterator[str]:
    for line in re.split(r"[\r\n]+", stderr):
        if line and not line.startswith(("remote:", "hint:", "To ")):
            yield line.strip()


def _words(reasons: Sequence[str], remote: Sequence[str], own: Sequence[str]) -> str:
    said = [line for line in remote if not (_PROGRESS.match(line) or _ADVICE.match(line))]
    said.sort(key=lambda line: not _CODE.match(line))
    if not reasons:
        said += [re.sub(r"^(?:fatal|error): ", "", line) for line in own if not any(part in line for part in _NOISE)]
    whole, by_git = _one_line(said), _one_line([reason for reason in reasons if reason not in _OTHERS] or reasons)
    return f"{whole} ({by_git})" if whole and by_git else whole or by_git


def _one_line(lines: Sequence[str]) -> str:
    whole = "; ".join(line.rstrip(".:;") for line in dict.fromkeys(lines))
    return whole if len(whole) <= _LONGEST_WORDS else whole[: _LONGEST_WORDS - 1] + "…"
