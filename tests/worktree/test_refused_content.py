"""A remote that looks into what is pushed and refuses it: everything stays here, and the remote's reason is told."""

from pathlib import Path

import pytest

from tests.worktree.runs import create, gone, kept, names_on_origin, reasons, store_of, stored
from tests.worktree.test_screening import GITHUB
from tests.world import World, commit, git
from worktree import Limits, PreservationError, Preserved, Worktree

# Each is the body of a pre-receive hook, which notes that it was asked for more than a claim, and looks at every new
# object or commit.
_ASKED = """updates=$(grep -v refs/nightkeep/claims/) || exit 0
echo asked >> asked
echo "$updates" | while read -r old new ref; do
"""
TOO_LARGE = f"""{_ASKED}
    git rev-list --objects "$new" --not --all |
        git cat-file --batch-check='%(objecttype) %(objectsize) %(rest)' |
        awk '$1 == "blob" && $2 > 1000000 {{ print "error: File " $3 " is larger than this server takes"; bad = 1 }}
             END {{ exit bad }}' >&2 || exit 1
done"""
WORKFLOWS = f"""{_ASKED}
    for path in $(git diff --name-only main "$new" -- .github/workflows); do
        echo "refusing to allow a Personal Access Token to create or update workflow" \\
            "\\`$path\\` without \\`workflow\\` scope" >&2
        exit 1
    done
done"""
SECRETS = f"""{_ASKED}
    for commit in $(git rev-list "$new" --not --all); do
        path=$(git grep -l {GITHUB} "$commit") || continue
        echo "error: GH013: Repository rule violations found for $ref." >&2
        echo "- GITHUB PUSH PROTECTION" >&2
        echo "  - Push cannot contain secrets" >&2
        echo "  (?) To push, remove secret from commit(s) or follow this URL to allow the secret." >&2
        echo "  https://github.com/acme/widget/security/secret-scanning/unblock-secret/2abc" >&2
        echo "  - GitHub Personal Access Token {GITHUB}" >&2
        echo "    locations:" >&2
        echo "      - commit: $commit" >&2
        echo "        path: ${{path#*:}}:1" >&2
        exit 1
    done
done"""
UNSIGNED = f"""{_ASKED}
    for commit in $(git rev-list "$new" --not --all); do
        git cat-file commit "$commit" | grep -q ^gpgsig && continue
        echo "error: GH013: Repository rule violations found for $ref." >&2
        echo "- Commits must have verified signatures." >&2
        exit 1
    done
done"""


def asked(world: World) -> int:
    """Return how many pushes origin was asked to take."""
    return len((world.origin / "asked").read_text().splitlines())


def refused(world: World, wt: Worktree) -> str:
    """Preserve what origin refuses; return the error, having seen that it was asked once."""
    with pytest.raises(PreservationError) as caught:
        wt.preserve_failed_run("main", "agent exited 3")
    assert asked(world) == 1
    assert git(world.origin, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    return str(caught.value)


def stays(world: World, wt: Worktree, tmp_path: Path, **files: str) -> None:
    """Assert that marker, worktree and bundle are there, and that the bundle brings the files to anybody's clone."""
    bundle = store_of(world, wt) / "work.bundle"
    assert kept(wt, world)
    assert git(world.launch, "log", "-1", "--format=%s", "issue-7") == "nightkeep: failed run (agent exited 3)"
    assert any(str(bundle) in where for what, where in wt.ending.places if what == "bundle")
    assert wt.ending.preserved is Preserved.MACHINE
    git(tmp_path, "clone", "-q", str(world.origin), "anybody")
    git(tmp_path / "anybody", "fetch", "-q", str(bundle), "+refs/*:refs/bundled/*")
    (tip,) = git(tmp_path / "anybody", "for-each-ref", "--format=%(objectname)", "refs/bundled").split()
    assert tip == git(world.launch, "rev-parse", "issue-7")
    assert {name: git(tmp_path / "anybody", "show", f"{tip}:{name}") for name in files} == files


def test_a_file_larger_than_the_remote_takes_goes_nowhere_when_our_limit_is_below(world: World) -> None:
    world.hook("pre-receive", TOO_LARGE)
    with create(world, limits=Limits(lock=0.3, file=1_000_000)) as wt:
        (wt.path / "big.bin").write_bytes(bytes(2_000_000))
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "agent exited 3")
    assert gone(wt, world)
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "b.txt"}
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert (stored(world, wt) / "big.bin").read_bytes() == bytes(2_000_000)
    assert reasons(world, wt) == {"big.bin": "untracked"}
    assert ("left out of the commit", "big.bin: too large to be screened") in wt.ending.places


