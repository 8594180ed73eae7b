"""What a person alone had: it is never published."""

from collections.abc import Mapping

from worktree.checkout import Checkout
from worktree.made import LONGEST_LOG
from worktree.reading import read_regular

# How the log of HEAD tells a commit that was made from one that was only moved to.
_COMMITTING = ("commit", "cherry-pick", "revert", "am:", "rebase (pick)", "rebase (continue)", "rebase (reword)")
_MOVING = "fast-forward"


def private_commit(checkout: Checkout, commit: str, now: Mapping[str, str]) -> str | None:
    """Return a commit that a push of `commit` would publish and that was a person's alone, or None.

    A person's alone is what their refs held when the run began, or hold now where the refs were there then, and
    what origin was not seen to hold. Branches of other runs are nobody's, and neither is what was committed here.
    """
    on_origin = {oid for ref, oid in checkout.refs.items() if ref.startswith("refs/remotes/origin/")}
    published = on_origin | checkout.ledger.held
    runs = {f"refs/heads/{branch}" for branch in checkout.runs}
    others = checkout.refs.keys() - runs - {checkout.branch_ref, "refs/stash"}
    owned = [ref for ref in others if not ref.startswith(("refs/remotes/", "refs/nightkeep/checkpoints/"))]
    moved = {now[ref] for ref in owned if ref in now} - _committed(checkout)
    theirs = ({checkout.refs[ref] for ref in owned} | checkout.stashes | moved) - published
    if not theirs:
        return None
    offered = _beyond(checkout, {commit}, published)
    return next(iter(sorted(offered & _beyond(checkout, theirs, published))), None) if offered else None


def _committed(checkout: Checkout) -> set[str]:
    """Return the commits that were made in this worktree, as the log of its HEAD has them."""
    try:
        log = read_regular(checkout.admin / "logs" / "HEAD", LONGEST_LOG)
    except FileNotFoundError:
        return set()
    entries = (line.partition("\t") for line in log.decode(errors="replace").splitlines())
    made = (entry for entry in entries if entry[2].startswith(_COMMITTING) and not entry[2].endswith(_MOVING))
    return {entry[0].split(" ")[1] for entry in made}


def _beyond(checkout: Checkout, commits: set[str], others: set[str]) -> set[str]:
    lines = [*sorted(commits), *(f"^{oid}" for oid in sorted(others))]
    asked = "".join(f"{line}\n" for line in lines).encode()
    return set(checkout.shared.run("rev-list", "--ignore-missing", "--stdin", stdin=asked).text.split())
