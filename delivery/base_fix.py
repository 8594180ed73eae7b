"""Having the Base branch mended: by a Run of our own, or by waiting for another's. `base_fix_choice` decides which."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from delivery.base_fix_choice import (
    BASE_FIX,
    Ailment,
    Await,
    BaseFixRecord,
    Begin,
    Closed,
    LeftOpen,
    Obstructed,
    SeenBaseFix,
    choose,
    whose_word,
)
from delivery.child_runs import ChildEnding, ChildRuns
from delivery.claims import end_command
from delivery.errors import GitHubNotFoundError, GitHubUnavailableError
from delivery.github import GitHub, QueuedIssue
from delivery.lease import lease_now, new_nonce
from delivery.loop_facts import BaseFixed
from delivery.ready_facts import worn
from delivery.stages import Stages
from delivery.starters import Starters
from worktree import Fence, FenceLostError, Launch, Origin, Pace, WorktreeError, read_messages

_LABEL = ("b60205", "A Run mends the Base branch, whose checks fail")
_LONGEST_POLL = 60.0  # seconds
_GLANCE = 0.2  # seconds between two looks at the Run
_PATIENCE = 0.1  # of the time waited so far: how long the next wait is


@dataclass(slots=True, kw_only=True)
class BaseFixes:
    """Has the Base branch mended, once, within `limit` seconds; `poll` is the time between two looks at first.

    `starters` say whose word counts about an issue that is there already; with one of the labels `unready` it is for
    people.

    One Run alone makes the Base fix of a branch: the one that has made its ref on origin, see `worktree.Fence`. While
    it lives it moves the ref; once it is dead another one may take it over.
    """

    stages: Stages
    github: GitHub
    launch: Launch
    origin: Origin
    runs: ChildRuns
    pace: Pace
    limit: float
    poll: float
    report: Callable[[str], None]
    starters: Starters
    unready: Sequence[str]
    _awaited: int | None = field(default=None, init=False)
    _told: set[str] = field(default_factory=set, init=False)
    _began: float = field(default_factory=time.monotonic, init=False)
    kept_here: tuple[tuple[str, str], ...] | None = field(default=None, init=False)
    """Where is what this machine alone has of a Run that failed to mend it, as (what, where); None for nothing."""

    def have_made(self, ailment: Ailment) -> BaseFixed | None:
        """Return what came of the Base fix, when it has ended; None when the Base branch has moved before it began.

        Raises what git and GitHub raise.
        """
        self._began = time.monotonic()
        self.report(f"{', '.join(ailment.names)} must be mended on {ailment.base}")
        while True:
            seen = self._look(ailment)
            match choose(seen):
                case Begin() as begin:
                    with self._holding(ailment, begin.replaces) as fence:
                        if fence is not None:
                            return self._make(ailment, fence)
                case Await(record):
                    if self._waited >= self.limit:
                        return self._over(ailment, f"was not over within {self.limit / 3600:g} h")
                    self._wait_for(record)
                case Closed(issue):
                    return self._over(ailment, None, issue)
                case LeftOpen(issue):
                    return self._over(ailment, "ended with its issue still open", issue)
                case Obstructed(why):
                    drop = f"once you know that none does: {end_command(ailment.ref)}"
                    return self._over(ailment, f"cannot begin: nobody can tell whether a run makes it: {why}; {drop}")

    @property
    def _waited(self) -> float:
        return time.monotonic() - self._began

    # What others do.

    def _look(self, ailment: Ailment) -> SeenBaseFix:
        there = self.launch.remote(self.origin).read(ailment.ref)
        commit, text = read_messages(self.launch, self.origin, there).get(ailment.ref, (None, ""))
        record = BaseFixRecord.read(text)
        self._awaited = (record.issue if record else None) or self._awaited
        return SeenBaseFix(
            commit=commit,
            record=record,
            issue=self._awaited,
            is_open=self._awaited is not None and self._is_open(self._awaited),
            now=self.github.server_time.now(),
        )

    def _is_open(self, number: int) -> bool:
        try:
            return self.github.issues.is_open(number)
        except GitHubNotFoundError:
            return False
        except GitHubUnavailableError as error:
            self.report(f"{error}; looking again")
            return True

    def _wait_for(self, record: BaseFixRecord) -> None:
        if record.run not in self._told:
            self._told.add(record.run)
            what = f"#{record.issue}" if record.issue else "it"
            self.report(f"run {record.run} on {record.host} sees to that; waiting for {what}, {self._hours} at most")
        self.stages.sleep(min(_LONGEST_POLL, max(self.poll, self._waited * _PATIENCE)))

    @property
    def _hours(self) -> str:
        return f"{self.limit / 3600:g} h"

    # What this run does.

    @contextmanager
    def _holding(self, ailment: Ailment, replaces: str) -> Iterator[Fence | None]:
        """Hold the branch's ref while the block runs, telling others the issue; None when another run was faster."""
        clock, nonce = self.github.server_time, new_nonce()

        def write() -> str:
            lease = lease_now(self.stages.worktree.run_id, nonce, clock, self.pace)
            return BaseFixRecord(**dict(lease), issue=self._awaited).model_dump_json()

        remote = self.launch.remote(self.origin)
        fence = Fence(remote, ailment.ref, write, clock=clock, pace=self.pace, report=self.report)
        try:
            fence.take(replaces=replaces)
        except FenceLostError:
            yield None
            return
        try:
            yield fence
        finally:
            self._end(fence)

    def _make(self, ailment: Ailment, fence: Fence) -> BaseFixed | None:
        # Whoever held the ref before may have mended it since it was looked at.
        branch, remote = f"refs/heads/{ailment.base}", self.launch.remote(self.origin)
        if remote.read(branch).get(branch) != ailment.commit:
            return None
        wanted = self._wanted(ailment)
        if wanted and (people := worn(wanted.labels, *self.unready)):
            return self._over(ailment, f"is left to people: it is labelled {', '.join(people)}", wanted.number)
        self._awaited = issue = wanted.number if wanted else self._file(ailment)
        fence.push(remote)
        self.report(f"starting a Run that mends {ailment.base}: {self._url_of(issue)}")
        try:
            ending = self._run(issue, ailment.base, fence)
        except OSError as error:
            return self._over(ailment, f"could not be started: {error}")
        return self._over(ailment, None if ending.merged else f"failed: {ending.cause}")

    def _run(self, issue: int, base: str, fence: Fence) -> ChildEnding:
        with self.runs.ended():
            self.runs.start(issue, base, limit=max(self.limit - self._waited, 0))
            while not (ended := self.runs.wait(_GLANCE)):
                if self.stages.interruption.recorded is not None:
                    self.runs.tell()
                fence.tick()
                self.stages.worktree.keep_fence()
        ending = ended[issue]
        if ending.is_kept_here:
            self.kept_here = tuple((f"#{issue}, {what}", where) for what, where in ending.places)
        return ending

    def _wanted(self, ailment: Ailment) -> QueuedIssue | None:
        """Return the oldest open issue about it that is wanted by somebody whose word counts."""
        numbers = ailment.named_by(self.github.issues.titles(BASE_FIX))
        viewer = self.github.viewer() if numbers else ""
        for number in numbers:
            issue = self.github.issues.one(number)
            against = whose_word(issue, viewer, self.starters.may)
            if against is None:
                return issue
            self.report(f"{issue.url} is not taken for it: it {against}")
        return None

    def _file(self, ailment: Ailment) -> int:
        """File an issue about it; return its number."""
        color, description = _LABEL
        self.github.create_label(BASE_FIX, color, description)
        wanted = {"title": ailment.title, "body": ailment.body, "marker": ailment.marker}
        number = self.github.issues.create(**wanted, labels=(BASE_FIX,))
        self.report(f"filed {self._url_of(number)}: {ailment.title}")
        return number

    def _end(self, fence: Fence) -> None:
        try:
            fence.end()
        except (WorktreeError, OSError) as error:
            self.report(f"{fence.ref} could not be deleted on origin, and others take it over once it is old: {error}")

    def _over(self, ailment: Ailment, failure: str | None, issue: int | None = None) -> BaseFixed:
        number = issue or self._awaited
        url = self._url_of(number) if number else ailment.ref
        self.report(f"the Base fix {url} {failure or 'has ended'}")
        said = None if failure is None else f"the Base fix {url} {failure}"
        return BaseFixed(url=url, names=", ".join(ailment.names), failure=said)

    def _url_of(self, number: int) -> str:
        return f"{self.stages.plan.issue.url.rpartition('/')[0]}/{number}"
