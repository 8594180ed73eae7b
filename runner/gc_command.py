"""`nightkeep gc`: what is kept of runs goes when it is too old or too much."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from delivery.errors import GitHubError
from runner.access import Access, with_access
from runner.exit_codes import ExitCode
from runner.rescue_command import print_deletion
from runner.wording import counted, written_size
from worktree.bounds import Bounds, Collection
from worktree.dropping import Deleter, Deletion
from worktree.stored import read_rescued

if TYPE_CHECKING:
    from delivery.github import GitHub


def collect_garbage(held: Mapping[str, str], token_file: Path | None, *, rehearsal: bool, as_json: bool) -> int:
    """Delete what is beyond the configured bounds, in a `rehearsal` only say what that is; return the exit status."""
    return with_access(
        lambda access: _collect(access, rehearsal=rehearsal, as_json=as_json), held, token_file, online=True
    )


def _collect(access: Access, *, rehearsal: bool, as_json: bool) -> int:
    configured = access.start.machine.settings.rescue
    deletions: list[Deletion] = []
    kept: list[tuple[str, str]] = []

    def deleted(deletion: Deletion) -> None:
        deletions.append(deletion)
        if not as_json:
            print_deletion(deletion, "would delete" if rehearsal else "deleted")

    def stayed(run_id: str, why: str) -> None:
        kept.append((run_id, why))
        access.say(f"kept {run_id}: {why}")

    is_closed = _is_closed(access.github, access.say) if access.github else None
    on_origin = access.refs_on_origin() if is_closed else None
    if is_closed is None:
        access.say("there is no token for GitHub, so rescue refs are left alone")
    collection = Collection(
        deleter=Deleter(launch=access.launch, remote=access.remote, deleted=deleted, rehearsal=rehearsal),
        bounds=Bounds(configured.keep_days, configured.max_size),
        now=datetime.now(UTC),
        is_closed=is_closed,
        stayed=stayed,
    )
    done = collection.collect(read_rescued(access.launch, on_origin or {}))
    if not (deletions or kept):
        size = written_size(configured.max_size)
        access.say(f"nothing is older than {counted(configured.keep_days, 'day', 'days')}, nor is all more than {size}")
    if as_json:
        rows = [{"id": run_id, "why": why} for run_id, why in kept]
        document = {"dry_run": rehearsal, "deleted": [asdict(one) for one in deletions], "kept": rows}
        print(json.dumps(document, indent=2))  # noqa: T201 - the command's output
    return 0 if done else ExitCode.FAILED


def _is_closed(github: "GitHub", say: Callable[[str], None]) -> Callable[[str], bool]:
    """Return what tells of a branch whether there were pull requests from it and none is open."""

    def is_closed(branch: str) -> bool:
        try:
            pulls = github.pull_requests(branch)
        except GitHubError as error:
            say(f"GitHub did not say whether the pull request of {branch} is closed, so its rescue refs stay: {error}")
            return False
        return bool(pulls) and not any(pull.is_open for pull in pulls)

    return is_closed
