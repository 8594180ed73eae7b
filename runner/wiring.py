"""What a Run is made of, put together from what the user gave."""

import os
import shlex
import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_config_path

from delivery.branches import Fresh
from delivery.checks import Patience, Required
from delivery.conventions import Conventions
from delivery.errors import PreflightError
from delivery.github import GitHub
from delivery.issue_url import IssueUrl
from delivery.outcome import Outcome
from delivery.preflight import Plan
from delivery.prompt import Instructions
from delivery.run import Run
from delivery.session import Sessions
from runner.addresses import api_url
from runner.environment import agent_environment
from runner.logs import LogPlace, default_directory
from runner.processes import Strays, become_subreaper
from runner.progress import Progress
from runner.recovery import Recovery
from runner.session import AgentSessions, SessionLimits
from runner.settings import (
    REPOSITORY_FILE,
    LoadedSettings,
    PromptReplacement,
    Settings,
    SettingsError,
    entry_for,
    home_relative,
    is_trusted,
    load_settings,
)
from runner.token import close_to_other_processes
from runner.token_source import (
    LearningRedactor,
    TokenError,
    TokenPlace,
    TokenSource,
    token_by_command,
    token_in_environment,
    token_in_file,
    token_of_gh,
)
from worktree import (
    CommitRule,
    GitError,
    Interrupted,
    Interruption,
    Journal,
    Launch,
    LaunchError,
    Limits,
    Origin,
    Redactor,
    secrets_in,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user asked for, as typed; None for what was left out."""

    issue_url: str
    agent: str | None
    base: str | None
    token_file: Path | None
    as_json: bool
    merge: bool | None = None

    def flags(self) -> dict[str, object]:
        """Return what was given as settings, by their names."""
        return {"agent": self.agent, "token-file": self.token_file, "merge": self.merge}


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
        loaded = repository_settings(
            self.launch,
            self.machine.settings,
            self.options.flags(),
            repository=self.url.repository,
            host=urlsplit(self.url.server).netloc,
            base=plan.base,
            commit=plan.base_commit,
        )
        for notice in loaded.notices:
            self.progress.say(notice)
        return loaded

    def begun(self, settings: Settings, logs: LogPlace) -> Run:
        """Return the Run with the settings' limits on git, and a journal beside its logs."""
        journal = Journal(logs.journal, redact=self.redact, report=self.progress.say)
        return replace(self.run, launch=self.launch.limited(_git_limits(settings)), journal=journal)

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
    if shutil.which("git") is None:
        raise PreflightError("git was not found on PATH; install it (2.38 or newer)")
    directory = launch_directory()
    machine = load(options.flags())
    if machine.settings.agent is not None:
        _agent_argv(machine, directory)
    address = api_url(url.server, os.environ)
    redact = LearningRedactor([*held.values(), *secrets_in(os.environ)])

    def report(line: str) -> None:
        progress.say(redact(line))

    host = urlsplit(url.server).netloc
    source = find_token(machine.settings, held, host, learn=redact.learn, report=report)
    close_to_other_processes()
    become_subreaper()
    remedy = f"run this in a clone of {url.repository}: git clone {url.clone_url}"
    strays = Strays()
    launch = open_launch(directory, machine.settings, interruption, redact, remedy=remedy, strays=strays)
    run = Run(
        url=url,
        base=options.base,
        github=GitHub(
            api_url=address,
            token=source.token,
            renew=source.renew,
            repository=url.repository,
            interruption=interruption,
            report=report,
        ),
        launch=launch,
        origin=Origin(url.clone_url, source.token, renew=source.recent),
        interruption=interruption,
        report=report,
        redact=redact,
        host=socket.gethostname() or "unknown",
        continue_command=redact(_continue_command(options, url, directory)),
        logs=logs_of(machine.settings),
    )
    return Wiring(
        url=url,
        options=options,
        machine=machine,
        token=source,
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
        merge_method=settings.merge_method,
        repairs=settings.repair.limit,
        moves=settings.repair.moves,
        checks_required=Required(settings.checks.required),
        patience=Patience(grace=settings.checks.grace, limit=settings.limits.checks, poll=settings.checks.poll),
        ready_label=settings.labels.ready,
        in_progress_label=settings.labels.in_progress,
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
    argv = _split("agent", command)
    return argv if loaded.agent_is_repositorys and _is_relative_path(argv[0]) else _argv("agent", command, directory)


def _require_on_base(program: str, launch: Launch, plan: Plan) -> None:
    """Raise PreflightError for a program of the repository that is not there: with nothing that could make it."""
    path = os.path.normpath(program)
    if not _is_relative_path(program) or path.startswith(".."):
        return
    with suppress(UnicodeDecodeError):  # a binary, so it is there
        if launch.read_file(plan.base_commit, path) is None:
            raise PreflightError(
                f"the agent {program!r} is no file of the repository on {plan.base}; commit and push it, or name "
                f"another in {REPOSITORY_FILE} (a relative path there is one in the repository)"
            )


def _is_relative_path(program: str) -> bool:
    return "/" in program and not program.startswith("/")


def _argv(what: str, command: str, directory: Path) -> list[str]:
    argv = _split(what, command)
    program = shutil.which(str(directory / argv[0]) if "/" in argv[0] else argv[0])
    if program is None:
        raise PreflightError(
            f"the {what} {argv[0]!r} was not found, or cannot be executed; name a program on PATH, or the path of one "
            "that may be executed (chmod +x)"
        )
    return [str(directory / program), *argv[1:]]


def _step_argv(what: str, command: str | None) -> list[str] | None:
    # A step's program may be in the repository, so it is looked up when it runs, in the worktree.
    return None if command is None else _split(what, command)


def _split(what: str, command: str) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise PreflightError(f"the {what}'s command cannot be split into words: {error}: {command}") from error
    if not argv:
        raise PreflightError(f"the {what}'s command is empty")
    return argv


def user_file() -> Path:
    """Return where the user's own configuration is."""
    return user_config_path("nightkeep") / "config.yml"


def load(
    flags: Mapping[str, object],
    *,
    repository_text: str | None = None,
    repository_name: str = "",
    base: str = "",
    trusted: bool = False,
) -> LoadedSettings:
    """Load the settings of this machine, and a repository's if its file's text is given, as `load_settings` does.

    Raises PreflightError with every problem, one in a line.
    """
    try:
        return load_settings(
            repository_text=repository_text,
            repository_name=repository_name,
            base=base,
            trusted=trusted,
            user_file=user_file(),
            environment=os.environ,
            flags=flags,
        )
    except SettingsError as error:
        raise PreflightError(str(error)) from error


def repository_settings(
    launch: Launch,
    machine: Settings,
    flags: Mapping[str, object],
    *,
    repository: str,
    host: str,
    base: str,
    commit: str,
) -> LoadedSettings:
    """Return the settings for OWNER/NAME on `host`, its own file on `base` included where it is trusted.

    `commit` is where origin has `base`, fetched. Raises PreflightError.
    """
    try:
        text = launch.read_file(commit, REPOSITORY_FILE)
    except UnicodeDecodeError as error:
        raise PreflightError(f"{REPOSITORY_FILE} on {base} is not UTF-8: {error}") from error
    return load(
        flags,
        repository_text=text,
        repository_name=entry_for(repository, host),
        base=base,
        trusted=trusts(machine, repository, host),
    )


def trusts(machine: Settings, repository: str, host: str) -> bool:
    """Tell whether OWNER/NAME's own file is used.

    A workflow runs in its own repository by that repository's leave; elsewhere the user decides.
    """
    in_workflow = os.environ.get("GITHUB_ACTIONS") == "true"
    own = os.environ.get("GITHUB_REPOSITORY", "").lower() == repository.lower()
    return (in_workflow and own) or is_trusted(repository, host, machine.trusted_repositories)


def _git_limits(settings: Settings) -> Limits:
    limits = settings.limits
    return Limits(command=limits.git, push=limits.push, file=limits.file)


def logs_of(machine: Settings) -> Path:
    """Return the directory of all logs."""
    return machine.logs.directory or default_directory()


def open_launch(
    directory: Path,
    machine: Settings,
    interruption: Interruption,
    redact: Redactor,
    *,
    remedy: str,
    strays: Strays | None = None,
) -> Launch:
    """Open the clone at `directory`; raises PreflightError, with the `remedy` when there is none, or Interrupted."""
    try:
        opened = Launch.open(
            directory,
            interruption=interruption,
            redact=redact,
            limits=_git_limits(machine),
            sweep=(strays or Strays()).stop,
        )
    except Interrupted:
        raise
    except LaunchError as error:
        raise PreflightError(f"{error}; {remedy}") from error
    except GitError as error:
        raise PreflightError(str(error)) from error
    return replace(opened, worktrees=machine.worktrees.directory or opened.worktrees)


def launch_directory() -> Path:
    """Return where the command was typed; raises PreflightError."""
    try:
        return Path.cwd()
    except OSError as error:
        raise PreflightError("the current directory is gone; run this in a clone of the repository") from error


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
    token_file = None if options.token_file is None else os.path.normpath(directory / options.token_file)
    agent = None if options.agent is None else _from_anywhere(options.agent, directory)
    given = (("--agent", agent), ("--base", options.base), ("--token-file", token_file))
    typed = [word for name, value in given if value is not None for word in (name, value)]
    merge = {None: [], True: ["--merge"], False: ["--no-merge"]}[options.merge]
    return shlex.join(["nightkeep", "run", str(url), *typed, *merge])


def _from_anywhere(agent: str, directory: Path) -> str:
    program, *arguments = _split("agent", agent)
    return shlex.join([str(directory / program), *arguments]) if _is_relative_path(program) else agent


def find_token(
    machine: Settings,
    held: Mapping[str, str],
    host: str,
    *,
    learn: Callable[[str], None],
    report: Callable[[str], None],
) -> TokenSource:
    """Return where the token for `host` comes from, read once; raises PreflightError.

    `learn` is told of each token, `report` when it is the GitHub CLI's, and of trouble in reading it afresh.
    """
    place = _token_place(machine, held)
    if place is None:
        return _token_of_gh(host, learn=learn, report=report)
    try:
        return TokenSource(place, learn=learn, report=report)
    except TokenError as error:
        raise PreflightError(str(error)) from error


def _token_place(machine: Settings, held: Mapping[str, str]) -> TokenPlace | None:
    if machine.token_file is not None:
        return token_in_file(machine.token_file)
    if machine.token_command is not None:
        argv = _argv("token-command", machine.token_command, launch_directory())
        return token_by_command(argv, machine.limits.token_command)
    return token_in_environment(held)


def _token_of_gh(host: str, *, learn: Callable[[str], None], report: Callable[[str], None]) -> TokenSource:
    place = None if os.environ.get("GITHUB_ACTIONS") == "true" else token_of_gh(host)
    try:
        source = TokenSource(place, learn=learn, report=report) if place else None
    except TokenError:
        source = None
    if source is None:
        raise PreflightError(
            "there is no token; give one by --token-file FILE, NIGHTKEEP_TOKEN or GITHUB_TOKEN, by token-command in "
            f"your configuration, or log the GitHub CLI in (gh auth login --hostname {host})"
        )
    report(f"using the token that the GitHub CLI has for {host} (gh auth token)")
    return source
