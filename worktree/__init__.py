"""Git and the disk: worktrees that lose nothing."""

from worktree.ending import Ending, Preserved
from worktree.errors import (
    AcquisitionError,
    BranchTakenError,
    DeferredError,
    GitError,
    Interrupted,
    LaunchError,
    PreservationError,
    PushRefused,
    UnsettledError,
    WorktreeError,
)
from worktree.git import Limits
from worktree.interruption import Interruption
from worktree.journal import Journal, read_journal
from worktree.launch import Launch
from worktree.reclaim import Orphan, orphans
from worktree.record import sweep_unmade
from worktree.redaction import Redactor, secrets_in
from worktree.remote import Fence, Origin, RefUpdate
from worktree.store import rescued_by
from worktree.survey import Survey
from worktree.temporary import sweep_temporary, temporary_directory
from worktree.worktree import CommitRule, Worktree

__all__ = [
    "AcquisitionError",
    "BranchTakenError",
    "CommitRule",
    "DeferredError",
    "Ending",
    "Fence",
    "GitError",
    "Interrupted",
    "Interruption",
    "Journal",
    "Launch",
    "LaunchError",
    "Limits",
    "Origin",
    "Orphan",
    "PreservationError",
    "Preserved",
    "PushRefused",
    "Redactor",
    "RefUpdate",
    "Survey",
    "UnsettledError",
    "Worktree",
    "WorktreeError",
    "orphans",
    "read_journal",
    "rescued_by",
    "secrets_in",
    "sweep_temporary",
    "sweep_unmade",
    "temporary_directory",
]
