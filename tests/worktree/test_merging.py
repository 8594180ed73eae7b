"""Merging what origin has got into the Issue branch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worktree.runs import rescue_ref
from tests.world import World, commit, git
from worktree import BranchRewrittenError, GitError, Interruption, PushRefused, Worktree

THEIRS, OURS = "theirs\n", "ours\n"


def elsewhere(world: World, branch: str, file: str, text: str) -> str:
    """Push a commit to a branch of origin, as another person would; return it."""
    other = world.origin.parent / "other"
    if not other.exists():
        git(other.parent, "clone", "-q", str(world.origin), str(other))
    git(other, "fetch", "-q", "origin")
    git(other, "checkout", "-q", "-B", branch, f"origin/{branch}")
    (other / file).write_text(text)
    made = commit(other, f"write {file}")
    git(other, "push", "-q", "origin", branch)
    return made


@pytest.fixture
def wt(world: World) -> Iterator[Worktree]:
    """A worktree with one commit on its branch, which origin has."""
    with Worktree.create(world.launch, branch="issue-7", base="main", interruption=Interruption()) as made:
        (made.path / "a.txt").write_text(OURS)
        made.settle("Change a")
        made.push()
        yield made


def conflict(world: World, wt: Worktree) -> str:
    theirs = elsewhere(world, "main", "a.txt", THEIRS)
    assert wt.look_upstream(wt.head(), "main", foreign=False).base == theirs
    assert wt.merge(theirs, "origin/main") == ("a.txt",)
    return theirs


def test_nothing_new_is_nothing_to_merge(wt: Worktree) -> None:
    seen = wt.look_upstream(wt.head(), "main", foreign=True)
    assert (seen.base, seen.foreign) == (None, None)


def test_the_base_branch_is_merged_by_a_merge_commit_of_ours(world: World, wt: Worktree) -> None:
    before, theirs = wt.head(), elsewhere(world, "main", "new.txt", THEIRS)
    assert wt.look_upstream(wt.head(), "main", foreign=False).base == theirs
    assert wt.merge(theirs, "origin/main") == ()
    assert git(wt.path, "rev-parse", "HEAD^1", "HEAD^2").split() == [before, theirs]
    assert git(wt.path, "log", "-1", "--format=%an: %s") == "Nightkeep: Merge origin/main into issue-7"
    assert wt.look_upstream(wt.head(), "main", foreign=False).base is None
    assert git(world.launch, "rev-parse", "origin/main") == theirs


def test_others_commits_on_the_branch_are_taken_in(world: World, wt: Worktree) -> None:
    theirs = elsewhere(world, "issue-7", "new.txt", THEIRS)
    assert wt.look_upstream(wt.head(), "main", foreign=False).foreign is None
    assert wt.look_upstream(wt.head(), "main", foreign=True).foreign == theirs
    assert [line.split(" ", 1)[1] for line in wt.new_in(theirs)] == ["write new.txt"]
    assert wt.merge(theirs, "origin/issue-7") == ()
    assert wt.head() == theirs


def test_a_conflict_that_git_knows_a_resolution_of_is_still_one(world: World, wt: Worktree) -> None:
    git(world.launch, "config", "rerere.enabled", "true")
    git(world.launch, "config", "rerere.autoUpdate", "true")
    theirs = conflict(world, wt)
    git(wt.path, "merge", "--abort")
    git(wt.path, "merge", "-q", theirs, check=False)
    (wt.path / "a.txt").write_text("both\n")
    git(wt.path, "commit", "-q", "-a", "-m", "resolved")
    git(wt.path, "reset", "-q", "--hard", "HEAD~1")
    assert wt.merge(theirs, "origin/main") == ("a.txt",)
    assert "<<<<<<<" in (wt.path / "a.txt").read_text()


def test_a_resolved_merge_that_was_committed_is_well(world: World, wt: Worktree) -> None:
    theirs = conflict(world, wt)
    (wt.path / "a.txt").write_text("both\n")
    commit(wt.path, "resolve")
    assert wt.finish_merge(theirs) is None
    assert wt.settle("x") == ()


def test_one_that_was_only_staged_is_committed(world: World, wt: Worktree) -> None:
    theirs = conflict(world, wt)
    (wt.path / "a.txt").write_text("half\n")
    git(wt.path, "add", "a.txt")
    (wt.path / "a.txt").write_text("both\n")
    assert wt.finish_merge(theirs) is None
    assert git(wt.path, "show", "HEAD:a.txt") == "both"
    assert git(wt.path, "rev-parse", "HEAD^2") == theirs
    assert wt.settle("x") == ()


def abort(wt: Worktree) -> None:
    git(wt.path, "merge", "--abort")


def leave_markers(wt: Worktree) -> None:
    commit(wt.path, "resolve")


def leave_branch(wt: Worktree) -> None:
    (wt.path / "a.txt").write_text("both\n")
    commit(wt.path, "resolve")
    git(wt.path, "checkout", "-q", "--detach")


def resolve_another_way(wt: Worktree) -> None:
    abort(wt)
    git(wt.path, "cherry-pick", "origin/main", check=False)
    git(wt.path, "add", "a.txt")


@pytest.mark.parametrize(
    ("deed", "wrong"),
    [
        (lambda _: None, "the merge is still in progress, with conflicts in a.txt"),
        (abort, "the merge was given up"),
        (leave_markers, "conflict markers were left in a.txt"),
        (leave_branch, "HEAD was left on no branch, not on issue-7"),
        (resolve_another_way, "a cherry-pick was left unfinished"),
    ],
)
def test_what_was_left_undone_is_named(world: World, wt: Worktree, deed: "object", wrong: str) -> None:
    theirs = conflict(world, wt)
    assert callable(deed)
    deed(wt)
    assert wt.finish_merge(theirs) == wrong
    wt.preserve_failed_run("main", wrong)


def test_a_merge_in_progress_is_preserved_as_it_is(world: World, wt: Worktree) -> None:
    conflict(world, wt)
    (wt.path / "a.txt").write_text("half resolved\n")
    wt.preserve_failed_run("main", "the agent exited 3")
    (ref,) = world.snapshot_refs()
    assert world.origin_file(ref, "a.txt") == "half resolved"
    assert world.origin_file("issue-7", "a.txt") == OURS.strip()


def test_left_overs_in_tracked_files_are_put_into_a_snapshot_for_the_merge(world: World, wt: Worktree) -> None:
    theirs = elsewhere(world, "main", "b.txt", THEIRS)
    (wt.path / "b.txt").write_text("left over\n")
    (wt.path / "new.txt").write_text("staged\n")
    git(wt.path, "add", "new.txt")
    (wt.path / "c.txt").write_text("untracked\n")
    wt.look_upstream(wt.head(), "main", foreign=False)
    assert wt.merge(theirs, "origin/main") == ()
    (ref,) = world.snapshot_refs()
    assert (world.origin_file(ref, "b.txt"), world.origin_file(ref, "new.txt")) == ("left over", "staged")
    assert ((wt.path / "b.txt").read_text(), (wt.path / "c.txt").read_text()) == (THEIRS, "untracked\n")
    assert git(wt.path, "status", "--porcelain") == "?? c.txt"


def test_left_overs_that_may_not_be_published_are_not_touched(world: World, wt: Worktree) -> None:
    theirs = elsewhere(world, "main", "b.txt", THEIRS)
    secret = "token = ghp_0123456789abcdefghijABCDEFGHIJ012345\n"
    (wt.path / "b.txt").write_text(secret)
    wt.look_upstream(wt.head(), "main", foreign=False)
    with pytest.raises(GitError, match=r"b\.txt"):
        wt.merge(theirs, "origin/main")
    assert (wt.path / "b.txt").read_text() == secret
    wt.preserve_failed_run("main", "x")


def test_a_file_in_the_way_is_an_error_with_nothing_done(world: World, wt: Worktree) -> None:
    theirs, before = elsewhere(world, "main", "new.txt", THEIRS), wt.head()
    (wt.path / "new.txt").write_text(OURS)
    wt.look_upstream(wt.head(), "main", foreign=False)
    with pytest.raises(GitError, match=r"new\.txt"):
        wt.merge(theirs, "origin/main")
    assert (wt.head(), (wt.path / "new.txt").read_text()) == (before, OURS)
    wt.preserve_failed_run("main", "x")


def test_a_base_branch_that_is_gone_is_said(world: World, wt: Worktree) -> None:
    git(world.origin, "branch", "-m", "main", "trunk")
    with pytest.raises(BranchRewrittenError, match="somebody deleted the Base branch main on origin"):
        wt.look_upstream(wt.head(), "main", foreign=False)
    assert not wt.has_work_on_origin
    wt.preserve_failed_run("main", "x")


def _rewind(world: World, branch: str, to: str = "main") -> str:
    """Put a branch of origin elsewhere, as somebody who may force; return where it is then."""
    theirs = git(world.origin, "commit-tree", f"{to}^{{tree}}", "-p", to, "-m", "theirs")
    git(world.origin, "update-ref", f"refs/heads/{branch}", theirs)
    return theirs


@pytest.mark.parametrize("foreign", [False, True])
def test_what_somebody_took_off_the_branch_is_rescued_and_not_put_back(
    world: World, wt: Worktree, *, foreign: bool
) -> None:
    head, theirs = wt.head(), _rewind(world, "issue-7")
    with pytest.raises(BranchRewrittenError, match=f"it is at {theirs[:12]}, without {head[:12]}"):
        wt.look_upstream(head, "main", foreign=foreign)
    with pytest.raises(BranchRewrittenError):
        wt.push()
    wt.preserve_failed_run("main", "x")
    ref = rescue_ref(wt, "head")
    assert (world.on_origin("issue-7"), world.origin_file(ref, "a.txt")) == (theirs, OURS.strip())


@pytest.mark.parametrize("to", ["main", "issue-7~1", None])
def test_a_push_puts_nothing_back_either(world: World, wt: Worktree, to: str | None) -> None:
    if to:
        git(world.origin, "update-ref", "refs/heads/issue-7", git(world.origin, "rev-parse", to))
    else:
        git(world.origin, "update-ref", "-d", "refs/heads/issue-7")
    before = world.on_origin("issue-7")
    (wt.path / "a.txt").write_text("more\n")
    wt.settle("More")
    with pytest.raises(BranchRewrittenError, match="put back"):
        wt.push()
    wt.preserve_failed_run("main", "x")
    assert world.on_origin("issue-7") == before
    assert world.origin_file(rescue_ref(wt, "head"), "a.txt") == "more"


def test_others_commits_on_the_branch_are_no_rewriting(world: World, wt: Worktree) -> None:
    elsewhere(world, "issue-7", "new.txt", THEIRS)
    (wt.path / "a.txt").write_text("more\n")
    wt.settle("More")
    with pytest.raises(PushRefused, match="origin holds commits there that are not here") as refused:
        wt.push()
    assert refused.value.is_behind
    wt.look_upstream(wt.head(), "main", foreign=False)


def test_what_somebody_took_off_the_base_branch_is_not_taken_for_merged(world: World, wt: Worktree) -> None:
    leaked = elsewhere(world, "main", "leak.txt", THEIRS)
    assert wt.look_upstream(wt.head(), "main", foreign=False).base == leaked
    wt.merge(leaked, "origin/main")
    theirs = _rewind(world, "main", f"{leaked}~1")
    with pytest.raises(BranchRewrittenError, match=f"main on origin: it is at {theirs[:12]}, without {leaked[:12]}"):
        wt.look_upstream(wt.head(), "main", foreign=False)
    wt.preserve_failed_run("main", "x")


def test_workflows_and_changed_paths_are_those_of_the_branch(world: World, wt: Worktree) -> None:
    base = git(world.launch, "rev-parse", "origin/main")
    files = {"ci.yml": "on: push", "ci.yaml": "on: pull_request", "notes.md": "no", "deep/x.yml": "no"}
    for name, text in files.items():
        path = Path(wt.path, ".github", "workflows", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    commit(wt.path, "workflows")
    wt.push()
    assert sorted(wt.workflow_texts()) == ["on: pull_request", "on: push"]
    assert set(wt.changed_paths(base)) == {"a.txt", *(f".github/workflows/{name}" for name in files)}


def test_a_filter_that_a_session_set_up_is_not_run_for_us(world: World, wt: Worktree) -> None:
    theirs = conflict(world, wt)
    ran = world.launch.parent / "ran"
    git(wt.path, "config", "filter.evil.clean", f"sh -c 'touch {ran}; cat'")
    (world.launch / ".git" / "info" / "attributes").write_text("a.txt filter=evil\n")
    (wt.path / "a.txt").write_text("half\n")
    git(wt.path, "add", "a.txt")
    ran.unlink()
    (wt.path / "a.txt").write_text("both\n")
    assert wt.finish_merge(theirs) is None
    assert not ran.exists()
    assert git(wt.path, "show", "HEAD:a.txt") == "both"
    git(wt.path, "config", "--unset", "filter.evil.clean")
