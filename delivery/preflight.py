"""All that is looked at before anything is made or claimed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from delivery.branches import AskForNewest, Blocked, Continuation, Fresh, branch_name, branch_number, choose_branch
from delivery.claims import Expired, Held, Unreadable, claim_ref, judge_claim, read_claims, why_not
from delivery.errors import GitHubError, GitHubNotFoundError, PreflightError, TakenError
from delivery.github import GitHub, Issue, PullRequest, Repository
from delivery.issue_text import IssueText, text_of
from delivery.issue_url import IssueUrl
from delivery.tries import TRIES
from delivery.vanished import AtWork, choose_checkpoint
from worktree import CHECKPOINTS, Checkpoint, Launch, Origin, name_in_the_way, read_checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a Run is going to do.

    `base_commit` is where origin has the Base branch; `fetched` are the commits of the branches that the worktree
    needs, which are here. `spec` is the issue that this one is a Ticket of, when that is worked on. `is_private` says
    whether the repository is, None when nobody looked. `dead` is the claim of a run that has vanished with its machine,
    and `checkpoint` what such a run has left. `branches` are those of the issue that origin had, with their commits;
    `tries` the refs of earlier Runs that made nothing, see `tries.py`. `text` is what the agent is told of the issue,
    once it was read.
    """

    issue: Issue
    base: str
    base_commit: str
    choice: Fresh | Continuation
    fetched: Mapping[str, str] = field(default_factory=dict)
    is_private: bool | None = None
    branches: Mapping[str, str] = field(default_factory=dict)
    tries: Mapping[str, str] = field(default_factory=dict)
    dead: Expired | None = None
    checkpoint: Checkpoint | None = None
    spec: Issue | None = None
    text: IssueText | None = None

    @property
    def told(self) -> IssueText:
        """What the agent is told of the issue."""
        return self.text or text_of(self.issue)

    @property
    def branch(self) -> str:
        """The Issue branch."""
        return self.choice.branch


def preflight(
    github: GitHub, launch: Launch, origin: Origin, url: IssueUrl, base: str | None, report: Callable[[str], None]
) -> Plan:
    """Look whether the Run can start, and plan it. `base` is the Base branch asked for, if any.

    Makes and moves no ref; what origin's branches need is fetched. Raises PreflightError with the remedy; GitHubError
    and GitError when the answer could not be had.
    """
    _check_clone(launch, url)
    repository = check_repository(github, url.repository)
    issue = _open_issue(github, url)
    given = base or launch.checked_out
    remote = launch.remote(origin)
    there = remote.read(*_refs_about(url.number, given))
    heads = _heads(there)
    if not heads and not remote.read("refs/heads/*"):
        raise nothing_to_start_from(launch)
    dead = _expired(github, launch, origin, url.number, there)
    choice = _choose(github, url.number, heads)
    settled = _settle_base(choice, given, heads, report)
    fetched = remote.fetch(settled, *([choice.branch] if isinstance(choice, Continuation) else []))
    base_commit = fetched[settled]
    _check_local_branches(launch, settled, base_commit, choice.branch, heads.get(choice.branch))
    checkpoint = _checkpoint(github, launch, origin, there, choice.branch, dead)
    return Plan(
        issue=issue,
        base=settled,
        base_commit=base_commit,
        choice=choice,
        fetched=fetched,
        is_private=repository.is_private,
        branches=branches_of(url.number, there),
        tries=_below(TRIES, there),
        dead=dead,
        checkpoint=checkpoint,
    )


def _refs_about(number: int, base: str | None) -> list[str]:
    """Return which refs of origin a Run on that issue has to know."""
    first = branch_name(number, 1)
    heads = [f"refs/heads/{name}" for name in (base, first, f"{first}-branch-*", f"{first}/*") if name]
    return [*heads, f"{CHECKPOINTS}*", claim_ref(number), f"{TRIES}{number}/*"]


def _below(prefix: str, there: Mapping[str, str]) -> dict[str, str]:
    return {ref: oid for ref, oid in there.items() if ref.startswith(prefix)}


def _heads(there: Mapping[str, str]) -> dict[str, str]:
    """Return the branches among refs of origin, by their names, with their commits."""
    return {ref.removeprefix("refs/heads/"): oid for ref, oid in _below("refs/heads/", there).items()}


def _expired(github: GitHub, launch: Launch, origin: Origin, number: int, there: Mapping[str, str]) -> Expired | None:
    """Return the claim of a run that has vanished, None for none; raises PreflightError while a run has the issue."""
    seen = read_claims(launch, origin, there).get(claim_ref(number))
    standing = judge_claim(seen, github.server_time.now())
    if isinstance(standing, Held | Unreadable):
        raise TakenError(why_not(standing, number))
    return standing if isinstance(standing, Expired) else None


def _checkpoint(
    github: GitHub, launch: Launch, origin: Origin, there: Mapping[str, str], branch: str, dead: Expired | None
) -> Checkpoint | None:
    """Return what a run that has vanished has left of a branch; raises PreflightError while it may live."""
    left = read_checkpoints(launch, origin, _below(CHECKPOINTS, there))
    found = choose_checkpoint(left, branch, github.server_time.now(), dead=dead.record.run if dead else None)
    if isinstance(found, AtWork):
        raise PreflightError(found.why)
    return found


