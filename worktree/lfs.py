"""Git LFS: the objects that commits name, and how they are uploaded.

A push carries pointers; what they point to goes to the server before it, by the `git-lfs` program. Our pushes run no
hook, so nobody else does that. https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
"""

import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from worktree.errors import WorktreeError
from worktree.git import Git

_LONGEST_POINTER = 1024  # bytes; the specification's
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\nsize \d+\n")
_ELSEWHERE = re.compile(rb"^\s*(?:push)?url\s*=", re.MULTILINE | re.IGNORECASE)
_SERVER_SETTINGS = ("lfs.url", "lfs.pushurl")
_MOST_AT_ONCE = 500  # object ids in one command
_UPLOADING = (("lfs.transfer.maxretries", "1"),)  # what is tried again is for our one policy to say


@dataclass(frozen=True, slots=True)
class LfsStore:
    """Where a clone keeps the LFS objects that it has."""

    path: Path

    @classmethod
    def of(cls, common: Path, settings: Sequence[tuple[str, str]]) -> "LfsStore":
        """Return the store of the clone with that git directory and those settings."""
        return cls(common / dict(settings).get("lfs.storage", "lfs"))

    def exists(self) -> bool:
        """Whether anything was ever put there. A clone without LFS has no store, and this costs it nothing."""
        return (self.path / "objects").is_dir()

    def named_in(self, git: Git, commits: Collection[str], known: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the objects here that commits name beyond the `known` ones. Raises GitError.

        None when a commit says in its `.lfsconfig` that a server other than origin keeps them: only people know how
        to reach that one.
        """
        blobs = list(
            _blobs(git.run("cat-file", "--batch", stdin=_lines(f"{one}:.lfsconfig" for one in commits)).stdout)
        )
        if any(_ELSEWHERE.search(blob) for blob in blobs):
            return ()
        pointers = (_POINTER.fullmatch(blob) for blob in _small_blobs(git, commits, known))
        named = {found[1].decode() for found in pointers if found}
        return tuple(sorted(oid for oid in named if self._holds(oid)))

    def uploads(self, git: Git, url: str, ids: Sequence[str]) -> Iterator[tuple[Git, list[str]]]:
        """Yield the commands that upload those objects, each with the git that is to run it."""
        own = replace(git, settings=(*git.settings, ("lfs.storage", str(self.path)), *_UPLOADING))
        for start in range(0, len(ids), _MOST_AT_ONCE):
            yield own, ["lfs", "push", "--object-id", url, *ids[start : start + _MOST_AT_ONCE]]

    def _holds(self, oid: str) -> bool:
        file = self.path / "objects" / oid[:2] / oid[2:4] / oid
        return file.is_file() and not file.is_symlink()


def can_upload(git: Git, url: str) -> bool:
    """Whether `git-lfs` is installed, and origin a server: with one that is a directory it does nothing, and says so
    to nobody.
    """
    is_server = urlsplit(url).scheme not in ("", "file") or ":" in url.partition("/")[0]
    return is_server and (shutil.which("git-lfs") is not None or git.answers("lfs", "version"))


def is_lfs_setting(key: str) -> bool:
    """Whether a setting of the clone says where LFS objects are kept, here or on a server."""
    return key == "lfs.storage" or key in _SERVER_SETTINGS


def _small_blobs(git: Git, commits: Collection[str], known: Collection[str]) -> Iterator[bytes]:
    flags = ("--objects", "--no-object-names", "--ignore-missing", "--missing=allow-any", "--filter-provided-objects")
    filters = ("--filter=object:type=blob", f"--filter=blob:limit={_LONGEST_POINTER}")
    asked = _lines((*commits, *(f"^{oid}" for oid in known)))
    listed = git.run("rev-list", *flags, *filters, "--stdin", stdin=asked).stdout
    return _blobs(git.run("cat-file", "--batch", stdin=listed).stdout)


def _blobs(answer: bytes) -> Iterator[bytes]:
    """Yield the contents in what `git cat-file --batch` wrote: `<id> blob <size>`, a line end, them, a line end."""
    place = 0
    while place < len(answer):
        end = answer.find(b"\n", place)
        if end < 0:
            raise WorktreeError("what git answered about Git LFS objects is cut short")
        words = answer[place:end].split(b" ")
        place = end + 1
        if words[-1] != b"missing":
            size = int(words[-1])
            yield answer[place : place + size]
            place += size + 1


def _lines(texts: Iterator[str] | Collection[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()
