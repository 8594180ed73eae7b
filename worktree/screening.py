"""Looking for secrets in whatever is about to leave this machine."""

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from worktree.errors import GitError, Interrupted
from worktree.git import Git
from worktree.reading import read_regular
from worktree.redaction import Redactor
from worktree.scanner import NOT_IN_TIME, Scanner

TOO_LARGE = "too large to be screened"

_LONGEST = 30  # seconds
_LONGEST_INTERRUPTED = 5  # seconds, because whoever interrupts waits for the end
_AT_ONCE = 32 << 20  # bytes of objects that one git command is asked for

_MISSING = " missing"
_IDS = re.compile(rb"(?:(?:tree|parent|object) [0-9a-f]+\n)*")


def screen_files(
    git: Git,
    top: Path,
    paths: Collection[str],
    before: str | None = None,
    *,
    known_only: bool = False,
    limit: float = _LONGEST,
) -> dict[str, str]:
    """Return those of `paths`, relative to `top`, that must not be published, each with the rule that says so.

    What counts is what git would store: the bytes of a regular file, the text of a symbolic link, and the name. A
    file over the limit for files is `TOO_LARGE`. What cannot be read cannot be staged either, and is not in the
    answer. `before` is a commit that origin has: a token in its version of the same file does not count again, but a
    known value does; with `known_only` nothing else counts. A rule's name never holds a secret, but a path can:
    `shown` says how to name it to others. What was not looked through after `limit` seconds, or after five where an
    interruption is recorded, is `NOT_IN_TIME`. Raises GitError.
    """
    scanner = Scanner(git.redact, known_only=known_only)
    late = _deadline(git, limit)
    rules = {path: _rule_for_file(scanner, top, path, git.limits.file, late) for path in paths}
    olds = _versions(git, before, {path for path, rule in rules.items() if rule not in (None, NOT_IN_TIME)})
    for old, data in _read(git, olds.values()):
        rules[old.path] = _rule_for_file(scanner, top, old.path, git.limits.file, late, data)
    return {path: rule for path, rule in rules.items() if rule}


def explained(why: str) -> str:
    """Return why something was held back in words; a rule of the scanner goes by its name, which has no blank."""
    return why if " " in why else f"looks like a secret ({why})"


def shown(path: str, redact: Redactor) -> str:
    """Return `path` as it may be published: each part of it that holds a secret is masked."""
    return Scanner(redact).shown(path)


def screen_commits(
    git: Git,
    commits: Collection[str],
    beyond: Collection[str],
    before: str | None = None,
    *,
    limit: float = _LONGEST,
) -> dict[str, str]:
    """Return what holds a secret among all that `commits` reach and `beyond` do not: place and rule.

    Looked at is every file of every commit on the way, at each path where it stands, every name that came about, and
    what a commit says (message and people). A place is "message of <commit>" or a path, shown without what is secret
    in it. A blob over the limit for files is `TOO_LARGE`. Ids in `beyond` that this repository does not have are
    passed over. `before` and `limit` are as in `screen_files`; names are looked at however late it is. Raises GitError.
    """
    scanner = Scanner(git.redact)
    late = _deadline(git, limit)
    objects = _new_objects(git, commits, beyond)
    changes = _changes(git, [item.oid for item in objects if item.kind == "commit"])
    texts = _with_each_path(objects, changes)
    rules = _rules_for_objects(git, scanner, [item for item in texts if item.size <= git.limits.file], late)
    suspects = [item for item, rule in rules.items() if rule not in (None, NOT_IN_TIME)]
    rules |= _rules_beside(git, scanner, before, suspects, late)
    rules |= {item: TOO_LARGE for item in texts if item.size > git.limits.file}
    found = {scanner.shown(item.place): rule for item, rule in rules.items() if rule}
    return _rules_for_names(scanner, changes) | found


def _deadline(git: Git, limit: float) -> Callable[[], bool]:
    """Return what says whether the time for screening is over; it raises Interrupted as a git command would."""
    start = time.monotonic()
    interrupted = min(limit, _LONGEST_INTERRUPTED)

    def late() -> bool:
        if git.interruption.recorded and not git.finishing:
            raise Interrupted(("git",), git.directory, status=None)
        return time.monotonic() - start >= (interrupted if git.interruption.recorded else limit)

    return late


def _rule_for_file(
    scanner: Scanner, top: Path, path: str, limit: int, late: Callable[[], bool], old: bytes | None = None
) -> str | None:
    place = f"{top}/{path}"
    if late():
        return NOT_IN_TIME if os.path.lexists(place) else None
    try:
        content = _content(place, limit)
    except OSError:
        return None
    if content is None:
        return TOO_LARGE
    name = os.fsencode(path)
    by_name = scanner.rule_for(name, before=b"" if old is None else name)
    return by_name or scanner.rule_for(content, path, old or b"", late)


