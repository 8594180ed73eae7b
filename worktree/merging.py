"""Bringing what origin has got into the Issue branch: by merging, never by rewriting it."""

from collections.abc import Mapping
from dataclasses import dataclass

from worktree.checkout import Checkout
from worktree.files import list_files
from worktree.git import IDENTITY
from worktree.naming import some
from worktree.rescue import keep_snapshot, publish
from worktree.rewriting import rewritten, why_rewritten
from worktree.state import Operation, read_state

_PLAIN = ("--ff", "--commit", "--no-edit", "--no-squash", "--no-stat", "--no-log", "--no-autostash", "--no-verify")
_MOST_SHOWN = 20  # commits


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """What origin has that a head has not: the Base branch's commit, and the newest of others' on the Issue branch."""

    base: str | None = None
    foreign: str | None = None


def look_upstream(checkout: Checkout, head: str, base: str, *, foreign: bool) -> Upstream:
    """Look where origin has the Base branch and the Issue branch, and fetch what `head` may lack.

    Others' commits on the Issue branch are asked for with `foreign`. Moves nothing but the mirror of the Base branch.
    Raises GitError; BranchRewrittenError when one of the two is gone, or lacks what it had.
    """
    own = checkout.record.branch
    base_ref, own_ref = f"refs/heads/{base}", checkout.branch_ref
    there = checkout.remote.read(base_ref, own_ref)
    known = checkout.remote.known | checkout.ledger.held
    wanted = [branch for branch in (base, own) if branch == base or foreign or checkout.on_origin]
    new = [branch for branch in wanted if there.get(f"refs/heads/{branch}", "") not in {"", *known}]
    there |= {f"refs/heads/{branch}": oid for branch, oid in checkout.remote.fetch(*new).items()} if new else {}
    _require_whole(checkout, base, there)
    looked = {f"refs/heads/{branch}" for branch in wanted} & there.keys()
    checkout.ledger.held |= {there[ref] for ref in looked}
    checkout.ledger.built_on[base_ref] = there[base_ref]
    if foreign and own_ref in there:
        checkout.ledger.built_on[own_ref] = there[own_ref]
    mirror = f"refs/remotes/origin/{base}"
    if new:
        checkout.shared.run("update-ref", "--no-deref", "-m", "nightkeep: fetch", mirror, there[base_ref])
    return Upstream(
        base=_unless_reached(checkout, head, there[base_ref]),
        foreign=_unless_reached(checkout, head, there.get(own_ref)) if foreign else None,
    )


def _require_whole(checkout: Checkout, base: str, there: Mapping[str, str]) -> None:
    """Raise BranchRewrittenError when others took off the branches what the work holds of them, or the branches."""
    ledger, base_ref = checkout.ledger, f"refs/heads/{base}"
    before: str = ledger.built_on.get(base_ref, checkout.record.pinned_base)
    now = there.get(base_ref)
    if now is None:
        raise rewritten(checkout, f"somebody deleted the Base branch {base} on origin", there)
    if not checkout.reaches(now, before):
        why = f"somebody rewrote the Base branch {base} on origin: it is at {now[:12]}, without {before[:12]}"
        raise rewritten(checkout, f"{why}, which this work holds; what was taken off is not brought back", there)
    own_before = checkout.built_on
    wrong = why_rewritten(checkout, there.get(checkout.branch_ref), own_before) if own_before else None
    if wrong:
        raise rewritten(checkout, wrong, there, holds={before})


def _unless_reached(checkout: Checkout, head: str, commit: str | None) -> str | None:
    return None if commit is None or checkout.reaches(head, commit) else commit


def new_in(checkout: Checkout, commit: str) -> tuple[str, ...]:
    """Return the commits that `commit` reaches and HEAD does not, oldest first, each as a short id and its subject."""
    span = ("--reverse", f"--max-count={_MOST_SHOWN}", "--format=%h %s", f"HEAD..{commit}")
    return tuple(checkout.git.run("log", *span).text.splitlines())


