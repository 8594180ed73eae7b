"""Every setting there is: name, kind, default, meaning, and in which file it may stand."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from runner.settings.values import (
    AbsolutePath,
    Command,
    Count,
    Days,
    Duration,
    Label,
    Login,
    Repository,
    Several,
    Size,
    Switch,
    Text,
)

SCOPE = "x-nightkeep-scope"


class Scope(StrEnum):
    """Whose a key is: the repository's may stand in both files, the machine's never in the repository's."""

    REPOSITORY = "repository"
    MACHINE = "machine"


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _key(default: object, description: str, scope: Scope = Scope.REPOSITORY) -> Any:
    return Field(default, description=description, json_schema_extra={SCOPE: scope.value})


class Section(BaseModel):
    """Keys under one name. A name with nothing under it is the same as no name."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=_kebab,
        field_title_generator=lambda name, _: _kebab(name),
        validate_default=True,  # defaults are written as users write them
    )

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        return {} if value is None else value


class PromptReplacement(BaseModel):
    """A prompt in place of the built-in one."""

    model_config = ConfigDict(frozen=True, extra="forbid", field_title_generator=lambda name, _: name)

    replace: Text = _key(..., "The whole prompt; the issue follows it as data.")


def _prompt_kind(value: object) -> str:
    return "replacement" if isinstance(value, dict | PromptReplacement) else "text"


Prompt = Annotated[
    Annotated[Text, Tag("text")] | Annotated[PromptReplacement, Tag("replacement")], Discriminator(_prompt_kind)
]


class SpecSettings(Section):
    """How an issue with sub-issues is worked on."""

    parallel: Several = _key(3, "How many sub-issues of an issue are worked on at once.")


class SessionSettings(Section):
    """How an agent session is treated."""

    commit: Literal["auto", "all", "never"] = _key(
        "auto",
        "What becomes of uncommitted work of a session that ended well. auto: it is committed when the session made no "
        "commit, else kept beside the pull request; all: it is committed; never: it is kept beside the pull request.",
    )


class CheckpointSettings(Section):
    """How the work of a session that still runs is kept."""

    every: Duration = _key("5m", "How long a session works between two checkpoints of what it has made.")
    push: Literal["auto", "always", "never"] = _key(
        "auto",
        "Whether checkpoints go to origin, where they outlive this machine. auto: when the repository is private; "
        "always; never: they stay on this machine.",
    )


class FailedRunSettings(Section):
    """What a Failed run leaves on GitHub."""

    pull_request: Literal["draft", "none"] = _key(
        "draft", "Whether a Failed run that has work on origin and no pull request opens one, as a draft."
    )


class CheckSettings(Section):
    """How the checks of a pull request count."""

    required: Literal["auto", "always", "never"] = _key(
        "auto",
        "Whether a pull request that nothing checks is green. auto: yes, but a Merge run does not merge it when a "
        "workflow, or a rule of the Base branch, lets a check be expected; always: no; never: yes.",
    )
    grace: Duration = _key("60s", "How long a check may take to appear, where one is to be expected.")
    poll: Duration = _key("10s", "How often checks are looked at, at first; less and less often the longer they take.")


class RepairSettings(Section):
    """How much is done to make a pull request mergeable and green."""

    limit: Count = _key(5, "How many Repairs a Run may start: sessions that mend conflicts, checks or verify.")
    moves: Count = _key(
        5, "How many times a Run takes in what others pushed after its checks were watched, before it gives up."
    )


class LimitSettings(Section):
    """How long things may take, and how large they may become."""

    session: Duration = _key("2h", "How long an agent session may take.")
    idle: Duration = _key("15m", "How long an agent session may be without output.")
    step: Duration = _key("10m", "How long setup, and verify, may take.")
    output: Size = _key("200MB", "How much an agent session may write to its output.")
    file: Size = _key("50MB", "The size from which a file is kept out of pushes.")
    git: Duration = _key("2m", "How long a git command may take.")
    push: Duration = _key("5m", "How long a push may take.")
    checks: Duration = _key("1h", "How long the checks of a commit, or a merge queue, may take.")
    lease: Duration = _key(
        "15m", "How long after its last sign of life a Run is taken for dead, so that another may take its issue over."
    )
    heartbeat: Duration = _key("5m", "How often a Run gives a sign of life, on origin; at most half of lease.")
    base_fix: Duration = _key("3h", "How long a Base fix may take, or is waited for when another run makes it.")
    stop_grace: Duration = _key("10s", "How long each signal of the stop sequence has before the next one is sent.")
    ticket: Duration = _key("24h", "How long the Run of a sub-issue may take, in the run of the whole.")
    token_command: Duration = _key("30s", "How long token-command may take.", Scope.MACHINE)


class LabelSettings(Section):
    """The labels of issues, for people to see."""

    ready: Label = _key("ready-for-agent", "The label of an issue that an agent may take.")
    in_progress: Label = _key("in-progress", "The label of an issue that a Run works on.")
    unready: tuple[Label, ...] = _key(
        ("ready-for-human", "needs-info", "needs-triage", "wontfix"),
        "The labels of issues that are for people, whatever other label they have: pickup takes none of them, and no "
        "run of a whole takes one among its sub-issues.",
    )


class PickupSettings(Section):
    """Which issues nightkeep pickup takes."""

    limit: Count = _key(3, "How many open issues may be labelled as being worked on before no more is taken.")
    settle: Duration = _key(
        "10m", "How long an issue must have been left alone: since it was labelled, and its links were changed."
    )
    bots: tuple[Login, ...] = _key(
        (), "The bots whose label lets an issue be taken, such as renovate[bot]; people need write access instead."
    )


class LogSettings(Section):
    """Where logs are."""

    directory: AbsolutePath | None = _key(
        None, "The directory of the Session logs. Default: logs in the user's state directory.", Scope.MACHINE
    )


class WorktreeSettings(Section):
    """Where worktrees are."""

    directory: AbsolutePath | None = _key(
        None, "The directory of the worktrees. Default: the one that the clone is in.", Scope.MACHINE
    )


class RescueSettings(Section):
    """How long, and how much, is kept of what runs left behind; nightkeep gc deletes what is beyond that."""

    keep_days: Days = _key(
        30, "How many days what a run left in the rescue store, or in rescue refs, is kept.", Scope.MACHINE
    )
    max_size: Size = _key("10GB", "How large the rescue store of a clone may become.", Scope.MACHINE)


class Settings(Section):
    """Nightkeep's configuration: .github/nightkeep.yml on the Base branch, and the user's config.yml."""

    agent: Command | None = _key(
        None,
        "The agent's command: split as a shell would, run without one; the prompt comes on standard input. claude -p "
        "and codex exec are asked for a stream of events, which Nightkeep reads. A relative path of its program is one "
        "in the repository when it stands in the repository's file; elsewhere it is looked up from where the command "
        "was typed.",
    )
    prompt: Prompt | None = _key(None, "Text that is added to the built-in prompt, or {replace: text} in its place.")
    setup: Command | None = _key(None, "A command that is run in the worktree before the agent, without a shell.")
    verify: Command | None = _key(None, "A command that is run in the worktree after the agent, without a shell.")
    merge: Switch = _key("false", "Whether Runs merge their pull request once it is green.")
    merge_method: Literal["merge", "squash", "rebase"] = _key("merge", "How such a Run merges.")
    base_fix: Switch = _key(
        "false",
        "Whether a Run, when only checks fail that fail on the Base branch, too, has them mended there, by a Merge run "
        "on an issue of their own.",
    )
    checks: CheckSettings = Field(default_factory=CheckSettings)
    repair: RepairSettings = Field(default_factory=RepairSettings)
    spec: SpecSettings = Field(default_factory=SpecSettings)
    session: SessionSettings = Field(default_factory=SessionSettings)
    checkpoints: CheckpointSettings = Field(default_factory=CheckpointSettings)
    failed_run: FailedRunSettings = Field(default_factory=FailedRunSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    labels: LabelSettings = Field(default_factory=LabelSettings)
    pickup: PickupSettings = Field(default_factory=PickupSettings)
    trusted_repositories: tuple[Repository, ...] = _key(
        (),
        "The repositories whose configuration is used, as OWNER/NAME on github.com or HOST/OWNER/NAME.",
        Scope.MACHINE,
    )
    logs: LogSettings = Field(default_factory=LogSettings)
    worktrees: WorktreeSettings = Field(default_factory=WorktreeSettings)
    rescue: RescueSettings = Field(default_factory=RescueSettings)
    token_file: AbsolutePath | None = _key(
        None,
        "A file that holds the token for GitHub. It is read anew before a push and when GitHub refuses the token.",
        Scope.MACHINE,
    )
    token_command: Command | None = _key(
        None,
        "A command that prints the token for GitHub, run without a shell where there is no token-file; it is run again "
        "before a push and when GitHub refuses the token.",
        Scope.MACHINE,
    )
