"""What was seen beforehand means for a Run, and what is seen."""

from pathlib import Path

import pytest

from delivery.checks import Required
from delivery.credentials import credentials_in, name_token, ways_to
from delivery.findings import Level, Probed, Space, diagnose, errors
from delivery.github import graphql_url
from tests.world import World, commit, git
from worktree import GitError, Interruption, Launch, Survey
from worktree.remote import Rehearsal

PLAIN = Survey(size=10, submodules=(), names_lfs=False)
LFS = Survey(size=10, submodules=(), names_lfs=True)


def space(free: int) -> Space:
    return Space(purpose="the worktree", path=Path("/srv"), free=free, needed=100_000_000)


@pytest.mark.parametrize(
    ("probed", "name", "level", "said"),
    [
        (Probed(push_refused=""), "push", "ok", "as far as a dry run tells"),
        (Probed(push_refused="403"), "push", "error", "tried as a dry run: 403; give the token write access"),
        (Probed(namespace_refused=""), "claim-namespace", "ok", "refs/nightkeep/"),
        (Probed(namespace_refused="no"), "claim-namespace", "error", "refs/nightkeep/, tried as a dry run: no; allow"),
        (Probed(survey=PLAIN), "lfs", "ok", "no attribute"),
        (Probed(survey=LFS), "lfs", "error", "git-lfs was not found; install it"),
        (Probed(survey=LFS, lfs_is_installed=True), "lfs", "warning", "an agent finds pointers; run: git lfs install"),
        (
            Probed(survey=LFS, lfs_is_installed=True, lfs_is_configured=True),
            "lfs",
            "ok",
            "is uploaded before each push",
        ),
        (Probed(spaces=[space(200_000_000)]), "disk-space", "ok", "there is room"),
        (Probed(spaces=[space(199_999_999)]), "disk-space", "warning", "/srv has 200 MB free for the worktree"),
        (Probed(spaces=[space(99_000_000)]), "disk-space", "error", "99 MB free for the worktree, which needs 100 MB"),
        (Probed(spaces=[space(1), space(10**12)]), "disk-space", "error", "0 MB free"),
        (Probed(survey=PLAIN), "submodules", "ok", "no submodules"),
        (
            Probed(survey=Survey(size=1, submodules=tuple("abcdef"), names_lfs=False)),
            *("submodules", "notice", "6 submodules: a, b, c, d, e and 1 more; have `setup` run"),
        ),
        (Probed(is_shallow=True), "shallow-clone", "notice", "run: git fetch --unshallow"),
        (Probed(is_shallow=False), "shallow-clone", "ok", "whole history"),
        (Probed(is_partial=True), "partial-clone", "notice", "not with the token"),
        (Probed(is_partial=False), "partial-clone", "ok", "every object"),
        (Probed(credentials=["remote.origin.url (x)"]), "credential", "warning", "remote.origin.url (x); take it out"),
        (Probed(credentials=[]), "credential", "ok", "no credential"),
        (Probed(own_ways=["SSH"]), "agent-push", "notice", "with the keys that git has here; run Nightkeep as a user"),
        (Probed(own_ways=["credential.helper"]), "agent-push", "notice", "helper here (credential.helper): the git of"),
        (Probed(git_version=(2, 38)), "git-version", "ok", "git is 2.38"),
        (Probed(git_version=(2, 37, 9)), "git-version", "error", "git is 2.37.9; install 2.38 or newer"),
        (Probed(git_version=(10, 0)), "git-version", "ok", "git is 10.0"),
        (Probed(token="a kind"), "token", "ok", "the token is a kind"),
        (Probed(token="a kind", is_workflow_token=True), "token", "warning", "start no workflows"),
        (Probed(is_workflow_token=True, is_private=False), "drafts", "warning", "no pull request into a draft"),
        (Probed(is_private=True), "drafts", "notice", "unknown until tried"),
        (Probed(is_private=False), "drafts", "ok", "has draft pull requests"),
        (Probed(unreadable=[]), "checks", "ok", "may read checks and statuses"),
        (Probed(unreadable=["actions"]), "actions", "notice", "not run again; give it actions: write"),
        (
            Probed(unreadable=["checks", "statuses"]),
            *("checks", "warning", "may not read checks and statuses: whether a pull request is green is unknown"),
        ),
        (Probed(unreadable=["statuses"], required=Required.NEVER), "checks", "warning", "give it statuses: read"),
        (Probed(unreadable=["checks"], required=Required.ALWAYS), "checks", "error", "no Run can come to a good end"),
        (Probed(unreadable=["checks"], merges=True), "checks", "error", "a Merge run merges nothing whose checks"),
        (
            Probed(unreadable=["checks"], merges=True, required=Required.NEVER),
            *("checks", "warning", "count as green unseen"),
        ),
        (Probed(missing_labels=["in-progress"]), "labels", "notice", "lacks 1 label: in-progress"),
        (Probed(missing_labels=[]), "labels", "ok", "has the labels that Runs set"),
    ],
)
def test_a_finding(probed: Probed, name: str, level: str, said: str) -> None:
    (found,) = [finding for finding in diagnose(probed) if finding.name == name]
    assert found.level == level
    assert said in str(found)
    assert bool(found.remedy) == (found.level is not Level.OK) or name == "drafts"
    assert errors([found]) == ([found] if level == "error" else [])


