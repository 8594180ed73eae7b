"""What the coordinator of a Spec run asks GitHub for, besides what the Runs of its Tickets ask for themselves."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from delivery.causes import Code
from delivery.child_runs import ChildEnding
from delivery.github import GitHub
from delivery.issue_url import IssueUrl
from delivery.spec.account import Account
from delivery.spec.reading import read_graph
from delivery.spec.working_off import WorkingOff
from runner.hub import Exchange, Hub
from tests.benchmarks.measure import Row, count
from tests.scenarios.stage import NAME, WRITER
from tests.world import World, commit, git, make_world
from worktree import Interruption, Journal, Redactor

_SIZES = (10, 50, 200)
_PARALLEL = 4
_FAILING = 10  # each so many-th Ticket fails


class _Landing:
    """Lands a Ticket as its Run would, but asks the hub for nothing: what is counted is the coordinator's alone."""

    def __init__(self, world: World, hub: Hub) -> None:
        self._world = world
        self._hub = hub
        self._running: list[int] = []

    def start(self, number: int, base: str, **_settings: object) -> None:
        """Begin a Ticket, which will land in the branch that everything lands in."""
        assert base == "issue-1"
        self._running.append(number)

    def wait(self, _seconds: float) -> Mapping[int, ChildEnding]:
        """End the Ticket that was begun first."""
        number = self._running.pop(0)
        if number % _FAILING == 0:
            return {number: ChildEnding(cause="the agent exited 3", code=Code.AGENT)}
        (self._world.launch / f"part-{number}.txt").write_text("done\n")
        commit(self._world.launch, f"Part {number}")
        git(self._world.launch, "push", "-q", "origin", "HEAD:refs/heads/issue-1")
        self._hub.people(NAME).close(number, "writer")
        return {number: ChildEnding(merged=True, url=f"{self._hub.url}/{NAME}/pull/{1000 + number}")}

    def tell(self) -> None:
        """Nobody interrupts a benchmark."""
        raise AssertionError

    def ended(self) -> AbstractContextManager[None]:
        """Nothing runs by itself."""
        return nullcontext()


def spec_rows(root: Path) -> list[Row]:
    """The coordinator's API calls a Ticket, for Specs of several sizes: as many for a large one as for a small one."""
    calls = {tickets: _calls(_made(root / str(tickets)), tickets) / tickets for tickets in _SIZES}
    return [
        count(f"Spec of {tickets} Tickets: the coordinator's API calls a Ticket", round(each, 1), at_most=12)
        for tickets, each in calls.items()
    ]


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


def _calls(root: Path, tickets: int) -> int:
    world = make_world(root)
    git(world.launch, "push", "-q", "origin", "HEAD:refs/heads/issue-1")
    exchanges: list[Exchange] = []
    with Hub(root / "hub", repositories={NAME: world.origin}, observe=exchanges.append) as hub:
        _file(hub, tickets)
        url = IssueUrl.parse(f"{hub.url}/{NAME}/issues/1")
        assert url is not None
        github = GitHub(api_url=f"{hub.url}/api/v3", token=WRITER, repository=NAME)
        issue = github.issue(1)
        exchanges.clear()
        landing = _Landing(world, hub)
        work = WorkingOff(
            graph=read_graph(github, url),
            read=lambda: read_graph(github, url),
            look=list,
            start=lambda number: landing.start(number, "issue-1", limit=1),
            runs=landing,
            account=Account(github=github, spec=issue, base="main", branch="issue-1", report=_nothing),
            parallel=_PARALLEL,
            is_taken=lambda _: False,
            patience=0,
            poll=0,
            keep_fence=list,
            interruption=Interruption(),
            journal=Journal(),
            report=_nothing,
            redact=Redactor([]),
        )
        left = work.to_the_end()
        github.close()
        assert len(left) >= tickets // _FAILING
        return len(exchanges)


def _file(hub: Hub, tickets: int) -> None:
    """File a Spec and its Tickets, of which every other one is blocked by the one before the one before."""
    people = hub.people(NAME)
    people.open("writer", "The whole")
    for number in range(2, tickets + 2):
        people.open("writer", "A part")
        people.add_sub_issue(1, number, "writer")
        if number % 2 and number > 3:
            people.block(number, number - 2, "writer")


def _nothing(_line: str) -> None:
    """Say nothing."""
