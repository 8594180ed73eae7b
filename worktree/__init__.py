"""Git and the disk: worktrees that lose nothing."""

from worktree.ending import Ending, Preserved
from worktree.errors import (
    AcquisitionError,
    BranchTakenError,
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
from worktree.redaction import Redactor, secrets_in
from worktree.remote import Fence, Origin, RefUpdate
from worktree.survey import Survey
from worktree.worktree import CommitRule, Worktree

__all__ = [
    "AcquisitionError",
    "BranchTakenError",
    "CommitRule",
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
    "PreservationError",
    "Preserved",
    "PushRefused",
    "Redactor",
    "RefUpdate",
    "Survey",
    "UnsettledError",
    "Worktree",
    "WorktreeError",
    "read_journal",
    "secrets_in",
]
