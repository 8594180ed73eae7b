"""What is said to be on origin was read back from there, and nothing is forced."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.hub import Hub, Permission, drills
from tests.worktree.runs import IMPATIENT, create, gone, kept_locally, origin_refs
from tests.world import World, commit, git
from worktree import GitError, Interrupted, Interruption, Launch, Limits, Origin, RefUpdate, Worktree
from worktree.errors import PushRefused
from worktree.refusal import RefusalKind
from worktree.remote import Remote

TOKEN = "token-that-nobody-may-see"  # a sentinel, not a credential

_CLAIM = "refs/nightkeep/claims/7"
_BRANCH = "refs/heads/issue-7"
_NAME = "acme/widget"
_WRITER, _READER = "writer-token", "reader-token"


def work(wt: Worktree) -> str:
    (wt.path / "a.txt").write_text("edited\n")
    return commit(wt.path, "work")


def test_a_push_is_read_back(world: World) -> None:
    with create(world) as wt:
        made = work(wt)
        assert not wt.has_work_on_origin
        assert wt.push() == made
        assert (wt.on_origin, world.on_origin("issue-7")) == (made, made)
        assert wt.push() == made, "once more is no error"
    assert ("Issue branch", f"refs/heads/issue-7 at {made} on origin") in wt.ending.places


def test_only_the_last_push_of_a_branch_is_told(world: World) -> None:
    with create(world) as wt:
        for text in ("one\n", "two\n", "three\n"):
            (wt.path / "a.txt").write_text(text)
            last = commit(wt.path, "work")
            wt.push()
    branch = [place for place in wt.ending.places if place[1].startswith("refs/heads/issue-7 at ")]
    assert branch == [("Issue branch", f"refs/heads/issue-7 at {last} on origin")]


@pytest.mark.parametrize("lie", ["update-ref refs/heads/issue-7 main", "update-ref -d refs/heads/issue-7"])
def test_a_server_that_took_it_and_does_not_hold_it_is_an_error(world: World, lie: str) -> None:
    world.hook("post-receive", f"git {lie}")
    with create(world) as wt:
        work(wt)
        with pytest.raises(GitError, match="origin took refs/heads/issue-7 but does not hold it"):
            wt.push()
        assert wt.on_origin is None
    assert kept_locally(world, "edited\n")


def test_a_lost_answer_after_success_counts(world: World) -> None:
    world.hook("post-receive", "kill -9 $PPID; sleep 0.2")
    with create(world) as wt:
        made = work(wt)
        wt.push()
    assert world.on_origin("issue-7") == made
    assert gone(wt, world)


def test_an_answer_that_does_not_come_in_time_counts_when_origin_holds_it(world: World) -> None:
    world.hook("post-receive", "sleep 20")
    with create(world, limits=Limits(lock=0.3, push=1.5, stop=1)) as wt:
        made = work(wt)
        before = time.monotonic()
        wt.push()
        assert time.monotonic() - before < 8
    assert world.on_origin("issue-7") == made


def test_a_push_that_takes_too_long_is_given_up(world: World) -> None:
    world.hook("pre-receive", "sleep 20")
    with create(world, limits=Limits(lock=0.3, push=1, stop=1)) as wt:
        work(wt)
        before = time.monotonic()
        with pytest.raises(GitError, match="stopped at its deadline"):
            wt.push()
        assert time.monotonic() - before < 8
    assert not world.on_origin("issue-7")
    assert kept_locally(world, "edited\n")


def _somebody_else(world: World) -> None:
    git(world.origin, "update-ref", "refs/heads/issue-7", git(world.origin, "commit-tree", "main^{tree}", "-m", "x"))


def _hook_refuses(world: World) -> None:
    world.hook("pre-receive", "echo no >&2; exit 1")


def _update_hook_refuses(world: World) -> None:
    world.hook("update", "exit 1")


def _name_in_the_way(world: World) -> None:
    git(world.origin, "update-ref", "refs/heads/issue-7/part", "main")


@pytest.mark.parametrize(
    ("trouble", "kind", "words"),
    [
        (_somebody_else, RefusalKind.NON_FAST_FORWARD, "fetch first"),
        (_hook_refuses, RefusalKind.UNKNOWN, "no (pre-receive hook declined)"),
        (_update_hook_refuses, RefusalKind.UNKNOWN, "hook declined"),
        (_name_in_the_way, RefusalKind.UNKNOWN, "cannot lock ref 'refs/heads/issue-7': 'refs/heads/issue-7/part' ex"),
        (
            World.take_origin_away,
            RefusalKind.UNKNOWN,
            "'{origin}' does not appear to be a git repository; Could not read from remote",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_refused_push_changes_nothing_on_origin(
    world: World, trouble: Callable[[World], None], kind: RefusalKind, words: str
) -> None:
    with create(world) as wt:
        made = work(wt)
        trouble(world)
        before = origin_refs(world) if world.origin.exists() else ""
        with pytest.raises(PushRefused) as caught:
            wt.push()
    assert caught.value.refusal.kind is kind
    assert caught.value.refusal.words.startswith(words.format(origin=world.origin))
    assert str(caught.value) == f"origin did not take {_BRANCH}: {caught.value.refusal}"
    assert "git push" in " ".join(caught.value.argv), "what git said is in the fields"
    assert kept_locally(world, "edited\n")
    assert (origin_refs(world) if world.origin.exists() else "") == before
    assert made in git(world.launch, "rev-list", "--glob=refs/nightkeep/rescue")


def test_only_what_is_named_is_pushed(world: World) -> None:
    for key, value in {"push.followTags": "true", "remote.origin.mirror": "true", "push.default": "matching"}.items():
        git(world.launch, "config", "--global", key, value)
    git(world.launch, "branch", "private")
    with create(world) as wt:
        work(wt)
        git(wt.path, "tag", "-a", "v1", "-m", "v1")
        wt.push()
    assert origin_refs(world).count("\n") == 1
    assert world.on_origin("refs/heads/issue-7")


_SPY = """#!/bin/sh
{{ tr '\\0' '\\n' </proc/$$/environ; tr '\\0' '\\n' </proc/$$/cmdline; }} >>{log}
exec {git} "$@"
"""


def test_a_token_is_in_no_argument_and_no_environment(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = git(tmp_path, "--exec-path") + "/git"
    spy = tmp_path / "bin" / "git"
    spy.parent.mkdir()
    spy.write_text(_SPY.format(log=tmp_path / "seen", git=real))
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")
    origin = Origin(str(world.origin), TOKEN)
    assert TOKEN not in repr(origin)
    with Worktree.create(world.launch, branch="issue-7", base="main", interruption=Interruption(), origin=origin) as wt:
        work(wt)
        wt.push()
    seen = (tmp_path / "seen").read_text()
    assert "push" in seen
    assert TOKEN not in seen
    assert TOKEN not in "".join(
        p.read_text(errors="replace") for p in (world.launch / ".git").rglob("*") if p.is_file()
    )
    assert not wt.ending.kept


def test_with_a_token_no_configuration_of_the_clone_or_the_user_redirects_it(world: World) -> None:
    trap = world.origin.with_name("trap.git")
    git(world.launch, "clone", "-q", "--bare", str(world.origin), str(trap))
    origin = Origin(f"file://{world.origin}", TOKEN)
    with Worktree.create(world.launch, branch="issue-7", base="main", interruption=Interruption(), origin=origin) as wt:
        made = work(wt)
        for scope in ("--local", "--global"):
            git(wt.path, "config", scope, f"url.file://{trap}.insteadOf", f"file://{world.origin}")
            git(wt.path, "config", scope, f"url.file://{trap}.pushInsteadOf", f"file://{world.origin}")
        wt.push()
        wt.preserve_failed_run("main", "x")
    assert made in git(world.origin, "rev-list", "issue-7")
    assert "issue-7" not in git(trap, "for-each-ref")


def test_pushes_of_two_runs_at_once_both_arrive(world: World) -> None:
    latch = Interruption()
    runs = [
        Worktree.create(world.launch, branch=f"issue-{number}", base="main", interruption=latch) for number in (7, 8)
    ]
    for wt in runs:
        work(wt)
    threads = [threading.Thread(target=wt.push) for wt in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for wt in runs:
        with wt:
            assert world.on_origin(wt.branch) == wt.head()
        assert not wt.ending.kept


@pytest.fixture
def hub(world: World, tmp_path: Path) -> Iterator[Hub]:
    tokens = {_WRITER: Permission.WRITE, _READER: Permission.READ}
    with Hub(tmp_path / "hub", repositories={_NAME: world.origin}, tokens=tokens) as served:
        yield served


def served(
    world: World,
    hub: Hub,
    token: str = _WRITER,
    *,
    renew: Callable[[], str | None] | None = None,
    interruption: Interruption | None = None,
    pause: float = 0.02,
) -> Remote:
    """Return the hub as the remote of the clone, with little patience."""
    launch = Launch.open(world.launch, interruption=interruption or Interruption(), limits=IMPATIENT)
    return replace(launch.remote(Origin(f"{hub.url}/{_NAME}.git", token, renew)), pause=pause)


def made_here(world: World) -> RefUpdate:
    (world.launch / "a.txt").write_text("edited\n")
    return RefUpdate(_BRANCH, commit(world.launch, "work"))


@pytest.mark.parametrize("trouble", [drills.server_error(503), drills.dropped_connection(work=False)])
def test_what_may_pass_is_tried_again(world: World, hub: Hub, trouble: drills.Trouble) -> None:
    update = made_here(world)
    with hub.drill("POST", "*/git-receive-pack", trouble, times=2) as drill:
        served(world, hub).push(update)
    assert (drill.hits, world.on_origin("issue-7")) == (2, update.new)


def test_reading_and_fetching_are_tried_again(world: World, hub: Hub) -> None:
    remote, main = served(world, hub), world.on_origin("main")
    with hub.drill("GET", "*/info/refs", drills.server_error(), times=2) as drill:
        assert remote.read("refs/heads/main") == {"refs/heads/main": main}
    assert drill.hits == 2
    with hub.drill("GET", "*/info/refs", drills.server_error(), times=2) as drill:
        assert remote.fetch("main") == {"main": main}
    assert drill.hits == 2


def test_a_server_that_falls_silent_is_asked_again(world: World, hub: Hub) -> None:
    assert dict(served(world, hub).settings)["http.lowspeedtime"] == "30"
    for name in ("http.lowSpeedLimit", "http.lowSpeedTime"):
        git(world.launch, "config", "--global", name, "1")
    with hub.drill("GET", "*/info/refs", drills.delay(1000)) as drill:
        assert served(world, hub).read("refs/heads/main")
    assert drill.hits == 1


def test_a_look_at_origin_that_hangs_is_taken_again(world: World, hub: Hub) -> None:
    launch = Launch.open(world.launch, interruption=Interruption(), limits=Limits(command=8))
    with hub.drill("GET", "*/info/refs", drills.delay(1000)) as drill:
        assert launch.remote(Origin(f"{hub.url}/{_NAME}.git", _WRITER)).read("refs/heads/main")
    assert drill.hits == 1


def test_a_push_whose_answer_was_lost_is_not_repeated(world: World, hub: Hub) -> None:
    update = made_here(world)
    pushes = hub.drill("GET", "*/info/refs?service=git-receive-pack", drills.delay(0), times=None)
    with pushes, hub.drill("POST", "*/git-receive-pack", drills.lost_answer(), times=None):
        served(world, hub).push(update)
    assert world.on_origin("issue-7") == update.new
    assert pushes.hits == 2, "one push, without the credential and with it"


def test_what_does_not_pass_is_given_up_in_time(world: World, hub: Hub) -> None:
    update = made_here(world)
    with (
        hub.drill("POST", "*/git-receive-pack", drills.server_error(503), times=None) as drill,
        pytest.raises(PushRefused, match="503") as caught,
    ):
        served(world, hub).push(update)
    assert (drill.hits, caught.value.refusal.kind) == (4, RefusalKind.TRANSIENT)
    assert not world.on_origin("issue-7")


def test_an_outage_is_waited_out_once_for_all_commands(world: World, hub: Hub) -> None:
    """A Run's remote is patient, and says so; when origin has been away for too long, later commands are not."""
    update, said = made_here(world), list[str]()
    launch = Launch.open(world.launch, interruption=Interruption(), limits=Limits(pause=0.02, push=5))
    remote = launch.patient(said.append).remote(Origin(f"{hub.url}/{_NAME}.git", _WRITER))
    with hub.drill("GET", "*/info/refs", drills.server_error(), times=6):
        assert remote.fetch("main") == {"main": world.on_origin("main")}
    assert said[0].startswith("origin could not be reached, or failed; trying again in ")
    with hub.drill("POST", "*/git-receive-pack", drills.server_error(503), times=None) as drill:
        for least, most in ((5, 100), (4, 4)):
            before = drill.hits
            with pytest.raises(PushRefused, match="could not be reached, or failed, so refs/heads/issue-7 did not get"):
                remote.push(update)
            assert least <= drill.hits - before <= most
            time.sleep(1)  # the last pause that the first push did not begin may have been as long
    remote.push(update)
    assert world.on_origin("issue-7") == update.new