def test_nothing_is_found_about_what_was_not_looked_at() -> None:
    assert diagnose(Probed()) == ()


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("ghp_x", "a classic personal access token"),
        ("github_pat_x", "a fine-grained personal access token"),
        ("gho_x", "the token of an OAuth app, as `gh` has one"),
        ("ghs_x", "the token of a GitHub app"),
        ("0123456789", "of an unknown kind"),
    ],
)
def test_kinds_of_token(token: str, kind: str) -> None:
    assert name_token(token, is_workflow_token=False) == kind
    assert name_token(token, is_workflow_token=True) == "the built-in token of a workflow"


@pytest.mark.parametrize(
    ("scope", "key", "value", "place"),
    [
        ("local", "remote.origin.url", "https://github.com/a/b.git", None),
        ("local", "remote.origin.url", "https://me@github.com/a/b.git", None),
        ("local", "remote.origin.url", "git@github.com:a/b.git", None),
        ("local", "remote.origin.url", "ssh://git:x@github.com/a/b.git", None),
        ("local", "remote.origin.url", "https://me:word@host:8/a", "remote.origin.url (https://***@host:8/a)"),
        ("local", "remote.up.pushurl", "http://:word@host/a", "remote.up.pushurl (http://***@host/a)"),
        ("local", "remote.up.url", f"https://ghp_{'x' * 36}@host/a", "remote.up.url (https://***@host/a)"),
        ("local", "remote.up.url", f"https://{'0a' * 20}@host/a", "remote.up.url (https://***@host/a)"),
        ("local", "http.https://github.com/.extraheader", "AUTHORIZATION: basic x", "http.https://github.com/.extraheader"),
        ("global", "http.https://github.com/.extraheader", "AUTHORIZATION: basic x", None),
        ("local", "http.extraheader", "X-Trace: 1", None),
    ],
)  # fmt: skip
def test_credentials_in_a_configuration(scope: str, key: str, value: str, place: str | None) -> None:
    assert credentials_in([(scope, key, value)]) == ((place,) if place else ())


@pytest.mark.parametrize(
    ("url", "helpers", "ways"),
    [
        ("https://host/a/b", [], ()),
        ("git@host:a/b.git", [("credential.helper", "store")], ("SSH",)),
        ("ssh://git@host/a/b", [], ("SSH",)),
        ("https://me@host:8/a/b", [("credential.helper", "store"), ("user.name", "me")], ("credential.helper",)),
        ("https://host/a/b", [("credential.https://host.helper", "!gh")], ("credential.https://host.helper",)),
        ("https://host/a/b", [("credential.https://*.host.helper", "!gh")], ("credential.https://*.host.helper",)),
        ("https://host/a/b", [("credential.https://other.helper", "!gh")], ()),
        ("https://host/a/b", [("credential.helper", "store"), ("credential.helper", "")], ()),
    ],
)
def test_ways_to_origin_without_the_token(url: str, helpers: list[tuple[str, str]], ways: tuple[str, ...]) -> None:
    assert ways_to(url, [("global", key, value) for key, value in helpers]) == ways


@pytest.mark.parametrize(
    ("api", "graphql"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("https://git.example.com/api/v3", "https://git.example.com/api/graphql"),
        ("http://127.0.0.1:8/api/v3", "http://127.0.0.1:8/api/graphql"),
        ("https://api.acme.ghe.com", "https://api.acme.ghe.com/graphql"),
    ],
)
def test_graphql_goes_with_the_api(api: str, graphql: str) -> None:
    assert graphql_url(api) == graphql


# What git says about a clone and its origin


