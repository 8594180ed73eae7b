"""Where a run pushes to, and what git is told so that it gets there: settings, and the token."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from worktree.lfs import is_lfs_setting

# A server that says nothing for half a minute is taken for one that does not answer; git would wait for ever. While
# one works it gives a sign every five seconds: https://git-scm.com/docs/git-config, `receive.keepAlive`.
_STALLED = {"http.lowspeedlimit": "1", "http.lowspeedtime": "30"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run pushes to, pinned before any agent starts: a URL, and the token that its host asks for.

    `renew` returns the token as it is by now, None when it cannot tell. It is asked before each command and once more
    after a refusal, so it must be quick; without a token to begin with it is not asked.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    renew: Callable[[], str | None] | None = field(default=None, repr=False, compare=False)

    def current(self) -> str | None:
        """Return the token as it is by now."""
        if self.token is None or self.renew is None:
            return self.token
        return self.renew() or self.token


def pinned_settings(configuration: Sequence[tuple[str, str, str]], origin: Origin) -> tuple[tuple[str, str], ...]:
    """Choose the settings that a command to origin gets from the configuration as it stood at the start.

    With a token the files are not read at all, so how to reach the server (proxies, certificates) is carried over
    from the user's and the system's; headers and cookies are not, they may be credentials for somebody else.
    Without one the user's files are read as ever and only the clone's own transport settings need carrying. Where
    LFS objects are kept goes with both; the credential is for origin's host only. How long a silent server is waited
    for is added where nobody has configured it.
    """
    configured = {key for _, key, _ in configuration}
    added = () if configured & _STALLED.keys() else tuple(_STALLED.items())
    carried = ((key, value) for scope, key, value in configuration if _carried(scope, key, origin.token is not None))
    return (*added, *carried)


def _carried(scope: str, key: str, shielded: bool) -> bool:  # noqa: FBT001 - a fact, not a flag
    if shielded:
        other = key.endswith(("extraheader", "cookiefile"))
        return is_lfs_setting(key) or (scope in ("system", "global") and key.startswith("http.") and not other)
    own = key.startswith(("http.", "credential.", "ssh.", "core.sshcommand")) or is_lfs_setting(key)
    return scope in ("local", "worktree") and own


@contextmanager
def offered(token: str, url: str) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield a descriptor with the token, and the settings by which git reads it there, for the host of `url` only.

    It is a pipe, because an environment, an argument or a file can be read by other processes, and has a line for each
    time that git asks.
    """
    source, sink = os.pipe()
    try:
        with os.fdopen(sink, "w") as lines:
            lines.write(f"{token}\n" * 8)
        yield source, _helper_settings(url, source)
    finally:
        os.close(source)


def _helper_settings(url: str, source: int) -> list[tuple[str, str]]:
    parts = urlsplit(url)
    helper = (
        f'!f() {{ test "$1" = get && IFS= read -r token </dev/fd/{source}'
        ' && printf "username=x-access-token\\npassword=%s\\n" "$token"; }; f'
    )
    return [("credential.helper", ""), (f"credential.{parts.scheme}://{parts.netloc}.helper", helper)]