def test_a_file_larger_than_the_remote_takes_makes_everything_stay_when_our_limit_is_above(
    world: World, tmp_path: Path
) -> None:
    world.hook("pre-receive", TOO_LARGE)
    with create(world) as wt:
        (wt.path / "big.bin").write_bytes(bytes(2_000_000))
        (wt.path / "a.txt").write_text("edited\n")
        said = refused(world, wt)
    assert "File big.bin is larger than this server takes" in said
    stays(world, wt, tmp_path, **{"a.txt": "edited", "big.bin": "\0" * 2_000_000})


def test_a_commit_that_takes_a_large_file_out_again_does_not_help(world: World, tmp_path: Path) -> None:
    world.hook("pre-receive", TOO_LARGE)
    with create(world) as wt:
        (wt.path / "big.bin").write_bytes(bytes(2_000_000))
        commit(wt.path, "oops")
        git(wt.path, "rm", "-q", "big.bin")
        commit(wt.path, "without it")
        (wt.path / "a.txt").write_text("edited\n")
        said = refused(world, wt)
    assert "File big.bin" in said
    stays(world, wt, tmp_path, **{"a.txt": "edited"})


def test_a_workflow_without_the_permission_names_both_and_is_not_tried_again(world: World, tmp_path: Path) -> None:
    world.hook("pre-receive", WORKFLOWS)
    with create(world) as wt:
        workflow = wt.path / ".github" / "workflows" / "ci.yml"
        workflow.parent.mkdir(parents=True)
        workflow.write_text("on: push\n")
        (wt.path / "a.txt").write_text("edited\n")
        said = refused(world, wt)
    assert "origin refuses what is in it" in said
    assert "workflow `.github/workflows/ci.yml` without `workflow` scope" in said
    stays(world, wt, tmp_path, **{"a.txt": "edited", ".github/workflows/ci.yml": "on: push"})


def test_a_secret_in_an_earlier_commit_is_told_by_its_place_and_never_shown(world: World, tmp_path: Path) -> None:
    world.hook("pre-receive", SECRETS)
    with create(world) as wt:
        (wt.path / "settings.py").write_text(f"token = '{GITHUB}'\n")
        first = commit(wt.path, "with it")
        (wt.path / "settings.py").write_text("token = None\n")
        second = commit(wt.path, "without it")
        (wt.path / "a.txt").write_text("edited\n")
        said = refused(world, wt)
    assert "origin refuses what is in it" in said
    assert f"commit: {first}" in said
    assert "path: settings.py:1" in said
    assert GITHUB not in said + str(wt.ending.places) + wt.ending.why
    assert git(world.launch, "rev-parse", "issue-7^", "issue-7^^").split() == [second, first], "rewritten"
    stays(world, wt, tmp_path, **{"a.txt": "edited", "settings.py": "token = None"})


def test_where_signatures_are_demanded_everything_stays(world: World, tmp_path: Path) -> None:
    world.hook("pre-receive", UNSIGNED)
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        said = refused(world, wt)
    assert "Commits must have verified signatures" in said
    stays(world, wt, tmp_path, **{"a.txt": "edited"})
