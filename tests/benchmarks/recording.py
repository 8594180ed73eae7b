"""What a Run does outside of itself, written down so that it can be done again without Nightkeep, or counted."""

import json
import re
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.ground import Ground
from tests.world import git

# Stands before git on PATH. Git's own helpers do not come this way: git looks for them in its own directory first.
_SHIM = """\
#!{python} -IS
import json, os, stat, sys, time
given = os.read(0, 1 << 20) if stat.S_ISREG(os.fstat(0).st_mode) else b""
if given:
    os.lseek(0, 0, os.SEEK_SET)
directories = [a.partition("=")[2] for a in sys.argv if a.startswith("--git-dir={temporary}")]
files = {{
    os.path.join(d, name): open(os.path.join(d, name)).read()
    for d in directories for name in os.listdir(d) if os.path.isfile(os.path.join(d, name))
}}
step = {{
    "time": time.time(), "argv": sys.argv[1:], "stdin": given.decode(), "files": files,
    "environment": {{k: v for k, v in os.environ.items() if k.startswith("GIT_")}},
}}
with open({log!r}, "a") as file:
    file.write(json.dumps(step) + "\\n")
os.execv({git!r}, ["git", *sys.argv[1:]])
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A Run's git commands and API calls in their order, with what they were given, and how it ended.

    A step is what `tests/benchmarks/bare.py` does.
    """

    steps: list[dict[str, Any]]
    ending: str


def record(ground: Ground, name: str) -> Recorded:
    """Run to that ending once and write it down."""
    log = ground.shim / "log"
    log.unlink(missing_ok=True)
    real = shutil.which("git")
    shim = ground.shim / "git"
    shim.write_text(_SHIM.format(python=sys.executable, temporary=ground.temporary, log=str(log), git=real))
    shim.chmod(0o755)
    with ground.renewed():
        ground.run(name, shimmed=True)
        ending = ground.ending()
        dates = git(ground.origin, "log", "-1", "--format=%aI %cI", "issue-1").split()
        calls = [
            {"time": at, "method": one.method, "url": f"{ground.api}{one.path}?{one.query}", "body": one.asked}
            for at, one in ground.exchanges
        ]
    commands = [json.loads(line) for line in log.read_text().splitlines()]
    for command in commands:
        command["environment"] |= {"GIT_AUTHOR_DATE": dates[0], "GIT_COMMITTER_DATE": dates[1]}
        command["argv"] = _without_claim(command["argv"])
    steps: list[dict[str, Any]] = sorted([*commands, *calls], key=lambda step: step["time"])
    place = next(at for at, step in enumerate(steps) if "worktree" in step.get("argv", ()))
    worktree = ground.clone.with_name(f"{ground.clone.name}-issue-1")
    steps.insert(place + 1, {"agent": str(ground.agent(name)), "cwd": str(worktree)})
    removal = next(at for at, step in enumerate(steps) if "remove" in step.get("argv", ()))
    steps.insert(removal, {"unlock": str(ground.clone / ".git" / "worktrees" / worktree.name / "locked")})
    return Recorded(steps, ending)


def _without_claim(argv: list[str]) -> list[str]:
    """Return a command without what it does about the claim: its records are made by no git, and sent by none."""
    kept = [word for word in argv if "refs/nightkeep/claims/" not in word]
    return kept if kept == argv else [word for word in kept if word != "--atomic"]


def executed(ground: Ground, name: str) -> Counter[str]:
    """Run to that ending under strace, and return how often each program was executed, by its file's name."""
    log = ground.shim / "strace"
    with ground.renewed():
        ground.run(name, prefix=("strace", "-f", "-qq", "-e", "trace=execve", "-o", str(log)))
    return _programs(log)


def _programs(log: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    begun: dict[str, str] = {}
    for line in log.read_text(errors="replace").splitlines():
        pid = line.split(" ", 1)[0]
        if call := re.search(r'execve\("([^"]*)"', line):
            begun[pid] = Path(call[1]).name
        if line.endswith(" = 0") and pid in begun:
            found[begun.pop(pid)] += 1
    return found
