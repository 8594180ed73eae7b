"""Odd configurations, odd names and agents that meddle with the repository change nothing about what is kept."""

from collections.abc import Callable

import pytest

from tests.worktree.runs import contents, create, gone, names_on_origin, origin_has, rescue_ref, stored
from tests.world import World, commit, git
from worktree import Limits, Worktree

_TEMPLATE = "#!/bin/sh\nexit 1\n"


@pytest.mark.parametrize(
    "settings",
    [
        {"status.showUntrackedFiles": "no", "status.showStash": "true", "status.branch": "true"},
        {"core.quotePath": "true", "core.precomposeUnicode": "true"},
        {"core.splitIndex": "true", "splitIndex.maxPercentChange": "0"},
        {"core.untrackedCache": "true", "index.version": "4", "feature.manyFiles": "true"},
        {"fetch.prune": "true", "fetch.pruneTags": "true", "push.default": "nothing", "push.followTags": "true"},
        {"push.negotiate": "true", "push.useForceIfIncludes": "true", "protocol.version": "0"},
        {"commit.template": "/nonexistent", "commit.cleanup": "scissors", "commit.status": "true"},
        {"diff.external": "false", "diff.noprefix": "true", "diff.renames": "copies", "diff.ignoreSubmodules": "all"},
        {"core.editor": "false", "core.pager": "false", "color.ui": "always", "column.ui": "always"},
        {"extensions.worktreeConfig": "true"},
        {"core.fsmonitor": "/nonexistent"},
        {"add.ignoreErrors": "true", "advice.detachedHead": "false", "alias.status": "!false", "alias.add": "!false"},
        {"branch.autoSetupMerge": "always", "checkout.guess": "false", "worktree.guessRemote": "true"},
        {"remote.origin.fetch": "+refs/heads/none:refs/remotes/none", "remote.pushDefault": "nowhere"},
        {"core.autocrlf": "true", "core.safecrlf": "true"},
        {"gc.auto": "1", "gc.pruneExpire": "now", "gc.autoDetach": "false"},
        {"core.commentChar": "n", "i18n.commitEncoding": "ISO-8859-1", "core.sharedRepository": "group"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_no_configuration_is_in_the_way_of_preservation(world: World, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        where = "--local" if key.startswith("extensions.") else "--global"
        git(world.launch, "config", where, key, value)
    with create(world) as wt:
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "-c", "core.safecrlf=false", "add", "a.txt")
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / "n.txt").write_text("new\n")
        (wt.path / "b.txt").unlink()
        wt.preserve_failed_run("main", "ünï")
    assert git(world.origin, "ls-tree", "--name-only", "issue-7").split() == [".gitignore", "a.txt", "n.txt"]
    assert origin_has(world, "edited\n")
    assert origin_has(world, "staged\n")
    assert git(world.origin, "log", "-1", "--encoding=UTF-8", "--format=%s", "issue-7") == "nightkeep: failed run (ünï)"
    assert gone(wt, world)


def test_a_checkout_is_not_assumed_to_be_unchanged(world: World) -> None:
    git(world.launch, "config", "core.ignoreStat", "true")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert gone(wt, world)


def test_a_template_with_hooks_and_a_reference_filter_has_no_say(world: World) -> None:
    template = world.launch.with_name("template")
    (template / "hooks").mkdir(parents=True)
    for name in ("reference-transaction", "pre-receive", "post-checkout", "update"):
        (template / "hooks" / name).write_text(_TEMPLATE)
        (template / "hooks" / name).chmod(0o755)
    git(world.launch, "config", "--global", "init.templateDir", str(template))
    git(world.launch, "config", "--global", "core.hooksPath", str(template / "hooks"))
    git(world.origin, "config", "core.hooksPath", "hooks")
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert gone(wt, world)


ODD_NAMES = [
    "new\nline",
    'quo"te',
    "bytes \udcff\udcfe",
    "-leading",
    "--all",
    ":(top)x",
    ":!a.txt",
    "trailing ",
    " leading",
    "tab\t",
    "star*",
    "back\\slash",
    "ünï",
    "dir/-n\n/deep ",
    "#hash",
    "HEAD",
]


@pytest.mark.parametrize("limit", [50_000_000, 4], ids=["pushed", "too-large"])
def test_odd_names_are_preserved_or_named(world: World, limit: int) -> None:
    with create(world, limits=Limits(lock=0.3, file=limit)) as wt:
        for name in ODD_NAMES:
            (wt.path / name).parent.mkdir(parents=True, exist_ok=True)
            (wt.path / name).write_text(f"content of {name!a}")
        before = contents(wt.path, *{name.partition("/")[0] for name in ODD_NAMES})
        wt.preserve_failed_run("main", "x")
    if limit == 4:
        assert sorted(place for what, place in wt.ending.places if what == "left out of the commit") == sorted(
            f"{name}: too large to be screened" for name in ODD_NAMES
        )
        assert contents(stored(world, wt)) == before
        assert gone(wt, world)
    else:
        assert set(ODD_NAMES) <= names_on_origin(world, "issue-7")
        assert gone(wt, world)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_odd_names_behind_hidden_flags_are_in_the_snapshot(world: World, flag: str) -> None:
    with create(world) as wt:
        for name in ODD_NAMES:
            (wt.path / name).parent.mkdir(parents=True, exist_ok=True)
            (wt.path / name).write_text("x")
        commit(wt.path, "odd")
        for number, name in enumerate(ODD_NAMES):
            git(wt.path, "update-index", flag, "--", name)
            (wt.path / name).write_text(f"hidden {number}")
        git(wt.path, "checkout", "-q", "--detach")
        wt.preserve_failed_run("main", "x")
    ref = rescue_ref(wt, "snapshot")
    assert [world.origin_file(ref, name) for name in ODD_NAMES] == [f"hidden {n}" for n in range(len(ODD_NAMES))]
    assert gone(wt, world)


def _bare(wt: Worktree) -> None:
    git(wt.path, "config", "core.bare", "true")


def _core_worktree(wt: Worktree) -> None:
    git(wt.path, "config", "core.worktree", str(wt.path.parent))


def _hooks_path(wt: Worktree) -> None:
    hooks = wt.path.with_name("their-hooks")
    hooks.mkdir()
    for name in ("pre-commit", "commit-msg", "reference-transaction", "pre-push", "post-index-change"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    git(wt.path, "config", "core.hooksPath", str(hooks))


def _other_origin(wt: Worktree) -> None:
    git(wt.path, "remote", "set-url", "origin", "/nonexistent/elsewhere.git")
    git(wt.path, "config", "url./nonexistent/.insteadOf", str(wt.path.parent))
    git(wt.path, "config", "remote.origin.receivepack", "false")


@pytest.mark.parametrize("act", [_bare, _core_worktree, _hooks_path, _other_origin])
def test_an_agent_that_changes_the_shared_configuration_stops_nothing(
    world: World, act: Callable[[Worktree], None]
) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("edited\n")
        act(wt)
        wt.preserve_failed_run("main", "x")
    assert world.origin_file("issue-7", "a.txt") == "edited"
    assert not wt.path.exists()
    assert not wt.ending.kept
    (only,) = git(world.launch, "--git-dir=.git", "for-each-ref", "--format=%(refname)", "refs/heads").split()
    assert only == "refs/heads/main"
