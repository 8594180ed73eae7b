"""What refs of origin say that name commits made for their message alone."""

from collections.abc import Mapping

from worktree.launch import Launch
from worktree.origin import Origin

_MOST = 1000  # refs that are looked at, the last of them by name
_LONGEST = 1 << 16  # bytes of a message


def read_messages(launch: Launch, origin: Origin | None, there: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
    """Return for each of these refs, which origin was seen to hold, the commit that it names now and its message.

    "" for what is no commit, or too long. The commits are here then. Left out is what is gone by now, and of more than
    a thousand refs all but the last ones by name. Raises GitError.
    """
    fetched = launch.remote(origin).fetch_there(*sorted(there)[-_MOST:])
    if not fetched:
        return {}
    asked = "".join(f"{oid}\n" for oid in fetched.values()).encode()
    answer = launch.git.run("cat-file", "--batch", stdin=asked).stdout
    said = {}
    for ref, oid in fetched.items():
        header, _, answer = answer.partition(b"\n")
        _, kind, size = header.decode().split(" ")
        content, answer = answer[: int(size)], answer[int(size) + 1 :]
        is_short_commit = kind == "commit" and int(size) <= _LONGEST
        said[ref] = (oid, content.partition(b"\n\n")[2].decode(errors="replace") if is_short_commit else "")
    return said
