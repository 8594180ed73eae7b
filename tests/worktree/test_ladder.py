"""When origin does not take the Issue branch, its commits go as far as the refusal allows, and the error says where."""

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worktree.runs import (
    create,
    gone,
    kept,
    kept_locally,
    manifest,
    opened,
    origin_has,
    reasons,
    rescue_ref,
    store_of,
)
from tests.world import World, commit, git
from worktree import PreservationError, Preserved, Worktree
from worktree.errors import GitError, PushRefused
from worktree.ladder import Rung, choose_rung
from worktree.refusal import Refusal, RefusalKind
from worktree.stored import branch_of, read_rescued, ways_back

_FAILED = GitError(("git", "push"), Path("/"), status=1)


@pytest.mark.parametrize("kind", RefusalKind)
def test_only_a_refusal_of_the_branch_itself_leads_elsewhere(kind: RefusalKind) -> None:
    elsewhere = kind in (RefusalKind.NON_FAST_FORWARD, RefusalKind.BRANCH_RULE)
    refused = PushRefused(_FAILED, Refusal(kind, ""), ["refs/heads/issue-7"])
    assert choose_rung(refused) is (Rung.RESCUE_REF if elsewhere else Rung.BUNDLE)


def test_a_failure_that_is_no_refusal_leads_nowhere_on_origin() -> None:
    assert choose_rung(_FAILED) is Rung.BUNDLE


# A server's own rule on a branch, told as GitHub tells it: by the reason for the ref, which no simple hook can give.
_RULE = r"""
import sys
def read():
    size = int(sys.stdin.buffer.read(4), 16)
    return sys.stdin.buffer.read(size - 4) if size else b""
def write(*lines):
    for line in lines:
        sys.stdout.buffer.write(b"%04x%s" % (len(line) + 4, line))
    sys.stdout.buffer.write(b"0000")
    sys.stdout.buffer.flush()
while read():
    pass
write(b"version=1\n")
refs = []
while line := read():
    refs.append(line.split()[2])
print("error: GH006: Protected branch update failed for refs/heads/issue-7.", file=sys.stderr)
print("error: Changes must be made through a pull request.", file=sys.stderr)
write(*(b"ng %s protected branch hook declined" % ref for ref in refs))
"""


def _protect_the_branch(world: World) -> None:
    git(world.origin, "config", "receive.procReceiveRefs", "refs/heads/issue-7")
    world.hook("proc-receive", f"exec {shlex.quote(sys.executable)} -c {shlex.quote(_RULE)}")


def _move_the_branch_on(world: World) -> None:
    theirs = git(world.origin, "commit-tree", "main^{tree}", "-p", "main", "-m", "a person's")
    git(world.origin, "update-ref", "refs/heads/issue-7", theirs)


def _hold_back_secrets(world: World) -> None:
    said = "error: GH013: Repository rule violations found for refs/heads/issue-7.\n- Push cannot contain secrets"
    world.hook("pre-receive", f"printf '%s\\n' {shlex.quote(said)} >&2; exit 1")


def _hold_back_large_files(world: World) -> None:
    said = "error: GH001: Large files detected.\nerror: File n.txt exceeds GitHub's file size limit of 100.00 MB"
    world.hook("update", f"printf '%s\\n' {shlex.quote(said)} >&2; exit 1")


def _say_no(world: World) -> None:
    world.hook("pre-receive", "echo 'the computer says no' >&2; exit 1")


def _say_no_to_the_branch(world: World) -> None:
    world.hook("update", "case $1 in refs/heads/*) echo 'not here' >&2; exit 1;; esac")


def _named(act: Callable[[World], None]) -> str:
    return act.__name__.strip("_")


