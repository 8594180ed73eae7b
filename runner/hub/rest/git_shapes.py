"""How answers about refs, branches and commits look."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from runner.hub.requirements import Demands

Shape = dict[str, Any]


def ref(api: str, name: str, kind: str, object_id: str) -> Shape:
    """A ref of the repository whose API address is `api`; `kind` is the type of its object."""
    target = {"type": kind, "sha": object_id, "url": f"{api}/git/{kind}s/{object_id}"}
    return {"ref": name, "node_id": f"REF_{object_id}", "url": f"{api}/git/{quote(name)}", "object": target}


def branch(api: str, html_url: str, name: str, commit: Shape, demands: list[Demands]) -> Shape:
    """A branch, and as much of what it demands as everybody is told."""
    contexts = [context for one in demands for context in one.contexts]
    level = "everyone" if any(one.everyone for one in demands) else "non_admins" if demands else "off"
    required = {"enforcement_level": level, "contexts": contexts, "checks": checks(contexts)}
    address = f"{api}/branches/{quote(name)}"
    return {
        "name": name,
        "commit": commit,
        "_links": {"self": address, "html": f"{html_url}/tree/{quote(name)}"},
        "protected": bool(demands),
        "protection": {"enabled": bool(demands), "required_status_checks": required},
        "protection_url": f"{address}/protection",
    }


def checks(contexts: Iterable[str]) -> list[Shape]:
    """Required checks; any application may report them."""
    return [{"context": context, "app_id": None} for context in contexts]


def commit(api: str, html_url: str, object_id: str, shown: list[str]) -> Shape:
    """A commit, from what `BareRepository.show` returns."""
    tree, parents, name, email, time, message = shown
    address, person = f"{api}/commits/{object_id}", {"name": name, "email": email, "date": time}
    return {
        "sha": object_id,
        "node_id": f"C_{object_id}",
        "url": address,
        "html_url": f"{html_url}/commit/{object_id}",
        "comments_url": f"{address}/comments",
        # Nobody is looked up by the address in a commit.
        "author": {},
        "committer": {},
        "parents": [{"sha": parent, "url": f"{api}/commits/{parent}"} for parent in parents.split()],
        "commit": {
            "url": f"{api}/git/commits/{object_id}",
            "author": person,
            "committer": person,
            "message": message.rstrip("\n"),
            "comment_count": 0,
            "tree": {"sha": tree, "url": f"{api}/git/trees/{tree}"},
        },
    }