def branches_of(number: int, there: Mapping[str, str]) -> Mapping[str, str]:
    """Return the Issue branches among refs of origin, with their commits."""
    return {name: oid for name, oid in _heads(there).items() if branch_number(number, name) is not None}


def nothing_to_start_from(launch: Launch) -> PreflightError:
    """Return the preflight error for an origin without a branch; a clone of it may have no commit either."""
    if launch.checked_out is None and not launch.refs:
        remedy = "make a first commit and push it: git commit --allow-empty -m 'First commit' && git push origin HEAD"
    else:
        remedy = "push the one to start from: git push origin HEAD"
    return PreflightError(f"origin has no branch to start from; {remedy}")


def _check_local_branches(launch: Launch, base: str, base_commit: str, branch: str, on_origin: str | None) -> None:
    ahead = launch.ahead(base, base_commit)
    if ahead:
        raise PreflightError(
            f"the local {base} has {ahead} commit(s) that origin/{base} lacks; push them first: git push origin {base}"
        )
    obstacle = launch.obstacle(branch, on_origin)
    if obstacle:
        raise PreflightError(obstacle)


def _check_clone(launch: Launch, url: IssueUrl) -> None:
    if launch.origin_url is None:
        raise PreflightError(f'{launch.top} has no remote "origin"; run this in a clone of {url.repository}')
    if not url.is_cloned_from(launch.origin_url):
        raise PreflightError(
            f"{url} is not an issue of the repository that {launch.top} is a clone of ({launch.origin_url}); "
            f"run this in a clone of it: git clone {url.clone_url}"
        )


def check_repository(github: GitHub, name: str) -> Repository:
    """Return the repository OWNER/NAME; raises PreflightError when no Run can push to it, and GitHubError."""
    try:
        seen = github.repository()
    except GitHubNotFoundError as error:
        raise PreflightError(f"{name} does not exist, or the token may not read it") from error
    if seen.full_name.lower() != name.lower():
        raise PreflightError(f"{name} is now {seen.full_name}; use that address and update the clone's origin")
    if seen.archived:
        raise PreflightError(f"{name} is archived, so nothing can be pushed to it")
    if not seen.may_push:
        raise PreflightError(
            f"the token may not push to {name}; give it write access (contents, issues and pull requests: write)"
        )
    return seen


def _open_issue(github: GitHub, url: IssueUrl) -> Issue:
    try:
        issue = github.issue(url.number)
    except GitHubNotFoundError as error:
        raise PreflightError(
            f"issue #{url.number} does not exist in {url.repository}, or the token may not read it"
        ) from error
    if issue.is_pull_request:
        raise PreflightError(f"#{url.number} is a pull request, not an issue; name the issue that it is for")
    if IssueUrl.parse(issue.url) not in (None, url) and f"/{url.repository}/".lower() not in issue.url.lower():
        raise PreflightError(f"issue #{url.number} was transferred to {issue.url}")
    if not issue.is_open:
        raise PreflightError(f"issue #{url.number} is closed; reopen it to have it worked on")
    return issue


def _choose(github: GitHub, number: int, on_origin: Mapping[str, str]) -> Fresh | Continuation:
    numbers = frozenset(n for name in on_origin if (n := branch_number(number, name)) is not None)
    newest: dict[int, PullRequest | None] = {}
    while isinstance(choice := choose_branch(number, numbers, newest), AskForNewest):
        newest[choice.number] = next(iter(github.pull_requests(branch_name(number, choice.number))), None)
    if isinstance(choice, Blocked):
        raise PreflightError(choice.why)
    if in_the_way := name_in_the_way(choice.branch, on_origin):
        raise PreflightError(
            f"the branch {in_the_way} on origin keeps it from having {choice.branch}; give it another name there"
        )
    return choice


def _settle_base(
    choice: Fresh | Continuation, given: str | None, on_origin: Mapping[str, str], report: Callable[[str], None]
) -> str:
    pull_request = choice.pull_request if isinstance(choice, Continuation) else None
    if pull_request is None:
        if given is None:
            raise PreflightError(
                "HEAD is on no branch, or on one without a commit, so there is no Base branch; "
                "check one out (git checkout main) or name one (--base main)"
            )
        settled = given
    else:
        settled = pull_request.base
        if given not in (None, settled):
            report(f"continuing {pull_request.url}, so the Base branch is {settled}, not {given}")
    if settled == given and settled not in on_origin:
        raise PreflightError(
            f"Base branch {settled} is not on origin; push it (git push origin {settled}), or name one that is: "
            "--base BRANCH"
        )
    return settled


def unanswered(error: GitHubError) -> PreflightError:
    """Return the preflight error for a GitHub that gave no answer, or refused the token."""
    if error.status == 401:
        return PreflightError(
            f"{error}: the token is not valid, or has expired; give a valid one (it comes from the first of "
            "--token-file, `token-file`, `token-command`, NIGHTKEEP_TOKEN, GITHUB_TOKEN and gh that there is)"
        )
    return PreflightError(str(error))
