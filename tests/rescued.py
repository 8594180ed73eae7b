"""What runs left in the rescue store and in rescue refs, as tests put it there."""

from datetime import UTC, datetime

from tests.world import World, git
from worktree.store import Manifest, Row, Store, write_manifest


def put(
    world: World,
    run_id: str,
    *names: str,
    why: str = "ignored",
    branch: str = "issue-7",
    size: int = 100,
    failed: bool = False,
) -> Store:
    """Put files into the store as a run of that time would have left them: those names, else one of that size."""
    store = Store(world.launch / ".git", run_id)
    store.open()
    store.tree.mkdir()
    files = {name: f"{name}\n".encode(errors="surrogateescape") for name in names} or {"left": b"x" * size}
    for name, content in files.items():
        (store.tree / name).write_bytes(content)
    began = datetime.strptime(run_id[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    manifest = Manifest(
        run_id=run_id,
        branch=branch,
        path="/gone",
        head=None,
        failed=failed,
        moment=f"{began:%Y-%m-%dT%H:%M:%SZ}",
        rows=tuple(Row(name, why) for name in files),
    )
    write_manifest(store.path, manifest)
    return store


def put_ref(world: World, run_id: str, name: str = "snapshot", *, on_origin: bool = False) -> str:
    """Make a rescue ref as a run of issue-7 would; return it."""
    ref = f"refs/nightkeep/rescue/{run_id}/{name}"
    made = git(world.launch, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "nightkeep: snapshot of issue-7")
    if on_origin:
        git(world.origin, "fetch", "-q", str(world.launch), f"{made}:{ref}")
    else:
        git(world.launch, "update-ref", ref, made)
    return ref
