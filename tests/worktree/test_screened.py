"""What looks like a secret is left out of everything that a Failed run publishes, and kept on this machine."""

from tests.worktree.runs import (
    create,
    gone,
    kept_locally,
    local_rescue_refs,
    names_on_origin,
    origin_has,
    reasons,
    rescue_ref,
    stored,
)
from tests.worktree.test_screening import GITHUB
from tests.world import World, commit, git
from worktree import Interruption, Launch, Preserved, Worktree
from worktree.redaction import Redactor

TOKEN = f"token = '{GITHUB}'\n"


def test_a_file_with_a_token_is_left_out_of_the_marker_and_stays_here(world: World) -> None:
    with create(world) as wt:
        (wt.path / "settings.py").write_text(TOKEN)
        (wt.path / "a.txt").write_text(TOKEN)
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "b.txt", "n.txt"}
    assert world.origin_file("issue-7", "a.txt") == "a"
    assert not origin_has(world, TOKEN)
    for name in ("settings.py", "a.txt"):
        assert ("left out of the commit", f"{name}: looks like a secret (github-pat)") in wt.ending.places
        assert (stored(world, wt) / name).read_text() == TOKEN
    assert reasons(world, wt).keys() == {"settings.py", "a.txt"}
    assert wt.ending.preserved is Preserved.MACHINE
    assert GITHUB not in str(wt.ending.places)


def test_with_nothing_but_a_secret_nothing_is_made_on_origin(world: World) -> None:
    with create(world) as wt:
        (wt.path / "settings.py").write_text(TOKEN)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert not world.on_origin("issue-7")
    assert not world.snapshot_refs()
    assert (stored(world, wt) / "settings.py").read_text() == TOKEN
    assert (wt.ending.preserved, dict(wt.ending.refs)) == (Preserved.MACHINE, {})


def test_a_name_that_is_a_secret_is_not_shown(world: World) -> None:
    with create(world) as wt:
        (wt.path / GITHUB).write_text("x\n")
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "b.txt", "n.txt"}
    (left,) = [where for what, where in wt.ending.places if what == "left out of the commit"]
    assert GITHUB not in left
    assert (stored(world, wt) / GITHUB).read_text() == "x\n"


def test_a_value_that_is_known_to_be_secret_is_left_out_too(world: World) -> None:
    latch = Interruption()
    launch = Launch.open(world.launch, interruption=latch, redact=Redactor(["correct horse battery"]))
    with Worktree.create(launch, branch="issue-7", base="main", interruption=latch) as wt:
        (wt.path / "notes.md").write_text("it is correct horse battery\n")
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "b.txt", "n.txt"}
    assert (stored(world, wt) / "notes.md").read_text() == "it is correct horse battery\n"


def test_a_staged_secret_is_taken_out_of_the_marker_again(world: World) -> None:
    with create(world) as wt:
        (wt.path / "settings.py").write_text(TOKEN)
        (wt.path / ":(top)a.py").write_text(TOKEN)
        (wt.path / "n.txt").write_text("new\n")
        git(wt.path, "add", "-A")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "b.txt", "n.txt"}
    assert not origin_has(world, TOKEN)
    assert reasons(world, wt).keys() == {"settings.py", ":(top)a.py"}


def test_a_snapshot_goes_without_the_secret_beside_it(world: World) -> None:
    with create(world) as wt:
        (wt.path / "a.txt").write_text("staged\n")
        git(wt.path, "add", "a.txt")
        (wt.path / "a.txt").write_text("edited\n")
        (wt.path / "settings.py").write_text(TOKEN)
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert origin_has(world, "staged\n")
    assert names_on_origin(world, rescue_ref(wt, "snapshot")) == {".gitignore", "a.txt", "b.txt"}
    assert not origin_has(world, TOKEN)
    assert (stored(world, wt) / "settings.py").read_text() == TOKEN


def test_a_snapshot_whose_index_holds_a_secret_stays_here(world: World) -> None:
    with create(world) as wt:
        (wt.path / "settings.py").write_text(TOKEN)
        git(wt.path, "add", "-A")
        (wt.path / "settings.py").write_text("token = os.environ['TOKEN']\n")
        wt.preserve_failed_run("main", "x")
    ref = rescue_ref(wt, "snapshot")
    assert gone(wt, world)
    assert world.origin_file("issue-7", "settings.py") == "token = os.environ['TOKEN']"
    assert not origin_has(world, TOKEN)
    assert not world.snapshot_refs()
    assert kept_locally(world, TOKEN)
    said = f"{ref}, because of settings.py (github-pat)"
    assert ("not pushed", said) in wt.ending.places
    assert (
        "snapshot",
        f"{ref} at {git(world.launch, 'rev-parse', ref)} in {world.launch / '.git'}",
    ) in wt.ending.places
    assert wt.ending.preserved is Preserved.MACHINE


def test_commits_left_behind_that_hold_a_secret_stay_here(world: World) -> None:
    with create(world) as wt:
        (wt.path / "settings.py").write_text(TOKEN)
        commit(wt.path, "oh no")
        git(wt.path, "reset", "-q", "--hard", "HEAD^")
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert world.origin_file("issue-7", "n.txt") == "new"
    assert not origin_has(world, TOKEN)
    assert local_rescue_refs(world) == [rescue_ref(wt, "made")]
    assert kept_locally(world, TOKEN)
    said = f"{rescue_ref(wt, 'made')}, because of settings.py (github-pat)"
    assert ("not pushed", said) in wt.ending.places


def test_work_on_another_head_goes_without_its_secret(world: World) -> None:
    with create(world) as wt:
        git(wt.path, "checkout", "-q", "--detach")
        (wt.path / "settings.py").write_text(TOKEN)
        (wt.path / "n.txt").write_text("new\n")
        wt.preserve_failed_run("main", "x")
    assert gone(wt, world)
    assert names_on_origin(world, rescue_ref(wt, "head")) == {".gitignore", "a.txt", "b.txt", "n.txt"}
    assert not origin_has(world, TOKEN)
    assert (stored(world, wt) / "settings.py").read_text() == TOKEN


def test_what_is_committed_for_an_agent_though_it_looks_like_a_secret_is_named(world: World) -> None:
    with create(world) as wt:
        (wt.path / "settings.py").write_text(TOKEN)
        (wt.path / "n.txt").write_text("new\n")
        assert wt.settle("made") == ()
        wt.push()
    assert names_on_origin(world, "issue-7") == {".gitignore", "a.txt", "b.txt", "n.txt", "settings.py"}
    (named,) = [where for what, where in wt.ending.places if what == "committed all the same"]
    assert named.startswith("settings.py looks like a secret (github-pat); if it is one, revoke it")
