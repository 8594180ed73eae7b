"""Whether git has a file's very bytes: filters, line ends and keywords can make it keep others."""

import hashlib
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, takewhile
from pathlib import Path

from worktree.git import Git
from worktree.reading import read_regular

_REGULAR = ("100644", "100755")
_PIECE = 1 << 20
_AT_ONCE = 32 << 20  # bytes of files that one git is asked for


def unfaithful(
    git: Git, top: Path, before: str, after: str, touched: Collection[str], *, rules_stay: bool
) -> list[str]:
    """Return the files, of those that differ between two commits or were `touched`, that `after` does not give back.

    What git stores as it stands in the file needs no more than a look; what it converted is asked back from git, where
    the rules by which it converts are those that others will have (`rules_stay`).
    """
    blobs = _changed_blobs(git, before, after)
    if not blobs.keys() >= set(touched):
        blobs |= _blobs(git, after, set(touched))
    odd = {path: oid for path, oid in blobs.items() if blob_id(f"{top}/{path}", oid) not in (oid, None)}
    return sorted(odd.keys() - (_given_back(git, top, odd) if rules_stay else set()))


def _changed_blobs(git: Git, before: str, after: str) -> dict[str, str]:
    fields = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after, "--").fields
    rows = (row.split(" ") for row in fields[0::2])
    return {path: row[3] for row, path in zip(rows, fields[1::2], strict=True) if row[1] in _REGULAR}


def _blobs(git: Git, commit: str, paths: set[str]) -> dict[str, str]:
    rows = (row.partition("\t") for row in git.run("ls-tree", "-r", "-z", "--full-tree", commit).fields)
    entries = ((path, entry.split(" ")) for entry, _, path in rows if path in paths)
    return {path: entry[2] for path, entry in entries if entry[0] in _REGULAR}


def blob_id(path: str, like: str, directory: int | None = None) -> str | None:
    """Return the id that git would give the file's bytes, None where there is no such regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None  # gone or something else: that is a change, which git sees
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        digest = hashlib.new("sha1" if len(like) == 40 else "sha256", usedforsecurity=False)
        digest.update(b"blob %d\0" % status.st_size)
        while piece := os.read(descriptor, _PIECE):  # a file object would be felt with many small files
            digest.update(piece)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def _given_back(git: Git, top: Path, blobs: Mapping[str, str]) -> set[str]:
    """Return those of `blobs` that git turns back into exactly what is in the file, by the rules that are in force.

    Never one whose name begins with a blank: many files are asked of one git, which would drop it.
    """
    same: set[str] = set()
    asked = [path for path in blobs if not path.startswith((" ", "\t"))]
    while asked:
        batch = _up_to(_AT_ONCE, top, asked)
        answers = _converted(git, [(blobs[path], path) for path in batch])
        same |= {path for path, answer in zip(batch, answers, strict=False) if _holds(top / path, answer)}
        # Git ends at the first file that it cannot convert.
        asked = asked[max(1, len(answers)) :]
    return same


def _holds(file: Path, content: bytes) -> bool:
    try:
        return read_regular(file, len(content) + 1) == content
    except OSError:
        return False


def _up_to(limit: int, top: Path, paths: Sequence[str]) -> Sequence[str]:
    """Return the first of `paths`, as many as have `limit` bytes together, but no less than one."""
    sizes = accumulate(os.lstat(top / path).st_size for path in paths)
    return paths[: max(1, sum(1 for _ in takewhile(limit.__ge__, sizes)))]


def _converted(git: Git, files: Sequence[tuple[str, str]]) -> list[bytes]:
    """Return what git makes of blobs, each for a file at a path; fewer than were asked where it failed."""
    # The size that git states is that of the blob, so the end of each answer is found by what nobody can have guessed.
    # With a sign in it that is no id's: a partial clone would ask its server for an object that it lacks.
    mark = f"={os.urandom(16).hex()}"
    asked = "".join(f"{oid} {path}\0{mark}\0" for oid, path in files)
    question = ("cat-file", "--batch=%(objectname)", "--filters", "-z")
    output = git.run(*question, stdin=os.fsencode(asked), accept=range(256)).stdout
    answers = output.split(f"\n{mark} missing\n".encode())[:-1]
    return [answer.partition(b"\n")[2] for answer in answers]