@pytest.mark.parametrize("finishing", [False, True])
def test_only_completion_work_is_tried_again_after_an_interruption(world: World, hub: Hub, finishing: bool) -> None:  # noqa: FBT001
    latch = Interruption()
    update = made_here(world)
    remote = served(world, hub, interruption=latch, pause=1 if finishing else 20)
    timer = threading.Timer(0.5, latch.record, [signal.SIGTERM])
    with hub.drill("POST", "*/git-receive-pack", drills.server_error(503), times=1) as drill:
        timer.start()
        before = time.monotonic()
        if finishing:
            remote.completing().push(update)
        else:
            with pytest.raises(Interrupted):
                remote.push(update)
    timer.join()
    assert time.monotonic() - before < 15
    assert (drill.hits, world.on_origin("issue-7")) == (1, update.new if finishing else "")


def test_a_token_that_was_renewed_meanwhile_is_used(world: World, hub: Hub) -> None:
    update = made_here(world)
    tokens = ["expired"]

    def renew() -> str:
        return tokens.pop(0) if tokens else _WRITER

    remote = served(world, hub, "expired-long-ago", renew=renew)
    remote.push(update)
    assert world.on_origin("issue-7") == update.new
    assert _WRITER not in repr(remote)


@pytest.mark.parametrize("renewed", [_READER, None])
def test_a_token_that_is_refused_and_stays_the_same_is_an_error_at_once(
    world: World, hub: Hub, renewed: str | None
) -> None:
    update = made_here(world)
    with hub.drill("GET", "*/info/refs?service=git-receive-pack", drills.delay(0), times=None) as asked:
        with pytest.raises(PushRefused, match=r"Permission to acme/widget\.git denied") as caught:
            served(world, hub, _READER, renew=lambda: renewed).push(update)
        assert asked.hits == 2, "once without the credential, once with it"
    assert caught.value.refusal.kind is RefusalKind.UNAUTHORIZED


