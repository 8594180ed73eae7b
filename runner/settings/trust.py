"""Whose configuration may say what this machine runs."""

import re
from collections.abc import Sequence

_DEFAULT_HOST = "github.com"
_REPOSITORY = re.compile(r"(?:[A-Za-z0-9.-]+(?::[0-9]{1,5})?/)?[A-Za-z0-9_-]+/[A-Za-z0-9._-]+")


def is_trusted(repository: str, host: str, trusted: Sequence[str]) -> bool:
    """Tell whether `trusted` names the repository OWNER/NAME on `host` (with its port, if any), in any case.

    An entry without a host means github.com: who chose to trust OWNER/NAME there has not chosen whoever
    owns that name on another server.
    """
    wanted = f"{host}/{repository}".lower()
    return any(_with_host(entry).lower() == wanted for entry in trusted)


def entry_for(repository: str, host: str) -> str:
    """Return the entry of `trusted-repositories` that names OWNER/NAME on `host`."""
    return repository if host == _DEFAULT_HOST else f"{host}/{repository}"


def is_repository(text: str) -> bool:
    """Tell whether `text` is OWNER/NAME or HOST/OWNER/NAME."""
    return _REPOSITORY.fullmatch(text) is not None


def _with_host(entry: str) -> str:
    return entry if entry.count("/") > 1 else f"{_DEFAULT_HOST}/{entry}"
