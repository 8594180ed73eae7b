"""An operation that an agent left unfinished costs nobody a byte."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.worktree.runs import create, gone, kept, kept_locally, origin_has, rescue_ref, stored
from tests.world import World, commit, git
from worktree import Limits, PreservationError, Preserved, UnsettledError, Worktree

OPERATIONS = ["merge", "rebase", "cherry-pick", "revert", "am"]


def stop_half_way(wt: Worktree, operation: str) -> None:
    """Let a git operation of that name stop at a conflict in a.txt."""
    git(wt.path, "checkout", "-q", "-b", "side")
    (wt.path / "a.txt").write_text("theirs\n")
    theirs = commit(wt.path, "theirs")
    patch = wt.path.with_name("theirs.patch")
    patch.write_text(git(wt.path, "format-patch", "-1", "--stdout") + "\n")
    git(wt.path, "checkout", "-q", "issue-7")
    (wt.path / "a.txt").write_text("first\n")
    first = commit(wt.path, "first")
    (wt.path / "a.txt").write_text("ours\n")
    commit(wt.path, "ours")
    argument = {"cherry-pick": theirs, "revert": first, "am": f"-3 {patch}"}.get(operation, "side")
    git(wt.path, operation, *argument.split(), check=False)
    assert "UU a.txt" in git(wt.path, "status", "--porcelain")


def dirty(wt: Worktree, *, resolved: bool, edited_again: bool) -> list[str]:
    """Add to the unfinished operation; return what every file holds and held."""
    if resolved:
        (wt.path / "a.txt").write_text("resolved\n")
        git(wt.path, "add", "a.txt")
    (wt.path / "new_staged.txt").write_text("s\n")
    git(wt.path, "add", "new_staged.txt")
    (wt.path / "new_unstaged.txt").write_text("u\n")
    contents = [(wt.path / "a.txt").read_text(), "s\n", "u\n"]
    if edited_again:
        (wt.path / "b.txt").write_text("staged b\n")
        git(wt.path, "add", "b.txt")
        contents.append("staged b\n")
    (wt.path / "b.txt").write_text("edited b\n")
    return [*contents, "edited b\n"]


@pytest.mark.parametrize("edited_again", [False, True], ids=["edited", "staged-then-edited"])
@pytest.mark.parametrize("resolved", [False, True], ids=["conflict", "resolved"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_byte_of_an_unfinished_operation_can_be_read_from_origin(
    world: World, operation: str, *, resolved: bool, edited_again: bool
) -> None:
    with create(world) as wt:
        stop_half_way(wt, operation)
        contents = dirty(wt, resolved=resolved, edited_again=edited_again)
        try:
            wt.preserve_failed_run("main", "x")
        except PreservationError as error:
            assert f"git {operation} --abort" in str(error)  # noqa: PT017 - both endings are right
    assert [content for content in contents if not origin_has(world, content)] == []
    assert origin_has(world, "ours\n")
    snapshot = git(world.origin, "log", "-1", "--format=%B", rescue_ref(wt, "snapshot"))
    assert f"Unfinished operation: {operation}." in snapshot
    assert resolved or re.search(r"Unresolved conflicts in:\n  a\.txt", snapshot)


@pytest.mark.parametrize("why", ["secret", "large"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_may_not_be_published_of_an_unfinished_operation_is_kept_here(
    world: World, operation: str, why: str
) -> None:
    held_back = "x" * 2000 if why == "large" else f"token = ghp_{'aB3dE6gH9jK2' * 3}"
    with create(world, limits=Limits(lock=0.3, file=1000 if why == "large" else 10**6)) as wt:
        stop_half_way(wt, operation)
        contents = {name: f"{name} {held_back}\n" for name in ("a.txt", "b.txt")}
        for name, content in contents.items():
            (wt.path / name).write_text(content)
        (wt.path / "n.txt").write_text("new\n")
        with suppress(PreservationError):  # git refuses some of these aborts
            wt.preserve_failed_run("main", "x")
    kept_there = {path.read_text() for path in wt.path.glob("*.txt")}
    assert all(content in kept_there or kept_locally(world, content) for content in contents.values())
    assert not any(origin_has(world, content) for content in contents.values())
    assert origin_has(world, "new\n")
    assert ("left out of the commit", "b.txt") in {(what, where[:5]) for what, where in wt.ending.places}


@pytest.mark.parametrize("ignored", ["secret.env", "scratch/deep/notes.txt"])
def test_an_abort_overwrites_nothing_that_git_ignores(world: World, ignored: str) -> None:
    with create(world) as wt:
        stop_half_way(wt, "rebase")
        git(wt.path, "rebase", "--abort")
        top = ignored.partition("/")[0]
        (wt.path / top).write_text("tracked\n")
        git(wt.path, "add", "--force", top)
        git(wt.path, "commit", "-q", "-m", "track what is ignored")
        git(wt.path, "rebase", "side", check=False)
        (wt.path / ignored).parent.mkdir(parents=True, exist_ok=True)
        (wt.path / ignored).write_text("precious\n")
        with pytest.raises(PreservationError, match=f"would overwrite what no snapshot has: {top}"):
            wt.preserve_failed_run("main", "x")
    assert kept(wt, world)
    assert (wt.path / ignored).read_text() == "precious\n"


def test_an_unfinished_merge_is_aborted_on_the_branch(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "-b", "side")
        (wt.path / "a.txt").write_text("theirs\n")
        (wt.path / "b.txt").write_text("merged automatically\n")
        commit(wt.path, "theirs")
        git(wt.path, "checkout", "-q", "issue-7")
        (wt.path / "a.txt").write_text("ours\n")
        commit(wt.path, "ours")
        git(wt.path, "merge", "side", check=False)
        (wt.path / "wip.txt").write_text("wip\n")
        wt.preserve_failed_run("main", "x")
    assert [world.origin_file("issue-7", name) for name in ("a.txt", "b.txt", "wip.txt")] == ["ours", "b", "wip"]
    assert git(world.origin, "rev-list", "--count", "--merges", "issue-7") == "0"


def test_a_failing_merge_abort_retains_conflict_and_edits(world: World) -> None:
    with create(world) as wt:
        stop_half_way(wt, "merge")
        dirty(wt, resolved=False, edited_again=True)
        with pytest.raises(PreservationError, match="git merge --abort failed"):
            wt.preserve_failed_run("main", "x")
    assert kept(wt, world)
    assert git(wt.path, "rev-parse", "MERGE_HEAD") == git(world.launch, "rev-parse", "side")
    assert "<<<<<<<" in (wt.path / "a.txt").read_text()
    assert (wt.path / "b.txt").read_text() == "edited b\n"
    assert git(wt.path, "show", ":b.txt") == "staged b"


def test_a_failing_abort_with_origin_away_names_the_local_snapshot(world: World) -> None:
    with create(world) as wt:
        stop_half_way(wt, "merge")
        dirty(wt, resolved=True, edited_again=True)
        world.take_origin_away()
        with pytest.raises(PreservationError, match="git merge --abort failed"):
            wt.preserve_failed_run("main", "x")
    refs = git(world.launch, "for-each-ref", "--format=%(refname)", "refs/nightkeep/rescue").split()
    (snapshot,) = (ref for ref in refs if ref.endswith("/snapshot"))
    assert any(snapshot in where for what, where in wt.ending.places if what == "snapshot")
    assert git(world.launch, "show", f"{snapshot}:a.txt") == "resolved"


def test_a_rebase_with_autostash_keeps_the_stashed_edits(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "-b", "side")
        (wt.path / "a.txt").write_text("theirs\n")
        commit(wt.path, "theirs")
        git(wt.path, "checkout", "-q", "issue-7")
        (wt.path / "a.txt").write_text("ours\n")
        commit(wt.path, "ours")
        (wt.path / "b.txt").write_text("stashed by rebase\n")
        git(wt.path, "rebase", "--autostash", "side", check=False)
        (wt.path / "b.txt").write_text("edited on top\n")
        wt.preserve_failed_run("main", "x")
    for content in ("stashed by rebase\n", "edited on top\n", "ours\n"):
        assert origin_has(world, content)


def _pick_many(wt: Worktree) -> str:
    git(wt.path, "checkout", "-q", "-b", "side")
    (wt.path / "picked.txt").write_text("picked\n")
    first = commit(wt.path, "one")
    (wt.path / "a.txt").write_text("theirs\n")
    second = commit(wt.path, "two")
    git(wt.path, "checkout", "-q", "issue-7")
    (wt.path / "a.txt").write_text("ours\n")
    commit(wt.path, "ours")
    git(wt.path, "cherry-pick", first, second, check=False)
    return git(wt.path, "rev-parse", "HEAD")


def test_commits_that_an_abort_takes_off_the_branch_are_in_the_snapshot(world: World) -> None:
    with create(world) as wt:
        picked = _pick_many(wt)
        wt.preserve_failed_run("main", "x")
    assert git(world.origin, "merge-base", "--is-ancestor", picked, world.snapshot_refs()[0]) == ""
    assert world.origin_file("issue-7", "a.txt") == "ours"


def _conflicting_stash_pop(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("stashed\n")
    git(wt.path, "stash")
    (wt.path / "a.txt").write_text("ours\n")
    commit(wt.path, "ours")
    git(wt.path, "stash", "pop", check=False)


def _squash(wt: Worktree) -> None:
    git(wt.path, "checkout", "-q", "-b", "side")
    (wt.path / "a.txt").write_text("theirs\n")
    commit(wt.path, "theirs")
    git(wt.path, "checkout", "-q", "issue-7")
    (wt.path / "a.txt").write_text("ours\n")
    commit(wt.path, "ours")
    git(wt.path, "merge", "--squash", "side", check=False)


@pytest.mark.parametrize("conflict", [_conflicting_stash_pop, _squash])
def test_a_conflict_without_an_operation_is_committed_as_it_stands(
    world: World, conflict: Callable[[Worktree], None]
) -> None:
    with create(world) as wt:
        conflict(wt)
        text = (wt.path / "a.txt").read_text()
        with pytest.raises(UnsettledError, match=r"conflicts unresolved in a\.txt"):
            wt.settle("x")
        wt.preserve_failed_run("main", "x")
    assert "<<<<<<<" in text
    assert origin_has(world, text)
    assert world.origin_file("issue-7", "a.txt") + "\n" == text


def test_what_was_staged_and_then_edited_is_in_a_snapshot(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "a.txt") == "edited"
    (ref,) = world.snapshot_refs()
    assert ref == f"refs/nightkeep/rescue/{wt.run_id}/snapshot"
    assert world.origin_file(f"{ref}^2", "a.txt") == "staged"
    assert gone(wt, world)
    assert not git(world.launch, "for-each-ref", "refs/nightkeep")


@pytest.mark.parametrize("staged", ["new", "deleted", "reverted"])
def test_index_only_content_in_other_shapes_is_kept_too(world: World, staged: str) -> None:
    with create(world) as wt:
        name = "new.txt" if staged == "new" else "a.txt"
        (wt.path / name).write_text("only in the index\n")
        git(wt.path, "add", name)
        if staged == "reverted":
            (wt.path / name).write_text("a\n")
        else:
            (wt.path / name).unlink()
        wt.preserve_failed_run("main", "x")
    assert origin_has(world, "only in the index\n")


@pytest.mark.parametrize("how", ["branch", "detached", "main", "orphan"])
def test_work_on_another_head_is_pushed_and_nobodys_branch_moves(world: World, how: str) -> None:
    arguments = {
        "branch": ("-b", "other"),
        "detached": ("--detach",),
        "main": ("--ignore-other-worktrees", "main"),
        "orphan": ("--orphan", "other"),
    }
    with create(world) as wt:
        git(wt.path, "checkout", "-q", *arguments[how])
        (wt.path / "n.txt").write_text("committed elsewhere\n")
        commit(wt.path, "elsewhere")
        (wt.path / "a.txt").write_text("uncommitted elsewhere\n")
        head = wt.head()
        refs = git(world.launch, "for-each-ref", "refs/heads", "refs/remotes")
        wt.preserve_failed_run("main", "x")
        assert git(world.launch, "for-each-ref", "refs/heads", "refs/remotes") == refs
    marker = world.on_origin(rescue_ref(wt, "head"))
    assert git(world.origin, "log", "-1", "--format=%P %s", marker) == f"{head} nightkeep: failed run (x)"
    assert world.origin_file(marker, "a.txt") == "uncommitted elsewhere"
    assert world.origin_file(marker, "n.txt") == "committed elsewhere"
    assert world.on_origin("issue-7") == ("" if how == "orphan" else marker)
    assert ("head", f"{rescue_ref(wt, 'head')} at {marker} on origin") in wt.ending.places
    assert gone(wt, world)


def test_work_on_another_head_never_takes_commits_off_the_issue_branch(world: World) -> None:
    with create(world) as wt:
        (wt.path / "b.txt").write_text("on the branch\n")
        mine = commit(wt.path, "mine")
        git(wt.path, "checkout", "-q", "--detach", "HEAD^")
        (wt.path / "a.txt").write_text("elsewhere\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert world.on_origin("issue-7") == mine
    assert world.origin_file(rescue_ref(wt, "head"), "a.txt") == "elsewhere"
    assert git(world.origin, "rev-parse", f"{rescue_ref(wt, 'head')}^") == world.on_origin("main")


def test_work_on_another_head_goes_no_step_back_on_origin(world: World) -> None:
    with create(world) as wt:
        (wt.path / "b.txt").write_text("pushed\n")
        commit(wt.path, "pushed")
        pushed = wt.push()
        git(wt.path, "branch", "-q", "-f", "other", "HEAD^")
        git(wt.path, "checkout", "-q", "other")
        (wt.path / "a.txt").write_text("elsewhere\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert world.on_origin("issue-7") == pushed
    assert world.origin_file(rescue_ref(wt, "head"), "a.txt") == "elsewhere"


def test_a_branch_whose_commits_origin_has_does_not_count(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "-b", "other")
        (wt.path / "n.txt").write_text("committed elsewhere\n")
        commit(wt.path, "elsewhere")
        (wt.path / "a.txt").write_text("uncommitted elsewhere\n")
        wt.preserve_failed_run("main", "x")
    assert origin_has(world, "committed elsewhere\n")
    assert wt.ending.preserved is Preserved.ORIGIN


@pytest.mark.parametrize("operation", ["rebase", "cherry-pick"])
def test_no_abort_moves_a_branch_that_is_not_ours(world: World, operation: str) -> None:
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "-b", "side")
        (wt.path / "n.txt").write_text("n\n")
        one = commit(wt.path, "one")
        (wt.path / "a.txt").write_text("theirs\n")
        two = commit(wt.path, "two")
        git(wt.path, "checkout", "-q", "--ignore-other-worktrees", "main")
        (wt.path / "a.txt").write_text("ours\n")
        commit(wt.path, "ours")
        git(wt.path, operation, *(["side"] if operation == "rebase" else [one, two]), check=False)
        moved = git(world.launch, "commit-tree", "main^{tree}", "-p", "main", "-m", "a person's own")
        if operation == "rebase":
            git(world.launch, "update-ref", "refs/heads/main", moved)
        before = git(world.launch, "rev-parse", "main")
        wt.preserve_failed_run("main", "x")
    assert git(world.launch, "rev-parse", "main") == before
    assert kept(wt, world)


def test_what_was_staged_before_the_first_commit_of_a_branch_is_kept(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "--orphan", "other")
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert origin_has(world, "staged\n")
    assert world.origin_file(rescue_ref(wt, "head"), "a.txt") == "edited"
    assert not world.on_origin("issue-7")
    assert gone(wt, world)


def test_a_snapshot_never_publishes_a_persons_own_commits(world: World, tmp_path: Path) -> None:
    private = git(world.launch, "commit-tree", "main^{tree}", "-p", "main", "-m", "not for others")
    git(world.launch, "branch", "draft", private)
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "draft")
        (wt.path / "n.txt").write_text("work\n")
        wt.preserve_failed_run("main", "x")
    assert private not in git(world.origin, "rev-list", "--all")
    for name in ("snapshot", "head"):
        ((_, where),) = [place for place in wt.ending.places if place[0] == name]
        assert git(world.launch, "show", f"{where.split()[0]}:n.txt") == "work"
    assert kept_locally(world, "work\n")
    assert (stored(world, wt) / "n.txt").read_text() == "work\n"
    assert gone(wt, world)
    assert git(world.launch, "rev-parse", "draft") == private


@pytest.mark.parametrize("operation", OPERATIONS)
def test_settling_guesses_nothing_while_an_operation_is_open(world: World, operation: str) -> None:
    with create(world) as wt:
        stop_half_way(wt, operation)
        with pytest.raises(UnsettledError, match=f"a {operation} unfinished"):
            wt.settle("done")
        assert "UU a.txt" in git(wt.path, "status", "--porcelain")
    assert kept(wt, world)