def _content(path: str, limit: int) -> bytes | None:
    """Return what git would store for `path`; None for a file over the limit."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return os.fsencode(Path(path).readlink())
    if stat.S_ISDIR(status.st_mode):
        return b""  # a repository inside the tree: git stores the id of a commit
    return None if status.st_size > limit else read_regular(path, status.st_size + 1)


@dataclass(frozen=True, slots=True)
class _Object:
    oid: str
    kind: str
    size: int
    path: str

    @classmethod
    def of(cls, row: str, path: str) -> "_Object":
        oid, kind, size = row.split(" ")
        return cls(oid, kind, int(size), path)

    @property
    def place(self) -> str:
        return self.path if self.kind == "blob" else f"message of {self.oid}"


@dataclass(frozen=True, slots=True)
class _Change:
    """What a commit put at a path; `is_new` says that no parent has anything there."""

    oid: str
    path: str
    is_new: bool

    @classmethod
    def of(cls, row: str, path: str) -> "_Change":
        # One colon, mode and id for each parent, a mode and an id for the commit, then one letter for each parent.
        words = row.lstrip(":").split(" ")
        return cls(words[-2], path, not words[-1].strip("A"))


def _new_objects(git: Git, commits: Collection[str], beyond: Collection[str]) -> list[_Object]:
    here = [oid for oid, row in zip(beyond, _described(git, beyond), strict=True) if not row.endswith(_MISSING)]
    asked = "\n".join([*commits, *(f"^{oid}" for oid in here), ""])
    listed = git.run("rev-list", "--objects", "--stdin", stdin=asked.encode()).text
    named = [(oid, path) for oid, _, path in (row.partition(" ") for row in listed.split("\n")) if oid]
    rows = _described(git, [oid for oid, _ in named])
    return [_Object.of(row, path) for row, (_, path) in zip(rows, named, strict=True)]


def _described(git: Git, oids: Collection[str]) -> list[str]:
    """Return "<object id> <kind> <size>" for each of `oids`, "<object id> missing" for one that is not there."""
    ids = "\n".join(oids).encode()
    return git.run("cat-file", "--batch-check", "--buffer", stdin=ids).text.splitlines()


def _changes(git: Git, commits: Collection[str]) -> list[_Change]:
    """Return what each of the commits put where none of its parents has it, directories included."""
    # Of what git lists with an object it names one path only, and that up to its first line end.
    form = ("--raw", "-z", "-r", "-t", "-c", "--root", "--no-commit-id", "--no-renames", "--ignore-submodules=none")
    fields = git.run("diff-tree", "--stdin", *form, stdin="".join(f"{oid}\n" for oid in commits).encode()).fields
    changes = [_Change.of(row, path) for row, path in zip(fields[::2], fields[1::2], strict=True)]
    return [change for change in changes if change.oid.strip("0")]


def _with_each_path(objects: Collection[_Object], changes: Collection[_Change]) -> list[_Object]:
    """Return the objects that hold text, a blob once for each path at which it was put."""
    paths: dict[str, dict[str, None]] = {}
    for change in changes:
        paths.setdefault(change.oid, {})[change.path] = None
    texts = [item for item in objects if item.kind != "tree"]
    return [replace(item, path=path) for item in texts for path in paths.get(item.oid, (item.path,))]


def _rules_for_objects(
    git: Git, scanner: Scanner, objects: Collection[_Object], late: Callable[[], bool]
) -> dict[_Object, str | None]:
    rules: dict[_Object, str | None] = dict.fromkeys(objects, NOT_IN_TIME)
    for item, data in _read(git, objects):
        if late():
            break
        rules[item] = _rule_for_object(scanner, item, data, late)
    return rules


def _rule_for_object(
    scanner: Scanner, item: _Object, data: bytes, late: Callable[[], bool], before: bytes = b""
) -> str | None:
    if item.kind == "blob":
        return scanner.rule_for(data, item.path, before, late)
    # The ids are no words of anybody's, and look like some tokens.
    return scanner.rule_for(_IDS.sub(b"", data, count=1), late=late)


def _rules_for_names(scanner: Scanner, changes: Collection[_Change]) -> dict[str, str]:
    new = {change.path for change in changes if change.is_new}
    found: dict[str, str] = {}
    for path in {change.path for change in changes}:
        name = os.fsencode(path)
        rule = scanner.rule_for(name, before=b"" if path in new else name)
        if rule:
            found[scanner.shown(path)] = rule
    return found


def _rules_beside(
    git: Git, scanner: Scanner, before: str | None, objects: Collection[_Object], late: Callable[[], bool]
) -> dict[_Object, str | None]:
    """Judge anew those of the objects that are files which `before` has in a version of its own."""
    olds = _versions(git, before, {item.path for item in objects if item.kind == "blob"})
    pairs = [(olds[item.path], item) for item in objects if item.path in olds]
    reading = _read(git, [item for pair in pairs for item in pair])
    return {
        item: _rule_for_object(scanner, item, data, late, old)
        for (_, old), (item, data) in zip(reading, reading, strict=True)
    }


def _versions(git: Git, commit: str | None, paths: Collection[str]) -> dict[str, _Object]:
    """Return the blobs at those of `paths` that `commit` has, without such as are over the limit."""
    if commit is None or not paths:
        return {}
    rows = [row.split("\t", 1) for row in git.run("ls-tree", "-r", "-z", "--full-tree", commit).fields]
    ids = {path: about.split(" ")[2] for about, path in rows if path in paths and " blob " in about}
    described = zip(_described(git, ids.values()), ids, strict=True)
    versions = [_Object.of(row, path) for row, path in described if not row.endswith(_MISSING)]
    return {old.path: old for old in versions if old.size <= git.limits.file}


def _read(git: Git, objects: Collection[_Object]) -> Iterator[tuple[_Object, bytes]]:
    for batch in _batches(objects):
        ids = "\n".join(item.oid for item in batch).encode()
        output = git.run("cat-file", "--batch", "--buffer", stdin=ids).stdout
        position = 0
        for item in batch:
            start = output.find(b"\n", position) + 1
            position = start + item.size + 1
            if not start or position > len(output):  # an agent may have read from git's pipe
                raise GitError(
                    ("git", "cat-file", "--batch"), git.directory, status=0, stderr="its answer is cut short"
                )
            yield item, output[start : start + item.size]


def _batches(objects: Collection[_Object]) -> Iterator[list[_Object]]:
    batch: list[_Object] = []
    size = 0
    for item in objects:
        if batch and size + item.size > _AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item.size
    if batch:
        yield batch
