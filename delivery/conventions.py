"""How Runs are done in a repository: what its configuration says about them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from delivery.checks import Patience, Required
from delivery.prompt import Instructions
from delivery.ready_facts import UNREADY
from worktree import CommitRule, Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """`setup` and `verify` are argument lists, run before and after the agent, None for none of them.

    `opens_draft` says whether a Failed run with work on origin and no pull request opens one. `merges` makes Runs Merge
    runs, which merge by `merge_method`. `repairs` and `moves` are the budgets of the Repair loop. `fixes_base` says
    whether a Run has the Base branch mended, which may take `base_fix_limit` seconds. `parallel` Tickets of a Spec are
    worked on at once, each for `ticket_limit` seconds at most. `checkpoint_every` is in seconds;
    `publishes_checkpoints` says whether they go to origin, None for where the repository is private. Issues with one of
    the `unready_labels` are for people. The word of `bots` counts like that of people who may write. `pace` is that of
    the claim, and of a Base fix.
    """

    instructions: Instructions = field(default_factory=Instructions)
    setup: Sequence[str] | None = None
    verify: Sequence[str] | None = None
    commit: CommitRule = CommitRule.AUTO
    opens_draft: bool = True
    merges: bool = False
    merge_method: str = "merge"
    repairs: int = 5
    moves: int = 5
    checks_required: Required = Required.AUTO
    patience: Patience = field(default_factory=Patience)
    fixes_base: bool = False
    base_fix_limit: float = 3 * 3600
    parallel: int = 3
    ticket_limit: float = 24 * 3600
    checkpoint_every: float = 300
    publishes_checkpoints: bool | None = None
    pace: Pace = field(default_factory=Pace)
    ready_label: str = "ready-for-agent"
    in_progress_label: str = "in-progress"
    unready_labels: Sequence[str] = UNREADY
    bots: Sequence[str] = ()
