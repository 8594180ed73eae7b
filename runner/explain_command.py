"""`nightkeep explain`: why pickup would take an issue, or not."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from delivery.errors import GitHubError, GitHubNotFoundError, PreflightError
from delivery.issue_url import IssueUrl
from runner.access import Access, with_access
from runner.picking import picking


def explain_issue(
    issue_url: str, base: str | None, token_file: Path | None, held: Mapping[str, str], *, as_json: bool
) -> int:
    """Print every fact about an issue; return the exit status. Changes nothing."""
    return with_access(lambda access: _explain(access, issue_url, base, as_json=as_json), held, token_file, online=True)


def _explain(access: Access, issue_url: str, base: str | None, *, as_json: bool) -> int:
    from delivery.preflight import unanswered
    from delivery.ready_facts import Lets

    url = IssueUrl.parse(issue_url)
    if url is None:
        raise PreflightError(
            f"{issue_url!r} is not the URL of an issue; give it as https://github.com/OWNER/NAME/issues/7"
        )
    if not url.is_cloned_from(access.launch.origin_url or ""):
        raise PreflightError(f"{url} is no issue of the repository that this is a clone of; run this in a clone of it")
    try:
        told = picking(access, base, {}).pickup.explain(url.number)
    except GitHubNotFoundError as error:
        raise PreflightError(f"there is no issue {url}, or the token may not read it") from error
    except GitHubError as error:
        raise unanswered(error) from error
    if as_json:
        facts = [{"fact": fact.name, "lets": fact.lets, "text": fact.text} for fact in told.facts]
        print(json.dumps({"issue": str(url), "ready": told.is_ready, "facts": facts}, indent=2))  # noqa: T201
        return 0
    signs = {Lets.YES: "yes", Lets.NO: "NO", Lets.UNKNOWN: "?", Lets.MOOT: "-"}
    width = max(len(fact.name) for fact in told.facts)
    verdict = "is ready: nightkeep pickup may take it" if told.is_ready else "is not ready"
    lines = [f'#{url.number} "{told.issue.title}" {verdict}']
    lines += [f"  {signs[fact.lets]:<3}  {fact.name:<{width}}  {fact.text}" for fact in told.facts]
    text = "\n".join(lines)
    sys.stdout.write("".join(char if char.isprintable() or char == "\n" else " " for char in text) + "\n")
    return 0
