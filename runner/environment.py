"""The environment that an agent gets."""

import re
from collections.abc import Mapping

from worktree import Launch

# Where a repository is and how git is configured were said to us, not to the agent; who commits and how to reach a
# server the agent needs to know as well.
_GIT_KEPT = re.compile(r"GIT_(AUTHOR|COMMITTER|SSH|SSL|PROXY|HTTP)_?\w*|GIT_(ALLOW_PROTOCOL|EXEC_PATH)")
# Files through which a step of a workflow changes the steps after it, and addresses that only its tokens open.
_WORKFLOW = re.compile(r"ACTIONS_\w+|GITHUB_(ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)")


def agent_environment(environment: Mapping[str, str], launch: Launch) -> dict[str, str]:
    """Return what an agent may see of `environment`, and an identity to commit with where the user set none."""
    kept = {name: value for name, value in environment.items() if _may_see(name)}
    configured = {key for _, key, _ in launch.configuration}
    if not {"user.name", "user.email"} <= configured:
        for role in ("AUTHOR", "COMMITTER"):
            kept.setdefault(f"GIT_{role}_NAME", "Nightkeep agent")
            kept.setdefault(f"GIT_{role}_EMAIL", "nightkeep@localhost")
    return kept


def _may_see(name: str) -> bool:
    if name.startswith("GIT_"):
        return _GIT_KEPT.fullmatch(name) is not None
    return not name.startswith("NIGHTKEEP_") and _WORKFLOW.fullmatch(name) is None
