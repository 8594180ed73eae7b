"""Branches of origin that somebody rewrites, or deletes, while a Run is under way."""

from collections.abc import Callable

import pytest

from runner.hub import Check, Wait
from tests.scenarios.repairing import COMMITS, QUICKLY, agent, cause, meanwhile, move_base, shell
from tests.scenarios.stage import NAME, Result, Stage
from tests.world import git

pytestmark = pytest.mark.timeout(300)
PERSON = "git -c user.name=Person -c user.email=person@example.com"


def elsewhere(stage: Stage, command: str) -> Callable[[], None]:
    """Return a deed of a person in a clone of theirs, which has no file of its own yet."""
    other = stage.root / "theirs"
    git(stage.root, "clone", "-q", str(stage.world.origin), str(other))
    return shell(f"cd {other} && sleep 0.5 && git fetch -q origin && {command}")


def run(stage: Stage, deed: Callable[[], None], *options: str, **sessions: str) -> Result:
    """Run on an issue, and do the deed once the pull request is there and its check runs."""
    stage.hub.ci.add(NAME, Check("slow", concludes=Wait(polls=25), branches="issue-*"))
    stage.patience = 200
    with meanwhile(lambda: bool(stage.pulls()) and not stage.pull()["draft"], deed):
        return stage.run(stage.issue(), agent(stage, **{"implement": COMMITS, **sessions}), *options, **QUICKLY)


def rescued(stage: Stage) -> set[str]:
    """Return the files at the one rescue ref of origin."""
    (ref,) = git(stage.world.origin, "for-each-ref", "--format=%(refname)", "refs/nightkeep/rescue").split()
    return stage.files(ref)


@pytest.mark.parametrize(("left", "merge"), [("main", ()), ("theirs", ("--merge",)), ("nothing", ())])
def test_what_somebody_takes_off_the_issue_branch_is_kept_and_not_put_back(
    stage: Stage, left: str, merge: tuple[str, ...]
) -> None:
    deeds = {
        "main": "git push -q -f origin origin/main:refs/heads/issue-1",
        "theirs": "git checkout -q --detach origin/main && echo x > theirs.txt && git add -A && "
        f"{PERSON} commit -qm theirs && git push -q -f origin HEAD:refs/heads/issue-1",
        "nothing": "git push -q origin :refs/heads/issue-1",
    }
    result = run(stage, elsewhere(stage, deeds[left]), *merge)
    assert result.status == 1, result
    assert "lamp.txt" in rescued(stage)
    assert "lamp.txt" not in stage.files("main")
    if left == "nothing":
        assert not stage.world.on_origin("refs/heads/issue-1")
        assert "somebody deleted issue-1 on origin" in result.stderr
    else:
        assert "lamp.txt" not in stage.files("issue-1")
        assert "somebody rewrote issue-1 on origin" in cause(stage)
        assert "`branch-rewritten`" in stage.note(stage.pull()["number"])


def test_what_somebody_takes_off_it_during_a_repair_is_not_pushed_again(stage: Stage) -> None:
    rewinds = f"git --git-dir {stage.world.origin} update-ref refs/heads/issue-1 main"
    stage.hub.ci.add(NAME, Check("test", command="test -e mended.txt", branches="issue-*"))
    mends = f"echo on > mended.txt; git add -A; git commit -qm mend; {rewinds}"
    result = stage.run(stage.issue(), agent(stage, implement=COMMITS, repair_1=mends), **QUICKLY)
    assert result.status == 1, result
    assert {"lamp.txt", "mended.txt"} <= rescued(stage)
    assert "lamp.txt" not in stage.files("issue-1")


@pytest.mark.parametrize("merge", [(), ("--merge",)], ids=["plain", "merge"])
def test_what_somebody_takes_off_the_base_branch_is_not_brought_back(stage: Stage, merge: tuple[str, ...]) -> None:
    shell(move_base(stage, "leak.txt", "leaked"))()
    takes_off = (
        "git checkout -q --detach origin/main~1 && echo x > theirs.txt && git add -A && "
        f"{PERSON} commit -qm theirs && git push -q -f origin HEAD:refs/heads/main"
    )
    result = run(stage, elsewhere(stage, takes_off), *merge)
    assert result.status == 1, result
    assert "leak.txt" not in stage.files("main")
    assert "somebody rewrote the Base branch main on origin" in cause(stage)
    assert stage.pull()["draft"]


def test_a_base_branch_that_somebody_deletes_is_the_cause(stage: Stage) -> None:
    deletes = f"git --git-dir {stage.world.origin} update-ref -d refs/heads/main"
    result = run(stage, elsewhere(stage, deletes))
    assert result.status == 1, result
    assert "somebody deleted the Base branch main on origin" in result.stderr
