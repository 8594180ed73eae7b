"""Claims as scenarios look at them on origin, and make them older than they are."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.world import World, git


def claim_ref(number: int) -> str:
    return f"refs/nightkeep/claims/{number}"


def claims(world: World) -> list[str]:
    """Return the refs of all claims on origin."""
    return git(world.origin, "for-each-ref", "--format=%(refname)", "refs/nightkeep/claims").split()


def claim(world: World, number: int) -> dict[str, Any]:
    """Return what the claim on an issue says."""
    document: dict[str, Any] = json.loads(git(world.origin, "log", "-1", "--format=%B", claim_ref(number)))
    return document


def put_claim(world: World, number: int, message: str, *parents: str) -> str:
    """Let the claim on an issue say something; return its commit."""
    return put_record(world, claim_ref(number), message, *parents)


def put_record(world: World, ref: str, message: str, *parents: str) -> str:
    """Have a ref of origin say something, as a claim or the ref of a Base fix does; return its commit."""
    words = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", "-F", "-"]
    words += [word for parent in parents for word in ("-p", parent)]
    tree = git(world.origin, "hash-object", "-t", "tree", "-w", "/dev/null")
    made = subprocess.run(
        [*words, tree], cwd=world.origin, input=message, capture_output=True, text=True, check=True
    ).stdout.strip()
    git(world.origin, "update-ref", ref, made)
    return made


def age_claim(world: World, number: int, minutes: float) -> None:
    """Let the claim on an issue be of so many minutes ago."""
    said = claim(world, number) | {"moment": moment_of(minutes)}
    put_claim(world, number, json.dumps(said), world.on_origin(claim_ref(number)))


def moment_of(minutes: float) -> str:
    """Return when it was so many minutes ago, as a claim says it."""
    return f"{datetime.now(UTC) - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
