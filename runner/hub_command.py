"""`nightkeep hub`: the embedded GitHub by itself."""

import sys
from pathlib import Path

from runner.exit_codes import ExitCode

_CHECK_LIMIT = 600.0  # seconds


def serve_hub(root: Path, port: int, repositories: list[str], token: str | None, checks: list[str]) -> int:
    """Serve until a signal ends it; return the exit status. `checks` are written NAME=COMMAND."""
    try:
        from runner.hub import Check, Permission, serve

        serve(
            root,
            port=port,
            repositories=dict(_mapping(text) for text in repositories),
            tokens={token: Permission.ADMIN} if token else None,
            checks=[Check(name, command=command, limit=_CHECK_LIMIT) for name, command in map(_check, checks)],
            ready=lambda address: print(address, flush=True),  # noqa: T201 - the address is the command's output
        )
    except ImportError as error:
        print(f"nightkeep: {error.name} is missing; install it from the clone: pip install '.[hub]'", file=sys.stderr)  # noqa: T201
        return ExitCode.NOT_BEGUN
    except (OSError, ValueError) as error:
        print(f"nightkeep: {error}", file=sys.stderr)  # noqa: T201
        return ExitCode.NOT_BEGUN
    return 0


def _mapping(text: str) -> tuple[str, Path]:
    name, separator, path = text.partition("=")
    if not separator or name.count("/") != 1 or not path:
        raise ValueError(f"--repository takes OWNER/NAME=PATH, not {text!r}")
    return name, Path(path)


def _check(text: str) -> tuple[str, str]:
    name, _, command = text.partition("=")
    if not name or not command:
        raise ValueError(f"--check takes NAME=COMMAND, not {text!r}")
    return name, command
