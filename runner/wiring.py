"""What a Run is made of, put together from what the user gave."""

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from delivery.branches import Fresh
from delivery.checks import Patience, Required
from delivery.conventions import Conventions
from delivery.errors import GitHubError, PreflightError
from delivery.github import Issue
from delivery.issue_url import IssueUrl
from delivery.outcome import Outcome
from delivery.pickup import NotReadyError, Pickup
from delivery.preflight import Plan, unanswered
from delivery.prompt import Instructions
from delivery.ready_facts import Rules
from delivery.run import Run
from delivery.session import Sessions
from runner.access import Place, Start, known_secrets
from runner.child_runs import ProcessRuns
from runner.configured import git_limits, logs_of, repository_settings, user_file
from runner.environment import agent_environment
from runner.logs import LogPlace
from runner.processes import Strays
from runner.program import found_command, is_relative_path, split_command
from runner.progress import Progress
from runner.recovery import Recovery
from runner.session import AgentSessions, SessionLimits
from runner.settings import REPOSITORY_FILE, LoadedSettings, PromptReplacement, Settings, home_relative
from runner.ticket_runs import TicketOf
from runner.token_source import LearningRedactor, TokenSource
from worktree import CommitRule, Interruption, Journal, Launch, Pace, Redactor, host_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An issue as it was when it was found ready; `ready_label` is the one that it had, if it had it."""

    title: str
    body: str
    ready_label: str | None

    def check(self, issue: Issue) -> None:
        """Raise NotReadyError for an issue that has been taken or changed since."""
        if self.ready_label and self.ready_label.lower() not in {label.lower() for label in issue.labels}:
            raise NotReadyError(f"#{issue.number} is not labelled {self.ready_label} any more: somebody has taken it")
        if (issue.title, issue.body) != (self.title, self.body):
            raise NotReadyError(f"#{issue.number} was changed just now; the next pass looks at it again")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user asked for, as typed; None for what was left out. `seen` is the issue that pickup has found."""

    issue_url: str
    agent: str | None
    base: str | None
    token_file: Path | None
    as_json: bool
    merge: bool | None = None
    base_fix: bool | None = None
    parallel: int | None = None
    ticket_of: str | None = None
    seen: Seen | None = None
    checks_starter: bool = False

    def flags(self) -> dict[str, object]:
        """Return what was given as settings, by their names."""
        return {
            "agent": self.agent,
            "token-file": self.token_file,
            "merge": self.merge,
            "base-fix": self.base_fix,
            "spec.parallel": self.parallel,
        }

    def ticket(self) -> TicketOf | None:
        """Return what a Spec run said when it started this command; None when a person did."""
        return TicketOf.parse(self.ticket_of) if self.ticket_of else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """One command's parts: what is the machine's is settled, what is the repository's is read once there is a plan."""

    url: IssueUrl
    options: RunOptions
    machine: LoadedSettings
    token: TokenSource
    redact: Redactor
    launch: Launch
    run: Run
    progress: Progress
    interruption: Interruption
    strays: Strays

    def recovered(self) -> "Wiring":
        """Finish what killed runners left in this clone, and return what is wired with the clone as it is then.

        Trouble with that is told, and stops no other Run.
        """
        recovery = Recovery(
            run=self.run, logs=logs_of(self.machine.settings), repository=self.url.repository, report=self.run.report
        )
        if not recovery.recover():
            return self
        launch = self.launch.reopened()
        return replace(self, launch=launch, run=replace(self.run, launch=launch))

    def settings(self, plan: Plan) -> Settings:
        """Return the settings for this repository, its own file included where it is trusted."""
        return self.loaded(plan).settings

    def loaded(self, plan: Plan) -> LoadedSettings:
        """Return the settings for this repository, and where they came from; tells of what the user should know."""
        ticket = self.options.ticket()
        loaded = repository_settings(
            self.launch,
            self.machine.settings,
            self.options.flags(),
            repository=self.url.repository,
            host=urlsplit(self.url.server).netloc,
            # What Tickets have merged into the Spec branch has no say in what is run here: nobody has reviewed it.
            base=ticket.base if ticket else plan.base,
            commit=ticket.commit if ticket else plan.base_commit,
        )
        for notice in loaded.notices:
            self.progress.say(notice)
        return loaded

    def begun(self, settings: Settings, logs: LogPlace) -> Run:
        """Return the Run with the settings' limits on git, and a journal beside its logs."""
        journal = Journal(logs.journal, redact=self.redact, report=self.progress.say)
        return replace(self.run, launch=self.launch.limited(git_limits(settings)), journal=journal)

    def check_starter(self, settings: Settings, plan: Plan) -> None:
        """Raise NotReadyError unless the issue was labelled by somebody who may start work, and is still as it was."""
        pickup = Pickup(
            github=self.run.github,
            launch=self.launch,
            remote=self.launch.remote(self.run.origin),
            repository=self.url.repository,
            rules=pickup_rules(settings),
            report=self.run.report,
        )
        try:
            found = pickup.check_starter(plan.issue.number)
        except GitHubError as error:
            raise unanswered(error) from error
        Seen(title=found.title, body=found.body, ready_label=settings.labels.ready).check(plan.issue)

    def log_place(self, settings: Settings) -> LogPlace:
        """Return where this command's logs go, if it begins its work now."""
        return LogPlace.of(logs_of(settings), self.url.repository, self.url.number)

    def sessions(self, loaded: LoadedSettings, plan: Plan, logs: LogPlace) -> Sessions:
        """Return what runs the agent; raises PreflightError when there is none."""
        limits = loaded.settings.limits
        argv = _agent_argv(loaded, self.launch.directory)
        if isinstance(plan.choice, Fresh) and loaded.settings.setup is None:
            _require_on_base(argv[0], self.launch, plan)
        return AgentSessions(
            argv,
            environment=agent_environment(os.environ, self.launch),
            logs=logs,
            limits=SessionLimits(
                wall=limits.session, step=limits.step, idle=limits.idle, output=limits.output, grace=limits.stop_grace
            ),
            interruption=self.interruption,
            redact=self.redact,
            progress=self.progress.agent,
            strays=self.strays,
        )

    def explained(self, outcome: Outcome) -> Outcome:
        """Add what to do about a token that GitHub no longer takes: nobody can read of it there."""
        if not self.run.github.token_is_refused:
            return outcome
        place = self.token.place
        line = f"GitHub no longer takes the token of {place.name}: it has expired or was revoked; {place.remedy}"
        if outcome.retained is not None and outcome.worktree is not None:
            push = ["git", "-C", str(outcome.worktree), "push", "origin", f"HEAD:refs/heads/{outcome.branch}"]
            line += f", then bring the work to origin: {shlex.join(push)}"
        line = self.redact(line)
        self.progress.say(line)
        return replace(outcome, secondary=(*outcome.secondary, line))


