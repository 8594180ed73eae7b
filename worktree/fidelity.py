"""Whether git has a file's very bytes: filters, line ends and keywords can make it keep others."""

import hashlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from worktree.git import Git

_REGULAR = ("100644", "100755")
_PIECE = 1 << 20


def unfaithful(git: Git, top: Path, before: str, after: str, touched: Collection[str]) -> list[str]:
    """Return the files, of those that differ between two commits or were `touched`, that `after` does not give back.

    What git stores as it stands in the file needs no more than a look; what it converted is asked back from git.
    """
    blobs = _changed_blobs(git, before, after)
    if not blobs.keys() >= set(touched):
        blobs |= _blobs(git, after, set(touched))
    odd = {path: oid for path, oid in blobs.items() if blob_id(top / path, oid) not in (oid, None)}
    return sorted(odd.keys() - _given_back(git, top, odd))


def _changed_blobs(git: Git, before: str, after: str) -> dict[str, str]:
    fields = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after, "--").fields
    rows = (row.split(" ") for row in fields[0::2])
    return {path: row[3] for row, path in zip(rows, fields[1::2], strict=True) if row[1] in _REGULAR}


def _blobs(git: Git, commit: str, paths: set[str]) -> dict[str, str]:
    rows = (row.partition("\t") for row in git.run("ls-tree", "-r", "-z", "--full-tree", commit).fields)
    entries = ((path, entry.split(" ")) for entry, _, path in rows if path in paths)
    return {path: entry[2] for path, entry in entries if entry[0] in _REGULAR}


def blob_id(path: Path, like: str) -> str | None:
    """Return the id that git would give the file's bytes, None where there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # gone or something else: that is a change, which git sees
    with os.fdopen(descriptor, "rb") as file:
        digest = hashlib.new("sha1" if len(like) == 40 else "sha256", usedforsecurity=False)
        digest.update(b"blob %d\0" % os.fstat(descriptor).st_size)
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _given_back(git: Git, top: Path, blobs: Mapping[str, str]) -> set[str]:
    """Return those of `blobs` that git turns back into exactly what is in the file, by the rules that are in force."""
    same = set()
    for path, oid in blobs.items():
        answer = git.run("cat-file", "--filters", f"--path={path}", oid, accept=range(256))
        if answer.status == 0 and answer.stdout == (top / path).read_bytes():
            same.add(path)
    return same