def opened(world: World, **configuration: str) -> Launch:
    for key, value in configuration.items():
        git(world.launch, "config", key.replace("_", "."), value)
    return Launch.open(world.launch, interruption=Interruption())


def survey(world: World) -> Survey:
    made = commit(world.launch, "more")
    return opened(world).survey(made)


def test_a_plain_commit(world: World) -> None:
    (world.launch / ".gitattributes").write_text("# *.png filter=lfs\n*.txt text\n*.x filter=lfs2\n")
    listed = git(world.launch, "ls-files").splitlines()
    seen = survey(world)
    size = sum((world.launch / name).stat().st_size for name in [*listed, ".gitattributes"])
    assert seen == Survey(size=size, submodules=(), names_lfs=False)


@pytest.mark.parametrize("text", ["*.png filter=lfs diff=lfs merge=lfs -text\n", "a b\n  *.é -text filter=lfs"])
@pytest.mark.parametrize("place", [".", "deep/er"])
def test_attributes_that_name_lfs(world: World, place: str, text: str) -> None:
    (world.launch / place).mkdir(parents=True, exist_ok=True)
    (world.launch / place / ".gitattributes").write_text(text)
    assert survey(world).names_lfs


def test_a_submodule(world: World) -> None:
    head = git(world.launch, "rev-parse", "HEAD")
    git(world.launch, "update-index", "--add", "--cacheinfo", f"160000,{head},vendor/l\nmp")
    git(world.launch, "commit", "-qm", "module")
    seen = opened(world).survey(git(world.launch, "rev-parse", "HEAD"))
    assert seen.submodules == ("vendor/l\nmp",)


def test_a_shallow_and_a_partial_clone(world: World, tmp_path: Path) -> None:
    commit_twice(world)
    git(world.origin, "config", "uploadpack.allowFilter", "true")
    whole = opened(world)
    assert (whole.is_shallow, whole.is_partial) == (False, False)
    for options, expected in ((("--depth=1",), (True, False)), (("--filter=blob:none",), (False, True))):
        place = tmp_path / options[0]
        git(tmp_path, "clone", "-q", "--no-checkout", *options, f"file://{world.origin}", str(place))
        seen = Launch.open(place, interruption=Interruption())
        assert (seen.is_shallow, seen.is_partial) == expected
        survey_of_it = seen.survey(git(place, "rev-parse", "HEAD"))
        assert (survey_of_it.size is None) == seen.is_partial
        missing = git(place, "rev-list", "--objects", "--missing=print", "HEAD").count("\n?")
        assert (missing > 0) == seen.is_partial, "nothing was fetched by looking"


def commit_twice(world: World) -> None:
    (world.launch / "a.txt").write_text("once more\n")
    commit(world.launch, "more")
    git(world.launch, "push", "-q", "origin", "main")


def test_git_says_how_old_it_is(world: World) -> None:
    assert opened(world).git_version() >= (2, 38)
    assert not opened(world).has_git_command("no-such-command")


def test_a_rehearsed_push_makes_no_ref(world: World) -> None:
    head = git(world.launch, "rev-parse", "HEAD")
    before = git(world.origin, "for-each-ref")
    world.hook("pre-receive", "exit 1")
    seen = opened(world).remote().rehearse(head, "refs/heads/probe", "refs/nightkeep/probe")
    assert seen == Rehearsal({}, is_atomic=True)
    assert git(world.origin, "for-each-ref") == before


def test_a_rehearsed_push_tells_which_ref_is_refused(world: World) -> None:
    commit_twice(world)
    older = git(world.launch, "rev-parse", "HEAD~")
    refused = opened(world).remote().rehearse(older, "refs/heads/main", "refs/nightkeep/probe")
    assert refused.refused.keys() == {"refs/heads/main"}
    assert "rejected" in refused.refused["refs/heads/main"]


def test_a_rehearsed_push_tells_that_refs_cannot_go_together(world: World) -> None:
    git(world.origin, "config", "receive.advertiseAtomic", "false")
    head = git(world.launch, "rev-parse", "HEAD")
    seen = opened(world).remote().rehearse(head, "refs/heads/probe", "refs/nightkeep/probe")
    assert seen == Rehearsal({}, is_atomic=False)


def test_a_rehearsed_push_to_nowhere(world: World) -> None:
    world.origin.rename(world.origin.with_name("elsewhere"))
    with pytest.raises(GitError):
        opened(world).remote().rehearse(git(world.launch, "rev-parse", "HEAD"), "refs/heads/probe")
