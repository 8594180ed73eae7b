"""Finding the issue that pickup takes next, and telling of any issue why it may be taken or not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from delivery.branches import branch_name
from delivery.cycles import Key, cycle_of, waits_of
from delivery.errors import DeliveryError, GitHubError, GitHubForbiddenError, GitHubNotFoundError
from delivery.github import GitHub, Linked, Queue, QueuedIssue, Role
from delivery.ready import AskForRole, LookForPullRequest, PassedOver, Ready, explain, judge, next_look
from delivery.ready_facts import Fact, Facts, Lets, Name, Rules
from delivery.tries import TRIES, Tries, read_tries
from worktree import GitError, Interrupted
from worktree.remote import Remote

_DEEPEST = 60  # issues that are read to find a cycle for a person


class NotReadyError(DeliveryError):
    """An issue that was to be taken may not be taken, or not any more: nothing was claimed, and nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Nothing is taken; `why` is for a person."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An issue and every fact about it, in order; `is_ready` when nothing stands in the way."""

    issue: QueuedIssue
    facts: tuple[Fact, ...]
    is_ready: bool


@dataclass(slots=True, kw_only=True)
class Pickup:
    """Looks through one repository's issues, once.

    `remote` is its origin, `limit` how many issues may be worked on at a time. `clock` tells the time.
    """

    github: GitHub
    remote: Remote
    repository: str
    rules: Rules
    report: Callable[[str], None]
    limit: int = 3
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _roles: dict[str, Role] = field(default_factory=dict, init=False)
    _pulls: dict[int, str] = field(default_factory=dict, init=False)

    def choose(self) -> QueuedIssue | Skipped:
        """Sweep, count, and return the lowest issue that may be taken; each one passed over is reported with why.

        Raises GitHubError, GitError and Interrupted.
        """
        queue = self.github.issues.queue(self.rules.ready, self.rules.in_progress)
        self._sweep_labels(queue)
        if queue.working_count >= self.limit:
            many = "1 issue is" if queue.working_count == 1 else f"{queue.working_count} issues are"
            return Skipped(f"{many} labelled {self.rules.in_progress}, and pickup.limit is {self.limit}")
        if not queue.ready:
            return Skipped(f"no open issue of {self.repository} is labelled {self.rules.ready}")
        there = self.remote.read("refs/heads/issue-*", f"{TRIES}*")
        self._sweep_tries(queue, there)
        return self._first_ready(queue, there)

    def explain(self, number: int) -> Explained:
        """Return all facts about one issue, those that cost a question included. Raises as `choose` does."""
        issue = self.github.issues.one(number)
        there = self.remote.read("refs/heads/issue-*", f"{TRIES}{number}/*")
        facts = self._facts(issue, self._viewer(), there, self._far_waits(issue))
        facts = self._known(facts, wants_all=True)
        told = explain(facts)
        return Explained(issue=issue, facts=told, is_ready=all(fact.lets is Lets.YES for fact in told))

    def survey(self) -> tuple[Queue, list[tuple[QueuedIssue, Fact | None]]]:
        """Return all that is labelled, and of each ready issue what stands in its way, as far as nobody need be asked.

        Changes nothing. Raises as `choose` does.
        """
        queue = self.github.issues.queue(self.rules.ready, self.rules.in_progress)
        there = self.remote.read("refs/heads/issue-*", f"{TRIES}*") if queue.ready else {}
        waits = {key: waiting for issue in queue.ready for key, waiting in waits_of(issue, self.repository).items()}
        verdicts = [(issue, judge(self._facts(issue, queue.viewer, there, waits))) for issue in queue.ready]
        return queue, [(issue, one.fact if isinstance(one, PassedOver) else None) for issue, one in verdicts]

    def check_starter(self, number: int) -> QueuedIssue:
        """Return an issue that somebody labelled who may start work. Raises NotReadyError, and as `choose` does."""
        issue = self.github.issues.one(number)
        facts = self._known(self._facts(issue, self._viewer(), {}, {}), wants_all=True)
        for fact in explain(facts):
            if fact.name in (Name.STARTER, Name.TEXT) and fact.lets is not Lets.YES:
                raise NotReadyError(f"#{number} {fact.text}")
        return issue

    def _first_ready(self, queue: Queue, there: Mapping[str, str]) -> QueuedIssue | Skipped:
        waits = {key: waiting for issue in queue.ready for key, waiting in waits_of(issue, self.repository).items()}
        issues = {issue.number: issue for issue in queue.ready}
        for issue in queue.ready:
            found = self._judged(issue, queue.viewer, there, waits)
            if found is None:
                return issue
            if not self._goes_with_its_spec(issue, found, issues, queue.viewer, there, waits):
                self.report(f"#{issue.number} {found.text}")
        return Skipped(f"no issue of {self.repository} is ready")

    def _goes_with_its_spec(
        self,
        issue: QueuedIssue,
        found: Fact,
        issues: Mapping[int, QueuedIssue],
        viewer: str,
        there: Mapping[str, str],
        waits: Mapping[Key, tuple[Key, ...]],
    ) -> bool:
        """Tell whether an issue needs no word, because the one that it is a part of may be taken itself."""
        spec = _own(issue.parent, self.repository, issues) if found.name is Name.SPEC else None
        return spec is not None and self._judged(spec, viewer, there, waits) is None

    def _judged(
        self, issue: QueuedIssue, viewer: str, there: Mapping[str, str], waits: Mapping[Key, tuple[Key, ...]]
    ) -> Fact | None:
        """Return what stands in the way of an issue; None when it may be taken."""
        facts = self._known(self._facts(issue, viewer, there, waits))
        verdict = judge(facts)
        return verdict.fact if isinstance(verdict, PassedOver) else None

    def _facts(
        self, issue: QueuedIssue, viewer: str, there: Mapping[str, str], waits: Mapping[Key, tuple[Key, ...]]
    ) -> Facts:
        heads = frozenset(ref.removeprefix("refs/heads/") for ref in there if ref.startswith("refs/heads/"))
        cycle = cycle_of((self.repository.lower(), issue.number), waits)
        return Facts(
            issue=issue,
            repository=self.repository,
            rules=self.rules,
            now=self.clock(),
            viewer=viewer,
            branches=heads,
            pull_request=self._pulls.get(issue.number),
            roles=self._roles,
            tries=read_tries(there).get(issue.number, ()),
            cycle=tuple(self._named(key) for key in cycle),
        )

    def _known(self, facts: Facts, *, wants_all: bool = False) -> Facts:
        """Return the facts with what had to be asked; with `wants_all` all that can be asked."""
        while True:
            step = next_look(facts) if wants_all else judge(facts)
            match step:
                case None | Ready() | PassedOver():
                    return facts
                case LookForPullRequest():
                    self._pulls[facts.issue.number] = found = self._pull_request(facts.issue.number)
                    facts = replace(facts, pull_request=found)
                case AskForRole(login):
                    self._roles[login.lower()] = self._role(login)
                    facts = replace(facts, roles=dict(self._roles))

    def _pull_request(self, number: int) -> str:
        found = self.github.pull_requests(branch_name(number, 1))
        return found[0].url if found else ""

    def _role(self, login: str) -> Role:
        try:
            return self.github.issues.role(login)
        except GitHubForbiddenError as error:
            self.report(f"GitHub does not tell this token what @{login} may do here, so it counts as nothing: {error}")
            return Role.NONE

    def _viewer(self) -> str:
        return self.github.viewer()

    def _far_waits(self, issue: QueuedIssue) -> dict[Key, tuple[Key, ...]]:
        """Return who waits for whom behind one issue, as far as it is this repository's and not too far."""
        waits = waits_of(issue, self.repository)
        seen, waiting = {issue.number}, list(issue.blockers)
        while waiting and len(seen) < _DEEPEST:
            linked = waiting.pop(0)
            if linked.number in seen or not linked.is_open or linked.repository.lower() != self.repository.lower():
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
    is_own = linked is not None and linked.repository.lower() == repository.lower()
    return issues.get(linked.number) if linked is not None and is_own else None
