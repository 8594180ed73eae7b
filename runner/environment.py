"""The environment that an agent gets."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from worktree import Launch, git_environment

# Where a repository is and how git is configured were said to us, not to the agent; who commits and how to reach a
# server the agent needs to know as well.
_GIT_KEPT = re.compile(r"GIT_(AUTHOR|COMMITTER|SSH|SSL|PROXY|HTTP)_?\w*|GIT_(ALLOW_PROTOCOL|EXEC_PATH)")
# Files through which a step of a workflow changes the steps after it, and addresses that only its tokens open.
_WORKFLOW = re.compile(r"ACTIONS_\w+|GITHUB_(ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)")


def agent_environment(environment: Mapping[str, str], launch: Launch, origin: str) -> dict[str, str]:
    """Return what an agent may see of `environment`, and an identity to commit with where the user set none.

    Its git asks no credential helper for the repository at the URL `origin`, so that it cannot push there; for other
    repositories, which dependencies may come from, the user's helpers work.
    """
    kept = {name: value for name, value in environment.items() if _may_see(name)}
    kept |= git_environment([(f"credential.{url}.helper", "") for url in _addresses(origin, launch.origin_url or "")])
    configured = {key for _, key, _ in launch.configuration}
    if not {"user.name", "user.email"} <= configured:
        for role in ("AUTHOR", "COMMITTER"):
            kept.setdefault(f"GIT_{role}_NAME", "Nightkeep agent")
            kept.setdefault(f"GIT_{role}_EMAIL", "nightkeep@localhost")
    return kept


def _addresses(*urls: str) -> list[str]:
    """Return how git may be told to reach the repositories at these URLs over HTTP, whoever the user."""
    parts = [urlsplit(url) for url in urls if url.startswith(("http://", "https://"))]
    hosts = [(one.scheme, one.netloc.rpartition("@")[2], one.path.rstrip("/").removesuffix(".git")) for one in parts]
    return list(dict.fromkeys(f"{scheme}://{host}{path}{end}" for scheme, host, path in hosts for end in ("", ".git")))


def _may_see(name: str) -> bool:
    if name.startswith("GIT_"):
        return _GIT_KEPT.fullmatch(name) is not None
    return not name.startswith("NIGHTKEEP_") and _WORKFLOW.fullmatch(name) is None
