"""Real git for tests: a bare origin, a clone, and short ways to look at them."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

PERSON = ("-c", "user.name=Person", "-c", "user.email=person@example.com")


def git(directory: Path, *arguments: str, check: bool = True) -> str:
    """Run git as a person would, and return its output without the last line end."""
    command = ["git", *PERSON, *arguments]
    # File names need not be UTF-8.
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="surrogateescape", check=False)
    if check:
        assert done.returncode == 0, f"git {' '.join(arguments)} in {directory}: {done.stdout}{done.stderr}"
    return done.stdout.removesuffix("\n")


@dataclass(frozen=True, slots=True)
class World:
    """`origin` is a bare repository, `launch` a clone of it."""

    origin: Path
    launch: Path

    def on_origin(self, ref: str) -> str:
        """Return the commit that origin holds at a ref, "" for none."""
        return git(self.origin, "rev-parse", "--verify", "--quiet", ref, check=False)

    def origin_file(self, ref: str, path: str) -> str:
        """Return the text of a file as origin holds it."""
        return git(self.origin, "show", f"{ref}:{path}")

    def hook(self, name: str, script: str, *, repository: Path | None = None) -> None:
        """Install a hook, in origin unless a repository's git directory is given."""
        path = (repository or self.origin) / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def take_origin_away(self) -> None:
        """Leave nothing where origin was."""
        self.origin.rename(self.origin.with_name("elsewhere.git"))

    def snapshot_refs(self) -> list[str]:
        """Return the rescue refs that origin holds."""
        return git(self.origin, "for-each-ref", "--format=%(refname)", "refs/nightkeep/rescue").split()


def make_world(root: Path) -> World:
    """Make an origin with one commit on `main` (a.txt, b.txt, .gitignore) and a clone of it."""
    world = World(root / "origin.git", root / "widget")
    git(root, "init", "-q", "--bare", "-b", "main", str(world.origin))
    git(root, "clone", "-q", str(world.origin), str(world.launch))
    git(world.launch, "checkout", "-q", "-B", "main")
    (world.launch / ".gitignore").write_text("secret.env\nscratch/\n__pycache__/\n")
    (world.launch / "a.txt").write_text("a\n")
    (world.launch / "b.txt").write_text("b\n")
    commit(world.launch, "base")
    git(world.launch, "push", "-q", "origin", "main")
    return world


def commit(directory: Path, message: str) -> str:
    """Commit everything as a person would; return the commit."""
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", message)
    return git(directory, "rev-parse", "HEAD")
