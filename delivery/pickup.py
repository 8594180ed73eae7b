"""Finding the issue that pickup takes next, and telling of any issue why it may be taken or not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from delivery.branches import branch_name
from delivery.claims import CLAIMS, ClaimStanding, Expired, Held, Unreadable, claimed_issue, judge_claim, read_claims
from delivery.cycles import Key, cycle_of, waits_of
from delivery.errors import DeliveryError, GitHubError, GitHubNotFoundError
from delivery.github import GitHub, Linked, Queue, QueuedIssue
from delivery.ready import AskForRole, LookForPullRequest, PassedOver, Ready, explain, judge, let_at, next_look
from delivery.ready_facts import Fact, Lets, Name, PickupRules, Prospect, Vanished, crowd_of
from delivery.starters import Starters
from delivery.tries import TRIES, Tries, read_tries
from worktree import GitError, Interrupted, Launch
from worktree.remote import Remote

_DEEPEST = 60  # issues that are read to find a cycle for a person


class NotReadyError(DeliveryError):
    """An issue that was to be taken may not be taken, or not any more: nothing was claimed, and nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Nothing is taken; `why` is for a person."""

    why: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """An issue that may be taken, and since when, by somebody's word."""

    issue: QueuedIssue
    let_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An issue and every fact about it, in order; `is_ready` when nothing stands in the way."""

    issue: QueuedIssue
    facts: tuple[Fact, ...]
    is_ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What is labelled; of each ready issue what stands in its way, None for nothing; and who has which claim."""

    queue: Queue
    verdicts: Sequence[tuple[QueuedIssue, Fact | None]]
    claims: Mapping[int, ClaimStanding]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen at one moment: whose token it is, origin's refs, its claims, and who waits for whom.

    `crowd` says why no more issues are taken, "" when some are.
    """

    viewer: str
    there: Mapping[str, str]
    claims: Mapping[int, ClaimStanding]
    waits: Mapping[Key, tuple[Key, ...]] = field(default_factory=dict)
    crowd: str = ""


@dataclass(slots=True, kw_only=True)
class Pickup:
    """Looks through one repository's issues, once.

    `launch` is a clone of it, `remote` its origin.
    """

    github: GitHub
    launch: Launch
    remote: Remote
    repository: str
    rules: PickupRules
    report: Callable[[str], None]
    _starters: Starters = field(init=False)
    _pulls: dict[int, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._starters = Starters(github=self.github, bots=self.rules.bots, report=self.report)

    def choose(self) -> Chosen | Skipped:
        """Sweep, count, and return the lowest issue that may be taken; each one passed over is reported with why.

        Raises GitHubError, GitError and Interrupted.
        """
        queue = self.github.issues.queue(self.rules.ready, self.rules.in_progress)
        self._sweep_labels(queue)
        if not queue.ready and not queue.working:
            return Skipped(f"no open issue of {self.repository} is labelled {self.rules.ready}")
        there = self._refs("*")
        claims = self._claims(there)
        vanished = [number for number in queue.working if isinstance(claims.get(number), Expired)]
        if crowd := self._crowd(queue, claims):
            return Skipped(crowd)
        if not queue.ready and not vanished:
            return Skipped(f"no open issue of {self.repository} is labelled {self.rules.ready}")
        self._sweep_tries(queue, there)
        known = {issue.number for issue in queue.ready}
        issues = [*queue.ready, *(self.github.issues.one(number) for number in vanished if number not in known)]
        return self._first_ready(sorted(issues, key=lambda issue: issue.number), _Seen(queue.viewer, there, claims))

    def explain(self, number: int) -> Explained:
        """Return all facts about one issue, those that cost a question included. Raises as `choose` does."""
        issue = self.github.issues.one(number)
        queue = self.github.issues.queue(self.rules.ready, self.rules.in_progress)
        there = self._refs("*")
        claims = self._claims(there)
        seen = _Seen(queue.viewer, there, claims, self._far_waits(issue), self._crowd(queue, claims))
        told = explain(self._known(self._prospect(issue, seen), wants_all=True))
        return Explained(issue=issue, facts=told, is_ready=all(fact.lets is Lets.YES for fact in told))

    def survey(self) -> Survey:
        """Return how it stands with all that is labelled, as far as nobody need be asked; changes nothing.

        Raises as `choose` does.
        """
        queue = self.github.issues.queue(self.rules.ready, self.rules.in_progress)
        there = self._refs("*") if queue.ready or queue.working else {}
        claims = self._claims(there)
        seen = _Seen(queue.viewer, there, claims, self._waits(queue.ready), self._crowd(queue, claims))
        verdicts = [(issue, judge(self._prospect(issue, seen))) for issue in queue.ready]
        return Survey(
            queue=queue,
            verdicts=[(issue, one.fact if isinstance(one, PassedOver) else None) for issue, one in verdicts],
            claims=claims,
        )

    def check_starter(self, number: int) -> Chosen:
        """Take an issue that somebody labelled who may start work. Raises NotReadyError, and as `choose` does."""
        issue = self.github.issues.one(number)
        prospect = self._known(self._prospect(issue, _Seen(self.github.viewer(), {}, {})), wants_all=True)
        for fact in explain(prospect):
            if fact.name in (Name.LABEL, Name.STARTER, Name.TEXT) and fact.lets is not Lets.YES:
                raise NotReadyError(f"#{number} {fact.text}")
        return _chosen(prospect)

    def _first_ready(self, issues: Sequence[QueuedIssue], seen: "_Seen") -> Chosen | Skipped:
        seen = replace(seen, waits=self._waits(issues))
        by_number = {issue.number: issue for issue in issues}
        for issue in issues:
            found = self._judged(issue, seen)
            if found is None:
                return _chosen(self._prospect(issue, seen))
            if not self._goes_with_its_spec(issue, found, by_number, seen):
                self.report(f"#{issue.number} {found.text}")
        return Skipped(f"no issue of {self.repository} is ready")

    def _goes_with_its_spec(
        self, issue: QueuedIssue, found: Fact, issues: Mapping[int, QueuedIssue], seen: "_Seen"
    ) -> bool:
        """Tell whether an issue needs no word, because the one that it is a part of may be taken itself."""
        spec = _own(issue.parent, self.repository, issues) if found.name is Name.SPEC else None
        return spec is not None and self._judged(spec, seen) is None

    def _judged(self, issue: QueuedIssue, seen: "_Seen") -> Fact | None:
        """Return what stands in the way of an issue; None when it may be taken."""
        verdict = judge(self._known(self._prospect(issue, seen)))
        return verdict.fact if isinstance(verdict, PassedOver) else None

    def _prospect(self, issue: QueuedIssue, seen: "_Seen") -> Prospect:
        heads = frozenset(ref.removeprefix("refs/heads/") for ref in seen.there if ref.startswith("refs/heads/"))
        cycle = cycle_of((self.repository.lower(), issue.number), seen.waits)
        claim = seen.claims.get(issue.number)
        return Prospect(
            issue=issue,
            repository=self.repository,
            rules=self.rules,
            now=self.github.server_time.now(),
            viewer=seen.viewer,
            branches=heads,
            pull_request=self._pulls.get(issue.number),
            roles=self._starters.roles,
            tries=read_tries(seen.there).get(issue.number, ()),
            cycle=tuple(self._named(key) for key in cycle),
            holder=holder_of(claim),
            vanished=_vanished(claim),
            crowd=seen.crowd,
        )

    def _crowd(self, queue: Queue, claims: Mapping[int, ClaimStanding]) -> str:
        """Say why no issue is taken while so many are worked on, by runs that have not vanished; "" when one is."""
        vanished = {number for number in queue.working if isinstance(claims.get(number), Expired)}
        return crowd_of(sorted({*queue.working} - vanished), queue.working_count - len(vanished), self.rules)

    def _waits(self, issues: Sequence[QueuedIssue]) -> dict[Key, tuple[Key, ...]]:
        return {key: waiting for issue in issues for key, waiting in waits_of(issue, self.repository).items()}

    def _refs(self, number: str) -> dict[str, str]:
        """Return origin's refs about an issue, or about all of them: branches, claims, Runs that made nothing."""
        return self.remote.read("refs/heads/issue-*", f"{TRIES}{number}/*", f"{CLAIMS}{number}")

    def _claims(self, there: Mapping[str, str]) -> dict[int, ClaimStanding]:
        now = self.github.server_time.now()
        seen = read_claims(self.launch, self.remote.origin, there)
        numbered = {claimed_issue(ref): claim for ref, claim in seen.items()}
        return {number: judge_claim(claim, now) for number, claim in numbered.items() if number is not None}

    def _known(self, prospect: Prospect, *, wants_all: bool = False) -> Prospect:
        """Return a prospect with what had to be asked; with `wants_all` all that can be asked."""
        while True:
            step = next_look(prospect) if wants_all else judge(prospect)
            match step:
                case None | Ready() | PassedOver():
                    return prospect
                case LookForPullRequest():
                    self._pulls[prospect.issue.number] = found = self._pull_request(prospect.issue.number)
                    prospect = replace(prospect, pull_request=found)
                case AskForRole(login):
                    self._starters.ask(login)
                    prospect = replace(prospect, roles=dict(self._starters.roles))

    def _pull_request(self, number: int) -> str:
        found = self.github.pull_requests(branch_name(number, 1))
        return found[0].url if found else ""

    def _far_waits(self, issue: QueuedIssue) -> dict[Key, tuple[Key, ...]]:
        """Return who waits for whom behind one issue, as far as it is this repository's and not too far."""
        waits = waits_of(issue, self.repository)
        seen, waiting = {issue.number}, list(issue.blockers)
        while waiting and len(seen) < _DEEPEST:
            linked = waiting.pop(0)
            if linked.number in seen or not linked.is_open or not linked.is_in(self.repository):
                continue
            seen.add(linked.number)
            try:
                behind = self.github.issues.one(linked.number)
            except GitHubNotFoundError:
                continue
            waits = waits_of(behind, self.repository) | waits
            waiting += behind.blockers
        return waits

    def _named(self, key: Key) -> str:
        return f"#{key[1]}" if key[0] == self.repository.lower() else f"{key[0]}#{key[1]}"

    def _sweep_labels(self, queue: Queue) -> None:
        """Take the label off closed issues: a merge by hand leaves it."""
        for number, labels in queue.done.items():
            label = next(one for one in labels if one.lower() == self.rules.in_progress.lower())
            try:
                self.github.remove_label(number, label)
                self.report(f"took the label {label} off #{number}, which is closed")
            except GitHubError as error:
                self.report(f"the label {label} could not be taken off #{number}, which is closed: {error}")

    def _sweep_tries(self, queue: Queue, there: Mapping[str, str]) -> None:
        """Forget the Runs that made nothing of issues that nobody is asked to work on any more."""
        kept = {*(issue.number for issue in queue.ready), *queue.working}
        gone = [number for number in read_tries(there) if number not in kept]
        if not gone or queue.working_count > len(queue.working):
            return
        try:
            Tries(self.remote).forget(*gone)
        except Interrupted:
            raise
        except GitError as error:
            self.report(f"what is kept of Runs that made nothing could not be taken away: {error}")


def _own(linked: Linked | None, repository: str, issues: Mapping[int, QueuedIssue]) -> QueuedIssue | None:
    """Return the issue at the other end of a link, if it is one of those."""
    return issues.get(linked.number) if linked is not None and linked.is_in(repository) else None


def _chosen(prospect: Prospect) -> Chosen:
    """Return an issue that may be taken: a fact about it is whose word lets it."""
    moment = let_at(prospect)
    assert moment is not None  # noqa: S101 - else it may not
    return Chosen(prospect.issue, moment)


def holder_of(claim: ClaimStanding | None) -> str:
    """Say who has a claim that nobody may take over; "" for nobody."""
    match claim:
        case Held(record=record):
            return f"run {record.run} on {record.host}"
        case Unreadable(why=why):
            return f"a claim of which nobody can tell whether its run lives: {why}"
        case _:
            return ""


def _vanished(claim: ClaimStanding | None) -> Vanished | None:
    if not isinstance(claim, Expired):
        return None
    return Vanished(run=claim.record.run, host=claim.record.host, since=claim.record.since)