def shallow(world: World) -> World:
    """Clone one commit of two, which then stands on no branch of an origin that takes none from a shallow clone."""
    made_here(world)
    git(world.launch, "push", "-q", "origin", "main")
    clone = world.launch.with_name("shallow")
    git(world.origin, "clone", "-q", "--depth", "1", f"file://{world.origin}", str(clone))
    git(world.origin, "update-ref", "refs/heads/main", "main~1")
    git(world.origin, "config", "receive.shallowUpdate", "false")
    return World(world.origin, clone)


def test_a_shallow_clone_is_deepened_where_origin_asks_for_it(world: World) -> None:
    there = shallow(world)
    (there.launch / "b.txt").write_text("more\n")
    update = RefUpdate(_BRANCH, commit(there.launch, "more"))
    before = (there.launch / ".git" / "shallow").read_bytes()
    Launch.open(there.launch, interruption=Interruption(), limits=IMPATIENT).remote().push(update)
    assert world.on_origin("issue-7") == update.new
    assert git(world.origin, "rev-list", "--count", "issue-7") == "3"
    assert (there.launch / ".git" / "shallow").read_bytes() == before
    assert git(there.launch, "rev-list", "--count", "HEAD") == "2", "the clone is as shallow as it was"


def test_a_shallow_clone_that_cannot_be_deepened_is_refused(world: World) -> None:
    there = shallow(world)
    other = world.origin.with_name("other.git")
    git(world.launch, "init", "-q", "--bare", str(other))
    git(other, "config", "receive.shallowUpdate", "false")
    update = RefUpdate(_BRANCH, git(there.launch, "rev-parse", "HEAD"))
    launch = Launch.open(there.launch, interruption=Interruption(), limits=IMPATIENT)
    with pytest.raises(PushRefused, match="shallow update not allowed") as caught:
        launch.remote(Origin(str(other))).push(update)
    assert caught.value.refusal.kind is RefusalKind.SHALLOW