def wire(options: RunOptions, held: Mapping[str, str], progress: Progress, interruption: Interruption) -> Wiring:
    """Put a command together; raises PreflightError, LaunchError or Interrupted. Changes nothing but this process."""
    url = _issue_url(options.issue_url)
    redact = LearningRedactor(known_secrets(held))
    start = Start.here(options.flags(), held, redact, lambda line: progress.say(redact(line)), interruption)
    machine = start.machine
    if machine.settings.agent is not None:
        _agent_argv(machine, start.directory)
    signed_in = start.sign_in(Place(server=url.server, repository=url.repository))
    strays = Strays()
    remedy = f"run this in a clone of {url.repository}: git clone {url.clone_url}"
    launch = start.open_clone(remedy=remedy, strays=strays)
    run = Run(
        url=url,
        base=options.base,
        github=signed_in.github,
        launch=launch,
        origin=signed_in.origin,
        interruption=interruption,
        report=start.report,
        redact=redact,
        host=host_name(),
        continue_command=redact(_continue_command(options, url, start.directory)),
        logs=logs_of(machine.settings),
        child_runs=ProcessRuns(
            flags=_flags(options, start.directory),
            directory=start.directory,
            environment=os.environ,
            held=held,
            interruption=interruption,
            strays=strays,
            report=start.report,
        ),
    )
    return Wiring(
        url=url,
        options=options,
        machine=machine,
        token=signed_in.source,
        redact=redact,
        launch=launch,
        run=run,
        progress=progress,
        interruption=interruption,
        strays=strays,
    )