def merge(checkout: Checkout, commit: str, name: str) -> bool:
    """Merge a commit that was fetched and that people call `name`; False when it stopped at a conflict.

    Then the merge is in progress. Left-overs of a session in tracked files that git refuses to merge over are first
    brought to a snapshot, and then reset. Raises GitError when git refuses the merge over anything else.
    """
    git = checkout.git.within(**IDENTITY)
    message = f"Merge {name} into {checkout.record.branch}"
    arguments = ("merge", *_PLAIN, "--no-verify-signatures", "-m", message, commit)
    done = git.run(*arguments, accept=range(256))
    if done.status and read_state(checkout.git, checkout.admin).operation is None and _put_aside(checkout):
        done = git.run(*arguments, accept=range(256))
    if done.status == 0:
        return True
    if read_state(checkout.git, checkout.admin).operation is not Operation.MERGE:
        raise git.failure(arguments, done)
    return False


def _put_aside(checkout: Checkout) -> bool:
    """Snapshot what is changed in tracked files, and reset it; False, with nothing reset, when not all is in there."""
    state, listing = read_state(checkout.git, checkout.admin), list_files(checkout.git, checkout.path)
    changed = listing.changed | state.staged
    if not changed:
        return False
    ref = keep_snapshot(checkout, state)
    if changed & checkout.ledger.snapshots[ref].left.keys():
        return False
    publish(checkout, ref)
    checkout.git.run("reset", "--quiet", "--hard", "HEAD")
    return True


def conflicts(checkout: Checkout) -> tuple[str, ...]:
    """Return the paths that a merge in progress could not merge."""
    return read_state(checkout.git, checkout.admin).unmerged


def finish_merge(checkout: Checkout, commit: str) -> str | None:
    """After somebody resolved a merge of `commit`, see that it is done; return what is wrong, None when it is well.

    What is resolved and staged, and only not committed, is committed. Raises GitError.
    """
    state = read_state(checkout.git, checkout.admin)
    if state.branch != checkout.record.branch:
        return f"HEAD was left on {state.branch or 'no branch'}, not on {checkout.record.branch}"
    if state.unmerged:
        return f"the merge is still in progress, with conflicts in {some(state.unmerged)}"
    if state.operation is Operation.MERGE and commit in state.other_heads:
        checkout.git.run("add", "--update")
        checkout.git.within(**IDENTITY).run("commit", "--quiet", "--no-verify", "--no-edit")
    elif state.operation is not None:
        return f"a {state.operation.value[0]} was left unfinished"
    if not checkout.git.answers("merge-base", "--is-ancestor", commit, "HEAD"):
        return "the merge was given up"
    # What git writes behind a conflict's other side; nobody else writes that commit's id there.
    marked = checkout.git.run("grep", "-l", "-z", "-e", f"^>>>>>>> {commit}", "HEAD", accept=(0, 1)).fields
    return f"conflict markers were left in {some([path.partition(':')[2] for path in marked])}" if marked else None


def workflow_texts(checkout: Checkout) -> tuple[str, ...]:
    """Return the texts of the workflow files that HEAD has. Raises GitError."""
    listed = checkout.git.run("ls-tree", "-r", "-z", "--format=%(objectname) %(path)", "HEAD", ".github/workflows/")
    rows = [row.split(" ", 1) for row in listed.fields]
    files = [oid for oid, path in rows if path.endswith((".yml", ".yaml")) and path.count("/") == 2]
    return tuple(checkout.git.run("cat-file", "blob", oid).stdout.decode(errors="replace") for oid in files)


def changed_paths(checkout: Checkout, base_commit: str) -> tuple[str, ...]:
    """Return the paths that HEAD changes since it left the Base branch, whose commit is given. Raises GitError."""
    arguments = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", f"{base_commit}...HEAD", "--")
    return tuple(checkout.git.run(*arguments).fields)
