"""The bare side of a Run: `python bare.py STEPS TOKEN` does its git commands and API calls again.

Standard output gets the seconds from after the imports to the end. Nothing is looked at in between: who started this
compares how it ended.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import requests


def main(steps_file: str, token: str) -> None:
    """Do what the file says."""
    steps = json.loads(Path(steps_file).read_text())
    began = time.perf_counter()
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {token}"
        for step in steps:
            if "url" in step:
                session.request(step["method"], step["url"], json=step["body"], timeout=60)
            elif "agent" in step:
                subprocess.run([step["agent"]], cwd=step["cwd"], capture_output=True, check=False)
            elif "unlock" in step:
                Path(step["unlock"]).unlink()
            else:
                _git(step, token)
    print(time.perf_counter() - began)  # noqa: T201


def _git(step: dict[str, Any], token: str) -> None:
    for name, text in step["files"].items():
        path = Path(name)
        for directory in ("objects", "refs"):
            (path.parent / directory).mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environment = {name: _credential(value, token) for name, value in step["environment"].items()}
    subprocess.run(
        ["git", *step["argv"]],
        env={**os.environ, **environment},
        input=step["stdin"].encode(),
        capture_output=True,
        check=False,
    )


def _credential(value: str, token: str) -> str:
    """The recorded helper read the token from a pipe; this one takes a shell as well."""
    if not value.startswith("!f() {"):
        return value
    return f'!f() {{ test "$1" = get && printf "username=x-access-token\\npassword={token}\\n"; }}; f'


if __name__ == "__main__":
    main(*sys.argv[1:])
