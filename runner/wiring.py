"""What a Run is made of, put together from what the user gave."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from delivery.branches import Fresh, branch_number
from delivery.causes import Code
from delivery.checks import Patience, Required
from delivery.conventions import Conventions
from delivery.errors import GitHubError, PreflightError
from delivery.issue_url import IssueUrl
from delivery.outcome import Outcome
from delivery.pickup import Pickup
from delivery.preflight import Plan, unanswered
from delivery.prompt import Instructions
from delivery.ready_facts import PickupRules
from delivery.run import Run
from delivery.session import Sessions
from runner.access import Place, Start, known_secrets
from runner.agent_command import agent_argv, require_on_base
from runner.child_runs import ChildProcesses
from runner.conclusion import as_document
from runner.configured import git_limits, logs_of, repository_settings
from runner.environment import agent_environment
from runner.logs import LogPlace
from runner.processes import Strays
from runner.program import split_command
from runner.progress import Progress
from runner.recovery import Recovery
from runner.run_options import FoundIssue, RunOptions
from runner.session import AgentSessions, SessionLimits
from runner.settings import LoadedSettings, PromptReplacement, Settings
from runner.token import SOURCES
from runner.token_source import LearningRedactor, TokenSource
from worktree import CommitRule, Interruption, Journal, Launch, Pace, Redactor, host_name


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

    def plan(self) -> Plan:
        """Return the plan of the Run, of a Ticket's with the Spec that it is a part of. Raises PreflightError."""
        plan, spec = self.run.plan(), self.options.ticket_of
        if spec is None:
            self._say_what_it_is_a_part_of(plan)
            return plan
        try:
            return replace(plan, spec=self.run.github.issue(spec))
        except GitHubError as error:
            raise unanswered(error) from error

    def _say_what_it_is_a_part_of(self, plan: Plan) -> None:
        """Say of a Ticket that is worked on alone where it goes: a person may have meant the whole."""
        repository, spec = plan.issue.parent or ("", 0)
        if repository.lower() == self.url.repository.lower() and branch_number(spec, plan.base) is None:
            whole = replace(self.url, number=spec)
            self.run.report(
                f"#{self.url.number} is a part of #{spec}, and its pull request goes to {plan.base}; for the whole: "
                f"nightkeep run {whole}"
            )

    def settings(self, plan: Plan) -> Settings:
        """Return the settings for this repository, its own file included where it is trusted."""
        return self.loaded(plan).settings

    def loaded(self, plan: Plan) -> LoadedSettings:
        """Return the settings for this repository, and where they came from; tells of what the user should know."""
        settled = self.options.configured_by
        loaded = repository_settings(
            self.launch,
            self.machine.settings,
            self.options.settings(),
            repository=self.url.repository,
            host=urlsplit(self.url.server).netloc,
            base=settled.base if settled else plan.base,
            commit=settled.commit if settled else plan.base_commit,
        )
        for notice in loaded.notices:
            self.progress.say(notice)
        return loaded

    def begun(self, settings: Settings, logs: LogPlace) -> Run:
        """Return the Run with the settings' limits on git, and a journal beside its logs."""
        journal = Journal(logs.journal, redact=self.redact, report=self.progress.say)
        return replace(self.run, launch=self.launch.limited(git_limits(settings)), journal=journal)

    def check_starter(self, settings: Settings, plan: Plan) -> datetime:
        """Return when somebody labelled the issue who may start work; raises NotReadyError when that, or the issue as
        it was then, does not hold.
        """
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
        FoundIssue.of(found, settings.labels.ready).check(plan.issue)
        return found.let_at

    def log_place(self, settings: Settings) -> LogPlace:
        """Return where this command's logs go, if it begins its work now."""
        return LogPlace.of(logs_of(settings), self.url.repository, self.url.number)

    def sessions(self, loaded: LoadedSettings, plan: Plan, logs: LogPlace) -> Sessions:
        """Return what runs the agent; raises PreflightError when there is none."""
        limits = loaded.settings.limits
        argv = agent_argv(loaded, self.launch.directory)
        if isinstance(plan.choice, Fresh) and loaded.settings.setup is None:
            require_on_base(argv[0], self.launch, plan.base, plan.base_commit)
        return AgentSessions(
            argv,
            environment=agent_environment(os.environ, self.launch, self.run.origin.url),
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
        """Return it as it is told: without secrets, of which an agent can make names; and with what to do about a token
        that GitHub no longer takes, as nobody can read of it there.
        """
        cause = None if outcome.cause is None else self.redact(outcome.cause)
        outcome = replace(outcome, cause=cause, secondary=tuple(map(self.redact, outcome.secondary)))
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
    start = Start.here(options.settings(), held, redact, lambda line: progress.say(redact(line)), interruption)
    machine = start.machine
    if machine.settings.agent is not None:
        agent_argv(machine, start.directory)
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
        continue_command=redact(options.continue_command(url, start.directory)),
        logs=logs_of(machine.settings),
    )
    is_given = options.token_file is None or options.lasting_token_file is not None
    children = ChildProcesses(
        url,
        options.child_arguments(start.directory),
        directory=start.directory,
        held=held if is_given else {**held, SOURCES[0]: signed_in.source.token},
        recover=lambda child: _recovered(run, url.repository, child),
        progress=progress,
        strays=strays,
    )
    return Wiring(
        url=url,
        options=options,
        machine=machine,
        token=signed_in.source,
        redact=redact,
        launch=launch,
        run=replace(run, child_runs=children),
        progress=progress,
        interruption=interruption,
        strays=strays,
    )


def _recovered(run: Run, repository: str, child: IssueUrl) -> Mapping[str, object] | None:
    """Finish a child's Run that was killed; return its document, None where that could not be done now."""
    assert run.logs is not None  # noqa: S101 - commands have them
    recovery = Recovery(run=run, logs=run.logs, repository=repository, report=run.report)
    recovered = [one for one in recovery.recover() if one.issue_url == str(child)]
    if not recovered:
        return {"result": "not-begun", "cause": "its process was killed before it had begun", "code": Code.KILLED}
    ended = recovered[-1].outcome
    return as_document(ended) if ended else None


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
        parallel=settings.spec.parallel,
        ticket_limit=settings.limits.ticket,
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


def pickup_rules(settings: Settings) -> PickupRules:
    """Return what the settings say about issues that may be taken."""
    return PickupRules(
        ready=settings.labels.ready,
        in_progress=settings.labels.in_progress,
        unready=settings.labels.unready,
        settle=timedelta(seconds=settings.pickup.settle),
        limit=settings.pickup.limit,
        bots=settings.pickup.bots,
    )


def _step_argv(what: str, command: str | None) -> list[str] | None:
    # A step's program may be in the repository, so it is looked up when it runs, in the worktree.
    return None if command is None else split_command(what, command)


def _issue_url(text: str) -> IssueUrl:
    url = IssueUrl.parse(text)
    if url is None:
        raise PreflightError(f"{text!r} is not the URL of an issue; give it as https://github.com/OWNER/NAME/issues/7")
    server = os.environ.get("GITHUB_SERVER_URL", "").rstrip("/")
    if server and server.lower() != url.server.lower():
        raise PreflightError(f"{url} is not on the server that GITHUB_SERVER_URL names ({server})")
    return url
