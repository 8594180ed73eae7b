"""Whether a worktree may be moved aside, and taken apart there: decided as tables."""

from dataclasses import replace

import pytest

from worktree.cleanup import Ties, reason_to_leave, reason_to_retain
from worktree.state import Operation, State

OURS = Ties(locked_by="nightkeep run-1", links_back=True, mounts=(), linked=())
CLEAN = State(
    head="c" * 40,
    branch="issue-7",
    home="issue-7",
    operation=None,
    unmerged=(),
    staged=frozenset(),
    index_only=False,
    other_heads=(),
)
MERGING = replace(CLEAN, operation=Operation.MERGE)
ONLY_STAGED = replace(CLEAN, index_only=True)


@pytest.mark.parametrize(
    ("ties", "why"),
    [
        (OURS, None),
        (replace(OURS, links_back=False), "its .git was replaced or removed"),
        (replace(OURS, locked_by=None), "its lock was taken away"),
        (replace(OURS, locked_by="nightkeep run-10"), "its lock is not ours: nightkeep run-10"),
        (replace(OURS, mounts=("/w/m",)), "something is mounted in it: /w/m"),
        (replace(OURS, linked=("/w/l",)), "another worktree is in it: /w/l"),
    ],
)
def test_what_keeps_a_worktree_in_its_place(ties: Ties, why: str | None) -> None:
    assert reason_to_leave(ties, "run-1") == why


@pytest.mark.parametrize(
    ("state", "index_kept", "all_kept", "why"),
    [
        (CLEAN, False, False, None),
        (MERGING, False, False, "a merge is unfinished in it"),
        (MERGING, True, False, "a merge is unfinished in it"),
        (MERGING, False, True, None),
        (replace(CLEAN, unmerged=("a.txt",)), True, False, "it has unresolved conflicts: a.txt"),
        (ONLY_STAGED, False, False, "its index holds what no commit on origin has"),
        (ONLY_STAGED, True, False, None),
        (ONLY_STAGED, False, True, None),
    ],
)
def test_what_takes_one_back_to_its_place(state: State, why: str | None, *, index_kept: bool, all_kept: bool) -> None:
    assert reason_to_retain(state, (), index_kept=index_kept, all_kept=all_kept) == why


@pytest.mark.parametrize("all_kept", [False, True])
def test_whoever_is_at_work_in_one_keeps_it_there_whatever_was_kept_of_it(*, all_kept: bool) -> None:
    why = reason_to_retain(CLEAN, ("process 5 (vi)",), index_kept=True, all_kept=all_kept)
    assert why == "somebody is at work in it: process 5 (vi)"