def conventions(settings: Settings) -> Conventions:
    """Return what the settings say about how Runs are done."""
    prompt = settings.prompt
    instructions = (
        Instructions(prompt.replace, replace=True)
        if isinstance(prompt, PromptReplacement)
        else Instructions(prompt or "")
    )
    return Conventions(
        instructions=instructions,
        setup=_step_argv("setup", settings.setup),
        verify=_step_argv("verify", settings.verify),
        commit=CommitRule(settings.session.commit),
        checkpoint_every=settings.checkpoints.every,
        publishes_checkpoints={"always": True, "never": False}.get(settings.checkpoints.push),
        opens_draft=settings.failed_run.pull_request == "draft",
        merges=settings.merge,
        fixes_base=settings.base_fix,
        base_fix_limit=settings.limits.base_fix,
        merge_method=settings.merge_method,
        repairs=settings.repair.limit,
        moves=settings.repair.moves,
        checks_required=Required(settings.checks.required),
        patience=Patience(grace=settings.checks.grace, limit=settings.limits.checks, poll=settings.checks.poll),
        pace=Pace(lease=settings.limits.lease, beat=settings.limits.heartbeat),
        ready_label=settings.labels.ready,
        in_progress_label=settings.labels.in_progress,
        unready_labels=settings.labels.unready,
        bots=settings.pickup.bots,
    )


def pickup_rules(settings: Settings) -> Rules:
    """Return what the settings say about issues that may be taken."""
    return Rules(
        ready=settings.labels.ready,
        in_progress=settings.labels.in_progress,
        unready=settings.labels.unready,
        settle=timedelta(seconds=settings.pickup.settle),
        bots=settings.pickup.bots,
    )


def _agent_argv(loaded: LoadedSettings, directory: Path) -> list[str]:
    """Split the agent's command and find its program.

    A relative path is looked up from `directory`, where the command was typed; one in the repository's file means a
    file of the repository, which `setup` may have yet to make, so it is looked up when it runs, in the worktree.
    """
    command = loaded.settings.agent
    if command is None:
        trust = f", or trust this repository, whose file names one: {loaded.trust}" if loaded.trust else ""
        raise PreflightError(
            f"no agent is named; give one by --agent 'COMMAND', NIGHTKEEP_AGENT, or `agent:` in {REPOSITORY_FILE} "
            f"or {home_relative(user_file())}{trust}"
        )
    argv = split_command("agent", command)
    return (
        argv
        if loaded.agent_is_repositorys and is_relative_path(argv[0])
        else found_command("agent", command, directory)
    )


def _require_on_base(program: str, launch: Launch, plan: Plan) -> None:
    """Raise PreflightError for a program of the repository that is not there: with nothing that could make it."""
    path = os.path.normpath(program)
    if not is_relative_path(program) or path.startswith(".."):
        return
    with suppress(UnicodeDecodeError):  # a binary, so it is there
        if launch.read_file(plan.base_commit, path) is None:
            raise PreflightError(
                f"the agent {program!r} is no file of the repository on {plan.base}; commit and push it, or name "
                f"another in {REPOSITORY_FILE} (a relative path there is one in the repository)"
            )


def _step_argv(what: str, command: str | None) -> list[str] | None:
    # A step's program may be in the repository, so it is looked up when it runs, in the worktree.
    return None if command is None else split_command(what, command)


def _issue_url(text: str) -> IssueUrl:
    url = IssueUrl.parse(text)
    if url is None:
        raise PreflightError(
            f"{text!r} is not the URL of an issue; it looks like https://github.com/OWNER/NAME/issues/7"
        )
    server = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/")
    if server and server.lower() != url.server.lower():
        raise PreflightError(f"{url} is not on the server that GITHUB_SERVER_URL names ({server})")
    return url


def _continue_command(options: RunOptions, url: IssueUrl, directory: Path) -> str:
    """Return what to type in any clone: a path that was given from `directory` is made absolute."""
    switches = (("merge", options.merge), ("base-fix", options.base_fix))
    chosen = [f"--{name}" if wanted else f"--no-{name}" for name, wanted in switches if wanted is not None]
    parallel = [] if options.parallel is None else ["--parallel", str(options.parallel)]
    typed = _flags(options, directory, base=options.base)
    return shlex.join(["nightkeep", "run", str(url), *typed, *chosen, *parallel])


def _flags(options: RunOptions, directory: Path, *, base: str | None = None) -> list[str]:
    """Return the flags that another Run, into `base`, is started with from this clone."""
    token_file = None if options.token_file is None else os.path.normpath(directory / options.token_file)
    agent = None if options.agent is None else _from_anywhere(options.agent, directory)
    given = (("--agent", agent), ("--base", base), ("--token-file", token_file))
    return [word for name, value in given if value is not None for word in (name, value)]


def _from_anywhere(agent: str, directory: Path) -> str:
    program, *arguments = split_command("agent", agent)
    if not is_relative_path(program):
        return agent
    return shlex.join([os.path.normpath(directory / program), *arguments])