def _work(wt: Worktree) -> None:
    """Leave a commit, uncommitted work and something that only the index holds."""
    (wt.path / "n.txt").write_text("committed\n")
    commit(wt.path, "work")
    (wt.path / "b.txt").write_text("staged\n")
    git(wt.path, "add", "b.txt")
    (wt.path / "b.txt").write_text("edited\n")


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        (_protect_the_branch, "a rule on that branch forbids it: GH006: Protected branch update failed"),
        (_move_the_branch_on, "origin holds commits there that are not here"),
    ],
    ids=lambda value: _named(value) if callable(value) else "",
)
def test_what_the_branch_may_not_have_goes_to_a_rescue_ref(
    world: World, refuse: Callable[[World], None], words: str
) -> None:
    with create(world) as wt:
        _work(wt)
        refuse(world)
        before = world.on_origin("issue-7")
        with pytest.raises(PreservationError, match=re.escape(words)) as caught:
            wt.preserve_failed_run("main", "x")
    ref = rescue_ref(wt, "head")
    assert str(caught.value).endswith(f"; the work is on {ref} on origin")
    (found,) = read_rescued(opened(world), {ref: world.on_origin(ref)})
    assert branch_of(opened(world).git, found) == "issue-7"
    assert world.on_origin("issue-7") == before
    assert world.on_origin(ref) == git(world.launch, "rev-parse", "issue-7")
    assert world.origin_file(ref, "b.txt") == "edited"
    assert origin_has(world, "staged\n")
    assert ("head", f"{ref} at {world.on_origin(ref)} on origin") in wt.ending.places
    assert not store_of(world, wt).exists()
    assert kept(wt, world)


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        (_hold_back_secrets, "origin refuses what is in it"),
        (_hold_back_large_files, "origin refuses what is in it"),
        (_say_no, "the computer says no"),
        (_say_no_to_the_branch, "not here"),
        (World.take_origin_away, "origin did not take refs/heads/issue-7"),
    ],
    ids=lambda value: _named(value) if callable(value) else "",
)
def test_a_refusal_of_the_content_or_of_any_other_kind_is_not_gone_around(
    world: World, refuse: Callable[[World], None], words: str
) -> None:
    with create(world) as wt:
        _work(wt)
        refuse(world)
        with pytest.raises(PreservationError, match=re.escape(words)) as caught:
            wt.preserve_failed_run("main", "x")
    bundle = store_of(world, wt) / "work.bundle"
    assert str(caught.value).endswith(f"; a copy of the work is in {bundle}")
    assert ("bundle", str(bundle)) in wt.ending.places
    said = manifest(world, wt)
    assert (said.run_id, said.branch, said.path, said.failed) == (wt.run_id, "issue-7", str(wt.path), True)
    assert (said.head, said.rows) == (git(world.launch, "rev-parse", "issue-7"), ())
    if world.origin.exists():
        assert git(world.origin, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
        assert not origin_has(world, "committed\n")
    assert kept_locally(world, "staged\n")
    assert kept_locally(world, "edited\n")
    assert wt.ending.preserved is Preserved.MACHINE
    assert kept(wt, world)


def test_a_bundle_can_be_fetched_from_by_anybody_who_has_what_origin_has(world: World, tmp_path: Path) -> None:
    with create(world) as wt:
        _work(wt)
        _say_no(world)
        with pytest.raises(PreservationError):
            wt.preserve_failed_run("main", "x")
        work = git(world.launch, "rev-parse", "issue-7")
    git(tmp_path, "clone", "-q", str(world.origin), "anybody")
    anybody = tmp_path / "anybody"
    git(anybody, "fetch", "-q", str(store_of(world, wt) / "work.bundle"), "+refs/*:refs/bundled/*")
    assert work in git(anybody, "for-each-ref", "--format=%(objectname)", "refs/bundled").split()
    assert git(anybody, "show", f"{work}:n.txt", f"{work}:b.txt") == "committed\nedited"
    assert store_of(world, wt).stat().st_mode & 0o077 == 0


def test_a_rescue_ref_that_is_refused_as_well_leads_to_the_bundle(world: World, tmp_path: Path) -> None:
    with create(world) as wt:
        (wt.path / "n.txt").write_text("new\n")
        _move_the_branch_on(world)
        world.hook("update", "case $1 in refs/nightkeep/*) echo 'no hidden refs' >&2; exit 1;; esac")
        with pytest.raises(PreservationError) as caught:
            wt.preserve_failed_run("main", "x")
    bundle = store_of(world, wt) / "work.bundle"
    said = str(caught.value)
    places = [said.index(words) for words in ("commits there that are not here", "no hidden refs", str(bundle))]
    assert places == sorted(places), "the first refusal stays the headline"
    assert said.count("origin did not take") == 2
    assert not world.snapshot_refs()
    git(tmp_path, "clone", "-q", str(world.origin), "anybody")
    git(tmp_path / "anybody", "fetch", "-q", str(bundle), rescue_ref(wt, "head"))
    assert git(tmp_path / "anybody", "show", "FETCH_HEAD:n.txt") == "new"
    assert kept(wt, world)


def test_a_persons_own_commit_is_in_no_rescue_ref_on_origin(world: World) -> None:
    git(world.launch, "checkout", "-q", "-b", "draft")
    (world.launch / "b.txt").write_text("a person's\n")
    private = commit(world.launch, "draft")
    git(world.launch, "checkout", "-q", "main")
    with create(world) as wt:
        git(wt.path, "merge", "-q", "draft")
        (wt.path / "n.txt").write_text("new\n")
        with pytest.raises(PreservationError, match=private):
            wt.preserve_failed_run("main", "x")
    assert not origin_has(world, "a person's\n")
    assert git(world.launch, "show", "issue-7:n.txt") == "new"
    assert kept(wt, world)


def test_after_a_bundle_a_push_that_works_lets_clean_up_happen(world: World) -> None:
    with create(world) as wt:
        (wt.path / "n.txt").write_text("new\n")
        (wt.path / "secret.env").write_text("k\n")
        _say_no(world)
        with pytest.raises(PreservationError):
            wt.preserve_failed_run("main", "x")
        (world.origin / "hooks" / "pre-receive").unlink()
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert world.origin_file("issue-7", "n.txt") == "new"
    assert {path.name for path in store_of(world, wt).iterdir()} == {"manifest.json", "tree", "work.bundle"}
    assert reasons(world, wt) == {"secret.env": "ignored"}
    assert manifest(world, wt).failed


def test_each_bundle_of_a_run_is_shown(world: World) -> None:
    with create(world) as wt:
        _say_no(world)
        for name in ("n.txt", "m.txt"):
            (wt.path / name).write_text("new\n")
            with pytest.raises(PreservationError):
                wt.preserve_failed_run("main", "x")
    (found,) = read_rescued(opened(world))
    store = store_of(world, wt)
    assert found.bundles == (store / "work.bundle", store / "work-2.bundle")
    shown = {way.where for way in ways_back(opened(world).git, found) if way.what == "bundle"}
    assert shown == {str(bundle) for bundle in found.bundles}
