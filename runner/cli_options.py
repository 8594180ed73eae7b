"""The arguments and options that several commands have, as they are told of in `--help`, and how a Run ends."""

from pathlib import Path
from typing import Annotated

import typer

IssueAddress = Annotated[str, typer.Argument(help="The issue, as https://github.com/OWNER/NAME/issues/7.")]
Base = Annotated[str | None, typer.Option(help="The Base branch. Default: the one that is checked out.")]
Merges = Annotated[bool | None, typer.Option("--merge/--no-merge", help="Merge the pull request once it is green.")]
Parallel = Annotated[
    int | None, typer.Option(help="How many sub-issues to work on at once. Default: 3.", metavar="N", min=1)
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="A file with the token. Default: token-file or token-command of your configuration, NIGHTKEEP_TOKEN, "
        "GITHUB_TOKEN, `gh auth token`.",
        metavar="FILE",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

RUN_EPILOG = """\
Exit status: 0 delivered, 1 failed with nothing left only here, 2 not begun, 3 failed with something kept only on this
machine, 4 not merged but left ready for a person, 70 a bug, 128+n ended by signal n. Standard output holds the pull
request's URL and nothing else.
"""
