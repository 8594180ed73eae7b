"""The credentials that there are: what kind of token we have, and what a clone's configuration knows besides it."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

_MASK = "***"
# https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats
_TOKENS = {
    "github_pat_": "a fine-grained personal access token",
    "ghp_": "a classic personal access token",
    "gho_": "the token of an OAuth app, as `gh` has one",
    "ghu_": "a user's token for a GitHub app",
    "ghs_": "the token of a GitHub app",
}
_TOKEN_SHAPE = re.compile(r"(gh[pousr]_|github_pat_)\w+|[0-9a-f]{40}")


def name_token(token: str, *, is_workflow_token: bool) -> str:
    """Say what kind of token it is, as far as that can be seen."""
    if is_workflow_token:
        return "the built-in token of a workflow"
    return next((kind for prefix, kind in _TOKENS.items() if token.startswith(prefix)), "of an unknown kind")


def credentials_in(configuration: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return where a clone's configuration holds a credential, masked: in a remote's URL, or in a header.

    `configuration` holds (scope, key, value). Headers count where any worktree can read them: in the clone's own files.
    """
    return tuple(place for scope, key, value in configuration if (place := _credential(scope, key, value)))


def _credential(scope: str, key: str, value: str) -> str | None:
    if key.startswith("remote.") and key.endswith((".url", ".pushurl")):
        masked = _masked(value)
        return f"{key} ({masked})" if masked else None
    header = scope in ("local", "worktree") and key.startswith("http.") and key.endswith("extraheader")
    return key if header and value.lower().startswith(("authorization:", "proxy-authorization:")) else None


def ways_to(url: str, configuration: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return in which ways git reaches the remote at `url` without our token: over SSH, or by credential helpers.

    `configuration` holds (scope, key, value) in git's order.
    """
    if not url.startswith(("http://", "https://")):
        return ("SSH",)
    host = urlsplit(url).hostname or ""
    ways: list[str] = []
    for _, key, value in configuration:
        if not key.startswith("credential.") or not key.endswith(".helper"):
            continue
        place = key.removeprefix("credential").removesuffix("helper").strip(".")
        if place and host not in place and "*" not in place:
            continue
        ways = [*ways, key] if value else []
    return tuple(dict.fromkeys(ways))


def _masked(url: str) -> str | None:
    """Return the URL without its credential; None when it has none. A user's name alone is none."""
    if not url.startswith(("http://", "https://")):
        return None
    user, at, host = urlsplit(url).netloc.rpartition("@")
    name, _, password = user.partition(":")
    if not at or not (password or _TOKEN_SHAPE.fullmatch(name)):
        return None
    return url.replace(f"{user}@{host}", f"{_MASK}@{host}", 1)
