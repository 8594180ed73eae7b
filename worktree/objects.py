"""Git objects, written without git: the records of a claim, of which each push and each sign of life makes one.

A git command for each would cost more than all the rest of it. https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
and https://git-scm.com/docs/gitformat-pack.
"""

import hashlib
import os
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from worktree.git import IDENTITY

_KINDS = {"commit": 1, "tree": 2}
_PACK = b"PACK" + (2).to_bytes(4, "big")
_READ_ONLY = 0o444


@dataclass(frozen=True, slots=True)
class GitObject:
    """A commit or a tree; `object_format` is git's word for the kind of its id."""

    kind: str
    content: bytes
    object_format: str = "sha1"

    @property
    def oid(self) -> str:
        """Its id."""
        return hashlib.new(self.object_format, self._whole(), usedforsecurity=False).hexdigest()

    def _whole(self) -> bytes:
        return f"{self.kind} {len(self.content)}\0".encode() + self.content

    def write(self, objects: Path) -> None:
        """Put it into a repository's directory of objects, unless it is there as a file. Raises OSError."""
        name = self.oid
        place = objects / name[:2] / name[2:]
        if place.exists():
            return
        place.parent.mkdir(exist_ok=True)
        partial = place.with_name(f"tmp_obj_{secrets.token_hex(8)}")  # git's own name for it, which its gc sweeps
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _READ_ONLY)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(zlib.compress(self._whole()))
            partial.replace(place)
        except OSError:
            partial.unlink(missing_ok=True)
            raise


def empty_tree(object_format: str = "sha1") -> GitObject:
    """Return the tree with nothing in it."""
    return GitObject("tree", b"", object_format)


def record(message: str, parents: Sequence[str], moment: datetime, object_format: str = "sha1") -> GitObject:
    """Return a commit of nothing but a message, by Nightkeep at that moment."""
    by = f"{IDENTITY['GIT_AUTHOR_NAME']} <{IDENTITY['GIT_AUTHOR_EMAIL']}> {int(moment.timestamp())} +0000"
    lines = [f"tree {empty_tree(object_format).oid}", *(f"parent {parent}" for parent in parents)]
    head = "\n".join([*lines, f"author {by}", f"committer {by}"])
    return GitObject("commit", f"{head}\n\n{message}".encode(), object_format)


def pack(objects: Sequence[GitObject]) -> bytes:
    """Return a pack of small objects, to be sent."""
    body = _PACK + len(objects).to_bytes(4, "big") + b"".join(map(_packed, objects))
    return body + hashlib.new(objects[0].object_format, body, usedforsecurity=False).digest()


def _packed(one: GitObject) -> bytes:
    size = len(one.content)
    head = [_KINDS[one.kind] << 4 | size & 0xF]
    size >>= 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head) + zlib.compress(one.content)
