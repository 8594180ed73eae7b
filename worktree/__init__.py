"""Git and the disk: worktrees that lose nothing."""

from worktree.checkpoint import CheckpointRule, Watch
from worktree.configuration import git_environment
from worktree.ending import Ending, Preserved
from worktree.errors import (
    AcquisitionError,
    BranchRewrittenError,
    BranchTakenError,
    DeferredError,
    FenceLostError,
    GitError,
    Interrupted,
    LaunchError,
    PreservationError,
    PushRefused,
    TransferError,
    UnsettledError,
    WorktreeError,
)
from worktree.fence import Fence, Pace
from worktree.git import Limits
from worktree.interruption import Interruption
from worktree.journal import Journal, read_journal
from worktree.launch import Launch, name_in_the_way
from worktree.machine import host_name
from worktree.merging import Upstream
from worktree.messages import read_messages
from worktree.origin import Origin
from worktree.reclaim import Orphan, orphans, read_held
from worktree.record import Owner, Retained, alone, has_record, new_run_id, retained_by, runs_at_work, sweep_records
from worktree.redaction import Redactor, secrets_in
from worktree.remote import ABSENT, RefUpdate
from worktree.run_refs import CHECKPOINTS, rescue_ref
from worktree.server_time import ServerTime
from worktree.store import rescued_by
from worktree.survey import Survey
from worktree.takeover import WENT_ON_FROM, Checkpoint, Takeover, prepare, read_checkpoints
from worktree.temporary import sweep_temporary, temporary_directory
from worktree.worktree import CommitRule, Worktree

__all__ = [
    "ABSENT",
    "CHECKPOINTS",
    "WENT_ON_FROM",
    "AcquisitionError",
    "BranchRewrittenError",
    "BranchTakenError",
    "Checkpoint",
    "CheckpointRule",
    "CommitRule",
    "DeferredError",
    "Ending",
    "Fence",
    "FenceLostError",
    "GitError",
    "Interrupted",
    "Interruption",
    "Journal",
    "Launch",
    "LaunchError",
    "Limits",
    "Origin",
    "Orphan",
    "Owner",
    "Pace",
    "PreservationError",
    "Preserved",
    "PushRefused",
    "Redactor",
    "RefUpdate",
    "Retained",
    "ServerTime",
    "Survey",
    "Takeover",
    "TransferError",
    "UnsettledError",
    "Upstream",
    "Watch",
    "Worktree",
    "WorktreeError",
    "alone",
    "git_environment",
    "has_record",
    "host_name",
    "name_in_the_way",
    "new_run_id",
    "orphans",
    "prepare",
    "read_checkpoints",
    "read_held",
    "read_journal",
    "read_messages",
    "rescue_ref",
    "rescued_by",
    "retained_by",
    "runs_at_work",
    "secrets_in",
    "sweep_records",
    "sweep_temporary",
    "temporary_directory",
]
