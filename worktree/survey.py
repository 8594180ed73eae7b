"""What a commit asks of a machine that checks it out, seen without a checkout."""

import re
from dataclasses import dataclass

from worktree.git import Git

_LFS = re.compile(rb"^[ \t]*[^#\s].*[ \t]filter=lfs\s*(?:$|[ \t])", re.MULTILINE)
_SUBMODULE = "160000"  # the mode of a commit in a tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What is known of a commit: the bytes of its files (None in a partial clone, which lacks some of them), the
    paths of its submodules, and whether its attributes give a path to Git LFS.
    """

    size: int | None
    submodules: tuple[str, ...]
    names_lfs: bool


def survey(git: Git, commit: str, *, is_partial: bool) -> Survey:
    """Look at a commit that is here; asks for no size where that would fetch every file. Raises GitError."""
    sizes = [] if is_partial else ["--long"]
    rows = git.run("ls-tree", "-r", "-z", "--full-tree", *sizes, commit).fields
    entries = [(*head.split(), path) for head, path in (row.split("\t", 1) for row in rows)]
    attributes = [entry[2] for entry in entries if entry[-1].rsplit("/", 1)[-1] == ".gitattributes"]
    return Survey(
        size=None if is_partial else sum(int(entry[3]) for entry in entries if entry[1] == "blob"),
        submodules=tuple(entry[-1] for entry in entries if entry[0] == _SUBMODULE),
        names_lfs=_names_lfs(git, attributes),
    )


def _names_lfs(git: Git, blobs: list[str]) -> bool:
    if not blobs:
        return False
    texts = git.run("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in blobs).encode()).stdout
    return _LFS.search(texts) is not None
